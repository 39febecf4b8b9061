"""Threads of a block use the same shared memory, one of them writes it, and no barrier stands between.

## Why is this bad?

Warps of a block run in any order. Where a thread reads an element of shared memory that a thread of another warp
writes, and no `__syncthreads()` stands between the two, what it reads is the new value or the old one, by chance. It
may be right on one GPU for years and wrong on the next, or with one instruction more in between.

## Example

```cuda
__global__ void differences(float *out, const float *in) {
  __shared__ float tile[256];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  tile[threadIdx.x] = in[i];
  float left = threadIdx.x > 0 ? tile[threadIdx.x - 1] : 0.0f;
  out[i] = tile[threadIdx.x] - left;
}

void run(float *out, const float *in) {
  differences<<<64, 256>>>(out, in);
}
```

## Use instead

```cuda
__global__ void differences(float *out, const float *in) {
  __shared__ float tile[256];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  tile[threadIdx.x] = in[i];
  __syncthreads();
  float left = threadIdx.x > 0 ? tile[threadIdx.x - 1] : 0.0f;
  out[i] = tile[threadIdx.x] - left;
}

void run(float *out, const float *in) {
  differences<<<64, 256>>>(out, in);
}
```

## Limits

- A run of such a launch confirms what the text shows, with both threads and the values, or, where it came to both
  places and did not show it, makes it information. Where the compiler took an access out, the finding says so.
- From the text only certain races are reported: of two threads whose addresses follow from the text, with a block
  that a launch gives, and under conditions that all threads of a block share or that sizes decide. Of a long
  loop, its first iterations alone are judged. Behind inline assembly nothing is, but for barriers with a number that
  the whole block meets at. What stands before a fence is not compared with what stands after one.
- A `cuda::barrier` that the whole block meets at orders what stands before the arrival and after the wait.
  `__pipeline_memcpy_async` stores when it stands in the text; its wait is each thread's own.
- Stores of one value do not race, nor does a plain read in front of the thread's own atomic update.
- Accesses whose index is data are found by a run: `warpwright check --profile`, or a profile in the editor. Races
  between blocks are [global-memory-race](global-memory-race.md), those within a warp
  [missing-syncwarp](missing-syncwarp.md).
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
    read = list(judged(kernel, of_text(kernel, _is_ours, BARRIER), FaultKind.SHARED_RACE))
    yield from read
    yield from of_runs(kernel, FaultKind.SHARED_RACE, told=read, fixes=(BARRIER, UPDATE))


def _is_ours(race: Race) -> bool:
    return race.space is Space.SHARED and (race.at_once or not race.in_warp)
