"""Pad the rows of a shared array, so that the rows start in different banks.

## Before

```cuda
__global__ void transpose(float *out, const float *in, int n) {
  __shared__ float tile[32][32];
  int x = blockIdx.x * 32 + threadIdx.x;
  int y = blockIdx.y * 32 + threadIdx.y;
  tile[threadIdx.y][threadIdx.x] = in[y * n + x];
  __syncthreads();
  x = blockIdx.y * 32 + threadIdx.x;
  y = blockIdx.x * 32 + threadIdx.y;
  out[y * n + x] = tile[threadIdx.x][threadIdx.y];
}

void run(float *out, const float *in, int n) {
  transpose<<<dim3(n / 32, n / 32), dim3(32, 32)>>>(out, in, n);
}
```

## After

```cuda
__global__ void transpose(float *out, const float *in, int n) {
  __shared__ float tile[32][32 + 1];
  int x = blockIdx.x * 32 + threadIdx.x;
  int y = blockIdx.y * 32 + threadIdx.y;
  tile[threadIdx.y][threadIdx.x] = in[y * n + x];
  __syncthreads();
  x = blockIdx.y * 32 + threadIdx.x;
  y = blockIdx.x * 32 + threadIdx.y;
  out[y * n + x] = tile[threadIdx.x][threadIdx.y];
}

void run(float *out, const float *in, int n) {
  transpose<<<dim3(n / 32, n / 32), dim3(32, 32)>>>(out, in, n);
}
```

## Assumes

- The array is a static `__shared__` array of two or more dimensions, and every use of it names one element with all its
  indices, so that nothing depends on where rows lie. Taking an address (other than for an atomic), `sizeof`, passing
  the array or a row on, and walking over the end of a row are refused.
- The padded array and the rest of the block's shared memory fit in 48 KB.
- The smallest number of extra elements that comes close to the fewest wavefronts of the counted accesses is taken; when
  none lowers them, the rewrite is refused.

## Cost

Some bytes of shared memory for each row, which can lower occupancy where shared memory is what limits it. Results stay
the same bit for bit.
"""

from __future__ import annotations

import re

from warpwright.facts.memory import wavefronts
from warpwright.facts.model import Access, Kernel, SharedArray, Space
from warpwright.rewrites._arrays import declarator_of, misuse, walks_over_rows
from warpwright.rewrites._code import body
from warpwright.rewrites._conflicts import of_worst_conflict
from warpwright.rewrites._limits import SHARED_BYTES
from warpwright.rewrites.base import Declined, Reliance, Rewrite
from warpwright.syntax.edits import TextEdit
from warpwright.syntax.source import Span

NAME = "pad-shared-array"
title = "Pad the shared array"
goals = ("speed",)
relies_on = (Reliance.SHARED,)

WIDEST_PAD = 8
"""Elements tried; one 4-byte word is 4 elements of one byte, and 16-byte elements need no more than one."""

GOOD_ENOUGH = 1.1
"""A smaller pad is taken while it costs at most this much more wavefronts than the best one."""

_LOOSE = re.compile(r"[-+*/%\w.()\s:]*")
"""Sizes to which `+ 1` can be added as they stand."""


def propose(kernel: Kernel, at: Span | None) -> Rewrite | Declined:
    return of_worst_conflict(kernel, at, NAME, _pad)


def _pad(kernel: Kernel, access: Access) -> Rewrite | Declined:
    array = next((a for a in kernel.shared_arrays if a.name == access.array), None)
    block = body(kernel)
    if array is None or block is None:
        return Declined(NAME, f"`{access.expression}` is not an access to a __shared__ array of this kernel.")
    if array.dynamic or len(array.dims) < 2:
        return Declined(NAME, f"`{array.name}` has no rows to pad: it is not a static array of two or more dimensions.")
    declarator = declarator_of(block, kernel.source, array.name)
    if declarator is None:
        return Declined(NAME, f"The declaration of `{array.name}` is not in the body of {kernel.name}.")
    reason = misuse(block, kernel.source, array.name, len(array.dims), declarator) or walks_over_rows(
        block, kernel.source, array
    )
    if reason:
        return Declined(NAME, reason)
    if array.leaves_rows:
        return Declined(NAME, f"An index into `{array.name}` passes the end of its row, as in flat memory.")
    pad = _best_pad(kernel, array)
    if isinstance(pad, str):
        return Declined(NAME, pad)
    size = declarator.child_by_field_name("size")
    if size is None:
        return Declined(NAME, f"The last extent of `{array.name}` is not written out.")
    text = kernel.source.node_code(size)
    edits = (
        [TextEdit(size.end_byte, size.end_byte, f" + {pad}")]
        if _LOOSE.fullmatch(text)
        else [TextEdit(size.start_byte, size.start_byte, "("), TextEdit(size.end_byte, size.end_byte, f") + {pad}")]
    )
    rows = 1
    for extent in array.dims[:-1]:
        rows *= extent or 1
    shift = pad * (array.element_bytes or 0)
    return Rewrite(
        rewrite=NAME,
        title=f"Pad the rows of {array.name} by {pad} element{'s' if pad > 1 else ''}",
        source=kernel.source,
        edits=tuple(edits),
        explanation=(
            f"Each row of {array.name} begins {shift} bytes further in the banks than the row above, so the lanes "
            f"that read a column no longer meet in one bank. It costs {rows * shift} bytes of shared memory per block."
        ),
    )


def _best_pad(kernel: Kernel, array: SharedArray) -> int | str:
    """The fewest extra elements per row that give about the fewest wavefronts, or the reason why there is none."""
    width, size = array.dims[-1], array.element_bytes
    if width is None or size is None or kernel.shared_bytes is None:
        return f"The size of `{array.name}` or of the kernel's other shared memory is not known from the text."
    used = kernel.shared_bytes + max((launch.dynamic_shared_bytes or 0 for launch in kernel.launches), default=0)
    rows = (array.bytes or 0) // (width * size)
    costs = {pad: _cost(kernel, array, width * size, pad * size) for pad in range(WIDEST_PAD + 1)}
    room = [pad for pad in costs if used + rows * pad * size <= SHARED_BYTES]
    enough = min((costs[pad] for pad in room), default=0) * GOOD_ENOUGH
    best = next((pad for pad in room if costs[pad] <= enough), 0)
    if best:
        return best
    if min(costs.values()) < costs[0]:
        return f"The block uses {used} bytes of shared memory, and padding `{array.name}` would pass 48 KB."
    return f"No padding of the rows of `{array.name}` lowers the wavefronts of its accesses."


def _cost(kernel: Kernel, array: SharedArray, row: int, pad: int) -> int:
    """Wavefronts of the worst requests to an array whose rows of `row` bytes are `pad` bytes longer."""
    total = 0
    for access in kernel.accesses:
        if access.array == array.name and access.space is Space.SHARED and access.lanes is not None:
            moved = [a + a // row * pad if a is not None else None for a in access.lanes.addresses]
            total += wavefronts(moved, access.bytes)
    return total
