"""Threads of different warps use the same shared memory, one of them writes it, and no barrier stands between.

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

- From the text only certain races are reported: of two warps whose addresses and conditions follow from the text, with
  a block that a launch in sight gives. A kernel that uses volatile memory or inline assembly may order its threads by
  these, and is not judged so.
- Races of two writes, and of accesses whose index is data, are found by a run: `warpwright check --profile`, or a
  profile in the editor. Those between blocks are [global-memory-race](global-memory-race.md), those within a warp
  [missing-syncwarp](missing-syncwarp.md).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePath

from warpwright.facts.model import AccessKind, Basis, Kernel, Race
from warpwright.facts.profile import FaultKind
from warpwright.rules.base import Finding, Fix, Related, Severity
from warpwright.rules.faults import of_runs
from warpwright.rules.words import block_of, launch_evidence, launch_of

severity = Severity.ERROR

FIXES = (Fix("add-barrier", "Add the missing barrier"),)

_ORDERS = re.compile(r"\b(?:volatile|asm|__asm__|__asm)\b")
"""What may order threads that the analysis does not follow."""


def check(kernel: Kernel) -> Iterator[Finding]:
    read = list(_read(kernel))
    yield from read
    yield from of_runs(kernel, FaultKind.SHARED_RACE, told=read, fixes=FIXES)


def _read(kernel: Kernel) -> Iterator[Finding]:
    texts = {kernel.source.path: kernel.source, **{a.span.path: a.span.source for a in kernel.accesses}}
    if not kernel.races or any(_ORDERS.search(source.text()) for source in texts.values()):
        return
    found: set[tuple[str, int, int]] = set()
    for race in kernel.races:
        launch = launch_of(kernel, race.launch)
        if launch is None or launch.basis is not Basis.EXACT or race.other.key in found:
            continue
        found.add(race.other.key)
        yield Finding(
            span=race.other,
            message=f"{_words(race)}; {block_of(launch)}.",
            evidence={
                "array": race.array,
                "threads": list(race.threads),
                "byte": race.address,
                **launch_evidence(launch),
            },
            fixes=FIXES,
            related=(Related(race.write, "the other side of the race writes here"),),
        )


def _words(race: Race) -> str:
    writer, other = race.threads
    does = "updates" if race.kind is AccessKind.ATOMIC else "reads"
    elsewhere = f" of {PurePath(race.write.path).name}" if race.write.path != race.other.path else ""
    return (
        f"A race: thread {other} of the block {does} {race.array} here where thread {writer}, of another warp, writes "
        f"it at line {race.write.line}{elsewhere}, and no barrier stands between"
    )
