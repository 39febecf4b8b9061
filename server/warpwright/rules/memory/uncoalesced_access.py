"""A warp's addresses scatter over more sectors of global memory than its data fills.

## Why is this bad?

Global memory is moved in sectors of 32 bytes. When the 32 lanes of a warp read 32 neighbouring floats, the request
moves 4 sectors. When each lane reads from another row, it moves 32 sectors and uses 4 bytes of each: seven eighths of
the bandwidth carry nothing, and bandwidth is what most kernels wait for.

The counts are those of the real lanes of real warps, with the block shape that the host code launches. Where the stride
is a run-time parameter, a large value of it is counted, and the basis says `assumed`. A warning is given from 4 sectors
for each one needed; from 2 it is information.

## Example

```cuda
__global__ void scale(float *out, const float *in, float factor, int width, int height) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  int col = blockIdx.y * blockDim.y + threadIdx.y;
  if (row < height && col < width)
    out[row * width + col] = factor * in[row * width + col];
}

void run(float *out, const float *in, int width, int height) {
  dim3 block(16, 16);
  scale<<<dim3((height + 15) / 16, (width + 15) / 16), block>>>(out, in, 2.0f, width, height);
}
```

## Use instead

Consecutive lanes differ in threadIdx.x, so threadIdx.x belongs to the index that has no factor:

```cuda
__global__ void scale(float *out, const float *in, float factor, int width, int height) {
  int row = blockIdx.y * blockDim.y + threadIdx.y;
  int col = blockIdx.x * blockDim.x + threadIdx.x;
  if (row < height && col < width)
    out[row * width + col] = factor * in[row * width + col];
}

void run(float *out, const float *in, int width, int height) {
  dim3 block(16, 16);
  scale<<<dim3((width + 15) / 16, (height + 15) / 16), block>>>(out, in, 2.0f, width, height);
}
```

## Limits

- An index that is read from memory (a gather) is not judged: its sectors depend on the data.
- Caches are not modelled. A kernel that goes on to use the rest of each sector soon after, such as one that reads all
  the members of a structure, pays in L1 transactions and not in DRAM bandwidth; where the kernel's other accesses can
  be seen to use most of it, or each lane walks along consecutive elements up to where the next lane started, one
  access of the array is shown, as information, and only from 4 sectors for each one needed.
- Where the block's shape had to be assumed and the lanes depend on it, the finding is information, and it says so.
- Where the sectors too many are less than a tenth of what the kernel needs in global memory, it is information.
- A request of few lanes, and one that runs once in a launch of a single block, is a hint at most.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from warpwright.facts.model import SECTOR_BYTES, WARP, Access, AccessKind, Kernel, Space
from warpwright.rules.base import Finding, Fix, Severity
from warpwright.rules.gains import without_excess
from warpwright.rules.memory._lanes import elements_of_a_lane, steps_over_structures, walks_on
from warpwright.rules.memory._neighbours import MOSTLY_USED, Neighbours
from warpwright.rules.weighing import COUNTED, weighed, worst_by_place
from warpwright.rules.words import because, code, launch_evidence, launch_of, launch_related, per_request

severity = Severity.WARNING

NOTABLE = 2.0
"""Sectors for each one needed from which an access is said at all: half of what is moved is not used."""
GRAVE = 4.0
"""From here it is a warning: three quarters or more of what is moved are not used."""
MANY = 8.0
"""Sectors too many in one request below which the access is information at most: a misaligned row costs one or two."""
_BOTH_AXES = (re.compile(rb"\bthreadIdx\s*\.\s*x\b"), re.compile(rb"\bthreadIdx\s*\.\s*y\b"))


def check(kernel: Kernel) -> Iterator[Finding]:
    counted = [a for a in kernel.accesses if a.space is Space.GLOBAL and a.basis in COUNTED]
    neighbours = Neighbours(kernel, counted, SECTOR_BYTES)
    said: set[str | None] = set()
    for access in worst_by_place(counted, lambda a: a.excess or 0.0):
        excess = access.excess
        if access.transactions is None or excess is None or excess < NOTABLE:
            continue
        got, ideal = access.transactions
        if steps_over_structures(access) or elements_of_a_lane(kernel, access):
            continue  # strided-struct-access and narrow-access say what to do about these
        launch = launch_of(kernel, access.launch)
        own, used = neighbours.shares(access)
        level = Severity.WARNING if excess >= GRAVE and got - ideal >= MANY else Severity.INFORMATION
        if cached := (used >= MOSTLY_USED and used > own) or walks_on(access):
            if level is not Severity.WARNING or access.array in said:
                continue
            level = Severity.INFORMATION
            said.add(access.array)
        yield Finding(
            span=access.span,
            array=access.array or "",
            message=(
                f"Uncoalesced {access.kind.value} {code(access.expression)}: {per_request(access, 'sector')}"
                f"{because(launch, access.basis, access.why)}\n{_advice(kernel, cached)}"
            ),
            severity=weighed(kernel, access, level),
            gain=None if cached else without_excess(kernel, access),
            evidence={
                "sectors_per_request": round(got, 3),
                "ideal_sectors_per_request": round(ideal, 3),
                "active_lanes": round(access.active_lanes, 3),
                "bytes": access.bytes,
                "basis": access.basis.value,
                "share_of_sectors_used": round(used, 3),
                **launch_evidence(launch),
            },
            fixes=_fixes(kernel, access),
            related=launch_related(launch),
        )


def _uses_both_axes(kernel: Kernel) -> bool:
    return all(axis.search(kernel.source.data, kernel.span.start, kernel.span.end) for axis in _BOTH_AXES)


def _advice(kernel: Kernel, cached: bool) -> str:
    if cached:
        return (
            "The kernel uses the rest of these sectors too, so L1 hits make up for most of it. A structure of arrays "
            "would not rely on them."
        )
    if _uses_both_axes(kernel):
        return "Index the contiguous dimension with threadIdx.x, or stage through a tile in shared memory."
    return "Map consecutive lanes to consecutive elements, or stage through shared memory."


def _fixes(kernel: Kernel, access: Access) -> tuple[Fix, ...]:
    if access.span.source is kernel.source and _uses_both_axes(kernel) and not kernel.shared_arrays:
        swap = Fix("swap-thread-axes", "Swap threadIdx.x and threadIdx.y")
        return (swap, Fix("stage-transpose-in-shared", "Transpose through a shared-memory tile"))
    if access.span.source is not kernel.source or access.loop_step != access.bytes:
        return ()
    chunk = Fix("interchange-loops", "Interchange the loops: consecutive threads take consecutive elements")
    vectors = Fix("vectorize-row-walk", "Vectorize row loads (float4)")
    if _walks_a_row(access) and not kernel.shared_arrays and not kernel.barriers:
        return (Fix("warp-per-row", "Process one row per warp", safe=False), vectors, chunk)
    return (chunk, vectors)


def _walks_a_row(access: Access) -> bool:
    """Whether each lane goes along consecutive elements in a loop long enough for a warp to share."""
    return access.kind is AccessKind.LOAD and access.loop_step == access.bytes and access.iterations >= WARP
