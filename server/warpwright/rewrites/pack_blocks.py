"""Let one block do the work of several that leave lanes of their warps idle.

## Before

```cuda
__global__ void group_sums(float *sums, const float *in, int groups) {
  __shared__ float part[8];
  part[threadIdx.x] = in[blockIdx.x * 8 + threadIdx.x];
  __syncthreads();
  if (threadIdx.x == 0) {
    float sum = 0.0f;
    for (int k = 0; k < 8; k++)
      sum += part[k];
    sums[blockIdx.x] = sum;
  }
}

void run(float *sums, const float *in, int groups) {
  group_sums<<<groups, 8>>>(sums, in, groups);
}
```

## After

```cuda
__global__ void group_sums(float *sums, const float *in, int groups) {
  unsigned int block = blockIdx.x * 8 + threadIdx.y;
  if (block >= groups)
    return;
  unsigned int mask = 0xffu << threadIdx.y * 8 % 32;
  __shared__ float part_of_all[8][8];
  auto &part = part_of_all[threadIdx.y];
  part[threadIdx.x] = in[block * 8 + threadIdx.x];
  __syncwarp(mask);
  if (threadIdx.x == 0) {
    float sum = 0.0f;
    for (int k = 0; k < 8; k++)
      sum += part[k];
    sums[block] = sum;
  }
}

void run(float *sums, const float *in, int groups) {
  group_sums<<<(groups + 7) / 8, dim3(8, 8)>>>(sums, in, groups);
}
```

Each old block has shared memory of its own, and where it had a barrier its lanes of a warp wait for each other. Blocks
of one thread are for [fill-warps](fill-warps.md).

## Assumes

- All launches are found and have blocks of one shape; with barriers, of 2, 4, 8 or 16 threads.
- Where the kernel tests the number of its block against a parameter, that is taken to be no more than there are blocks.
  Where none of its arguments is that number, it gets a parameter more, which each launch hands over.
- What is called elsewhere does not ask for the index of the thread or the block, and holds no barrier.

## Cost

Threads of several old blocks share a warp: where they go different ways they wait for each other. A grid that is small
enough to be on the GPU at once is left as it is. Results stay the same bit for bit, apart from the order of atomics.
"""

from __future__ import annotations

import re
from math import gcd, prod

from tree_sitter import Node

from warpwright.facts.model import WARP, Dim3, Kernel, Launch
from warpwright.rewrites._added_parameter import added_size
from warpwright.rewrites._code import body, host_launches, in_macro, macros_naming, overlaps, squeezed
from warpwright.rewrites._grids import call_of, is_shape
from warpwright.rewrites._launch_shape import extents_of, grid_divided
from warpwright.rewrites._launched import block_of_all_launches
from warpwright.rewrites._layout import after_statement, before_statement, free_name, indent_unit, line_of
from warpwright.rewrites._limits import SHARED_BYTES
from warpwright.rewrites._movable import block_by_directive, unmovable
from warpwright.rewrites._packed import Bound, barriers_of, bound_of, is_equal, is_plain, limit_of
from warpwright.rewrites._thread_numbers import NUMBER, WARP_LEVEL, calls_by_number
from warpwright.rewrites.base import Declined, Reliance, Rewrite
from warpwright.syntax.edits import TextEdit
from warpwright.syntax.nodes import descendants, launch_configuration, uncommented
from warpwright.syntax.source import Source, Span

NAME = "pack-blocks"
title = "Pack small blocks into one"
goals = ("speed",)
relies_on = (Reliance.GRID, Reliance.BLOCK, Reliance.PARAMETERS)

THREADS = 64
"""Of the new blocks at least: of these a multiprocessor can hold as many as its threads allow."""
MOST_THREADS = 1024
GRAVE = 1 / 4
"""Share of idle lanes from which it pays."""
RESIDENT = 132 * 32
"""Blocks that an H200 holds at once: the threads of so few have a scheduler to themselves as it is."""
_SHAPED = re.compile(
    r"\b(?:gridDim|warpSize|__launch_bounds__|__cluster\w*|clock\w*|__prof_trigger|__threadfence\w*|atomicCAS\w*"
    r"|atomicExch\w*)\b"
)
"""What depends on how many threads a block has, or lets blocks wait for each other: lanes of one warp may not."""


