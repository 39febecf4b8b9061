"""Declare a shared array no larger than what the threads touch of it.

## Before

```cuda
__global__ void sum(float *out, const float *in) {
  __shared__ float partial[4096];
  partial[threadIdx.x] = in[blockIdx.x * blockDim.x + threadIdx.x];
  __syncthreads();
  for (unsigned int s = blockDim.x / 2; s > 0; s >>= 1) {
    if (threadIdx.x < s)
      partial[threadIdx.x] += partial[threadIdx.x + s];
    __syncthreads();
  }
  if (threadIdx.x == 0)
    out[blockIdx.x] = partial[0];
}

void run(float *out, const float *in) {
  sum<<<64, 256>>>(out, in);
}
```

## After

```cuda
__global__ void sum(float *out, const float *in) {
  __shared__ float partial[256];
  partial[threadIdx.x] = in[blockIdx.x * blockDim.x + threadIdx.x];
  __syncthreads();
  for (unsigned int s = blockDim.x / 2; s > 0; s >>= 1) {
    if (threadIdx.x < s)
      partial[threadIdx.x] += partial[threadIdx.x + s];
    __syncthreads();
  }
  if (threadIdx.x == 0)
    out[blockIdx.x] = partial[0];
}

void run(float *out, const float *in) {
  sum<<<64, 256>>>(out, in);
}
```

Of an array of several dimensions the first extent shrinks, so that its rows stay where they are in the banks.

## Assumes

- The array is a static `__shared__` array that is only used by its elements: no address, no `sizeof`, no row passed on.
- Every launch is in the file, with a block that the text gives, and every index is exact there: none depends on data,
  on run-time sizes or on the block's place in the grid, and every loop was followed to its end.
- Under a condition that depends on more than the thread, the array is touched by whole warps at the sampled blocks.

## Cost

The size fits the launches found: one with a larger block needs it raised again. Where the block's size at the launch
is a macro and the array needs one element for each thread, that macro becomes the size.
"""

from __future__ import annotations

import re

from tree_sitter import Node

from warpwright.facts.lifts import size_words
from warpwright.facts.model import WARP, Access, Basis, Kernel, SharedArray, Space
from warpwright.rewrites._arrays import GRANULE, declarator_of, element_uses, extents_of, indices_of, misuse
from warpwright.rewrites._code import body, host_launches, macro_texts, overlaps
from warpwright.rewrites._launched import launched_blocks
from warpwright.rewrites._names import deciding, reached_names
from warpwright.rewrites.base import Declined, Reliance, Rewrite
from warpwright.syntax.edits import TextEdit
from warpwright.syntax.nodes import descendants, node_at, uncommented
from warpwright.syntax.source import Source, Span

NAME = "shrink-shared-array"
title = "Shrink the shared array to what is used"
goals = ("memory",)
relies_on = (Reliance.GRID, Reliance.BLOCK, Reliance.SIZES)


_OF_THE_BLOCK = frozenset({"blockIdx", "gridDim", "cooperative_groups", "cg"})


def propose(kernel: Kernel, at: Span | None) -> Rewrite | Declined:
    arrays = [a for a in kernel.shared_arrays if not a.dynamic and a.dims and (at is None or overlaps(a.span, at))]
    if not arrays:
        return Declined(NAME, f"{kernel.name} has no static shared array here.")
    results = [_shrunk(kernel, array) for array in sorted(arrays, key=lambda a: a.bytes or 0, reverse=True)]
    return next((result for result in results if isinstance(result, Rewrite)), results[0])


