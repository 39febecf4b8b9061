"""Functions and macros of the files that a kernel's file includes, as rewrites look into them."""

from __future__ import annotations

import pytest
from warpwright.facts.analyze import analyze
from warpwright.rewrites._gain import edited_kernel
from warpwright.rewrites.base import Declined, Rewrite
from warpwright.rewrites.registry import propose
from warpwright.syntax.edits import TextEdit
from warpwright.syntax.source import Source

KERNEL = """
#include "own.h"
__global__ void twice_all(float *out, int n) {
  int i = blockIdx.x;
  if (i < n)
    out[i] = twice(out[i]);
}
void run(float *out, int n) { twice_all<<<n, 1>>>(out, n); }
"""


def _proposed(header: str) -> Rewrite | Declined:
    kernel = analyze(Source("a.cu", KERNEL.encode()), lambda _path, name: Source(name, header.encode())).kernel(
        "twice_all"
    )
    assert kernel is not None
    return propose("fill-warps", kernel, None)


@pytest.mark.parametrize(
    "header",
    [
        "__device__ inline float twice(float x) { return x + x; }",
        "#define twice(x) ((x) + (x))",
        "typedef float real4;\nusing real = real4;\n__device__ real twice(real x) { return real(2) * x; }",
        "#define TWO 2.0f\n__device__ float by(float x) { return TWO * x; }\n#define twice(x) by(x)",
    ],
)
def test_plain_functions_and_macros_are_seen(header: str) -> None:
    assert isinstance(_proposed(header), Rewrite)


@pytest.mark.parametrize(
    ("header", "reason"),
    [
        ("__device__ float twice(float x) { return x * blockIdx.x; }", "depends on the thread's index"),
        ("#define twice(x) (x * blockIdx.x)\n", "The macro twice reads the block's index."),
        ("#define ME blockIdx.x\n__device__ float twice(float x) { return x * ME; }", "depends on the thread's index"),
        ("__device__ float by(float);\n__device__ float twice(float x) { return by(x); }", "calls by, which is not in"),
        ("__device__ float twice(float x) { return __shfl_down_sync(~0u, x, 1); }", "depends on the thread's index"),
    ],
)
def test_what_depends_on_the_thread_there_is_seen(header: str, reason: str) -> None:
    declined = _proposed(header)
    assert isinstance(declined, Declined)
    assert reason in declined.reason


WALK = """__global__ void walk(float *out, const float *in, int rows, int columns) {
  int row = blockIdx.x * SIZE + threadIdx.x;
  if (row < rows) {
    float sum = 0.0f;
    for (int c = 0; c < columns; c++)
      sum = 0.5f * sum + in[row * columns + c];
    out[row] = sum;
  }
}
"""
HOST = """#include "walk.h"
void run(float *out, const float *in, int rows, int columns) {
  walk<<<(rows + 255) / 256, 256>>>(out, in, rows, columns);
}
"""


def _spread(size: str) -> Rewrite | Declined:
    header = Source("walk.h", WALK.replace("SIZE", size).encode())
    kernel = analyze(Source("main.cu", HOST.encode()), lambda _path, _name: header).kernel("walk")
    assert kernel is not None
    return propose("smaller-blocks", kernel, None)


def test_launches_of_a_kernel_in_a_header_get_smaller_blocks() -> None:
    rewrite = _spread("blockDim.x")
    assert isinstance(rewrite, Rewrite)
    assert rewrite.source.path == "main.cu"
    assert "walk<<<(rows + 255) / 256 * 8, 32>>>" in rewrite.apply().text()


def test_a_kernel_in_a_header_that_holds_its_block_as_a_number_keeps_it() -> None:
    declined = _spread("256")
    assert isinstance(declined, Declined)
    assert "its launches are in another file" in declined.reason


def test_a_kernel_is_analysed_after_edits_with_the_files_that_it_includes() -> None:
    text = b'#include "own.h"\n__global__ void fill(number *out) { out[threadIdx.x * STEP] = 0; }'
    header = Source("own.h", b"#define STEP 8\ntypedef double number;")
    kernel = analyze(Source("a.cu", text), lambda _path, _name: header).kernel("fill")
    assert kernel is not None
    at = text.index(b" * STEP")
    after = edited_kernel(kernel, [TextEdit(at, at, " / 32")])
    assert after is not None
    assert [(a.bytes, a.sectors_per_request) for a in (*kernel.accesses, *after.accesses)] == [(8, 32.0), (8, 1.0)]


@pytest.mark.parametrize("wrapper", ["", "#define CHECK(x) do { if ((x) != cudaSuccess) throw 1; } while (0)\n"])
def test_a_header_gets_no_macro_of_its_own(wrapper: str) -> None:
    text = f"{wrapper}__global__ void k(float *o) {{ *o = 1; }}\ninline void f(float *o) {{ cudaFree(o); }}\n"
    kernel = analyze(Source("a.cuh", text.encode()), lambda _path, name: None).kernels[0]
    found = propose("check-api-calls", kernel, None)
    if wrapper:
        assert isinstance(found, Rewrite)
        assert "CHECK(cudaFree(o));" in found.apply().text()
    else:
        assert isinstance(found, Declined)
        assert "is in a header" in found.reason
    assert isinstance(
        propose("check-api-calls", analyze(Source("a.cu", text.encode()), lambda *_: None).kernels[0], None), Rewrite
    )
