"""Lanes of one warp pass values to each other through memory with no `__syncwarp()` between.

## Why is this bad?

Since Volta the lanes of a warp have program counters of their own and run in no fixed order. Code that relies on
lockstep, as old reductions do that end without a barrier, may read a value before its lane has written it. Which GPU,
compiler and neighbouring code make it fail is chance.

## Example

```cuda
__global__ void pairs(float *out, const float *in) {
  __shared__ float sum[64];
  int lane = threadIdx.x;
  sum[lane] = in[blockIdx.x * 32 + lane];
  sum[lane + 32] = 0.0f;
  sum[lane] += sum[lane + 1];
  out[blockIdx.x * 32 + lane] = sum[lane];
}

void run(const float *host) {
  float *out, *in;
  cudaMalloc(&out, 64 * 32 * sizeof(float));
  cudaMalloc(&in, 64 * 32 * sizeof(float));
  cudaMemcpy(in, host, 64 * 32 * sizeof(float), cudaMemcpyHostToDevice);
  pairs<<<64, 32>>>(out, in);
}
```

## Use instead

```cuda
__global__ void pairs(float *out, const float *in) {
  __shared__ float sum[64];
  int lane = threadIdx.x;
  sum[lane] = in[blockIdx.x * 32 + lane];
  sum[lane + 32] = 0.0f;
  __syncwarp();
  float next = sum[lane + 1];
  __syncwarp();
  sum[lane] += next;
  out[blockIdx.x * 32 + lane] = sum[lane];
}

void run(const float *host) {
  float *out, *in;
  cudaMalloc(&out, 64 * 32 * sizeof(float));
  cudaMalloc(&in, 64 * 32 * sizeof(float));
  cudaMemcpy(in, host, 64 * 32 * sizeof(float), cudaMemcpyHostToDevice);
  pairs<<<64, 32>>>(out, in);
}
```

## Limits

- A run of such a launch confirms what the text shows, with both threads and the values, or, where it came to both
  places and did not show it, makes it information. Where the compiler took an access out, the finding says so.
- From the text only certain cases are reported, as of [shared-memory-race](shared-memory-race.md). Those whose index
  is data are found by a run: `warpwright check --profile`, or a profile in the editor.
- Shuffles and votes are taken to order the lanes' memory, which CUDA does not promise. Accesses of one instruction of
  the compiler's are done by all lanes at once and do not race.
"""

from __future__ import annotations

from collections.abc import Iterator

from warpwright.facts.model import Kernel, Race, Space
from warpwright.facts.profile import FaultKind
from warpwright.rules.base import Finding, Fix, Severity
from warpwright.rules.faults import of_runs
from warpwright.rules.raced import of_text
from warpwright.rules.verdicts import judged

severity = Severity.ERROR

WAIT = Fix("add-barrier", "Add the missing __syncwarp()")


def check(kernel: Kernel) -> Iterator[Finding]:
    warps = {race.other.key for race in kernel.races if race.space is Space.SHARED and not race.in_warp}
    claims = (
        each for each in of_text(kernel, _is_ours, WAIT) if each.finding.span.key not in warps
    )  # a barrier cures both
    read = list(judged(kernel, claims, FaultKind.MISSING_SYNCWARP))
    yield from read
    yield from of_runs(kernel, FaultKind.MISSING_SYNCWARP, told=read)


def _is_ours(race: Race) -> bool:
    return race.space is Space.SHARED and race.in_warp and not race.at_once
