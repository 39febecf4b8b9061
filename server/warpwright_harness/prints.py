"""What kernels print: the lines of a launch, and whether two launches print the same.

The driver writes what `printf` of device code gave to the process's standard output when it is waited for. It keeps
BUFFER_BYTES of it; where a launch prints more, the first is lost, and nothing is compared.
"""

from __future__ import annotations

import ctypes
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

BUFFER_BYTES = 1 << 20
"""Of the driver, where nothing asks for more (CUDA C++ Programming Guide, "Formatted Output")."""
_MOST_BYTES = BUFFER_BYTES // 4
_FLOAT = re.compile(r"[-+]?(?:\d+\.\d*|\.\d+|\d+(?=[eE]))(?:[eE][-+]?\d+)?")
_SHOWN = 60
_RELATIVE = 1e-4
_LEAST = 1e-5
TOO_MUCH = ("",)
"""In the place of lines where there are too many; no line is empty."""


@contextmanager
def captured(wanted: bool) -> Iterator[list[str]]:
    """The lines that are printed until its end, in no order; nothing is looked at where it is not wanted."""
    lines: list[str] = []
    if not wanted:
        yield lines
        return
    library = ctypes.CDLL(None)
    library.fflush(None)
    kept, held = os.dup(1), os.memfd_create("printed")
    try:
        os.dup2(held, 1)
        try:
            yield lines
        finally:
            library.fflush(None)
            os.dup2(kept, 1)
        size = os.fstat(held).st_size
        text = os.pread(held, size, 0).decode("utf-8", errors="replace") if size <= _MOST_BYTES else ""
        lines += TOO_MUCH if size > _MOST_BYTES else [line for line in text.splitlines() if line]
    finally:
        os.close(kept)
        os.close(held)


def other_prints(own: Sequence[Sequence[str]], theirs: Sequence[Sequence[str]]) -> str:
    """How the candidate's launches print something else than the original's, as the end of a sentence; "" where they do
    not, or where it cannot be compared."""
    if are_prints_lost(own, theirs):
        return ""
    return next((_told(own[0], each) for each in theirs if not same_prints(own[0], each)), "")


def are_prints_lost(own: Sequence[Sequence[str]], theirs: Sequence[Sequence[str]]) -> bool:
    """Whether what is printed cannot be compared: it is too much, or the original does not print the same twice."""
    too_much = any(tuple(each) == TOO_MUCH for each in (*own, *theirs))
    return too_much or not all(same_prints(own[0], each) for each in own)


def same_prints(one: Iterable[str], other: Iterable[str]) -> bool:
    """Whether both are the same lines in any order, up to the rounding of numbers with a fraction.

    >>> same_prints(["a 1.00000", "b"], ["b", "a 1.00001"]), same_prints(["a 1"], ["a 2"])
    (True, False)
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
    return f"`{text if len(text) <= _SHOWN else text[: _SHOWN - 3] + '...'}`"
