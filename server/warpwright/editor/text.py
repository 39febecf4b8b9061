"""A document as an editor sees it: lines and characters in the editor's units, over the bytes that warpwright works on.

An editor counts a position's character in UTF-8 bytes, UTF-16 units or code points, as was agreed with it, and ends a
line at "\\n", "\\r\\n" or "\\r" only (not at a form feed, which `str.splitlines` would take for one).
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Literal

from warpwright.syntax.edits import TextEdit
from warpwright.syntax.encoding import decoded, encoded, of_units, shown, units

Encoding = Literal["utf-8", "utf-16", "utf-32"]


@dataclass(frozen=True, slots=True)
class Position:
    """A place in a document: 0-based line, and characters in the encoding that was agreed with the editor."""

    line: int
    character: int


@dataclass(frozen=True)
class Text:
    """One version of a document. Immutable: a change gives a new Text that shares the lines it left alone.

    >>> text = Text.of("// é😀\\nint x;\\r\\nint y;")
    >>> text.position(text.offset(Position(0, 6), "utf-16"), "utf-8")
    Position(line=0, character=9)
    >>> text.changed(Position(1, 4), Position(2, 4), "z, ", "utf-8").data.decode()
    '// é😀\\nint z, y;'
    """

    lines: tuple[bytes, ...]

    @staticmethod
    def of(text: str) -> Text:
        """A half surrogate pair, which JSON can carry and UTF-8 cannot, becomes U+FFFD."""
        return Text(_split(encoded(shown(text))))

    @staticmethod
    def of_bytes(data: bytes) -> Text:
        """A byte that is not UTF-8 counts as one character, as editors show it."""
        return Text(_split(data))

    @cached_property
    def data(self) -> bytes:
        return b"".join(self.lines)

    @cached_property
    def _starts(self) -> list[int]:
        return list(accumulate(map(len, self.lines), initial=0))

    def offset(self, position: Position, encoding: Encoding) -> int:
        """Byte offset of a position. Past the end of a line is its end, past the last line the end of the text."""
        if position.line >= len(self.lines):
            return self._starts[-1]
        return self._starts[position.line] + _byte_column(self.lines[position.line], position.character, encoding)

    def position(self, offset: int, encoding: Encoding) -> Position:
        """The position of a byte offset."""
        offset = max(0, min(offset, self._starts[-1]))
        line = bisect_right(self._starts, offset) - 1
        if line == len(self.lines) and line and not self.lines[-1].endswith((b"\n", b"\r")):
            line -= 1
        return Position(line, _units(self.data[self._starts[line] : offset], encoding))

    def changed(self, start: Position, end: Position, new_text: str, encoding: Encoding) -> Text:
        """The text after the range was replaced, as textDocument/didChange gives it."""
        lines = self.lines
        if (end.line, end.character) < (start.line, start.character):
            start, end = end, start
        first, last = min(start.line, len(lines)), min(end.line, len(lines))
        before = lines[first][: _byte_column(lines[first], start.character, encoding)] if first < len(lines) else b""
        after = lines[last][_byte_column(lines[last], end.character, encoding) :] if last < len(lines) else b""
        # "\r" and "\n" that come to stand together are one line end, and a last line without an end goes on.
        if first and (first == len(lines) or lines[first - 1].endswith(b"\r")):
            first -= 1
            before = lines[first] + before
        if last + 1 < len(lines) and lines[last + 1] == b"\n":
            last += 1
            after += lines[last]
        middle = before + encoded(shown(new_text)) + after
        return Text(lines[:first] + _split(middle) + lines[last + 1 :])


def edit_between(old: bytes, new: bytes) -> TextEdit | None:
    """The one edit that turns `old` into `new`, both UTF-8: what lies between their common start and their common end.

    >>> edit_between(b"int x;", b"int yy;")
    TextEdit(start=4, end=5, new_text='yy')
    >>> edit_between("é".encode(), "è".encode())
    TextEdit(start=0, end=2, new_text='è')
    """
    if old == new:
        return None
    start = _common_prefix(old, new)
    while start and _is_continuation(old, new, start):
        start -= 1
    limit = min(len(old), len(new)) - start
    tail = _common_prefix(old[::-1][:limit], new[::-1][:limit]) if limit else 0
    while tail and (old[len(old) - tail] & 0xC0) == 0x80:
        tail -= 1
    return TextEdit(start, len(old) - tail, decoded(new[start : len(new) - tail]))


def carried_offset(old: bytes, new: bytes, offset: int) -> int | None:
    """Where a byte of `new` stood in `old`, or None where it is part of what was changed.

    >>> carried_offset(b"a(); b();", b"a(); xx b();", 8), carried_offset(b"a", b"b", 0)
    (5, None)
    """
    edit = edit_between(old, new)
    if edit is None or offset < edit.start:
        return offset
    shift = len(new) - len(old)
    return offset - shift if offset >= edit.end + shift else None


def _split(data: bytes) -> tuple[bytes, ...]:
    """Lines with their ends. bytes.splitlines, unlike str's, ends a line where the protocol does and nowhere else."""
    return tuple(data.splitlines(keepends=True))


def _byte_column(line: bytes, character: int, encoding: Encoding) -> int:
    body = line.rstrip(b"\r\n")
    if encoding == "utf-8" or body.isascii():
        column = max(0, min(character, len(body)))
        while column < len(body) and (body[column] & 0xC0) == 0x80:
            column -= 1
        return column
    text, characters = decoded(body), max(0, character)
    return len(encoded(text[:characters] if encoding == "utf-32" else of_units(text, characters)))


def _units(before: bytes, encoding: Encoding) -> int:
    if encoding == "utf-8" or before.isascii():
        return len(before)
    text = decoded(before)
    return len(text) if encoding == "utf-32" else units(text)


def _common_prefix(a: bytes, b: bytes) -> int:
    """Length of the common start, by halving: comparing slices is fast, comparing bytes one by one is not."""
    low, high = 0, min(len(a), len(b))
    while low < high:
        middle = (low + high + 1) // 2
        if a[low:middle] == b[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _is_continuation(old: bytes, new: bytes, at: int) -> bool:
    return any(at < len(data) and (data[at] & 0xC0) == 0x80 for data in (old, new))
