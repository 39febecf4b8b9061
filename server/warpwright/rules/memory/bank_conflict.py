"""Lanes of a warp meet in one bank of shared memory.

## Why is this bad?

Shared memory has 32 banks, each 4 bytes wide, and a bank serves one 4-byte word per wavefront. Lanes that read the same
word share it. Lanes that want different words of one bank wait for each other: a request that needs 32 words of one
bank takes 32 wavefronts (ideal 1), and the warp stalls that much longer. The classic case is a column of a tile
whose rows are 32 floats: every row starts in bank 0, so a column is one bank.

The counts are those of the real lanes of real warps, with the block shape that the host code launches. A warning is
given from 3 wavefronts for each one needed; from 2 it is information.

## Example

```cuda
#define TILE 32

__global__ void transpose(float *out, const float *in, int n) {
  __shared__ float tile[TILE][TILE];
  int x = blockIdx.x * TILE + threadIdx.x;
  int y = blockIdx.y * TILE + threadIdx.y;
  if (x < n && y < n)
    tile[threadIdx.y][threadIdx.x] = in[y * n + x];
  __syncthreads();
  x = blockIdx.y * TILE + threadIdx.x;
  y = blockIdx.x * TILE + threadIdx.y;
  if (x < n && y < n)
    out[y * n + x] = tile[threadIdx.x][threadIdx.y];
}

void run(float *out, const float *in, int n) {
  dim3 block(TILE, TILE), grid((n + TILE - 1) / TILE, (n + TILE - 1) / TILE);
  transpose<<<grid, block>>>(out, in, n);
}
```

## Use instead

A row of 33 floats starts one bank further than the row above it, so a column visits all 32 banks:

```cuda
#define TILE 32

__global__ void transpose(float *out, const float *in, int n) {
  __shared__ float tile[TILE][TILE + 1];
  int x = blockIdx.x * TILE + threadIdx.x;
  int y = blockIdx.y * TILE + threadIdx.y;
  if (x < n && y < n)
    tile[threadIdx.y][threadIdx.x] = in[y * n + x];
  __syncthreads();
  x = blockIdx.y * TILE + threadIdx.x;
  y = blockIdx.x * TILE + threadIdx.y;
  if (x < n && y < n)
    out[y * n + x] = tile[threadIdx.x][threadIdx.y];
}

void run(float *out, const float *in, int n) {
  dim3 block(TILE, TILE), grid((n + TILE - 1) / TILE, (n + TILE - 1) / TILE);
  transpose<<<grid, block>>>(out, in, n);
}
```

## Limits

- An index that is read from memory (a histogram's bin) is not judged: its conflicts depend on the data.
- Where the block's shape had to be assumed and the lanes depend on it, the finding is information, and it says so.
- Where the kernel also uses the words between (the members of a `float4`, or a lane's neighbouring words in a loop that
  is unrolled), the compiler may merge the accesses into wide ones that do not conflict; one access of the array is then
  shown, as information.
- Where the wavefronts too many are less than a tenth of what the kernel needs in shared memory, it is information.
- A request of few lanes, and one that runs once in a launch of a single block, is a hint at most.
"""

from __future__ import annotations

from collections.abc import Iterator

from warpwright.facts.memory import ideal_wavefronts, wavefronts
from warpwright.facts.model import WARP, Access, Basis, Kernel, LaneAddresses, SharedArray, Space
from warpwright.rules.base import Finding, Fix, Severity
from warpwright.rules.gains import without_excess
from warpwright.rules.memory._neighbours import MOSTLY_USED, Neighbours
from warpwright.rules.reductions import ADDRESS_SEQUENTIALLY, in_doubling_loop, reduction_fix
from warpwright.rules.weighing import COUNTED, weighed, worst_by_place
from warpwright.rules.words import because, code, launch_evidence, launch_of, launch_related, number, per_request

severity = Severity.WARNING

NOTABLE = 2.0
"""Wavefronts for each one needed from which a conflict is said at all."""
GRAVE = 3.0
"""From here it is a warning: shared memory serves at a third of its rate or less."""

AS_WRITTEN = (Basis.EXACT, Basis.EMULATED)
"""Bases that count requests as the text has them; a measured one knows what the compiler made of them."""
PIECE = 16
"""Bytes of the widest access, which the compiler can make of neighbouring words that one lane uses."""


