"""Threads wait for others that never come, or for a value that nobody stores any more.

## Why is this bad?

The kernel does not end. The GPU is taken until the process is killed; where a display hangs on it, the driver ends the
kernel after some seconds with "the launch timed out".

## Example

```cuda
__global__ void hand_over(float *out, const float *in) {
  __shared__ float slot[64];
  slot[threadIdx.x] = in[threadIdx.x];
  if (threadIdx.x < 32)
    asm volatile("bar.sync 1, 64;");
  out[threadIdx.x] = slot[63 - threadIdx.x];
}

void run(const float *host) {
  float *out, *in;
  cudaMalloc(&out, 64 * sizeof(float));
  cudaMalloc(&in, 64 * sizeof(float));
  cudaMemcpy(in, host, 64 * sizeof(float), cudaMemcpyHostToDevice);
  hand_over<<<1, 64>>>(out, in);
}
```

## Use instead

```cuda
__global__ void hand_over(float *out, const float *in) {
  __shared__ float slot[64];
  slot[threadIdx.x] = in[threadIdx.x];
  asm volatile("bar.sync 1, 64;");
  out[threadIdx.x] = slot[63 - threadIdx.x];
}

void run(const float *host) {
  float *out, *in;
  cudaMalloc(&out, 64 * sizeof(float));
  cudaMalloc(&in, 64 * sizeof(float));
  cudaMemcpy(in, host, 64 * sizeof(float), cudaMemcpyHostToDevice);
  hand_over<<<1, 64>>>(out, in);
}
```

## Limits

- Found by a run alone: `warpwright check --profile`, or a profile in the editor. A run shows one launch on made-up
  values.
- A loop that changes something in each turn, such as a counter of tries, or looks at a clock is stopped at a limit of
  steps, which is told as a note of the profile and not as a finding: it may only take long. There is no fix to press.
"""

from __future__ import annotations

from collections.abc import Iterator

from warpwright.facts.model import Kernel
from warpwright.facts.profile import FaultKind
from warpwright.rules.base import Finding, Severity
from warpwright.rules.faults import of_runs

severity = Severity.ERROR


def check(kernel: Kernel) -> Iterator[Finding]:
    yield from of_runs(kernel, FaultKind.DEADLOCK)
