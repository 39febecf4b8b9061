"""Positions in every encoding, and changes to a text, against the plainest model of both."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st
from warpwright.editor.text import Encoding, Position, Text, carried_offset, edit_between
from warpwright.syntax.edits import apply_edits

PIECES = st.lists(
    st.sampled_from(["a", "\n", "\r", "\r\n", "é", "中", "😀", "\f", "\u2028", "\x85", "int x;"]), max_size=12
)
TEXTS = PIECES.map("".join)
ENCODINGS = st.sampled_from(["utf-8", "utf-16", "utf-32"])
UNITS = {"utf-8": ("utf-8", 1), "utf-16": ("utf-16-le", 2), "utf-32": ("utf-32-le", 4)}


def lines_of(text: str) -> list[str]:
    return re.findall(r"[^\r\n]*(?:\r\n|\n|\r)|[^\r\n]+\Z", text)


def position_of(text: str, index: int, encoding: str) -> Position:
    before = re.split(r"\r\n|\n|\r", text[:index])
    codec, size = UNITS[encoding]
    return Position(len(before) - 1, len(before[-1].encode(codec)) // size)


def inside_line_end(text: str, index: int) -> bool:
    return text[index - 1 : index + 1] == "\r\n"


@given(TEXTS, ENCODINGS)
def test_positions_and_offsets_are_each_others_inverse(text: str, encoding: Encoding) -> None:
    document = Text.of(text)
    for index in range(len(text) + 1):
        if not inside_line_end(text, index):
            offset = len(text[:index].encode())
            assert document.position(offset, encoding) == position_of(text, index, encoding)
            assert document.offset(position_of(text, index, encoding), encoding) == offset


@given(TEXTS, st.integers(0, 30), st.integers(0, 30), ENCODINGS)
def test_a_position_outside_the_text_is_moved_into_it(text: str, line: int, character: int, encoding: Encoding) -> None:
    document = Text.of(text)
    offset = document.offset(Position(line, character), encoding)
    assert 0 <= offset <= len(document.data)
    document.data[:offset].decode()  # never inside a character


@given(TEXTS, TEXTS, st.data(), ENCODINGS)
def test_a_change_replaces_its_range(text: str, new: str, data: st.DataObject, encoding: Encoding) -> None:
    places = [index for index in range(len(text) + 1) if not inside_line_end(text, index)]
    start, end = sorted(data.draw(st.tuples(st.sampled_from(places), st.sampled_from(places))))
    changed = Text.of(text).changed(position_of(text, start, encoding), position_of(text, end, encoding), new, encoding)
    wanted = text[:start] + new + text[end:]
    assert changed.data.decode() == wanted
    assert [line.decode() for line in changed.lines] == lines_of(wanted)


@given(TEXTS, TEXTS)
def test_the_edit_between_two_texts_makes_one_into_the_other(old: str, new: str) -> None:
    edit = edit_between(old.encode(), new.encode())
    assert (edit is None) == (old == new)
    assert apply_edits(old.encode(), [edit] if edit else []) == new.encode()


@given(TEXTS, TEXTS, TEXTS)
def test_what_was_not_changed_is_found_where_it_was(start: str, middle: str, end: str) -> None:
    old, new = (start + end).encode(), (start + middle + end).encode()
    for offset in range(len(new)):
        carried = carried_offset(old, new, offset)
        assert carried is None or old[carried : carried + 1] == new[offset : offset + 1]


def test_bytes_that_are_not_utf_8_count_as_one_character_each() -> None:
    text = Text.of_bytes(b"\xe9\xe8 x\n")
    assert text.position(3, "utf-16") == Position(0, 3)
    assert text.offset(Position(0, 0), "utf-16") == 0
