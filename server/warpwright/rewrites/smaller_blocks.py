"""Launch smaller blocks, where a few large ones leave most multiprocessors idle.

## Before

```cuda
__global__ void row_products(float *out, const float *in, int rows, int columns) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  float product = 1.0f;
  for (int c = 0; c < columns; c++)
    product = product * in[row * columns + c] + 1.0f;
  out[row] = product;
}

void run(float *out, const float *in, int columns) {
  row_products<<<4096 / 256, 256>>>(out, in, 4096, columns);
}
```

## After

```cuda
__global__ void row_products(float *out, const float *in, int rows, int columns) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  float product = 1.0f;
  for (int c = 0; c < columns; c++)
    product = product * in[row * columns + c] + 1.0f;
  out[row] = product;
}

void run(float *out, const float *in, int columns) {
  row_products<<<4096 / 256 * 8, 32>>>(out, in, 4096, columns);
}
```

A block runs on one multiprocessor. Threads that run for long and ask much of the L1 cache, of the arithmetic or of
shared resources share them with fewer others where their blocks are spread over all multiprocessors. In a kernel that
writes its block's size as a number, that becomes `blockDim.x`.

## Assumes

- The kernel knows its thread by `blockIdx.x * blockDim.x + threadIdx.x` alone, by `gridDim.x * blockDim.x`, and by its
  block's place in y and z: the same numbers are worked on. It has no shared memory, no barrier and no operation of a
  warp, and calls nothing that has.
- Every launch is in one file, the kernel's or another, its block one-dimensional, of one known size. The grid's blocks
  in x become more by what they become smaller.
- How many blocks there are is read from the launch; where it is a run-time number, they are taken to have 4096 threads.

## Cost

A multiprocessor holds 32 blocks at most, so that of blocks of 32 threads no more than half of its threads are resident
where there is work for more. Results stay the same bit for bit, apart from the order of atomics.
"""

from __future__ import annotations

import re

from tree_sitter import Node

from warpwright.cuda.numbers import number_at
from warpwright.facts.aliasing import has_volatile
from warpwright.facts.model import WARP, Kernel, Launch
from warpwright.rewrites._code import (
    NoMatchError,
    body,
    in_macro,
    is_macro_of_several,
    macros_of,
    matched,
    naming,
    overlaps,
    squeezed,
)
from warpwright.rewrites._grids import is_shape
from warpwright.rewrites._launched import flat_block_of, found_launches
from warpwright.rewrites._layout import line_of
from warpwright.rewrites._linear_threads import OTHER_AXES, size_in, whole_number
from warpwright.rewrites._thread_numbers import NUMBER, WARP_LEVEL, calls_by_number
from warpwright.rewrites._threads import NUMBERS, grid_times
from warpwright.rewrites.base import Declined, Reliance, Rewrite
from warpwright.syntax.edits import TextEdit
from warpwright.syntax.nodes import LOOPS, descendants, launch_configuration, node_at, uncommented
from warpwright.syntax.source import Source, Span

NAME = "smaller-blocks"
title = "Use smaller blocks"
goals = ("speed",)
relies_on = (Reliance.GRID, Reliance.BLOCK)

MULTIPROCESSORS = 128
"""About as many as the largest GPUs have, one of which a block keeps busy."""
EXTENT = 4096
"""Threads that a grid of a run-time size is taken to have."""
_ONE_DIMENSION = frozenset({"threadIdx.y", "threadIdx.z", "blockDim.y", "blockDim.z"})
"""What is 0 or 1 in every thread of a block with one dimension."""


def propose(kernel: Kernel, at: Span | None) -> Rewrite | Declined:
    block = body(kernel)
    if block is None or kernel.node is None or in_macro(kernel.node) or kernel.node.has_error:
        return Declined(NAME, f"{kernel.name} is defined elsewhere, by a macro, or with a syntax error.")
    if not any(True for node in (block, *(c.node for c in kernel.callees)) for _ in descendants(node, *LOOPS)):
        return Declined(NAME, f"Nothing to gain: the threads of {kernel.name} have no loop, and so little to do.")
    if at is not None and not overlaps(kernel.span, at) and not any(_marks(launch, at) for launch in kernel.launches):
        return Declined(NAME, f"The marked code is not part of {kernel.name}.")
    return _spread(kernel, block)


def _marks(launch: Launch, at: Span) -> bool:
    return launch.span is not None and overlaps(launch.span, at)


def _spread(kernel: Kernel, block: Node) -> Rewrite:
    launches = _launches(kernel)
    source = next((launch.span.source for launch in launches if launch.span is not None), kernel.source)
    threads = launches[0].block[0] or 0
    factor, blocks = _factor(kernel, launches, threads)
    assumed = f" (taken for {EXTENT} threads)" if any(launch.grid[0] is None for launch in launches) else ""
    _require_free(kernel, block)
    edits = _numbers(kernel, block, threads)
    if edits and source is not kernel.source:
        raise NoMatchError(f"{kernel.name} holds its block's size as a number, and its launches are in another file.")
    for launch in launches:
        for edit in (grid_times(source, launch, factor), _block_edit(source, launch, threads, factor)):
            if isinstance(edit, str):
                raise NoMatchError(edit)
            edits.append(edit)
    return Rewrite(
        rewrite=NAME,
        title=f"Use blocks of {threads // factor} threads",
        source=source,
        edits=tuple(edits),
        explanation=(
            f"{blocks} blocks of {threads} threads{assumed} keep {blocks} multiprocessors busy, where a large GPU has "
            f"more than {MULTIPROCESSORS}. With {threads // factor} threads each, they are {blocks * factor}, and "
            "fewer threads share the caches and the arithmetic of one. Every thread does what it did. With far "
            f"more work, blocks of {threads // factor} threads fill "
            f"{'no more than half of' if threads // factor < 2 * WARP else 'all of'} a multiprocessor's threads."
        ),
    )


