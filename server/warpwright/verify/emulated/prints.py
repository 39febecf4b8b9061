"""What a kernel prints, and where it stops itself: output as much as what it writes.

Calls of `printf` come in no order that a GPU promises, so that what two runs print is compared as a collection. A
number with a fraction may differ by what rounding makes of it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from warpwright.emulator.machine.printing import MOST_PRINTED
from warpwright.facts.profile import FaultKind
from warpwright.verify.emulated.outputs import Ran

_STOPS = {FaultKind.ASSERTION: "assertion fails", FaultKind.TRAP: "trap is reached"}
_FLOAT = re.compile(r"[-+]?(?:\d+\.\d*|\.\d+|\d+(?=[eE]))(?:[eE][-+]?\d+)?")
_SHOWN = 60
_RELATIVE = 1e-4
_LEAST = 1e-5
"""Of a number as `%f` prints it, with six digits behind the point."""


def other_prints(own: Sequence[Ran], theirs: Sequence[Ran]) -> str:
    """How the candidate prints something else than the original, as the end of a sentence; "" where it does not, or
    where it cannot be compared."""
    if are_prints_lost(own, theirs):
        return ""
    for ran in theirs:
        if not same_prints(own[0].printed, ran.printed):
            return _told(own[0].printed, ran.printed)
    return ""


def are_prints_lost(own: Sequence[Ran], theirs: Sequence[Ran]) -> bool:
    """Whether what is printed cannot be compared: it is too much, or the original does not print the same twice."""
    too_much = any(len(ran.printed) >= MOST_PRINTED for ran in (*own, *theirs))
    return too_much or not same_prints(own[0].printed, own[1].printed)


def same_prints(one: Iterable[str], other: Iterable[str]) -> bool:
    """Whether both are the same texts in any order, up to the rounding of numbers with a fraction.

    >>> same_prints(["a 1.00000\\n", "b\\n"], ["b\\n", "a 1.00001\\n"]), same_prints(["a 1\\n"], ["a 2\\n"])
    (True, False)
    >>> same_prints(["x = 1.5\\n"], ["x = -1.5\\n"]), same_prints(["x\\n"], [])
    (False, False)
    """
    mine, others = Counter(one), Counter(other)
    left, right = sorted((mine - others).elements(), key=_parts), sorted((others - mine).elements(), key=_parts)
    return len(left) == len(right) and all(_is_near(a, b) for a, b in zip(left, right, strict=True))


def _parts(text: str) -> tuple[str, list[float]]:
    return _FLOAT.sub("#", text), [float(number) for number in _FLOAT.findall(text)]


def _is_near(one: str, other: str) -> bool:
    (text, numbers), (same, others) = _parts(one), _parts(other)
    return text == same and all(abs(a - b) <= _LEAST + _RELATIVE * abs(a) for a, b in zip(numbers, others, strict=True))


def _told(mine: Sequence[str], others: Sequence[str]) -> str:
    lost, more = Counter(mine) - Counter(others), Counter(others) - Counter(mine)
    if not others:
        return f"it prints nothing, and the original {_quoted(mine[0])}"
    if lost and more:
        return f"it prints {_quoted(next(iter(more)))}, and the original {_quoted(next(iter(lost)))}"
    if lost:
        return f"it does not print {_quoted(next(iter(lost)))}, which the original does"
    return f"it prints {_quoted(next(iter(more)))}, which the original does not"


def _quoted(text: str) -> str:
    line = " ".join(text.split())
    return f"`{line if len(line) <= _SHOWN else line[: _SHOWN - 3] + '...'}`"


def stops_alone(original: Ran, candidate: Ran) -> str:
    """How the original stops itself and the candidate goes on, as the end of a sentence; "" where it does not."""
    for fault in original.faults:
        if fault.kind in _STOPS and fault.kind not in candidate.kinds:
            return f"it goes on where the original's {_STOPS[fault.kind]}"
    return ""
