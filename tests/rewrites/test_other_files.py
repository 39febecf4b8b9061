"""Functions and macros of the files that a kernel's file includes, as rewrites look into them."""

from __future__ import annotations

import pytest
from warpwright.facts.analyze import analyze
from warpwright.rewrites.base import Declined, Rewrite
from warpwright.rewrites.registry import propose
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
        "#define TWO 2.0f\n__device__ float by(float x) { return TWO * x; }\n#define twice(x) by(x)",
    ],
)
def test_plain_functions_and_macros_are_seen(header: str) -> None:
    assert isinstance(_proposed(header), Rewrite)


@pytest.mark.parametrize(
    ("header", "reason"),
    [
        ("__device__ float twice(float x) { return x * blockIdx.x; }", "depends on the thread's number"),
        ("#define twice(x) (x * blockIdx.x)\n", "The macro twice names the block's number."),
        ("#define ME blockIdx.x\n__device__ float twice(float x) { return x * ME; }", "depends on the thread's number"),
        ("__device__ float by(float);\n__device__ float twice(float x) { return by(x); }", "calls by, which is not in"),
        ("__device__ float twice(float x) { return __shfl_down_sync(~0u, x, 1); }", "depends on the thread's number"),
    ],
)
def test_what_depends_on_the_thread_there_is_seen(header: str, reason: str) -> None:
    declined = _proposed(header)
    assert isinstance(declined, Declined)
    assert reason in declined.reason
