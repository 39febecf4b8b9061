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
        ("s[t] = in[t]; __syncthreads(); out[t] = s[t + 65];", ("s", 0, 260)),
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
        "s[t] = 0; s[t + 64] = 0; __syncthreads(); out[t] = s[t + 65];",
    ],
)
def test_what_may_be_written_or_not_read_is_not(body: str) -> None:
    assert not _unwritten(body)


UNFILLED = """\
__global__ void k(float *x, float *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  BODY
}
void run(float *host, int n) {
  float *x, *y;
  cudaMalloc(&x, n * sizeof(float));
  cudaMalloc(&y, n * sizeof(float));
  HOST
  k<<<(n + 63) / 64, 64>>>(x, y, n);
}
"""


def _unfilled(body: str, host: str) -> list[str]:
    text = UNFILLED.replace("BODY", body).replace("HOST", host)
    (kernel,) = analyze(Source("a.cu", text.encode())).kernels
    return [read.array for read in kernel.unwritten]


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("if (i < n) x[i] += 1;", ["x"]),
        ("if (i < n) x[i] = y[i];", ["y"]),
        ("if (i < n) atomicAdd(x, 1.0f);", ["x"]),
        ("if (i < n) for (int j = 0; j < n; j++) x[i] += j;", ["x"]),
    ],
)
def test_a_read_of_what_the_host_only_allocates_is_found(body: str, found: list[str]) -> None:
    assert _unfilled(body, "") == found
    assert not _unfilled(body, "cudaMemcpy(x, host, 4 * n, cudaMemcpyDefault); fill(y);")
    assert not _unfilled(body, "float *z[] = {x, y}; fill(z);")


@pytest.mark.parametrize(
    "body",
    [
        "if (i < n) { x[i] = 0; x[i] += 1; }",
        "if (i < n) atomicExch(x, 1.0f);",
        "x[i] = 0; __syncthreads(); y[i] = x[i ^ 1];",
        "if (threadIdx.x == 0) x[blockIdx.x] = 1; y[i] = x[(blockIdx.x + 1) % gridDim.x];",
        "x[int(y[i]) & 63] = 1; y[i] = 1;",
        "if (n > 7777) x[i] += 1;",
    ],
)
def test_what_the_kernel_may_write_first_is_not(body: str) -> None:
    assert "x" not in _unfilled(body, "")
