"""Two threads use the same global memory, one of them writes it, and nothing orders the two.

## Why is this bad?

Blocks run in any order and at the same time, and so do the warps of a block. Where one thread writes what another reads
or writes, and neither a barrier of the block nor an atomic stands between, the result is decided by chance: it differs
from run to run, from GPU to GPU, and with every change of the launch.

## Example

```cuda
__global__ void total(float *sum, const float *in, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    *sum += in[i];
}

void run(const float *host, int n) {
  float *sum, *in;
  cudaMalloc(&sum, sizeof(float));
  cudaMalloc(&in, n * sizeof(float));
  cudaMemcpy(in, host, n * sizeof(float), cudaMemcpyHostToDevice);
  total<<<(n + 255) / 256, 256>>>(sum, in, n);
}
```

## Use instead

```cuda
__global__ void total(float *sum, const float *in, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    atomicAdd(sum, in[i]);
}

void run(const float *host, int n) {
  float *sum, *in;
  cudaMalloc(&sum, sizeof(float));
  cudaMalloc(&in, n * sizeof(float));
  cudaMemcpy(in, host, n * sizeof(float), cudaMemcpyHostToDevice);
  total<<<(n + 255) / 256, 256>>>(sum, in, n);
}
```

## Limits

- A run of such a launch confirms what the text shows, with both threads and the values, or, where it came to both
  places and did not show it, makes it information. Where the compiler took an access out, the finding says so.
- From the text only certain races are reported: of two threads whose addresses follow from the text, at a launch whose
  block it gives, and under conditions that sizes decide or that all threads of a block share. Of a long
  loop, its first iterations alone are judged; after inline assembly and barriers of the grid nothing is, and what
  stands before a fence is not compared with what stands after one. Two pointers that the launch hands the same memory
  are taken for two arrays.
- Those whose index is data are found by a run: `warpwright check --profile`, or a profile in the editor. A run shows
  one launch on made-up values.
- Two threads that write the same value do not race, nor does a plain read in front of the thread's own atomic update.
  A barrier is added between threads of one block alone.
"""

from __future__ import annotations

from collections.abc import Iterator

from warpwright.facts.model import Kernel, Race, Space
from warpwright.facts.profile import FaultKind
from warpwright.rules.base import Finding, Fix, Severity
from warpwright.rules.faults import of_runs
from warpwright.rules.raced import UPDATE, of_text
from warpwright.rules.verdicts import judged

severity = Severity.ERROR

BARRIER = Fix("add-barrier", "Add the missing barrier")


def check(kernel: Kernel) -> Iterator[Finding]:
    read = list(judged(kernel, of_text(kernel, _is_ours, BARRIER), FaultKind.GLOBAL_RACE))
    yield from read
    yield from of_runs(kernel, FaultKind.GLOBAL_RACE, told=read, fixes=(UPDATE,))


def _is_ours(race: Race) -> bool:
    return race.space is Space.GLOBAL
