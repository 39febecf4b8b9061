"""Swap the roles of threadIdx.x and threadIdx.y, so that consecutive lanes use neighbouring addresses.

## Before

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

## After

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

## Assumes

x and y change places in `threadIdx`, `blockIdx`, `blockDim` and `gridDim` throughout the kernel, and in the grid and
the block of its launches. Each thread of the old numbering then has exactly one counterpart that computes the same,
so results stay the same bit for bit as long as

- all launches are in this file, and their block's shape is known, or the grid and the block stay as they are;
- nothing depends on which threads share a warp: no shared memory, no warp-level operation, no cooperative group, and no
  called function or macro that reads the thread's index;
- the grid's y extent stays under 65,536. A run-time extent is taken to.

Where a launch cannot be edited with the kernel, because it stands in another file or in a macro, or perhaps not all of
them are found, the launches stay and the threads of each block are numbered along y first:

    const unsigned int thread = threadIdx.y * blockDim.x + threadIdx.x;
    const unsigned int threadX = thread / blockDim.y, threadY = thread % blockDim.y;

In a block of any shape each pair of numbers is then still one thread's, whoever launches the kernel.

The swap is refused where the kernel's accesses would not move fewer sectors in all: in a transpose it only trades an
uncoalesced store for an uncoalesced load.

## Cost

None at run time where the launches are edited, else a division for each thread; blocks are visited in another order.
A block of 32 x 8 becomes 8 x 32: its warps then touch 4 rows of 8 consecutive elements, which fills whole sectors,
though 32 in x is the usual choice for new code.
"""

from __future__ import annotations

import re

from tree_sitter import Node

from warpwright.cuda.functions import called_name
from warpwright.facts.model import Kernel, Launch, Space
from warpwright.rewrites._code import (
    body_of,
    functions_of,
    host_launches,
    in_macro,
    macros_naming,
    overlaps,
    unseen_launch,
)
from warpwright.rewrites._gain import no_fewer_sectors
from warpwright.rewrites._grids import is_shape
from warpwright.rewrites._launched import block_of
from warpwright.rewrites._layout import before_statement, free_name
from warpwright.rewrites._thread_numbers import NUMBER, WARP_LEVEL, calls_by_number
from warpwright.rewrites.base import Declined, Reliance, Rewrite
from warpwright.syntax.edits import TextEdit
from warpwright.syntax.nodes import descendants, node_at, uncommented
from warpwright.syntax.source import Source, Span

NAME = "swap-thread-axes"
title = "Swap threadIdx.x and threadIdx.y"
goals = ("speed",)
relies_on = (Reliance.GRID, Reliance.BLOCK)

MOST_BLOCKS_Y = 65535
"""Largest grid extent in y (CUDA C++ Programming Guide, "Technical Specifications per Compute Capability")."""

_NUMBERS = ("threadIdx", "blockIdx", "blockDim", "gridDim")


def propose(kernel: Kernel, at: Span | None) -> Rewrite | Declined:
    block = body_of(kernel)
    text = kernel.source.node_code(block)
    if not all(re.search(rf"\bthreadIdx\s*\.\s*{axis}\b", text) for axis in "xy"):
        return Declined(NAME, f"{kernel.name} does not use both threadIdx.x and threadIdx.y.")
    scattered = [a for a in kernel.accesses if a.space is Space.GLOBAL and (a.excess or 0.0) > 1.0]
    if at is not None:
        scattered = [a for a in scattered if overlaps(a.span, at)]
    if not scattered:
        return Declined(NAME, "No access to global memory here is known to be uncoalesced.")
    if reason := _dependence(kernel, block):
        return Declined(NAME, reason)
    launches = host_launches(kernel)
    moved = "The grid's extents change places with it, and every thread's work is done by exactly one thread as before."
    edits = _swapped_axes(kernel, block, launches)
    if isinstance(edits, str):
        unknown = not launches or any(isinstance(block_of(each), str) for each in launches)
        if unknown or len(functions_of(kernel.source).get(kernel.name, [])) > 1:
            return Declined(NAME, edits)
        moved = (
            "The launches stay as they are: the threads of each block are numbered along y first, and each pair of "
            f"numbers is still one thread's. They are not edited with the kernel for this reason: {edits}"
        )
        edits = _renumbered(kernel, block)
        if isinstance(edits, str):
            return Declined(NAME, edits)
    if reason := no_fewer_sectors(kernel, edits):
        return Declined(NAME, reason)
    return Rewrite(
        rewrite=NAME,
        title=title,
        source=kernel.source,
        edits=tuple(edits),
        explanation=(
            f"The lanes of a warp differ in threadIdx.x first. In {kernel.name} that was the index with a factor, so "
            f"each lane touched a sector of its own; now consecutive lanes touch consecutive elements. {moved}"
        ),
    )


def _swapped_axes(kernel: Kernel, block: Node, launches: list[Launch]) -> list[TextEdit] | str:
    """Edits of the kernel and of all its launches, or the reason why they cannot be made together."""
    if reason := unseen_launch(kernel) or _launches_unfit(kernel, launches):
        return reason
    edits = _kernel_edits(block, kernel.source)
    if isinstance(edits, str):
        return edits
    for launch in launches:
        swapped = _launch_edits(kernel.source, launch)
        if isinstance(swapped, str):
            return swapped
        edits += [edit for edit in swapped if edit not in edits]
    return edits


