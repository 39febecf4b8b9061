"""Which steps of a search are about a selection, in the user's text and in later versions of it."""

from __future__ import annotations

import pytest
from warpwright.editor.selection import is_about
from warpwright.rewrites.base import Rewrite
from warpwright.syntax.edits import TextEdit
from warpwright.syntax.source import Source, Span

TEXT = "int a;\nint b;\nint c;\n"
SOURCE = Source("/src/a.cu", TEXT.encode())
SELECTED = Span(SOURCE, TEXT.index("int b;"), TEXT.index("int b;") + len("int b;"))


def step(text: str, old: str, new: str, path: str = "/src/a.cu") -> Rewrite:
    at = text.index(old)
    return Rewrite("step", "Step", Source(path, text.encode()), (TextEdit(at, at + len(old), new),), "")


@pytest.mark.parametrize(
    ("old", "is_in_it"), [("b", True), ("b;\nint c", True), ("a;\nint", True), ("a;", False), ("\nint c", False)]
)
def test_an_edit_of_the_selected_text_is_about_it(old: str, is_in_it: bool) -> None:
    assert is_about(step(TEXT, old, "x"), SELECTED) == is_in_it


def test_an_insertion_at_its_end_is_and_one_further_on_is_not() -> None:
    end = Rewrite("step", "Step", SOURCE, (TextEdit(SELECTED.end, SELECTED.end, " // b"),), "")
    behind = Rewrite("step", "Step", SOURCE, (TextEdit(SELECTED.end + 2, SELECTED.end + 2, "x"),), "")
    assert is_about(end, SELECTED)
    assert not is_about(behind, SELECTED)


def test_the_selection_goes_along_with_the_steps_before() -> None:
    later = "int first;\nint a;\nint b, d;\nint more;\nint c;\n"
    assert is_about(step(later, "d", "e"), SELECTED), "what was written into it is part of it"
    assert not is_about(step(later, "first", "e"), SELECTED)
    assert not is_about(step(later, "int c", "e"), SELECTED)


def test_another_file_is_never_about_it() -> None:
    assert not is_about(step(TEXT, "b", "x", "/src/b.cuh"), SELECTED)