def _shrunk(kernel: Kernel, array: SharedArray) -> Rewrite | Declined:
    block, size = body(kernel), array.bytes
    declarator = declarator_of(block, kernel.source, array.name) if block is not None else None
    if block is None or declarator is None or size is None:
        return Declined(NAME, f"The declaration of `{array.name}` in {kernel.name}, or its size, is not found.")
    if reason := misuse(block, kernel.source, array.name, len(array.dims), declarator):
        return Declined(NAME, reason)
    if reason := _unseen(kernel, array):
        return Declined(NAME, reason)
    used = array.used_bytes or 0
    rows, row = array.dims[0] or 1, size // (array.dims[0] or 1)
    needed = -(-used // row) if row else rows
    if (rows - needed) * row < GRANULE:
        return Declined(NAME, f"Nothing to gain: {used} of the {size} bytes of `{array.name}` are used.")
    if reason := _uncertain(kernel, array, block, declarator):
        return Declined(NAME, reason)
    extent = next(iter(extents_of(declarator)), None)
    if extent is None or in_template(kernel, extent):
        return Declined(NAME, f"The extent of `{array.name}` is not written out, or is a template's.")
    text = _block_macro(kernel, extent, needed) or str(needed)
    return Rewrite(
        rewrite=NAME,
        title=f"Shrink {array.name} from {size_words(size)} to {size_words(needed * row)}",
        source=kernel.source,
        edits=(TextEdit(extent.start_byte, extent.end_byte, text),),
        explanation=(
            f"At the launches found the highest byte of {array.name} that a thread touches is byte {used} of "
            f"{size}. "
            f"A block holds its shared memory for as long as it runs, so the other {size_words(size - needed * row)} "
            "are "
            "lost to other blocks and to the L1 cache. A launch with a larger block would need the size raised again."
        ),
    )


def _unseen(kernel: Kernel, array: SharedArray) -> str:
    """Why the launches, or the indices there, are not certain; empty where they are."""
    if isinstance(shapes := launched_blocks(kernel), str):
        return shapes
    if kernel.incomplete or array.used_bytes is None:
        return f"Which elements of `{array.name}` are used depends on more than the launches found."
    return ""


def _uncertain(kernel: Kernel, array: SharedArray, block: Node, declarator: Node) -> str:
    """Why a block or a size that was not looked at could use more of the array; empty where none could."""
    source = kernel.source
    parameters = {p.name for p in kernel.parameters}
    lanes = _active_lanes(kernel, array)
    for element in element_uses(block, source, array.name, declarator):
        line = source.position(element.start_byte)[0]
        accesses = lanes.get(element.start_byte)
        if not accesses or any(a.basis is not Basis.EXACT for a in accesses):
            return f"No launch found is certain to reach `{source.node_text(element)}` at line {line}."
        if any(reached_names(block, source, index) & _OF_THE_BLOCK for index in indices_of(element)):
            return (
                f"The index of `{source.node_text(element)}` at line {line} depends on the block's place in the grid."
            )
        uncertain = parameters | _OF_THE_BLOCK
        partial = any(a.active_lanes < WARP for a in accesses)
        if partial and any(reached_names(block, source, c) & uncertain for c in deciding(element, block)):
            return (
                f"Which threads reach `{source.node_text(element)}` at line {line} depends on more than their "
                "number, "
                "so others may use more."
            )
    return ""


def _active_lanes(kernel: Kernel, array: SharedArray) -> dict[int, list[Access]]:
    """The accesses to the array by where they start in the text."""
    found: dict[int, list[Access]] = {}
    for access in kernel.accesses:
        if access.space is Space.SHARED and access.array == array.name and access.span.source is kernel.source:
            found.setdefault(access.span.start, []).append(access)
    return found


def in_template(kernel: Kernel, extent: Node) -> bool:
    """Whether an extent names a parameter of the kernel's template."""
    source = kernel.source
    head = source.code_text(kernel.span.start, kernel.name_span.start)
    named = {source.node_text(n) for n in descendants(extent, "identifier")}
    return any(re.search(rf"\b{re.escape(name)}\b", head) for name in named)


def _block_macro(kernel: Kernel, extent: Node, needed: int) -> str:
    """The macro that every launch has as its block, where it is as many threads as elements are needed; else empty."""
    source: Source = kernel.source
    macros = macro_texts(source)
    found: set[str] = set()
    for launch in host_launches(kernel):
        span = launch.span
        node = node_at(source.root, span.start, span.end) if span is not None and span.source is source else None
        configuration = next(iter(descendants(node, "kernel_call_syntax")), None) if node is not None else None
        given = uncommented(configuration)
        text = source.node_text(given[1]) if len(given) > 1 else ""
        found.add(text if macros.get(text) == [str(needed)] and launch.threads == needed else "")
    name = found.pop() if len(found) == 1 else ""
    defined = re.search(rf"^\s*#\s*define\s+{re.escape(name)}\b", source.code_text(0, extent.start_byte), re.MULTILINE)
    return name if name and defined else ""
