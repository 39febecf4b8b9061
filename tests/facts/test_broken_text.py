"""Broken code is the normal case in an editor: any damage to a real kernel gives facts, never an exception."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from warpwright.facts.analyze import analyze
from warpwright.facts.document import facts_document, facts_text
from warpwright.syntax.source import Source

TEXTS = [p.read_bytes() for p in sorted((Path(__file__).parent / "fixtures").glob("*.cu"))]


def survive(data: bytes) -> None:
    program = analyze(Source("broken.cu", data))
    facts_document([program])
    facts_text(program)


@settings(max_examples=120, deadline=None)
@given(st.sampled_from(TEXTS), st.integers(0, 10_000))
def test_any_prefix(data: bytes, length: int) -> None:
    survive(data[: length % (len(data) + 1)])


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(TEXTS), st.randoms(use_true_random=False), st.integers(1, 6))
def test_deleted_inserted_and_doubled_bytes(data: bytes, random: object, count: int) -> None:
    text = bytearray(data)
    for _ in range(count):
        at = random.randrange(len(text) + 1)  # type: ignore[attr-defined]
        kind = random.randrange(3)  # type: ignore[attr-defined]
        if kind == 0:
            del text[at : at + 1 + random.randrange(8)]  # type: ignore[attr-defined]
        elif kind == 1:
            text[at:at] = bytes([random.choice(b"{}()[];,*&<>=+-/%!?:.#\"'\\\n 0x\x80")])  # type: ignore[attr-defined]
        else:
            text[at:at] = text[at : at + 40]
    survive(bytes(text))


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
