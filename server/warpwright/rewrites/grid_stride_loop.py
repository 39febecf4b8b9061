"""Let a block that has prepared a table use it for many elements: a loop that steps by the size of the grid.

## Before

```cuda
__global__ void equalize(unsigned char *out, const unsigned char *in, const unsigned char *levels, int n) {
  __shared__ unsigned char table[256];
  for (int j = threadIdx.x; j < 256; j += blockDim.x)
    table[j] = levels[j];
  __syncthreads();
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    out[i] = table[in[i]];
}

void run(unsigned char *out, const unsigned char *in, const unsigned char *levels, int n) {
  int blocks = (n + 255) / 256;
  equalize<<<blocks, 256>>>(out, in, levels, n);
}
```

## After

```cuda
__global__ void equalize(unsigned char *out, const unsigned char *in, const unsigned char *levels, int n) {
  __shared__ unsigned char table[256];
  for (int j = threadIdx.x; j < 256; j += blockDim.x)
    table[j] = levels[j];
  __syncthreads();
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  for (; i < n; i += blockDim.x * gridDim.x)
    out[i] = table[in[i]];
}

void run(unsigned char *out, const unsigned char *in, const unsigned char *levels, int n) {
  int blocks = (n + 255) / 256;
  equalize<<<(blocks < 1024 ? blocks : 1024), 256>>>(out, in, levels, n);
}
```

## Assumes

- The kernel does the same to each element below a bound, behind a barrier, and what stands before the barrier is the
  same for every block and fills nothing but the block's own variables.
- All launches are in this file, with one-dimensional blocks and a grid that is seen to cover the bound. A grid that
  does not cover it is refused: elements would be reached that are not now.
- The bound and 262,144 together stay under the largest value of the index's type.

A kernel that prepares nothing is refused: starting its blocks costs no more than a loop does.

## Cost

A comparison and an addition for each element. Blocks stay for longer, so that the last ones of a launch are waited for
longer where elements take very different times. Results stay the same bit for bit.
"""

from __future__ import annotations

from warpwright.facts.model import Kernel
from warpwright.rewrites._code import overlaps
from warpwright.rewrites._elementwise import (
    Elements,
    barriers_before,
    leaves_traces,
    match_elements,
    not_by_element,
    not_the_thread,
    with_header,
    without_const,
)
from warpwright.rewrites._grids import capped, grid_formula, launches_in_sight, uncovered
from warpwright.rewrites.base import Declined, Rewrite
from warpwright.syntax.edits import TextEdit
from warpwright.syntax.source import Span

NAME = "grid-stride-loop"
title = "Loop over the elements by the size of the grid"
goals = ("speed",)

THREADS = 128 * 2048
"""Threads that 128 multiprocessors hold at once, about as many as the largest GPUs have: more would wait for these."""


def propose(kernel: Kernel, at: Span | None) -> Rewrite | Declined:
    elements = match_elements(kernel)
    if isinstance(elements, str):
        return Declined(NAME, elements)
    source = kernel.source
    if at is not None and not overlaps(kernel.span, at):
        return Declined(NAME, f"What is marked is not in {kernel.name}.")
    if not barriers_before(kernel, elements):
        return Declined(NAME, f"Nothing to gain: {kernel.name} prepares nothing that a block could use again.")
    launches = launches_in_sight(kernel)
    if isinstance(launches, str):
        return Declined(NAME, launches)
    reason = (
        not_the_thread(kernel, elements, launches)
        or not_by_element(kernel, elements)
        or leaves_traces(kernel, elements)
    )
    edits: list[TextEdit] = []
    for launch in launches if not reason else ():
        reason = uncovered(kernel, launch, elements.bound)
        grid, most = grid_formula(source, launch), THREADS // (launch.block[0] or 1)
        blocks = grid.value({}) if grid is not None and not grid.symbols else None
        if not reason and blocks is not None and blocks <= most:
            reason = f"Nothing to gain: the {int(blocks)} blocks at {launch.source} are all at work at once."
        edit = capped(source, launch, most)
        if reason or isinstance(edit, str):
            reason = reason or str(edit)
            break
        edits.append(edit)
    if reason:
        return Declined(NAME, reason)
    written = sum(array.bytes or 0 for array in kernel.shared_arrays)
    prepared = f"{written} bytes of shared memory" if written else "shared memory"
    return Rewrite(
        rewrite=NAME,
        title=title,
        source=source,
        edits=(*edits, *_kernel_edits(kernel, elements)),
        explanation=(
            f"Each block of {kernel.name} fills {prepared} and waits for it before it works on one element in each "
            "thread. With no more blocks than a GPU holds at once, each fills it once and goes on to the elements "
            "that lie one grid further."
        ),
    )


def _kernel_edits(kernel: Kernel, elements: Elements) -> list[TextEdit]:
    index, bound = elements.index, kernel.source.node_text(elements.bound)
    loop = f"for (; {index} < {bound}; {index} += blockDim.x * gridDim.x)"
    return [*without_const(kernel.source, elements.declaration), *with_header(kernel, elements, loop)]
