"""Positions, edits and incremental parsing."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from warpwright.syntax.edits import OverlappingEditsError, TextEdit, apply_edits
from warpwright.syntax.source import Source, SourceError, read_include, read_source

TEXT = "// größer\n__global__ void k(float* a) {\r\n  a[0] = 1; // ✓\n}\n"


def test_columns_count_characters() -> None:
    source = Source("a.cu", TEXT.encode())
    assert source.position(TEXT.encode().index("ß".encode())) == (1, 7)
    assert source.line_text(2) == "__global__ void k(float* a) {"


@given(st.integers(0, 60), st.integers(0, 60), st.text("ab\n{}(;é", max_size=12))
def test_an_edited_source_parses_as_a_fresh_one(start: int, end: int, new: str) -> None:
    source = Source("a.cu", TEXT.encode())
    start, end = sorted((min(start, len(source.data)), min(end, len(source.data))))
    edited = source.edited([TextEdit(start, end, new)])
    assert str(edited.root) == str(Source("a.cu", edited.data).root)


def test_overlapping_edits_are_refused() -> None:
    with pytest.raises(OverlappingEditsError):
        apply_edits(b"abcdef", [TextEdit(0, 4, "x"), TextEdit(2, 6, "y")])


def test_what_cannot_be_read_says_so_in_a_sentence(tmp_path: Path) -> None:
    binary = tmp_path / "b.cu"
    binary.write_bytes(b"\x7fELF\0\0")
    for path, word in ((tmp_path / "none.cu", "no such file"), (tmp_path, "directory"), (binary, "binary")):
        with pytest.raises(SourceError, match=word):
            read_source(path)


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="this system has no /dev/zero")
def test_a_file_without_an_end_is_not_read_for_ever() -> None:
    with pytest.raises(SourceError, match="a device"):
        read_source("/dev/zero")


def test_bytes_that_are_not_utf8_survive_an_edit(tmp_path: Path) -> None:
    path = tmp_path / "latin.cu"
    path.write_bytes(b"// caf\xe9\nint x;\n")
    edited = read_source(path).edited([TextEdit(12, 13, "yy")])
    assert edited.data == b"// caf\xe9\nint yy;\n"


def test_a_quoted_include_is_found_beside_the_file_and_under_an_include_folder(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "include").mkdir()
    (tmp_path / "src" / "near.h").write_text("int near;")
    (tmp_path / "include" / "far.h").write_text("int far;")
    main = str(tmp_path / "src" / "a.cu")
    assert read_include(main, "near.h") is not None
    assert read_include(main, "far.h") is not None
    assert read_include(main, "none.h") is None


def test_an_include_that_a_build_file_would_find_is_found_in_the_project(tmp_path: Path) -> None:
    for folder in ("app", "linear", "mesh", "other"):
        (tmp_path / folder).mkdir()
    (tmp_path / "linear" / "vector.hpp").write_text("int vector;")
    (tmp_path / "mesh" / "twice.h").write_text("int one;")
    (tmp_path / "other" / "twice.h").write_text("int other;")
    (tmp_path / "app" / "math.h").write_text("int own;")
    main = str(tmp_path / "app" / "a.cu")
    assert read_include(main, "linear/vector.hpp") is not None
    assert read_include(main, "<vector.hpp>") is not None
    assert read_include(main, "twice.h") is None
    assert read_include(main, "<math.h>") is None
    assert read_include(main, "<vector>") is None


def test_half_written_text_is_read_as_if_its_brackets_were_closed() -> None:
    text = b'__global__ void a() {}\n// {{{ "\n__global__ void k(float* o) { if (o["(\'{\'"[0]'
    source = Source("a.cu", text)
    assert source.root.has_error
    assert [n.type for n in source.closed_root.named_children if n.type == "function_definition"] == [
        "function_definition",
        "function_definition",
    ]
    whole = Source("a.cu", b"__global__ void a() {}\n")
    assert whole.closed_root == whole.root


@pytest.mark.parametrize("attribute", ["__cluster_dims__(2, 1, 1)", "__maxnreg__(64)", "__launch_bounds__(256)"])
def test_attributes_of_a_kernel_are_read_over(attribute: str) -> None:
    assert not Source("a.cu", f"__global__ void {attribute} k(int* a) {{ a[0] = 1; }}".encode()).root.has_error


def test_an_insertion_where_a_replacement_starts_parses_as_a_fresh_text() -> None:
    """In whichever order they are given: the insertion stands first in the text."""
    source = Source("a.cu", b"void f() { if (a >= b) return; // c\n  x = 1;\n}\n")
    edits = [TextEdit(11, 11, "int y;\n"), TextEdit(11, 30, "if (a < b) {"), TextEdit(44, 44, "\n}")]
    for listed in (edits, edits[::-1]):
        edited = source.edited(listed)
        assert edited.text() == "void f() { int y;\nif (a < b) { // c\n  x = 1;\n}\n}\n"
        assert str(edited.root) == str(Source("a.cu", edited.data).root)


def test_a_text_that_the_parser_reads_in_ever_more_ways_is_not_read() -> None:
    assert Source("a.cu", b"a<b>::" * 5000).is_tangled
    assert not Source("a.cu", b"int f(int x) { return x < 3 ? x : f(x - 1); }\n" * 5000).is_tangled


def test_an_edit_keeps_the_files_that_are_read_in_the_place_of_those_on_disk() -> None:
    header = Source("part.h", b"int other;")
    whole = Source("a.cu", b'#include "part.h"\nint x;').including(header)
    assert whole.edited([TextEdit(22, 23, "yy")]).changed == (header,)
    assert whole.edited([TextEdit(0, 24, "int\\\n y;")]).changed == (header,)
