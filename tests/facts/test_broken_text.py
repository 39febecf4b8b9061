"""Broken code is the normal case in an editor: any damage to a real kernel gives facts, never an exception."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.examples import examples
from support.texts import read_texts, texts_in
from warpwright.cuda.extension.unit import unit_of
from warpwright.facts.analyze import analyze
from warpwright.facts.document import facts_document, facts_text
from warpwright.rules.registry import all_rules, run_rules
from warpwright.syntax.source import Source

TESTS = Path(__file__).parent.parent
PROGRAMS = (*read_texts(TESTS / "facts" / "cases.md"), *texts_in(TESTS / "rules" / "cases"))
TEXTS = [program.text.encode() for program in PROGRAMS if program.name.endswith(".cu")]
TEXTS += [path.read_bytes() for path in sorted((TESTS.parent / "csrc_samples").rglob("*.cu"))]
SHORT = [text for text in TEXTS if len(text) < 2000]
INSERTED = b"{}()[];,*&<>=+-/%!?:.#\"'\\\n 0x\x80"
PARTS = 16
CASES = 250  # of each part


def survive(data: bytes) -> None:
    program = analyze(Source("broken.cu", data))
    unit = unit_of(program.source)
    for rule in all_rules():
        if rule.check_unit is not None:
            list(rule.check_unit(unit))
        for kernel in program.kernels if rule.check is not None else ():
            list(rule.check(kernel))
    facts_document([program])
    facts_text(program)


def damaged(text: bytes, random: Random) -> bytes:
    """The text with some bytes deleted, inserted or doubled."""
    data = bytearray(text)
    for _ in range(1 + random.randrange(6)):
        at = random.randrange(len(data) + 1)
        kind = random.randrange(4)
        if kind == 0:
            del data[at : at + 1 + random.randrange(8)]
        elif kind == 1:
            data[at:at] = bytes([random.choice(INSERTED)])
        elif kind == 2:
            data[at:at] = data[at : at + 1 + random.randrange(60)]
        else:
            data[at : at + 1] = bytes([random.randrange(256)])
    return bytes(data)


@pytest.mark.sampled(16)
@pytest.mark.parametrize("part", range(PARTS))
def test_damage_of_every_kind(part: int) -> None:
    """A case that fails is found again by its part and number."""
    for number in range(CASES):
        random = Random(1000 * part + number)
        text = random.choice(SHORT)
        survive(text[: random.randrange(len(text) + 1)] if number % 3 == 0 else damaged(text, random))


@examples(100)
@given(st.sampled_from(TEXTS), st.integers(0, 10_000))
def test_any_prefix(data: bytes, length: int) -> None:
    survive(data[: length % (len(data) + 1)])


def test_recursion_in_every_kind_of_name() -> None:
    survive(b"#define A B\n#define B A\n__global__ void k(int* p) { p[A] = B; }")
    survive(b"#define F(x) F(x + 1)\n__global__ void k(int* p) { p[F(0)] = 1; }")
    survive(b"struct S { S* next; S* other; };\n__global__ void k(S* s) { s[threadIdx.x].next->other->next = 0; }")
    survive(b"typedef struct T { struct T* next; } T;\n__global__ void k(T* s) { s->next = s; }")
    survive(b"__device__ int f(int n) { return f(n - 1); }\n__global__ void k(int* p) { p[f(3)] = 1; }")
    survive(b"int f(int n) { return f(n); }\nvoid g() { k<<<f(1), f(2)>>>(); }")


def test_deep_nesting() -> None:
    survive(b"__global__ void k(int* p) { p[" + b"(" * 3000 + b"1" + b")" * 3000 + b"] = 1; }")
    survive(b"__global__ void k(int* p) {" + b"if (p[0]) {" * 2000 + b"}" * 2000 + b"}")
    survive(b"__global__ void k(int* p) { p[0] = " + b" + ".join([b"p[1]"] * 3000) + b"; }")


def test_loops_that_never_end() -> None:
    survive(b"__global__ void k(int* p) { for (;;) { p[threadIdx.x]++; } }")
    survive(b"__global__ void k(int* p) { while (true) for (int i = 0; i < 1; ) { while (1) p[i] = 0; } }")
    survive(b"__global__ void k(int* p) { for (unsigned i = 10; i >= 0; --i) p[i] = 0; }")


def test_what_doubles_ends() -> None:
    kernel = b"__global__ void k(int* p) { p[%s] = 1; }\nvoid run(int* p) { k<<<%s, 32>>>(p); }\n"
    macros = b"".join(b"#define A%d (A%d + A%d)\n" % (n, n - 1, n - 1) for n in range(1, 60))
    survive(macros + kernel % (b"A59", b"A59") + b"#if A59\n#endif\n")
    calls = b"".join(b"#define F%d(x) (F%d(x) + F%d(x))\n" % (n, n - 1, n - 1) for n in range(1, 60))
    survive(calls + kernel % (b"F59(1)", b"F59(1)"))
    constants = b"const int c0 = 1;\n" + b"".join(
        b"const int c%d = c%d + c%d;\n" % (n, n - 1, n - 1) for n in range(1, 60)
    )
    survive(constants + kernel % (b"c59", b"c59"))
    functions = b"".join(b"int f%d(int n) { return f%d(n) + f%d(n); }\n" % (n, n - 1, n - 1) for n in range(1, 60))
    survive(functions + kernel % (b"0", b"f59(1)"))
    callers = b"".join(b"void r%d(int n) { r%d(n); r%d(n + 1); }\n" % (n, n - 1, n - 1) for n in range(1, 60))
    survive(b"__global__ void k(int n) {}\nvoid r0(int n) { k<<<n, n>>>(n); }\n" + callers)
    structs = b"struct S0 { int a; };\n" + b"".join(
        b"struct S%d { S%d a; S%d b; };\n" % (n, n - 1, n - 1) for n in range(1, 60)
    )
    survive(structs + b"__global__ void k(S20* p, S59* q) { S20 s = p[threadIdx.x]; q->a.b = q->b.a; p[0] = s; }\n")


OTHER = b"__global__ void other(float* x) { x[threadIdx.x * 32] = 1; }\n"
OTHER += b"void more(float* x) { other<<<4, 256>>>(x); }\n"
BODY = b"__global__ void k(int* p, int n) { int t = threadIdx.x; %s }\nvoid run(int* p) { k<<<1, 32>>>(p, 1); }\n"


@pytest.mark.parametrize(
    "text",
    [
        BODY % (b"-" * 400 + b"t;"),
        BODY % (b"(" * 200 + b"p[t]" + b" += 1)" * 200 + b";"),
        BODY % (b"p[t] = " + b"(t = " * 200 + b"1" + b")" * 200 + b";"),
        b"template <class T> __device__ T f(T x) { return x; }\n"
        + BODY % (b"p[t] = " + b"f(" * 90 + b"t" + b")" * 90 + b";"),
        b"struct V { V* q; __device__ V& operator[](int i) { return q[i]; } };\n"
        + BODY % (b"V v; v" + b"[t]" * 90 + b";"),
        b"template <class T, int N> __global__ void f(T* p) { p[N] = 0; }\n"
        b"template <class T, int N> void go(T* p, int n) {\n"
        + b"".join(b"if (n == %d) go<T, N / %d>(p, n);\n" % (n, n) for n in range(2, 20))
        + b"f<T, N><<<1, 32>>>(p);\n}\nvoid all(float* p) { go<float, 64>(p, 1); }\n",
        b"template <class T> __global__ void f(T* p) { p[0] = 0; }\n"
        b"template <class T> void go(T* p) { " + b"go(p); " * 40 + b"f<T><<<1, 32>>>(p); }\n",
        b"__global__ void k(int* p) { p[0] = 1; }\nvoid h0(void (*f)(int*), int* p) { f<<<1, 32>>>(p); }\n"
        + b"".join(b"void h%d(void (*f)(int*), int* p) {%s}\n" % (n, b"h%d(f, p);" % (n - 1) * 4) for n in range(1, 60))
        + b"void all(int* p) { h59(k, p); }\n",
    ],
    ids=["dashes", "assigned", "values", "templates", "subscripts", "dispatch", "open", "passed"],
)  # fmt: skip
def test_what_nests_is_evaluated_once_and_costs_no_other_finding(text: bytes) -> None:
    program = analyze(Source("nested.cu", text + OTHER))
    found = [finding for finding in run_rules(program) if finding.kernel == "other"]
    assert [finding.rule for finding in found if finding.rule == "uncoalesced-access"]


def test_what_takes_too_many_steps_is_said() -> None:
    macros = b"".join(b"#define A%d (A%d + A%d)\n" % (n, n - 1, n - 1) for n in range(1, 60))
    program = analyze(Source("long.cu", macros + BODY % b"p[A59] = 1;" + OTHER))
    assert {kernel.name: kernel.incomplete for kernel in program.kernels} == {
        "k": "it takes more steps than one kernel is given",
        "other": None,
    }


def test_a_tangle_ends() -> None:
    for piece in (b"(", b"{", b"<<<", b"k<<<1,", b"-~!", b"a?b:", b"#if 1\n"):
        survive(b"__global__ void k(int* p) { p[" + piece * (200_000 // len(piece)))
