"""A compiler's messages find their place in the text, and keep it."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from warpwright.editor.text import edit_between
from warpwright.syntax.edits import TextEdit
from warpwright.syntax.source import Source, read_include
from warpwright.toolchain.messages import CompilerMessage, Note, parse_messages
from warpwright.toolchain.quoted import columns_of
from warpwright.toolchain.remarks import Remark, carried, remarks_of, ways_to_includes


@pytest.mark.parametrize(
    ("line", "quoted", "at", "token"),
    [
        ("__global__ void k(int n) { k<<<1, 1>>>(n); }",
         "__attribute__((global)) void k(int n) { k<<<1, 1>>>(n); }", "k<<<", "k"),
        ("\tint é = 3;   /* tab */ int u = y;", " int \\U000000e9 = 3; int u = y;", "y;", "y"),
        ("\tint é = 3;   /* tab */ int u = y;", " int \\U000000e9 = 3; int u = y;", "\\U", "é"),
        ("  a[i] = F(a[i]) + b[i]; // b", "  a[i] = (a[i] * 2.0) + b[i];", "* 2", "F"),
        ("  a[i] = F(a[i]) + b[i]; // b", "  a[i] = (a[i] * 2.0) + b[i];", "b[i]", "b"),
        ("  end of a comment */ x = y + z;", "                      x = y + z;", "y", "y"),
        ('  s = "/* no comment */"; t = u;', '  s = "/* no comment */"; t = u;', "u;", "u"),
        ("  MAX_OF", "  ((a) > (b) ? (a) : (b))", "?", "MAX_OF"),
    ],
)  # fmt: skip
def test_the_token_that_the_caret_points_at(line: str, quoted: str, at: str, token: str) -> None:
    first, last = columns_of(line, quoted, quoted.index(at))
    assert line[first:last] == token


def test_a_line_without_a_caret_is_meant_whole() -> None:
    assert columns_of("  a = b; ", "", -1) == (2, 8)
    assert columns_of("   ", "", -1) == (3, 3)


@given(st.text(), st.text(), st.integers(-1, 60))
def test_any_line_has_a_place(line: str, quoted: str, caret: int) -> None:
    first, last = columns_of(line, quoted, caret)
    assert 0 <= first <= last <= len(line)


@given(st.text(min_size=1), st.text(), st.text(max_size=3), st.data())
def test_an_edit_elsewhere_carries_and_one_of_the_text_itself_drops(
    before: str, after: str, new: str, data: st.DataObject
) -> None:
    text = f"{before}token{after}".encode()
    start = len(before.encode())
    remark = Remark(start, start + 5, "error", "m")
    cut = data.draw(st.integers(0, len(before)))
    earlier = f"{before[:cut]}{new}{before[cut:]}token{after}".encode()
    for found in carried([remark], edit_between(text, earlier)):
        assert earlier[found.start : found.end] == b"token"
    assert carried([remark], TextEdit(start + 2, start + 3, "x")) == ()


def test_a_message_of_a_file_far_inside_stands_at_the_first_include_that_leads_there(tmp_path: Path) -> None:
    (tmp_path / "a.cuh").write_text('#include "b.cuh"\n')
    (tmp_path / "b.cuh").write_text('#include "a.cuh"\n#include "c.cuh"\n')
    (tmp_path / "c.cuh").write_text("int x = y;\n")
    text = '#include <cstdio>\n  #  include "a.cuh" // here\n'
    source = Source(str(tmp_path / "m.cu"), text.encode())
    ways = ways_to_includes(source, partial(read_include, folders=()))
    assert set(ways) == {str(tmp_path / name) for name in ("a.cuh", "b.cuh", "c.cuh")}
    message = CompilerMessage(str(tmp_path / "c.cuh"), 1, "error", 'identifier "y" is undefined')
    (remark,) = remarks_of([message], source, ways)
    assert source.text(remark.start, remark.end) == '"a.cuh"'
    assert [(aside.path, aside.line, aside.start) for aside in remark.asides] == [(message.path, 1, None)]


def test_a_message_of_a_systems_header_stands_at_what_the_document_instantiates() -> None:
    text = "#include <vector>\nint x;\nvoid f() { g<int>(); }\n"
    message = CompilerMessage("/usr/include/vector", 7, "error", "no", notes=(Note("/m.cu", 3, "instantiation of g"),))
    (remark,) = remarks_of([message], Source("/m.cu", text.encode()), {})
    assert text[remark.start : remark.end] == "void f() { g<int>(); }"
    (alone,) = remarks_of(
        [CompilerMessage("/usr/include/vector", 7, "error", "no")], Source("/m.cu", text.encode()), {}
    )
    assert text[alone.start : alone.end] == "<vector>"


@given(st.binary(max_size=200), st.integers(0, 9), st.text(max_size=9), st.integers(-1, 9))
def test_any_text_takes_any_message(data: bytes, line: int, quoted: str, caret: int) -> None:
    message = CompilerMessage("/m.cu", line, "error", "m", quoted=quoted, caret=min(caret, len(quoted)))
    for remark in remarks_of([message, *parse_messages(quoted, "/m.cu")], Source("/m.cu", data), {}):
        assert 0 <= remark.start <= remark.end <= len(data)
        assert Remark.from_json(remark.to_json()) == remark
