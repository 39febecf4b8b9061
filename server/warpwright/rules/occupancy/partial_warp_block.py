"""A block whose number of threads is not a multiple of 32.

## Why is this bad?

Blocks are cut into warps of 32 lanes. The last warp of a block of 100 threads has 4 active lanes, and it is issued,
holds registers and waits like a full one. The idle lanes are a share of the machine that no thread can use: 22% for a
block of 100 threads, half for one of 16.

## Example

```cuda
__global__ void scale(float *data, float by, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    data[i] *= by;
}

void run(float *data, int n) {
  scale<<<(n + 99) / 100, 100>>>(data, 2.0f, n);
}
```

## Use instead

```cuda
__global__ void scale(float *data, float by, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    data[i] *= by;
}

void run(float *data, int n) {
  scale<<<(n + 127) / 128, 128>>>(data, 2.0f, n);
}
```

## Limits

- A warning from a quarter of the lanes idle, information from an eighth, else a hint; a hint at most for a launch of
  one block, and in a kernel whose launches have no more than 1024 threads, such as one that sets something up.
- A single thread, `<<<1, 1>>>`, is taken to be meant.
- Only blocks whose size the text gives are judged.
- One fix is for kernels that do the same to each element; others can rely on their block's shape. Another lets one
  block do the work of several.
"""

from __future__ import annotations

from collections.abc import Iterator

from warpwright.facts.document import dims_text
from warpwright.facts.model import WARP, Basis, Kernel, Launch
from warpwright.rules.base import Finding, Fix, Severity
from warpwright.rules.weighing import is_small

severity = Severity.WARNING

GRAVE = 1 / 4
"""Share of idle lanes from which it is a warning."""
NOTABLE = 1 / 8
PACK = Fix("pack-blocks", "Pack several small blocks into one")
RESIZE = Fix("occupancy-block-size", "Use a block size that is a multiple of 32")
FILL = Fix("fill-warps", "Merge one-thread blocks into warps")


def check(kernel: Kernel) -> Iterator[Finding]:
    for launch in kernel.launches:
        threads = launch.threads
        if launch.span is None or launch.basis is not Basis.EXACT or not threads or threads % WARP == 0:
            continue
        if launch.sweep or (threads == 1 and launch.grid == (1, 1, 1)):  # is tried; is meant as a single thread
            continue
        warps = -(-threads // WARP)
        idle = 1 - threads / (warps * WARP)
        lanes = warps * WARP - threads
        yield Finding(
            span=launch.span,
            message=(
                f"Block size {_size(launch)} is not a multiple of the warp size: {lanes} of {warps * WARP} lanes idle\n"
                f"Use {_whole(launch)}."
            ),
            severity=Severity.HINT if is_small(kernel) else _severity(launch, idle),
            gain=idle,
            evidence={
                "block": list(launch.block),
                "threads": threads,
                "warps": warps,
                "idle_lanes": lanes,
                "idle_share": round(idle, 3),
                "basis": launch.basis.value,
            },
            fixes=tuple(_fixes(kernel, threads)),
        )


def _fixes(kernel: Kernel, threads: int) -> Iterator[Fix]:
    if not (kernel.shared_arrays or kernel.barriers):
        yield RESIZE
        if threads == 1:
            yield FILL
    if threads > 1 and (not kernel.barriers or WARP % threads == 0):
        yield PACK


def _severity(launch: Launch, idle: float) -> Severity:
    if launch.grid == (1, 1, 1):
        return Severity.HINT
    return Severity.WARNING if idle >= GRAVE else Severity.INFORMATION if idle >= NOTABLE else Severity.HINT


def _size(launch: Launch) -> str:
    threads = launch.threads
    return f"{threads}" if launch.block[1:] == (1, 1) else f"{dims_text(launch.block)} = {threads}"


def _whole(launch: Launch) -> str:
    """What to use instead: the next multiple for one dimension, a row of 32 or a part of it for several."""
    up = -(-(launch.threads or 1) // WARP) * WARP
    if launch.block[1:] == (1, 1):
        return f"{up} threads"
    return "a shape whose threads are a multiple of 32, such as 32 x 8 or 16 x 16"
