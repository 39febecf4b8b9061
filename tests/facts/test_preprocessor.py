"""Which of the branches of #if are live: macros, architectures, what is included, and flags of the command line."""

from __future__ import annotations

import operator
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from warpwright.facts.analyze import analyze
from warpwright.facts.model import Assumptions
from warpwright.facts.preprocessor import Macro, condition
from warpwright.facts.steps import Steps
from warpwright.syntax.source import Source, read_include

MACROS = {
    macro.name: macro
    for macro in (
        Macro("EIGHT", None, "8"),
        Macro("EMPTY", None, ""),
        Macro("VERSION", None, "MAKE(2, 1)"),
        Macro("MAKE", ("major", "minor"), "((major) * 100 + (minor))"),
        Macro("SELF", None, "SELF + 1"),
        Macro("HAS_FAST", None, "defined(FAST)"),
        Macro("FAST", None, "1"),
    )
}


def value(text: str) -> int | None:
    return condition(text, MACROS, lambda name: name == "here.h", Steps(100_000))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("EIGHT", 8), ("MISSING", 0), ("MISSING(1, (2))", 0), ("true", 1), ("VERSION >= 201", 1), ("VERSION < 201", 0),
        ("MAKE (3, 0) == 300", 1), ("MAKE", 0), ("SELF == 1", 1), ("defined EIGHT", 1), ("defined ( NO )", 0),
        ("defined(EIGHT) && EIGHT > 4 || nothing", 1), ("!defined(EIGHT)", 0), ("HAS_FAST", 1), ("defined EMPTY", 1),
        ("not defined NO and EIGHT bitand 8", 1), ("0x10u + 010 + 0b1 + 1'000ULL", 1025), ("'A'", 65),
        ("-7 / 2", -3), ("-7 % 2", -1), ("1 ? 2 : 1 / 0", 2), ("0 && 1 / 0", 0), ("1 || 1 / 0", 1), ("1 / 0", None),
        ("2 + 3 * 4 == 14 && (2 + 3) * 4 == 20", 1), ("1 << 3 | 1", 9), ("~0 == -1", 1), ("", None), ("EMPTY", None),
        ("(1", None), ("1 2", None), ("$", None), ("defined", None), ("EIGHT /* eight */ == \\\n 8 // yes", 1),
        ('__has_include("here.h")', 1), ('__has_include("gone.h")', 0), ("__has_include(<cuda_fp8.h>)", 1),
        ("__has_include(<other/gone.h>) || EIGHT", 1),
    ],
)  # fmt: skip
def test_values(text: str, expected: int | None) -> None:
    assert condition(text, MACROS, lambda name: name == '"here.h"', Steps(100_000)) == expected


_OPERATORS = {"+": operator.add, "-": operator.sub, "*": operator.mul, "<": operator.lt, "==": operator.eq,
              "&": operator.and_, "|": operator.or_, "^": operator.xor}  # fmt: skip


@given(st.recursive(st.integers(0, 99), lambda inner: st.tuples(inner, st.sampled_from(sorted(_OPERATORS)), inner)))
def test_parentheses_are_evaluated_as_written(tree: object) -> None:
    def text(node: object) -> str:
        return f"({text(node[0])} {node[1]} {text(node[2])})" if isinstance(node, tuple) else str(node)

    def number(node: object) -> int:
        return int(_OPERATORS[node[1]](number(node[0]), number(node[2]))) if isinstance(node, tuple) else int(str(node))

    assert value(text(tree)) == number(tree)


@given(st.text("()!~+-*/%<>=&|^?:,0123456789 aEIGHTdefined\"'<>\\\n", max_size=60))
def test_any_text_has_a_value_or_none(text: str) -> None:
    assert value(text) is None or isinstance(value(text), int)


def test_macros_that_double_one_another_end() -> None:
    macros = {f"A{n}": Macro(f"A{n}", None, f"(A{n - 1} + A{n - 1})") for n in range(1, 60)}
    assert condition("A59", macros, lambda _: False, Steps(100_000)) is None
    assert condition("(" * 5000 + "1" + ")" * 5000, macros, lambda _: False, Steps(100_000)) is None


def names(text: str, assume: Assumptions | None = None) -> list[str]:
    return [kernel.name for kernel in analyze(Source("a.cu", text.encode()), assume=assume).kernels]


def kernel(name: str) -> str:
    return f"__global__ void {name}(int *p) {{ *p = 0; }}\n"


def test_the_branch_of_the_architecture_is_live() -> None:
    text = (
        "#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900\n" + kernel("hopper") + "#elif __CUDA_ARCH__ >= 800\n"
        "#ifdef MORE\n" + kernel("more") + "#else\n" + kernel("ampere") + "#endif\n#else\n" + kernel("old") + "#endif\n"
    )
    assert names(text) == ["hopper"]
    assert names(text, Assumptions("sm_80")) == ["ampere"]
    assert names(text, Assumptions("sm_86", defines={"MORE": ""})) == ["more"]
    assert names(text, Assumptions("sm_70")) == ["old"]


def test_a_macro_that_is_undefined_is_none() -> None:
    text = "#define A 1\n#undef A\n#ifdef A\n" + kernel("a") + "#endif\n#ifdef __GNUC__\n" + kernel("gnu") + "#endif\n"
    assert names(text) == ["gnu"]
    assert names(text, Assumptions(defines={"__GNUC__": None})) == []


def test_what_is_included_defines_macros(tmp_path: Path) -> None:
    (tmp_path / "config.h").write_text("#pragma once\n#define BLOCK 96\n")
    text = (
        '#if __has_include("config.h")\n#include "config.h"\n#endif\n#if __has_include("gone.h")\n#define BLOCK 32\n'
        "#endif\n" + kernel("k") + "void f(int *p) { k<<<1, BLOCK>>>(p); }\n"
    )
    program = analyze(Source(str(tmp_path / "a.cu"), text.encode()), read_include)
    assert program.kernels[0].launches[0].block == (96, 1, 1)


def test_an_include_whose_name_no_file_can_have(tmp_path: Path) -> None:
    text = f'#include "{"x" * 5000}.cuh"\n#include <{"y" * 5000}.cuh>\n__global__ void k() {{}}\n'
    program = analyze(Source(str(tmp_path / "a.cu"), text.encode()), partial(read_include, folders=["z" * 5000]))
    assert [kernel.name for kernel in program.kernels] == ["k"]
