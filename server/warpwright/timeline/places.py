"""At which line of the user's a program was when, and what the text there says."""

from __future__ import annotations

import ast
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path

from warpwright.files import read_file
from warpwright.syntax.encoding import shown_bytes
from warpwright.timeline.host import main_thread
from warpwright.timeline.model import Frame, Place, Trace
from warpwright.timeline.torch_trace import is_users

_MOST_SOURCE = 1 << 22
_WORDS = {
    ".item()": ("item", "float", "int", "bool", "tolist", "if"),
    ".cpu()": ("cpu", "to", "numpy", "tolist", "print"),
    "a boolean mask or nonzero()": ("nonzero", "[]"),
}
_READS = {
    "open", "read", "read_bytes", "read_text", "imread", "read_image", "read_csv", "read_parquet", "fromfile",
    "loadtxt", "genfromtxt", "read_file", "decode_jpeg",
}  # fmt: skip
_LOADS = {"np", "numpy", "torch", "json", "pickle", "joblib"}


class Whereabouts:
    """Which line the main thread was at when."""

    def __init__(self, trace: Trace) -> None:
        main = main_thread(trace)
        events = [(each.time, each.place) for each in trace.lines if each.thread == main]
        events = events or list(_of_frames([each for each in trace.frames if each.thread == main]))
        events.sort(key=lambda event: event[0])
        self.times = [time for time, _ in events]
        self.places = [place for _, place in events]

    def at(self, time: int) -> Place | None:
        index = bisect_right(self.times, time) - 1
        return self.places[index] if index >= 0 else None

    def between(self, start: int, end: int) -> Iterator[tuple[int, int, Place | None]]:
        """The time from `start` to `end` cut where the line changes."""
        index = bisect_right(self.times, start)
        now = start
        while index < len(self.times) and self.times[index] < end:
            if self.times[index] > now:
                yield now, self.times[index], self.places[index - 1] if index else None
                now = self.times[index]
            index += 1
        yield now, end, self.places[index - 1] if index else None


def _of_frames(frames: Sequence[Frame]) -> Iterator[tuple[int, Place | None]]:
    """Where a trace has no lines: the innermost of the user's functions, whenever it changes."""
    stack: list[tuple[int, Place]] = []
    for each in sorted((each for each in frames if is_users(each.file)), key=lambda frame: (frame.start, -frame.end)):
        while stack and stack[-1][0] <= each.start:
            time, _ = stack.pop()
            yield time, stack[-1][1] if stack else None
        place = Place(each.file, each.line, each.name, exact=False)
        stack.append((min(each.end, stack[-1][0]) if stack else each.end, place))
        yield each.start, place
    while stack:
        time, _ = stack.pop()
        yield time, stack[-1][1] if stack else None


def refined(place: Place | None, what: str) -> Place | None:
    """A place of which only the function is known, as the one line in it that can do `what`; as it was where there are
    several, or where the file cannot be read."""
    if place is None or place.exact or what not in _WORDS:
        return place
    lines = _lines_that(place.file, place.line, place.function, _WORDS[what])
    return Place(place.file, lines[0]) if len(lines) == 1 else place


@lru_cache(4096)
def reads_files(place: Place) -> bool:
    """Whether a line calls something that reads files."""
    for node in _nodes(place.file):
        if isinstance(node, ast.Call) and node.lineno <= place.line <= (node.end_lineno or node.lineno):
            name = _called(node)
            owner = (
                node.func.value.id
                if isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Name)
                else ""
            )
            if name in _READS or (name == "load" and owner in _LOADS):
                return True
    return False


@lru_cache(4096)
def loop_around(place: Place) -> Place | None:
    """The first line of the innermost loop that a line stands in."""
    heads = [
        node.lineno
        for node in _nodes(place.file)
        if isinstance(node, ast.For | ast.While) and node.lineno < place.line <= (node.end_lineno or 0)
    ]
    return Place(place.file, max(heads)) if heads else None


@lru_cache(4096)
def _lines_that(file: str, first: int, function: str, words: tuple[str, ...]) -> tuple[int, ...]:
    inside = [
        node
        for node in _nodes(file)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.name == function
        and min([node.lineno, *(each.lineno for each in node.decorator_list)]) <= first <= node.lineno
    ]
    found = set()
    for outer in inside[:1]:
        for node in ast.walk(outer):
            match node:
                case ast.Call() if _called(node) in words:
                    found.add(node.lineno)
                case ast.If() if "if" in words:
                    found.add(node.lineno)
                case ast.Subscript() if "[]" in words:
                    found.add(node.lineno)
    return tuple(sorted(found))


def _called(call: ast.Call) -> str:
    function = call.func
    return (
        function.attr if isinstance(function, ast.Attribute) else function.id if isinstance(function, ast.Name) else ""
    )


@lru_cache(64)
def _nodes(file: str) -> tuple[ast.AST, ...]:
    try:
        return tuple(ast.walk(ast.parse(read_file(Path(file), _MOST_SOURCE))))
    except (OSError, ValueError, SyntaxError, RecursionError, MemoryError):
        return ()


def text_at(place: Place) -> str:
    """The line's own text, without its indentation; empty where it cannot be read."""
    return dict(_texts(place.file)).get(place.line, "") if place.exact else ""


@lru_cache(64)
def _texts(file: str) -> Mapping[int, str]:
    try:
        text = shown_bytes(read_file(Path(file), _MOST_SOURCE))
    except OSError:
        return {}
    return {number: line.strip() for number, line in enumerate(text.splitlines(), 1)}
