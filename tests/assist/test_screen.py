"""What is taken of a model's text, and what is refused whatever it looks like."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from warpwright.assist.generate import read_draft
from warpwright.assist.screen import DEVICE_FUNCTIONS, added_refusal, balanced_end, refusal

REDUCTION = """\
template <typename T>
__global__ void __launch_bounds__(256) block_sum(const T *__restrict__ in, T *__restrict__ out, int n) {
  extern __shared__ float part[];
  __shared__ int count;
  const int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % warpSize;
  float2 pair = make_float2(0.0f, 1.0f);
  float sum = i < n ? static_cast<float>(in[i]) : float(0);
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_down_sync(0xffffffff, sum, offset);
  if (lane == 0) part[threadIdx.x / 32] = fmaxf(sum, pair.x);
  __syncthreads();
  if (threadIdx.x == 0) { count = 0; atomicAdd(&out[0], sum); }
}"""

PLAIN = "__global__ void f(float *x, int n) { int i = threadIdx.x; if (i < n) x[i] = %s; }"


def test_a_plain_kernel_is_taken() -> None:
    assert refusal(REDUCTION.partition("\n")[2].replace("T *", "float *")) == ""
    assert refusal(PLAIN % "sqrtf(x[i])") == ""


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ('#include "/etc/passwd"\n' + PLAIN % "1", "preprocessor"),
        (PLAIN % "1; \n#pragma once\n x[0] = 2", "preprocessor"),
        ('%:include "/etc/passwd"\n' + PLAIN % "1", "hides preprocessor|not complete|preprocessor"),
        ('??=include "/etc/passwd"\n' + PLAIN % "1", "hides preprocessor"),
        ("#inc\\\nlude <x>\n" + PLAIN % "1", "hides preprocessor"),
        (PLAIN % '1; asm volatile("trap;")', "inline assembly"),
        (PLAIN % '1; __asm__("trap;")', "inline assembly"),
        (PLAIN % '1; _Pragma("once")', "not complete|_Pragma"),
        (PLAIN % '1; system("x")', "calls system"),
        (PLAIN % '1; std::system("x")', "calls std::system"),
        (PLAIN % "1; x.run(1)", "calls x.run"),
        (PLAIN % "1; (*(void (*)())n)()", "calls"),
        (PLAIN % "1; f<<<1, 1>>>(x, n)", "launches a kernel"),
        (PLAIN % "*new float", "allocates memory"),
        (PLAIN % "1; throw 1", "throws"),
        ("__attribute__((constructor)) " + PLAIN % "1", "attributes|not"),
        ("int main() { return 0; }\n" + PLAIN % "1", "not one function alone"),
        (PLAIN % "1" + "\n" + PLAIN % "2", "not one function alone"),
        ("int x = 1;\n" + PLAIN % "1", "not one function alone"),
        ("void f(float *x) { x[0] = 1; }", "not a __global__ function"),
        ("__device__ void f(float *x) { x[0] = 1; }", "not a __global__ function"),
        (PLAIN % "struct S { S() { } }", "not"),
        ("__global__ void f(float *x) { x[0] = ", "not complete CUDA"),
        (PLAIN % "é", "outside ASCII"),
        (PLAIN % ("1 + " * 3000 + "1"), "longer than"),
        (PLAIN % "y[i]", "uses y, which it does not declare"),
        ("__global__ void f(const float *x) { x[0] = 1; }", "writes to x, which it declares const"),
        ("__global__ void f(const float *x) { x[0]++; }", "writes to x, which it declares const"),
        ("__global__ void f(const float *x) { float y = x[0]; }", "no array to write its result to"),
        ("__global__ void f(float *x, float *y) { x[0] = 1; }", "never uses its parameter y"),
        ("#include /* */ <x>\n" + PLAIN % "1", "preprocessor"),
        ("#inc\\ \nlude <x>\n" + PLAIN % "1", "hides preprocessor"),
        ("??/\n#include <x>\n" + PLAIN % "1", "hides preprocessor"),
        (PLAIN % "1; \n#pragma unroll\n x[0] = 2", "preprocessor"),
        (PLAIN % '1; \n#line 1 "y"\n x[0] = 2', "preprocessor"),
        (PLAIN % "\n#if __has_include(<x>)\n1\n#endif\n", "preprocessor|complete"),
        (PLAIN % "1; \\u0073ystem(1)", "hides preprocessor|calls"),
        (PLAIN % "1; // more \\\n x[0] = 2;", "hides preprocessor"),
        (PLAIN % "1; x<:0:> = 2", "digraph|complete"),
        (PLAIN % "1'000'000", "quote"),
        (PLAIN % "'a'", "quote"),
        (PLAIN % '1; const char* s = R"(#include </etc/passwd>)"', "quote|known"),
        (PLAIN % "__LINE__", "reserved|declare"),
        (PLAIN % "__builtin_trap()", "calls __builtin_trap"),
        (PLAIN % "1; asm(1)", "calls asm|assembly|complete"),
        (PLAIN % "1; static int kept", "between launches"),
        (PLAIN % "1; struct S { int a; } s", "declares a type|function alone"),
        (PLAIN % "1; FILE* file", "type FILE"),
        (PLAIN % "1; using T = int", "more than variables"),
        (PLAIN % "1; typedef int T", "more than variables"),
        (PLAIN % "::n", "namespace"),
        (PLAIN % "1; auto g = [] { return 1; }", "lambda"),
        (PLAIN % "1; [[noreturn]] int a", "attributes|complete"),
        (PLAIN.replace("int n", "int n = system(1)") % "1", "calls system"),
        (PLAIN.replace("int n", "decltype(system(1)) n") % "1", "calls system|complete|without a name|uses"),
        ("__host__ " + PLAIN % "1", "reserved|not"),
        ("__managed__ int m;\n" + PLAIN % "1", "function alone|complete"),
        ('extern "C" ' + PLAIN % "1", "function alone|quote"),
        (PLAIN % "1" + "\f", "control"),
        (PLAIN % "1" + "\r", "control"),
        (PLAIN % "1; goto out; out: x[0] = 2", "goto"),
    ],
)
def test_refused(code: str, reason: str) -> None:
    said = refusal(code)
    assert any(part in said for part in reason.split("|")), said


def test_every_known_function_is_a_name() -> None:
    assert all(name.isidentifier() for name in DEVICE_FUNCTIONS)
    assert not {"printf", "malloc", "free", "assert", "system"} & DEVICE_FUNCTIONS


def test_words_in_comments_are_no_matter() -> None:
    comment = '// don\'t call system(), asm or #include "x": 50 %: of std::rows, why?? \\n static pass\n'
    assert refusal(comment + PLAIN % "sqrtf(x[i]) /* struct S { template <int> }; __attribute__ */") == ""


PIECES = (
    "#include <x>\n", "%:", "??=", "\\\n", "\\ \n", '"', "'", 'R"(', ')"', "/*", "*/", "//", "asm(", "_Pragma(", "<::>",
    "#", "__asm__", "::", "__attribute__((constructor))", "static ", "system(1);", "struct S {", "}", "[[a]]",
    "template <int>",
)  # fmt: skip


@given(st.lists(st.tuples(st.sampled_from(PIECES), st.integers(0, 200)), min_size=1, max_size=4))
def test_what_is_put_anywhere_into_a_kernel_is_refused_or_a_comment(pieces: list[tuple[str, int]]) -> None:
    code = PLAIN % "sqrtf(x[i])"
    for piece, at in pieces:
        code = code[: at % len(code)] + piece + code[at % len(code) :]
    if refusal(code) == "":
        bare = re.sub(r"/\*.*?\*/|//[^\n]*", " ", code, flags=re.DOTALL)
        assert not re.search(r"[#\"'\\]|::|\?\?|%:|\b(?:asm|_Pragma|system|static|template|struct)\b|__a", bare), code


@pytest.mark.nvcc
def test_what_is_taken_compiles(tmp_path: Path) -> None:
    """The functions that a kernel may call need no header."""
    from warpwright.syntax.source import Source
    from warpwright.toolchain.compile import compile_cubin

    kernel = REDUCTION.partition("\n")[2].replace("T *", "float *")
    assert refusal(kernel) == ""
    compiled = compile_cubin(Source(str(tmp_path / "generated.cu"), kernel.encode()))
    assert compiled.ok, compiled.reason


@pytest.mark.parametrize(
    ("text", "end"),
    [("{}", 2), ("{ // }\n} x", 8), ("{ '\\'' \"}\" }", 12), ("{ /* } */ }", 11), ("{{}", None), ("", None), ("}", 1)],
)
def test_balanced_end(text: str, end: int | None) -> None:
    assert balanced_end(text) == end


def test_a_draft_keeps_the_models_words_and_shows_the_kernel_alone() -> None:
    raw = f"// Step: think\n{PLAIN % 1}\nint main() {{ }}"
    draft = read_draft(raw)
    assert (draft.shown, draft.raw, draft.code) == (True, raw, PLAIN % 1)
    assert "x holds float and is written." in draft.assumptions


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        ("", "The model wrote no kernel."),
        ("__global__ void f() { if (", "The model's kernel has no end."),
        ("__global__ void f() { system(1); }", "The model's kernel is not shown: it calls system"),
    ],
)
def test_a_draft_that_is_not_shown_says_why(raw: str, reason: str) -> None:
    draft = read_draft(raw)
    assert not draft.shown
    assert draft.raw == raw
    assert draft.reason.startswith(reason)


def test_a_users_own_calls_of_templates_stay() -> None:
    text = "__global__ void k(float *a) { store<4>(a, thrust::max<float>(load<4>(a), 1)); }"
    known = frozenset({"load", "store"})
    assert added_refusal(text, text.replace("1", "2"), known) == ""
    assert added_refusal(text, text.replace("load<4>", "load<2>"), known) == ""
    assert "calls drop<4>" in added_refusal(text, text.replace("load<4>", "drop<4>"), known)
