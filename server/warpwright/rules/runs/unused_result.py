"""A store to shared memory whose values no thread loads.

## Why is this bad?

Shared memory lives as long as its block. What is stored there and never loaded is either work for nothing, or a load
that was meant and reads from elsewhere.

## Example

```cuda
__global__ void copy(float *out, const float *in) {
  __shared__ float tile[128];
  int i = blockIdx.x * 128 + threadIdx.x;
  volatile float *staged = tile;
  staged[threadIdx.x] = in[i];
  out[i] = in[i];
}

void run(const float *host) {
  float *out, *in;
  cudaMalloc(&out, 8192 * sizeof(float));
  cudaMalloc(&in, 8192 * sizeof(float));
  cudaMemcpy(in, host, 8192 * sizeof(float), cudaMemcpyHostToDevice);
  copy<<<64, 128>>>(out, in);
}
```

## Use instead

```cuda
__global__ void copy(float *out, const float *in) {
  int i = blockIdx.x * 128 + threadIdx.x;
  out[i] = in[i];
}

void run(const float *host) {
  float *out, *in;
  cudaMalloc(&out, 8192 * sizeof(float));
  cudaMalloc(&in, 8192 * sizeof(float));
  cudaMemcpy(in, host, 8192 * sizeof(float), cudaMemcpyHostToDevice);
  copy<<<64, 128>>>(out, in);
}
```

## Limits

- Found by a run alone: `warpwright check --profile`, or a profile in the editor. A run shows one launch on made-up
  values.
- The compiler drops most such stores itself, and then nothing is found. There is no fix to press.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from warpwright.facts.model import Kernel
from warpwright.facts.profile import FaultKind
from warpwright.rules.base import Finding, Severity
from warpwright.rules.faults import of_runs

severity = Severity.INFORMATION


def check(kernel: Kernel) -> Iterator[Finding]:
    shared = {array.name for array in kernel.shared_arrays}
    faults = tuple(fault for fault in kernel.faults if fault.array in shared)
    yield from of_runs(replace(kernel, faults=faults), FaultKind.UNUSED_RESULT)
