"""What nvcc would refuse is seen before a fix is announced."""

from __future__ import annotations

from pathlib import Path

import pytest
from warpwright.editor.compilable import not_compiled
from warpwright.editor.undeclared import undeclared_name
from warpwright.facts.analyze import analyze
from warpwright.facts.model import Program
from warpwright.syntax.source import Source

KERNEL = """\
__global__ void add(float *a, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) a[i] += 1.0f;
}
void run(float *a, int n) { add<<<(n + 255) / 256, 256>>>(a, n); }
"""


def program(text: str) -> Program:
    return analyze(Source("a.cu", text.encode()))


@pytest.mark.nvcc
@pytest.mark.parametrize(
    ("head", "gone"),
    [
        ("void f() { cudaThreadNeverWas(); }\n", "cudaThreadNeverWas (a.cu:1)"),
        ("void f() { cudaDeviceSynchronize(); }\n", ""),
        ("int cudaThreadNeverWas();\nvoid f() { cudaThreadNeverWas(); }\n", ""),
        ("#if CUDART_VERSION < 4000\nvoid f() { cudaThreadNeverWas(); }\n#endif\n", ""),
        ("// cudaThreadNeverWas()\n", ""),
    ],
)
def test_a_name_that_the_toolkit_does_not_have(head: str, gone: str) -> None:
    said = not_compiled(program(head + KERNEL))
    assert f" has no {gone}, " in said if gone else not said


@pytest.mark.parametrize(
    ("header", "undeclared"),
    [
        ("struct Bins { int n; };", ""),
        ("// struct Bins { int n; };", "Bins (a.cu:2)"),
        ('#define URL "http://a" struct Bins', ""),
        ('const char *said = "Bins";', "Bins (a.cu:2)"),
        ('#include "nearer.h"', ""),
    ],
)
def test_a_type_that_no_header_declares(header: str, undeclared: str, tmp_path: Path) -> None:
    (tmp_path / "own.h").write_text(header, encoding="utf-8")
    (tmp_path / "nearer.h").write_text("struct Bins;", encoding="utf-8")
    text = '#include "own.h"\n__global__ void count(Bins *b) { b[0] = {}; }\n'
    assert undeclared_name(program(text), (tmp_path,)) == undeclared


@pytest.mark.nvcc
@pytest.mark.parametrize(
    ("call", "refused"),
    [
        ("cudaMemcpy(p, p, 4)", True),
        ("cudaMemcpy(p, p, 4, cudaMemcpyDefault)", False),
        ("cudaMemcpy3D(1)", False),  # a pointer, of which nothing is said
        ("cudaPointerGetAttributes(forward(p)...)", False),
        ("cudaMemset3D(0, 0, 0)", True),  # structs by value
    ],
)
def test_a_call_that_the_toolkit_no_longer_takes(call: str, refused: bool) -> None:
    said = not_compiled(program(f"void f(void *p) {{ {call}; }}\n{KERNEL}"))
    assert (f" has no {call.partition('(')[0]} with these arguments (a.cu:1), " in said) == refused


@pytest.mark.nvcc
@pytest.mark.parametrize(
    ("function", "refused"), [("__global__ void f", True), ("void f", False), ("static __device__ void f", True)]
)
def test_a_launch_in_device_code(function: str, refused: bool) -> None:
    text = f"__global__ void g();\n{function}() {{ g<<<1, 1>>>(); }}\n{KERNEL}"
    assert ("a.cu:2 is in device code" in not_compiled(program(text))) == refused


@pytest.mark.nvcc
@pytest.mark.parametrize(
    ("head", "said"),
    [
        ("__device__ int bins[BINS];\n", "Nothing declares BINS (a.cu:1), "),
        ("#define BINS 4\n__device__ int bins[BINS];\n", ""),
        ("enum Size { LESS, BINS };\n__device__ int bins[BINS];\n", ""),
        ("typedef void (*Call)(int);\nvoid f(Call call);\n", ""),
        ("enum { BINS = 4 };\n__device__ int bins[BINS];\n", ""),
        ("template <int BINS> __device__ int bins() { return BINS; }\n", ""),
        ("__device__ int f() { return FIXME; }\n", "Nothing declares FIXME (a.cu:1), "),
        ("void f(State *state);\n", "Nothing declares State (a.cu:1), "),
        ("typedef struct { int x; } State;\nvoid f(State *state);\n", ""),
        ("template <typename State> void f(State *state);\n", ""),
        ("#include <cfloat>\n__device__ float most() { return FLT_MAX; }\n", ""),
        ("#include <cstdio>\nvoid f(FILE *file, float4 x, cudaError_t y, uint32_t z);\n", ""),
        ("float LIMIT(float x);\nfloat f() { return LIMIT(1); }\n", ""),
        ("void f(int nx) { dim3 grid(nx); }\n", ""),
        ("#ifdef DEBUG\nState state;\n#endif\n", ""),
        (
            "__device__ float g(float);\n__device__ float h() { return g(1); }\n",
            "g (a.cu:1) is defined in another file",
        ),
        ("__host__ __device__ float g(float);\nfloat h() { return g(1); }\n", ""),
        ("#define FIELD(type, name) type name\nstruct A { FIELD(int, x); };\n", ""),
        ("__device__ float g(float);\n__device__ float g(float x) { return g(x); }\n", ""),
    ],
)
def test_a_name_that_nothing_declares_or_defines(head: str, said: str) -> None:
    found = not_compiled(program(head + KERNEL))
    assert said in found if said else not found
