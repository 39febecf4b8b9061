"""What a program's test printed, before a change and after it: the same, but for what differs from run to run anyway?

Two runs of the original say what that is: a number in which they differ counts for nothing, and so do the numbers of a
line that tells a time or a rate. Lines that come in another order each time are compared in the order of their texts.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

_NUMBER = re.compile(r"(?<![\w.])[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
_TIMED = re.compile(
    r"\b(?:times?|timing|elapsed|took|takes|duration|latency|bandwidth|throughput|performance|speed-?up|fps|hz)\b"
    r"|\d\s*(?:[nmu\u00b5]?s|secs?|seconds?|milliseconds?|microseconds?|minutes?)\b"
    r"|\b(?:[KMGT]?i?B|[KMGT]?(?:flops?|ops?|bytes))/s\b|\b[KMGT]?flops?\b|per second",
    re.IGNORECASE,
)
_MARK = "\0"
_SHOWN = 80


@dataclass(frozen=True, slots=True)
class _Line:
    """A line with its numbers taken out, and these."""

    shape: str
    numbers: tuple[str, ...]
    text: str

    @property
    def is_timed(self) -> bool:
        return _TIMED.search(self.text) is not None


@dataclass(frozen=True, slots=True)
class Compared:
    """`why` says how the candidate's output differs, "" where it does not; `is_restless` where the original's own
    differs from run to run in more than numbers, so that nothing was compared; `masked` counts the numbers that were
    not."""

    why: str = ""
    is_restless: bool = False
    masked: int = 0


def compare_outputs(originals: Sequence[str], candidates: Sequence[str], tolerance: float = 0.0) -> Compared:
    """Compare what the runs of both sides printed. Two numbers of which one has a fraction may differ by `tolerance`
    times the original's.

    >>> compare_outputs(["n 4\\n12.5 ms\\n", "n 4\\n12.9 ms\\n"], ["n 4\\n6.1 ms\\n"])
    Compared(why='', is_restless=False, masked=1)
    >>> compare_outputs(["sum 3\\n"] * 2, ["sum 4\\n"]).why
    'line 1 is `sum 4`, and `sum 3` before'
    >>> compare_outputs(["a 1\\nb 2\\n", "b 2\\na 1\\n"], ["b 2\\na 1\\n"]).why
    ''
    >>> compare_outputs(["x", "y"], ["x"]).is_restless
    True
    """
    own = [_lines(text) for text in originals]
    if any(_shapes(lines) != _shapes(own[0]) for lines in own):
        own = [sorted(lines, key=_order) for lines in own]
        if any(_shapes(lines) != _shapes(own[0]) for lines in own):
            return Compared(is_restless=True)
        theirs = [sorted(_lines(text), key=_order) for text in candidates]
    else:
        theirs = [_lines(text) for text in candidates]
    free = {
        (row, place)
        for row, line in enumerate(own[0])
        for place in range(len(line.numbers))
        if line.is_timed or len({lines[row].numbers[place] for lines in own}) > 1
    }
    why = next((found for lines in theirs if (found := _difference(own[0], lines, free, tolerance))), "")
    return Compared(why, masked=len(free))


def _lines(text: str) -> list[_Line]:
    lines = [line.rstrip() for line in text.splitlines()]
    return [_Line(_NUMBER.sub(_MARK, line), tuple(_NUMBER.findall(line)), line) for line in lines]


def _shapes(lines: Sequence[_Line]) -> list[str]:
    return [line.shape for line in lines]


def _order(line: _Line) -> tuple[str, tuple[str, ...]]:
    return line.shape, line.numbers


def _difference(own: Sequence[_Line], theirs: Sequence[_Line], free: set[tuple[int, int]], tolerance: float) -> str:
    for row, (mine, other) in enumerate(zip(own, theirs, strict=False)):
        same = mine.shape == other.shape and all(
            (row, place) in free or _is_near(a, b, tolerance)
            for place, (a, b) in enumerate(zip(mine.numbers, other.numbers, strict=True))
        )
        if not same:
            return f"line {row + 1} is {_quoted(other.text)}, and {_quoted(mine.text)} before"
    if len(own) > len(theirs):
        return f"line {len(theirs) + 1}, {_quoted(own[len(theirs)].text)}, is not printed any more"
    if len(own) < len(theirs):
        return f"line {len(own) + 1}, {_quoted(theirs[len(own)].text)}, was not printed before"
    return ""


def _is_near(one: str, other: str, tolerance: float) -> bool:
    if one == other:
        return True
    has_fraction = any(mark in number for number in (one, other) for mark in ".eE")
    return has_fraction and abs(float(one) - float(other)) <= tolerance * abs(float(one))


def _quoted(text: str) -> str:
    return f"`{text if len(text) <= _SHOWN else text[: _SHOWN - 3] + '...'}`"