def propose(kernel: Kernel, at: Span | None) -> Rewrite | Declined:
    packed = _packed(kernel, at)
    return Declined(NAME, packed) if isinstance(packed, str) else packed


def _packed(kernel: Kernel, at: Span | None) -> Rewrite | str:
    source, block, launches = kernel.source, body(kernel), host_launches(kernel)
    shape = block_of_all_launches(kernel)
    if isinstance(shape, str):
        return shape
    threads = prod(shape)
    by, idle = packed_blocks(threads), -threads % WARP
    if threads == 1 or idle < GRAVE * (threads + idle):
        return f"Nothing to gain: of the lanes of a block of {threads} threads, {idle} stay idle."
    if at is not None and not any(launch.span is not None and overlaps(launch.span, at) for launch in launches):
        return f"The marked code is not a launch of {kernel.name}."
    for launch in launches:
        blocks = None if None in launch.grid else prod(extent or 0 for extent in launch.grid)
        if blocks is not None and blocks <= RESIDENT:
            return f"Nothing to gain: the {blocks} blocks of the launch at {launch.source} are on a GPU at once."
    if block is None or (reason := unmovable(kernel)):
        return reason if block is not None else f"The body of {kernel.name} is not in this file."
    if reason := _bound_to_block(kernel, block) or block_by_directive(kernel):
        return reason
    if any(launch.span is None or launch.span.source is not source for launch in launches):
        return f"{kernel.name} is launched in another file, and its launches have to change with it."
    found, tested = bound_of(kernel), limit_of(kernel, block)
    added = added_size(kernel) if isinstance(found, str) and tested is None else None
    if isinstance(added, str):
        return added
    barriers = barriers_of(kernel, block)
    if isinstance(barriers, str):
        return barriers
    if barriers and WARP % threads:
        return f"{kernel.name} has barriers, and {threads} threads are not a warp's part with its own barrier."
    axis = _free_axis(source, block, shape, together=bool(barriers))
    if axis is None:
        return f"{kernel.name} has no axis left that its threads could be numbered along."
    if by * threads > MOST_THREADS or by > (64 if axis == "z" else MOST_THREADS):
        return f"{by} blocks of {threads} threads are more than one may have."
    if (kernel.shared_bytes or 0) * by > SHARED_BYTES:
        return f"{by} blocks of {kernel.name} have more shared memory than one may have."
    bound = "" if tested is not None else added.name if added is not None else str(found)
    inside = _kernel_edits(kernel, block, bound, axis, by)
    if isinstance(inside, str):
        return inside
    inside += _within_part(kernel, block, barriers, axis, threads)
    edits = [*inside, *(added.edits if added is not None else ())]
    for launch in launches:
        changed = _launch_edits(kernel, launch, shape, axis, by)
        if isinstance(changed, str):
            return changed
        edits += changed
    trust = _taken(kernel, block, tested, found)
    return Rewrite(
        rewrite=NAME,
        title=f"Pack {by} blocks into one",
        source=source,
        edits=tuple(edits),
        explanation=(
            f"A block of {threads} threads takes {threads + idle} lanes, of which {idle} stay idle, and a "
            f"multiprocessor of an H100 holds 32 blocks at most: {32 * threads} of its 2,048 threads. One block of "
            f"{by * threads} threads now does the work of {by}, so that warps are full.{trust}"
        ),
        safe=not trust,
    )


