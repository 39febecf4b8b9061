"""Let what a thread has prepared serve many elements: a loop that steps by the size of the grid.

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

```cuda
__global__ void momentum(float *m, const float *g, float beta, int step, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    m[i] = (beta * m[i] + (1.0f - beta) * g[i]) / (1.0 - pow((double)beta, step));
  }
}

void run(float *m, const float *g, int step, int n) {
  int blocks = (n + 255) / 256;
  momentum<<<blocks, 256>>>(m, g, 0.9f, step, n);
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

```cuda
__global__ void momentum(float *m, const float *g, float beta, int step, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  const double pow_value = 1.0 - pow((double)beta, step);
  for (; i < n; i += blockDim.x * gridDim.x) {
    m[i] = (beta * m[i] + (1.0f - beta) * g[i]) / pow_value;
  }
}

void run(float *m, const float *g, int step, int n) {
  int blocks = (n + 255) / 256;
  momentum<<<(blocks < 1024 ? blocks : 1024), 256>>>(m, g, 0.9f, step, n);
}
```

## Assumes

- The kernel does the same to each element below a bound. Either that follows a barrier, and what stands before the
  barrier is the same for every block and fills nothing but the block's own variables; or it calls functions such as
  `pow` and `exp` of numbers that are the same for all elements, which are CUDA's own.
- All launches are in this file, with one-dimensional blocks and a grid that is seen to cover the bound. A grid that
  does not cover it is refused: elements would be reached that are not now.
- The bound and 262,144 together stay under the largest value of the index's type.

A kernel that prepares nothing is refused: starting its blocks costs no more than a loop does.

## Cost

A comparison and an addition for each element. Blocks stay for longer, so that the last ones of a launch are waited for
longer where elements take very different times. Results stay the same bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable

from tree_sitter import Node

from warpwright.facts.model import Kernel
from warpwright.rewrites._code import body, require_marked
from warpwright.rewrites._elementwise import (
    Elements,
    barriers_before,
    declared_in,
    leaves_traces,
    match_elements,
    not_by_element,
    not_the_thread,
    tied_to_thread,
    with_header,
    without_const,
)
from warpwright.rewrites._grids import capped, grid_formula, launches_in_sight, uncovered
from warpwright.rewrites._invariant_calls import hoisted, invariant_expressions
from warpwright.rewrites._limits import THREADS
from warpwright.rewrites._locals import locals_of
from warpwright.rewrites.base import Declined, Reliance, Rewrite
from warpwright.syntax.edits import TextEdit
from warpwright.syntax.source import Span

NAME = "grid-stride-loop"
title = "Use a grid-stride loop"
goals = ("speed",)
relies_on = (Reliance.GRID, Reliance.SIZES)


def propose(kernel: Kernel, at: Span | None) -> Rewrite | Declined:
    elements = match_elements(kernel)
    if isinstance(elements, str):
        return Declined(NAME, elements)
    source = kernel.source
    require_marked(kernel, at)
    same = invariant_expressions(source, elements.work, _is_fixed(kernel, elements))
    if not barriers_before(kernel, elements) and not same:
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
    lines, replaced = hoisted(source, same, locals_of(kernel).types)
    return Rewrite(
        rewrite=NAME,
        title=title,
        source=source,
        edits=(*edits, *replaced, *_kernel_edits(kernel, elements, lines)),
        explanation=f"{_now(kernel, elements, same)} With no more blocks than a GPU holds at once, each does so once "
        "and goes on to the elements that lie one grid further.",
    )


def _now(kernel: Kernel, elements: Elements, same: list[Node]) -> str:
    """What each block or thread does before its one element."""
    said: list[str] = []
    if barriers_before(kernel, elements):
        written = sum(array.bytes or 0 for array in kernel.shared_arrays)
        prepared = f"{written} bytes of shared memory" if written else "shared memory"
        said.append(
            f"Each block of {kernel.name} fills {prepared} and waits for it before it works on one element in each "
            "thread."
        )
    if same:
        text = kernel.source.node_text(same[0])
        said.append(f"Each thread computes `{text}`, which is the same for all elements, for its one element.")
    return " ".join(said)


def _is_fixed(kernel: Kernel, elements: Elements) -> Callable[[str], bool]:
    """Which names have one value before the work on any element: parameters, and what is computed from them before."""
    variables, block = locals_of(kernel), body(kernel)
    used = tied_to_thread(kernel.source, elements) | {elements.index}
    inside = {name for s in elements.work for name in declared_in(kernel.source, s)}
    pointers = {p.name for p in kernel.parameters if p.is_pointer}

    def is_fixed(name: str) -> bool:
        return block is not None and variables.is_fixed(name) and name not in used | inside | pointers

    return is_fixed


def _kernel_edits(kernel: Kernel, elements: Elements, lines: list[str]) -> list[TextEdit]:
    index, bound = elements.index, kernel.source.node_text(elements.bound)
    indent = kernel.source.line_indent(elements.guard.start_byte)
    before = "".join(f"{line}\n{indent}" for line in lines)
    loop = f"{before}for (; {index} < {bound}; {index} += blockDim.x * gridDim.x)"
    return [*without_const(kernel.source, elements.declaration), *with_header(kernel, elements, loop)]