def _renumbered(kernel: Kernel, block: Node) -> list[TextEdit] | str:
    """Edits of the kernel alone: threadIdx.x and threadIdx.y by other names, which count the block's threads along y
    first; a reason where threadIdx is used in another way."""
    source, text = kernel.source, kernel.span.code
    thread, x, y = (free_name(text, name) for name in ("thread", "threadX", "threadY"))
    edits: list[TextEdit] = []
    for use in descendants(block, "identifier"):
        if source.node_text(use) != "threadIdx":
            continue
        member = use.parent
        axis = member.child_by_field_name("field") if member is not None else None
        if member is None or member.type != "field_expression" or axis is None or in_macro(use):
            return f"`threadIdx` is used as a whole at line {source.position(use.start_byte)[0]}."
        if source.node_text(axis) in ("x", "y"):
            edits.append(TextEdit(member.start_byte, member.end_byte, x if source.node_text(axis) == "x" else y))
    first = next((s for s in uncommented(block) if s.type != "preproc_call"), None)
    if first is None or first.type.startswith("preproc"):
        return f"The first statement of {kernel.name} is chosen by the preprocessor."
    numbers = [
        f"const unsigned int {thread} = threadIdx.y * blockDim.x + threadIdx.x;",
        f"const unsigned int {x} = {thread} / blockDim.y, {y} = {thread} % blockDim.y;",
    ]
    return [before_statement(source, first, numbers), *edits]


def _dependence(kernel: Kernel, block: Node) -> str:
    """What in the kernel depends on how threads are numbered, other than the index computation; empty for nothing."""
    source = kernel.source
    if kernel.shared_arrays:
        return f"{kernel.name} uses shared memory, whose layout fits the present numbering of the threads."
    text = source.node_code(block)
    warp_level = WARP_LEVEL.search(text)
    if warp_level:
        return f"{kernel.name} uses `{warp_level.group()}`, which depends on which threads share a warp."
    for macro in macros_naming(source, NUMBER):
        if re.search(rf"\b{re.escape(macro)}\b", text):
            return f"{kernel.name} uses the macro {macro}, which reads the thread's index."
    for kind in descendants(source.root, "struct_specifier", "class_specifier", "union_specifier"):
        name = kind.child_by_field_name("name")
        named = source.node_text(name).partition("<")[0] if name is not None else ""
        if named and NUMBER.search(source.node_code(kind)) and re.search(rf"\b{re.escape(named)}\b", text):
            return f"{kernel.name} uses {named}, which reads the thread's index."
    return calls_by_number(kernel, block)


def _launches_unfit(kernel: Kernel, launches: list[Launch]) -> str:
    if not launches:
        return f"No launch of {kernel.name} is in this file, and its grid and block have to change with the kernel."
    for launch in launches:
        span = launch.span
        if span is None or span.source is not kernel.source:
            return f"{kernel.name} is launched at {launch.source}, in another file than the kernel's."
        if isinstance(shape := block_of(launch), str):
            return shape
        if (launch.grid[0] or 0) > MOST_BLOCKS_Y:
            return f"The grid at {launch.source} has {launch.grid[0]} blocks in x, more than y can have."
    return ""


def _kernel_edits(block: Node, source: Source) -> list[TextEdit] | str:
    """x for y and y for x after every built-in variable; a reason where one is used in another way."""
    edits: list[TextEdit] = []
    for use in descendants(block, "identifier"):
        if source.node_text(use) not in _NUMBERS:
            continue
        member = use.parent
        field = (
            member.child_by_field_name("field") if member is not None and member.type == "field_expression" else None
        )
        line = source.position(use.start_byte)[0]
        if field is None or in_macro(use):
            return f"`{source.node_text(use)}` is used as a whole at line {line}."
        axis = source.node_text(field)
        if axis in ("x", "y"):
            edits.append(TextEdit(field.start_byte, field.end_byte, "y" if axis == "x" else "x"))
    return edits


def _launch_edits(source: Source, launch: Launch) -> list[TextEdit] | str:
    """The launch's grid and block with x and y swapped, written where the launch stands."""
    node = node_at(source.root, launch.span.start, launch.span.end) if launch.span is not None else None
    configuration = next(iter(descendants(node, "kernel_call_syntax")), None) if node is not None else None
    if configuration is None:
        return f"The launch at {launch.source} is in a macro."
    edits: list[TextEdit] = []
    for what, value, extents in zip(
        ("grid", "block"), uncommented(configuration), (launch.grid, launch.block), strict=False
    ):
        if extents[0] is not None and extents[0] == extents[1]:
            continue
        swapped = _swapped(source, value, extents)
        if swapped is None:
            return (
                f"The {what} of the launch at {launch.source} is not written as a dim3 whose extents could be swapped."
            )
        edits += swapped
    return edits


def _swapped(source: Source, value: Node, extents: tuple[int | None, int | None, int | None]) -> list[TextEdit] | None:
    """`dim3(a, b)` as `dim3(b, a)`, and a dim3 variable as `dim3(v.y, v.x)`; None for anything else."""
    arguments: Node | None = None
    if value.type == "call_expression" and called_name(value, source) == "dim3":
        arguments = value.child_by_field_name("arguments")
    elif value.type == "initializer_list":
        arguments = value
    elif value.type == "compound_literal_expression":
        arguments = value.child_by_field_name("value")
    if arguments is not None and len(arguments.named_children) >= 2:
        x, y = uncommented(arguments)[:2]
        if source.node_text(x) == source.node_text(y):
            return []
        return [
            TextEdit(x.start_byte, x.end_byte, source.node_text(y)),
            TextEdit(y.start_byte, y.end_byte, source.node_text(x)),
        ]
    text = source.node_text(value)
    if is_shape(source, value):
        depth = "" if extents[2] == 1 else f", {text}.z"
        return [TextEdit(value.start_byte, value.end_byte, f"dim3({text}.y, {text}.x{depth})")]
    return None
