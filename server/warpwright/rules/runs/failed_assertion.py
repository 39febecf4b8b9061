"""An assertion of the kernel fails, or a thread executes a trap.

## Why is this bad?

`assert` ends the kernel, and every later call of the CUDA runtime in the process returns an error. The condition is one
that the author of the kernel took for granted.

## Example

```cuda
#include <cassert>

__global__ void invert(float *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  assert(i < n);
  out[i] = 1.0f / (1 + i);
}

void run() {
  float *out;
  cudaMalloc(&out, 1024 * sizeof(float));
  invert<<<4, 256>>>(out, 1000);
}
```

## Use instead

```cuda
#include <cassert>

__global__ void invert(float *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  assert(i < n);
  out[i] = 1.0f / (1 + i);
}

void run() {
  float *out;
  cudaMalloc(&out, 1024 * sizeof(float));
  invert<<<4, 256>>>(out, 1024);
}
```

## Limits

- Found by a run alone: `warpwright check --profile`, or a profile in the editor. A run shows one launch on made-up
  values.
- With `-DNDEBUG` there are no assertions. There is no fix to press.
"""

from __future__ import annotations

from collections.abc import Iterator

from warpwright.facts.model import Kernel
from warpwright.facts.profile import FaultKind
from warpwright.rules.base import Finding, Severity
from warpwright.rules.faults import of_runs

severity = Severity.ERROR


def check(kernel: Kernel) -> Iterator[Finding]:
    yield from of_runs(kernel, FaultKind.ASSERTION, FaultKind.TRAP)
