"""Cases that carry what is expected in their own comments.

Under a line of code stand the findings on it, each with carets under what it marks:

    out[y * n + x] = tile[threadIdx.x][threadIdx.y];
    //               ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ bank-conflict: 32 wavefronts/request (ideal 1): ...

A severity other than the rule's own follows the name: `bank-conflict (hint): ...`. The comments stay in the text that
is analysed, so that the lines which messages name are those of the case. A mark needs room for `//`, so nothing that
starts in the first three columns can be marked: indent it.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from support.texts import Text, rewrite_text

UPDATE = bool(os.environ.get("UPDATE_EXPECT"))

_MARK = re.compile(r"^\s*(?://|# )\s*\^+ [a-z0-9-]+(?: \([a-z]+\))?: .*$")


@dataclass(frozen=True, slots=True, order=True)
class Mark:
    """A finding as a case shows it: its 1-based line and column, the columns marked on that line, and the text."""

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


def check_marks(case: Text, find: Callable[[str], list[Mark]]) -> None:
    """Assert that a case's marks are exactly what `find` finds in it; with UPDATE_EXPECT=1, write them instead."""
    text = case.text
    comment = "# " if case.name.endswith(".py") else "//"
    if UPDATE:
        for _ in range(5):  # writing marks moves lines, and messages name lines
            updated = marked(text, find(text), comment)
            if updated == text:
                break
            text = updated
        rewrite_text(case, text)
    assert_same(text, marked(text, find(text), comment), case.id)


def check_text(case: Text, actual: str) -> None:
    """Assert that a case is `actual`; with UPDATE_EXPECT=1, write it instead."""
    if UPDATE:
        rewrite_text(case, actual)
    else:
        assert_same(case.text, actual, case.id)


def assert_same(expected: str, actual: str, name: str) -> None:
    diff = difflib.unified_diff(
        expected.splitlines(), actual.splitlines(), f"{name} as written", f"{name} as found", lineterm=""
    )
    assert expected == actual, "\n".join(diff) + "\n(UPDATE_EXPECT=1 rewrites it)"
