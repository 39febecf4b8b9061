"""Edits as values: byte ranges and their new text."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass

from warpwright.syntax.encoding import encoded


@dataclass(frozen=True, slots=True)
class TextEdit:
    """Replace bytes [start, end) by `new_text`; start == end inserts."""

    start: int
    end: int
    new_text: str


class OverlappingEditsError(ValueError):
    """Two edits touch the same bytes, so their result would depend on their order."""


def without_repeats(edits: Iterable[TextEdit]) -> list[TextEdit]:
    """Edits in which a replacement that is given more than once stands once: a call that two callers lead to is edited
    for each. Inserts at one place are all kept.

    >>> edits = [TextEdit(0, 1, "x"), TextEdit(2, 2, "}"), TextEdit(0, 1, "x"), TextEdit(2, 2, "}")]
    >>> [edit.new_text for edit in without_repeats(edits)]
    ['x', '}', '}']
    """
    seen: set[TextEdit] = set()
    kept: list[TextEdit] = []
    for edit in edits:
        if edit.start == edit.end or edit not in seen:
            kept.append(edit)
        seen.add(edit)
    return kept


def apply_edits(data: bytes, edits: Iterable[TextEdit]) -> bytes:
    """Apply edits given against the same text. Inserts at one place keep their order; repeats count once.

    >>> apply_edits(b"a + b", [TextEdit(0, 1, "x"), TextEdit(4, 5, "y")])
    b'x + y'
    >>> apply_edits(b"ab", [TextEdit(0, 2, "x"), TextEdit(1, 2, "y")])
    Traceback (most recent call last):
    ...
    warpwright.syntax.edits.OverlappingEditsError: edits overlap at byte 1
    """
    parts: list[bytes] = []
    at = 0
    for edit in sorted(without_repeats(edits), key=lambda e: (e.start, e.end)):
        if edit.start < at:
            raise OverlappingEditsError(f"edits overlap at byte {edit.start}")
        parts += (data[at : edit.start], encoded(edit.new_text))
        at = edit.end
    parts.append(data[at:])
    return b"".join(parts)


def unified_diff(before: str, after: str, path: str) -> str:
    """A diff that `patch -p1` applies; empty where nothing changed.

    >>> print(unified_diff("a\\nb\\n", "a\\nc\\n", "k.cu"), end="")
    --- a/k.cu
    +++ b/k.cu
    @@ -1,2 +1,2 @@
     a
    -b
    +c
    """
    lines: list[str] = []
    for line in difflib.unified_diff(
        before.splitlines(keepends=True), after.splitlines(keepends=True), f"a/{path}", f"b/{path}"
    ):
        lines.append(line if line.endswith("\n") else line + "\n\\ No newline at end of file\n")
    return "".join(lines)
