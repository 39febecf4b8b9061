"""Reads of shared memory that no thread of the block writes."""

from __future__ import annotations

import pytest
from warpwright.facts.analyze import analyze
from warpwright.syntax.source import Source

KERNEL = """\
__device__ void fill(float *s) { s[threadIdx.x] = 1; }
__global__ void k(float *out, const int *in, int n) {
  __shared__ float s[128];
  __shared__ int count;
  int t = threadIdx.x;
  BODY
}
void run(float *out, int *in) { k<<<4, 64>>>(out, in, 4); }
"""


def _unwritten(body: str) -> list[tuple[str, int, int]]:
    (kernel,) = analyze(Source("a.cu", KERNEL.replace("BODY", body).encode())).kernels
    return [(read.array, read.thread, read.address) for read in kernel.unwritten]


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("s[t] = in[t]; __syncthreads(); out[t] = s[127 - t];", ("s", 63, 256)),
        ("if (t > 0) s[t] = in[t]; __syncthreads(); out[t] = s[t];", ("s", 0, 0)),
        ("if (in[t] > 3) atomicAdd(&count, 1); __syncthreads(); if (t == 0) out[0] = count;", ("count", 0, 0)),
        ("s[t] += in[t]; out[t] = s[t];", ("s", 0, 0)),
    ],
)
def test_what_nobody_writes_is_found(body: str, found: tuple[str, int, int]) -> None:
    assert found in _unwritten(body)


@pytest.mark.parametrize(
    "body",
    [
        "s[t] = in[t]; s[t + 64] = 0; __syncthreads(); out[t] = s[127 - t];",
        "for (int i = t; i < 128; i += 64) s[i] = 0; __syncthreads(); out[t] = s[127 - t];",
        "s[in[t]] = 1; __syncthreads(); out[t] = s[t + 64];",
        "if (in[t] > 3) s[t + 64] = 1; __syncthreads(); out[t] = s[t + 64];",
        "float *p = s; p[t + 64] = 1; __syncthreads(); out[t] = s[t + 64];",
        "fill(s + 64); __syncthreads(); out[t] = s[t + 64];",
        "s[63 - t] = 1; __syncthreads(); s[t] += in[t]; out[t] = s[t];",
        "unknown(s); __syncthreads(); out[t] = s[t];",
        "if (t == 0) atomicExch(&count, 0); __syncthreads(); out[t] = count;",
        "((char *)s)[4 * t] = 1; __syncthreads(); out[t] = s[t];",
        "if (in[0] > 3) out[t] = s[t];",
        "if (n > 7) out[t] = s[t];",
    ],
)
def test_what_may_be_written_or_not_read_is_not(body: str) -> None:
    assert not _unwritten(body)
