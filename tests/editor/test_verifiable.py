"""What keeps a fix from being verified is seen before it is announced."""

from __future__ import annotations

import pytest
from warpwright.editor.verifiable import not_compiled, not_run
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
FIXED = """\
#define N 1024
__global__ void add(float *out, const float *in) {
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
    out[x * N + y] = in[y * N + x];
}
void run(float *out, const float *in) { add<<<dim3(N / 32, N / 32), dim3(32, 32)>>>(out, in); }
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
    ("text", "reason"),
    [
        (KERNEL, ""),
        (KERNEL.replace("a[i] += 1.0f", 'printf("%f", a[i])'), "writes to no array"),
        (KERNEL.replace("(n + 255) / 256, 256", "1 << 20, 1024"), "is too large to emulate"),
        (KERNEL.replace("a[i] += 1.0f", "a[(int)a[i]] = 1.0f"), "two runs may differ"),
        (FIXED, ""),
        (FIXED.replace("N 1024", "N 2048"), "is too large to emulate"),
        (KERNEL.replace("float *a", "float **a"), "How to run add is not known"),
    ],
)
def test_a_kernel_that_no_run_would_prove(text: str, reason: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("warpwright.verify.harness.has_driver", lambda: False)
    read = program(text)
    kernel = read.kernel("add")
    assert kernel is not None
    said = not_run(read, kernel)
    assert reason in said if reason else not said


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