def packed_blocks(threads: int) -> int:
    """How many blocks make one of whole warps.

    >>> packed_blocks(8), packed_blocks(10), packed_blocks(48)
    (8, 16, 2)
    """
    whole = WARP // gcd(threads, WARP)
    return whole * max(1, -(-THREADS // (whole * threads)))


def _taken(kernel: Kernel, block: Node, tested: Node | None, bound: str | Bound) -> str:
    """What is taken for granted, for the user; empty for nothing."""
    taken: list[str] = []
    if tested is not None and not is_equal(kernel, tested, bound):
        name = kernel.source.node_text(tested)
        taken.append(f"`{name}` is taken to be no more than the number of blocks.")
    if calls_by_number(kernel, block):
        taken.append("What is called elsewhere is taken not to ask for the index of the block.")
    return "".join(f" {sentence}" for sentence in taken)


def _bound_to_block(kernel: Kernel, block: Node) -> str:
    """Why the work may depend on how blocks are made, one sentence; empty where it does not."""
    source = kernel.source
    text = source.code_text(kernel.span.start, block.end_byte)
    if tied := _SHAPED.search(text) or WARP_LEVEL.search(text):
        return f"{kernel.name} uses `{tied.group()}`, so it may matter how warps and blocks are made."
    if macros := [m for m in macros_naming(source, NUMBER) if re.search(rf"\b{re.escape(m)}\b", text)]:
        return f"The macro {macros[0]} names the thread or its block."
    if any(launch.dynamic_shared_bytes != 0 for launch in host_launches(kernel)):
        return f"{kernel.name} is launched with dynamic shared memory."
    for name in ("blockIdx", "blockDim", "threadIdx"):
        for use in descendants(block, "identifier"):
            if source.node_text(use) == name and (use.parent is None or use.parent.type != "field_expression"):
                return f"`{name}` is handed on as a whole at line {line_of(source, use)}."
    reason = calls_by_number(kernel, block)
    if reason.endswith("depends on the thread's index."):
        return reason
    return ""


def _free_axis(source: Source, block: Node, shape: Dim3, *, together: bool) -> str | None:
    """An axis along which the blocks have one thread, and whose numbers the kernel does not use; x first. With
    `together` one behind those of several threads, so that the threads of an old block stay neighbours."""
    used = {squeezed(source.node_code(n)) for n in descendants(block, "field_expression")}
    last = max(n for n, extent in enumerate(shape) if extent > 1 or n == 0) if together else 0
    for axis, extent in list(zip("xyz", shape, strict=True))[last:]:
        if extent == 1 and not {f"threadIdx.{axis}", f"blockDim.{axis}"} & used:
            return axis
    return None


def _within_part(kernel: Kernel, block: Node, barriers: list[Node], axis: str, threads: int) -> list[TextEdit]:
    """Barriers of the old block's threads, which are neighbours in a warp: no other block's have to come."""
    first = next((n for n in block.named_children if n.type != "comment"), None)
    if not barriers or first is None:
        return []
    name = free_name(kernel.span.code, "mask")
    mask = f"unsigned int {name} = {(1 << threads) - 1:#x}u << threadIdx.{axis} * {threads} % {WARP};"
    return [
        before_statement(kernel.source, first, [mask]),
        *(TextEdit(call.start_byte, call.end_byte, f"__syncwarp({name})") for call in barriers),
    ]


def _kernel_edits(kernel: Kernel, block: Node, bound: str, axis: str, by: int) -> list[TextEdit] | str:
    """The number of the old block in the place of blockIdx.x, and behind it, for a `bound`, an early return."""
    source, unit = kernel.source, indent_unit(kernel.source, block)
    first = next((n for n in block.named_children if n.type != "comment"), None)
    uses = [n for n in descendants(block, "field_expression") if squeezed(source.node_code(n)) == "blockIdx.x"]
    if first is None or not uses:
        return f"{kernel.name} does not use blockIdx.x, so all of its blocks do the same."
    size = "blockDim.x" if axis == "x" else str(by)
    number, edits = f"blockIdx.x * {size} + threadIdx.{axis}", list[TextEdit]()
    leave = [f"if ({{}} >= {bound})", f"{unit}return;"] if bound else []
    named = _named(source, block, uses[0]) if len(uses) == 1 else None
    if named is not None:
        name, declaration = named
        lines = [line.format(name) for line in leave]
        edits.append(TextEdit(uses[0].start_byte, uses[0].end_byte, number))
        edits += [after_statement(source, declaration, lines)] if lines else []
    else:
        name = free_name(kernel.span.code, "block")
        lines = [f"unsigned int {name} = {number};", *(line.format(name) for line in leave)]
        edits += [before_statement(source, first, lines)]
        edits += [TextEdit(n.start_byte, n.end_byte, name) for n in uses]
    for array in _shared_declarations(source, block):
        changed = _own_layer(source, array, axis, by, kernel.span.code)
        if isinstance(changed, str):
            return changed
        edits += changed
    return edits


def _named(source: Source, block: Node, use: Node) -> tuple[str, Node] | None:
    """The variable, and its declaration, that is set to the number of the block before anything is done."""
    declarator = use.parent
    declaration = declarator.parent if declarator is not None and declarator.type == "init_declarator" else None
    target = declarator.child_by_field_name("declarator") if declarator is not None else None
    if declaration is None or target is None or target.type != "identifier" or declaration.parent != block:
        return None
    statements = uncommented(block)
    before = statements[: statements.index(declaration)]
    alone = len(declaration.children_by_field_name("declarator")) == 1
    return (source.node_text(target), declaration) if alone and all(map(is_plain, before)) else None


def _shared_declarations(source: Source, block: Node) -> list[Node]:
    return [
        declaration
        for declaration in descendants(block, "declaration")
        if any(source.node_text(child) == "__shared__" for child in declaration.children)
    ]


def _own_layer(source: Source, declaration: Node, axis: str, by: int, text: str) -> list[TextEdit] | str:
    """`__shared__ int a[4];` as `__shared__ int all_a[16][4]; auto &a = all_a[threadIdx.y];`."""
    declarators = declaration.children_by_field_name("declarator")
    if len(declarators) != 1 or in_macro(declaration):
        return f"Line {line_of(source, declaration)} declares several shared arrays at once."
    inner = declarators[0]
    while inner.type == "array_declarator":
        following = inner.child_by_field_name("declarator")
        if following is None:
            break
        inner = following
    if inner.type != "identifier":
        return f"The shared memory of line {line_of(source, declaration)} is not a plain array or variable."
    name = source.node_text(inner)
    whole = free_name(text, f"{name}_of_all")
    after = f"auto &{name} = {whole}[threadIdx.{axis}];"
    return [
        TextEdit(inner.start_byte, inner.end_byte, f"{whole}[{by}]"),
        after_statement(source, declaration, [after]),
    ]


def _launch_edits(kernel: Kernel, launch: Launch, shape: Dim3, axis: str, by: int) -> list[TextEdit] | str:
    grid = grid_divided(kernel, launch, by)
    call = call_of(launch)
    configuration = uncommented(launch_configuration(call)) if call is not None else []
    if isinstance(grid, str) or len(configuration) < 2:
        return grid if isinstance(grid, str) else f"The launch at {launch.source} is in a macro."
    source, block = kernel.source, configuration[1]
    return [grid, TextEdit(block.start_byte, block.end_byte, _block_text(source, block, shape, axis, by))]


def _block_text(source: Source, block: Node, shape: Dim3, axis: str, by: int) -> str:
    """The new block: `64`, `dim3(8, 8)`, `dim3(size, 8)` as the old one is written."""
    extents = [source.node_text(extent) for extent in extents_of(source, block)]
    if not extents and is_shape(source, block):
        extents = [f"{source.node_text(block)}.{each}" for each in "xyz"]
    extents = (extents or [source.node_text(block)]) + ["1", "1", "1"]
    place = "xyz".index(axis)
    extents[place] = str(by)
    last = max(n for n, extent in enumerate((*shape,)) if extent != 1 or n == place)
    return f"dim3({', '.join(extents[: last + 1])})"
