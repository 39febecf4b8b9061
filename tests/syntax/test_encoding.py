"""Bytes become text and text bytes in one module, and none is lost there."""

from __future__ import annotations

import ast
from pathlib import Path

import warpwright
from hypothesis import given
from hypothesis import strategies as st
from warpwright.syntax.encoding import decoded, encoded, of_units, shown, shown_in, units

PACKAGE = Path(warpwright.__file__).parent
APART = {"syntax/encoding.py", "sandbox/launcher.py", "verify/recorded/child.py", "formulas/equality.py"}
"""The module itself; what starts another program before anything is imported; a script that imports nothing; a hash of
what is made there."""
OTHERS = {"self", "model", "decoder"}
"""Whose `decode` is another: the model's."""


@given(st.binary())
def test_all_bytes_come_back(data: bytes) -> None:
    assert encoded(decoded(data)) == data


@given(st.text(st.characters(exclude_categories=()), max_size=20))
def test_every_text_can_be_written_and_sent(text: str) -> None:
    encoded(text)
    shown(text).encode("utf-8")
    assert len(shown(text)) == len(text)
    assert shown_in({text: [text, 1, None]}) == {shown(text): [shown(text), 1, None]}


@given(st.text(), st.integers(0, 20))
def test_units_are_those_of_utf_16(text: str, count: int) -> None:
    assert units(text) == len(text.encode("utf-16-le")) // 2
    assert of_units(text, count) == text.encode("utf-16-le")[: 2 * count].decode("utf-16-le", errors="ignore")


def test_nothing_else_encodes_or_decodes() -> None:
    found = [
        f"{path.relative_to(PACKAGE).as_posix()}:{node.lineno}"
        for path in sorted(PACKAGE.rglob("*.py"))
        if path.relative_to(PACKAGE).as_posix() not in APART
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Attribute) and node.attr in ("encode", "decode")
        if not (isinstance(node.value, ast.Name) and node.value.id in OTHERS)
    ]
    assert not found
