"""Fixtures that carry what is expected in their own comments.

Under a line of code stand the findings on it, each with carets under what it marks:

    out[y * n + x] = tile[threadIdx.x][threadIdx.y];
    //               ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ bank-conflict: 32 wavefronts/request (ideal 1): ...

A severity other than the rule's own follows the name: `bank-conflict (hint): ...`. The comments stay in the text that
is analysed, so that the lines which messages name are those of the file. A mark needs room for `//`, so nothing that
starts in the first three columns can be marked: indent it.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

UPDATE = bool(os.environ.get("UPDATE_EXPECT"))

_MARK = re.compile(r"^\s*(?://|# )\s*\^+ [a-z0-9-]+(?: \([a-z]+\))?: .*$")


@dataclass(frozen=True, slots=True, order=True)
class Mark:
    """A finding as a fixture shows it: its 1-based line and column, the columns marked on that line, and the text."""

    line: int
    column: int
    width: int
    text: str


def stripped(text: str) -> str:
    """The text without its marks."""
    return "".join(line for line in text.splitlines(keepends=True) if not _MARK.match(line.rstrip("\n")))


def marked(text: str, marks: Iterable[Mark], comment: str = "//") -> str:
    """`text` with its marks replaced by `marks`, whose lines are those of `text` as it stands.

    >>> print(marked("int  abc;\\n", [Mark(1, 6, 3, "some-rule: why")]), end="")
    int  abc;
    //   ^^^ some-rule: why
    """
    by_line: dict[int, list[Mark]] = {}
    for mark in marks:
        by_line.setdefault(mark.line, []).append(mark)
    out: list[str] = []
    for number, line in enumerate(text.splitlines(keepends=True), 1):
        if _MARK.match(line.rstrip("\n")):
            continue
        out.append(line if line.endswith("\n") else line + "\n")
        for mark in sorted(by_line.get(number, [])):
            assert mark.column > 3, f"line {number}: indent the code, a mark at column {mark.column} has no room for //"
            out.append(comment + " " * (mark.column - 3) + "^" * mark.width + " " + mark.text + "\n")
    return "".join(out)


def check_marks(path: Path, find: Callable[[str], list[Mark]]) -> None:
    """Assert that the file's marks are exactly what `find` finds in it; with UPDATE_EXPECT=1, write them instead."""
    text = path.read_text(encoding="utf-8")
    comment = "# " if path.suffix == ".py" else "//"
    if UPDATE:
        for _ in range(5):  # writing marks moves lines, and messages name lines
            updated = marked(text, find(text), comment)
            if updated == text:
                break
            text = updated
        path.write_text(text, encoding="utf-8")
    assert_same(text, marked(text, find(text), comment), path.name)


def check_file(path: Path, actual: str) -> None:
    """Assert that a file holds `actual`; with UPDATE_EXPECT=1, write it instead."""
    if UPDATE:
        path.write_text(actual, encoding="utf-8")
    assert_same(path.read_text(encoding="utf-8"), actual, path.name)


def assert_same(expected: str, actual: str, name: str) -> None:
    diff = difflib.unified_diff(
        expected.splitlines(), actual.splitlines(), f"{name} as written", f"{name} as found", lineterm=""
    )
    assert expected == actual, "\n".join(diff) + "\n(UPDATE_EXPECT=1 rewrites it)"
