"""What nvcc is told: no text of a project in which a shell sees anything, and still what the project means."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from warpwright.syntax.source import Source
from warpwright.toolchain.command_line import command_line, unsafe_word
from warpwright.toolchain.compile import compile_cubin, compile_ptx

TEXT = st.text(st.characters(codec="utf-8"), max_size=30) | st.sampled_from(
    ["$(touch x)", "`touch x`", "a;b", "a\nb", 'a"b', "a'b", "*", "&& x", "| x", "> x", "%PATH%", "!x", "~", "\\"]
)  # fmt: skip
OPTIONS = (
    "-D", "-DX=", "-DF(a)=", "-U", "-I", "-I=", "-isystem", "-isystem=", "-include=", "-std=", "-O", "-ccbin=",
    "-Xptxas=", "-maxrregcount=", "-ftz=", "-fmad=", "-default-stream=", "-arch=", "--options-file=", "@",
    "-Xcompiler=", "-fplugin=", "-specs=", "-B", "-wrapper=", "",
)  # fmt: skip


@given(
    st.lists(st.tuples(st.sampled_from(OPTIONS), TEXT).map("".join), max_size=6), TEXT.map(lambda name: f"/p/{name}")
)
def test_whatever_a_project_says_no_shell_makes_anything_of_it(flags: list[str], folder: str) -> None:
    made = command_line(flags, Path(folder))
    assert unsafe_word(made.words) is None
    assert not [word for word in made.words if re.search(r"[$`\"'\\;&|<>*?!()\n\r\t{}\[\]#%^]", word)]
    assert not [
        word for word in made.words if re.match(r"-ccbin|-Xcompiler|--options-file|@|-fplugin|-specs|-B|-wrapper", word)
    ]
    lines = re.split(r"[\r\n]+", made.header.strip("\r\n"))  # what ends a line for nvcc; U+0085 does not
    assert all(line.startswith(("#define ", "#include ")) for line in lines if line)


@pytest.mark.nvcc
def test_macros_of_any_text_keep_their_meaning(tmp_path: Path) -> None:
    text = """
#include <cstring>
static_assert(SUM == 3 && TWICE(4) == 8 && EMPTY + 1 == 1 && PLAIN == 7 && COMMA == 2, "");
static_assert(sizeof(NAME) == sizeof("a $(id) `id` \\"b\\""), "");
#ifdef GONE
#error it was taken away
#endif
TYPE global = LAST;
"""
    flags = (
        "-DSUM=(1+2)", "-DTWICE(x)=((x) * 2)", "-DEMPTY=", "-DPLAIN=7", "-DCOMMA=(1,2)",
        '-DNAME="a $(id) `id` \\"b\\""',
        "-DGONE=(1)", "-UGONE", "-DTYPE=unsigned long", "-DLAST=1", "-DLAST=sizeof(int)",
    )  # fmt: skip
    made = compile_cubin(Source(str(tmp_path / "a.cu"), text.encode()), flags=flags)
    assert made.ok, made.reason


@pytest.mark.nvcc
@pytest.mark.parametrize(
    "name", ["with space", "$(touch ran)", "`touch ran`", "it's", 'a"b', "a;b&c", "a,b", "größe", "a\\b"]
)
def test_folders_of_any_name_are_included_from(name: str, tmp_path: Path) -> None:
    folder = tmp_path / name
    folder.mkdir()
    (folder / "beside.h").write_text("#define BESIDE 1\n")
    (folder / "given").mkdir()
    (folder / "given" / "there.h").write_text(
        "#define THERE 2\nint bad = missing;\n__device__ int two() { return 2; }\n"
    )
    source = Source(str(folder / f"{name}.cu"), b'#include "beside.h"\n#include <there.h>\nint i = BESIDE + THERE;\n')
    flags = (f"-I{folder / 'given'}",) if not set(name) & set(',"') else ()
    made = compile_cubin(source, flags=flags)
    if not flags:
        assert "there.h" in made.reason
        return
    assert str(folder / "given" / "there.h") in {message.path for message in made.messages}, made
    (folder / "given" / "there.h").write_text("#define THERE 2\n")
    made = compile_ptx(source, flags=flags)
    assert made.ok, made.reason
    assert {str(folder / "beside.h"), str(folder / "given" / "there.h")} <= set(made.included)
    assert not (tmp_path / "ran").exists()


@pytest.mark.nvcc
def test_a_file_that_is_included_before_the_text_is(tmp_path: Path) -> None:
    (tmp_path / "first $(id).h").write_text("#define FIRST 1\n")
    made = compile_cubin(
        Source(str(tmp_path / "a.cu"), b"int i = FIRST;"), flags=(f"-include={tmp_path}/first $(id).h",)
    )
    assert made.ok, made.reason
