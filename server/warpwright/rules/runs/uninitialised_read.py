"""A thread reads memory that nothing has written.

## Why is this bad?

Shared memory starts with whatever the block before left there, and memory from `cudaMalloc` with what was freed. A
value of it is often zero in a test and something else in use.

## Example

```cuda
__global__ void smooth(float *out, const float *in) {
  __shared__ float tile[130];
  int i = blockIdx.x * 128 + threadIdx.x;
  tile[threadIdx.x + 1] = in[i];
  __syncthreads();
  out[i] = tile[threadIdx.x] + tile[threadIdx.x + 1] + tile[threadIdx.x + 2];
}

void run(const float *host) {
  float *out, *in;
  cudaMalloc(&out, 8192 * sizeof(float));
  cudaMalloc(&in, 8192 * sizeof(float));
  cudaMemcpy(in, host, 8192 * sizeof(float), cudaMemcpyHostToDevice);
  smooth<<<64, 128>>>(out, in);
}
```

## Use instead

```cuda
__global__ void smooth(float *out, const float *in) {
  __shared__ float tile[130];
  int i = blockIdx.x * 128 + threadIdx.x;
  tile[threadIdx.x + 1] = in[i];
  if (threadIdx.x < 2)
    tile[129 * threadIdx.x] = 0.0f;
  __syncthreads();
  out[i] = tile[threadIdx.x] + tile[threadIdx.x + 1] + tile[threadIdx.x + 2];
}

void run(const float *host) {
  float *out, *in;
  cudaMalloc(&out, 8192 * sizeof(float));
  cudaMalloc(&in, 8192 * sizeof(float));
  cudaMemcpy(in, host, 8192 * sizeof(float), cudaMemcpyHostToDevice);
  smooth<<<64, 128>>>(out, in);
}
```

## Limits

- Found by a run alone: `warpwright check --profile`, or a profile in the editor. A run shows one launch on made-up
  values.
- Of global memory, arrays that the kernel only writes before the launch's own stores. There is no fix to press.
"""

from __future__ import annotations

from collections.abc import Iterator

from warpwright.facts.model import Kernel
from warpwright.facts.profile import FaultKind
from warpwright.rules.base import Finding, Severity
from warpwright.rules.faults import of_runs

severity = Severity.ERROR


def check(kernel: Kernel) -> Iterator[Finding]:
    yield from of_runs(kernel, FaultKind.UNINITIALISED_READ)