def _launches(kernel: Kernel) -> list[Launch]:
    """The launches, all in one file, with blocks of one size in one dimension."""
    launches = matched(found_launches(kernel))
    for launch in launches:
        matched(flat_block_of(launch))
        if launch.span is None or launches[0].span is None or launch.span.source is not launches[0].span.source:
            raise NoMatchError(f"{kernel.name} is launched in several files, as at {launch.source}.")
        if launch.dynamic_shared_bytes != 0:
            raise NoMatchError(f"{kernel.name} is launched with dynamic shared memory.")
    if len({launch.block for launch in launches}) > 1:
        raise NoMatchError(f"{kernel.name} is launched with blocks of several sizes.")
    return launches


def _factor(kernel: Kernel, launches: list[Launch], threads: int) -> tuple[int, int]:
    """By how much the blocks become smaller, and how many there are now at most."""
    counts: list[int] = []
    for launch in launches:
        x, y, z = launch.grid
        if y is None or z is None:
            raise NoMatchError(f"How many blocks the launch at {launch.source} has in y and z is not known.")
        counts.append((EXTENT // threads if x is None else x) * y * z)
    blocks = max(counts)
    if blocks * 2 > MULTIPROCESSORS:
        raise NoMatchError(f"Nothing to gain: {kernel.name} has {blocks} blocks, enough for most multiprocessors.")
    factor = 1
    while threads % (2 * factor * WARP) == 0 and blocks * factor < MULTIPROCESSORS:
        factor *= 2
    if factor == 1:
        raise NoMatchError(
            f"Nothing to gain: blocks of {threads} threads are not made of several equal parts of warps."
        )
    return factor, blocks


def _require_free(kernel: Kernel, block: Node) -> None:
    """Nothing but the thread's index ties a thread to its block."""
    text = kernel.source.node_code(block)
    if has_volatile(kernel) and any(True for _ in descendants(block, "while_statement", "do_statement")):
        raise NoMatchError(f"Threads of {kernel.name} may wait for each other through volatile memory.")
    if kernel.shared_arrays or kernel.barriers or re.search(r"__shared__|__syncthreads|__launch_bounds__", text):
        raise NoMatchError(f"{kernel.name} uses shared memory or barriers, which fit its blocks.")
    if tied := WARP_LEVEL.search(text):
        raise NoMatchError(f"{kernel.name} uses `{tied.group()}`, which ties its threads together.")
    for macro in naming(macros_of(kernel), NUMBER):
        if re.search(rf"\b{re.escape(macro)}\b", text):
            raise NoMatchError(f"{kernel.name} uses the macro {macro}, which reads the thread's index.")
    if reason := calls_by_number(kernel, block):
        raise NoMatchError(reason)


def _numbers(kernel: Kernel, block: Node, threads: int) -> list[TextEdit]:
    """The edits by which the kernel asks for its block's size; refuses other uses of the thread's or block's index."""
    source = kernel.source
    edits: dict[int, TextEdit] = {}
    for use in descendants(block, "identifier"):
        around = use.parent
        if source.node_text(use) not in NUMBERS or in_macro(use):
            continue
        if around is not None and squeezed(source.node_code(around)) in OTHER_AXES | _ONE_DIMENSION:
            continue
        whole = whole_number(source, use)
        if whole is None:
            raise NoMatchError(
                f"`{source.node_text(around or use)}` at line {line_of(source, use)} is not a part of "
                "`blockIdx.x * blockDim.x + threadIdx.x`, so what a thread does may depend on its block."
            )
        size = size_in(source, whole)
        if size == "blockDim.x":
            continue
        if number_at(source, whole, size, kernel.macros) != threads:
            raise NoMatchError(f"{size} at line {line_of(source, use)} is not known to be the block size.")
        for part in descendants(whole, "identifier", "number_literal"):
            if squeezed(source.node_code(part)) == size:
                edits[part.start_byte] = TextEdit(part.start_byte, part.end_byte, "blockDim.x")
    return list(edits.values())


def _block_edit(source: Source, launch: Launch, threads: int, factor: int) -> TextEdit | str:
    """The edit that makes a launch's block smaller."""
    node = node_at(source.root, launch.span.start, launch.span.end) if launch.span is not None else None
    configuration = uncommented(launch_configuration(node)) if node is not None else []
    if len(configuration) < 2:
        return f"The launch at {launch.source} is in a macro."
    size = configuration[1]
    new = str(threads // factor)
    if size.type == "identifier" and not is_macro_of_several(source, size):
        new = f"{source.node_text(size)}{'.x' if is_shape(source, size) else ''} / {factor}"
    return TextEdit(size.start_byte, size.end_byte, new)