def check(kernel: Kernel) -> Iterator[Finding]:
    shared = [a for a in kernel.accesses if a.space is Space.SHARED and a.basis in COUNTED]
    neighbours = Neighbours(kernel, shared, PIECE, _distances)
    said: set[str | None] = set()
    for access in worst_by_place(shared, lambda a: a.excess or 0.0):
        excess = access.excess
        if access.transactions is None or excess is None or excess < NOTABLE:
            continue
        got, ideal = access.transactions
        array = next((a for a in kernel.shared_arrays if a.name == access.array), None)
        launch = launch_of(kernel, access.launch)
        own, used = neighbours.shares(access)
        level = Severity.WARNING if excess >= GRAVE else Severity.INFORMATION
        if merged := (used >= MOSTLY_USED and used > own) or _becomes_wide(access):
            if access.array in said:
                continue
            level = Severity.INFORMATION
            said.add(access.array)
        yield Finding(
            span=access.span,
            array=access.array or "",
            message=(
                f"{number(excess)}-way bank conflict on {code(access.expression)}: {per_request(access, 'wavefront')}"
                f"{because(launch, access.basis, access.why)}\n{_advice(kernel, access, array, merged)}"
            ),
            severity=weighed(kernel, access, level),
            gain=None if merged else without_excess(kernel, access),
            evidence={
                "wavefronts_per_request": round(got, 3),
                "ideal_wavefronts_per_request": round(ideal, 3),
                "active_lanes": round(access.active_lanes, 3),
                "bytes": access.bytes,
                "basis": access.basis.value,
                **launch_evidence(launch),
            },
            fixes=_fixes(kernel, access, array),
            related=launch_related(launch),
        )


def _becomes_wide(access: Access) -> bool:
    """Whether each lane walks along words in a loop, which the compiler unrolls and reads in wide pieces, and these
    pieces hardly conflict: `b[8 * (lane % 16) + i]` for i up to 8."""
    if access.lanes is None or access.loop_step != access.bytes or access.basis not in AS_WRITTEN:
        return False
    pieces = [at if at is None else at - at % PIECE for at in access.lanes.addresses]
    got = wavefronts(pieces, PIECE)
    return got < GRAVE * ideal_wavefronts(got, WARP - pieces.count(None), PIECE)


def _distances(lanes: LaneAddresses) -> tuple[int | None, ...]:
    """From the first lane that is on to each: equal where two accesses stay at one distance from one another, as those
    to the members of a structure do."""
    first = next((at for at in lanes.addresses if at is not None), 0)
    return tuple(None if at is None else at - first for at in lanes.addresses)


def _has_rows(array: SharedArray | None) -> bool:
    return array is not None and not array.dynamic and len(array.dims) >= 2


def _advice(kernel: Kernel, access: Access, array: SharedArray | None, merged: bool) -> str:
    if merged:
        return "The kernel uses the words between too: check whether the compiler merges them into one vector access."
    if array is not None and _has_rows(array):
        return f"Pad the rows of `{array.name}`, so that each row starts in another bank."
    if _in_doubling_loop(kernel, access):
        return ADDRESS_SEQUENTIALLY
    return "Map consecutive lanes to consecutive words, or make the stride an odd number of words."


def _fixes(kernel: Kernel, access: Access, array: SharedArray | None) -> tuple[Fix, ...]:
    if array is not None and _has_rows(array):
        pad = Fix("pad-shared-array", f"Pad the rows of `{array.name}`")
        width = array.dims[-1] or 0
        if len(array.dims) != 2 or width & (width - 1):
            return (pad,)
        return (pad, Fix("swizzle-shared-array", f"XOR-swizzle `{array.name}`"))
    if _in_doubling_loop(kernel, access):
        return (reduction_fix(kernel, [access.array]),)
    if array is not None and not array.dynamic and access.span.source is kernel.source:
        return (Fix("skew-shared-array", f"Pad `{array.name}` by one word per 128 bytes"),)
    return ()


def _in_doubling_loop(kernel: Kernel, access: Access) -> bool:
    """Whether the access stands in such a loop of the kernel's own text, which is where a rewrite could change it."""
    inside = access.span.source is kernel.source and kernel.span.start <= access.span.start < kernel.span.end
    return inside and in_doubling_loop(access.span)
