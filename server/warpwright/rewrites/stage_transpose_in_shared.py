"""Pass a transpose through a tile of shared memory, so that both its loads and its stores are coalesced.

## Before

```cuda
__global__ void transpose(float *out, const float *in, int width, int height) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < width && y < height)
    out[x * height + y] = in[y * width + x];
}

void run(float *out, const float *in, int width, int height) {
  dim3 block(32, 8);
  dim3 grid((width + 31) / 32, (height + 7) / 8);
  transpose<<<grid, block>>>(out, in, width, height);
}
```

## After

```cuda
__global__ void transpose(float *out, const float *in, int width, int height) {
  __shared__ float tile[8][32 + 4];
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < width && y < height)
    tile[threadIdx.y][threadIdx.x] = in[y * width + x];
  __syncthreads();
  const unsigned int tile_x = (threadIdx.y * 32 + threadIdx.x) / 8;
  const unsigned int tile_y = (threadIdx.y * 32 + threadIdx.x) % 8;
  const int x_out = blockIdx.x * blockDim.x + tile_x;
  const int y_out = blockIdx.y * blockDim.y + tile_y;
  if (x_out < width && y_out < height)
    out[x_out * height + y_out] = tile[tile_y][tile_x];
}

void run(float *out, const float *in, int width, int height) {
  dim3 block(32, 8);
  dim3 grid((width + 31) / 32, (height + 7) / 8);
  transpose<<<grid, block>>>(out, in, width, height);
}
```

Where the loads are strided and the stores are not, the tile is filled by the strided index and read by the other.

A one-dimensional block whose number in the grid is the other index, as in `int channel = blockIdx.y;`, takes the
elements of eight such blocks of 4-byte elements, as many as fill a sector, and the grid has eight times fewer blocks.

## Assumes

- The kernel is one assignment to an element, under comparisons that keep threads outside of the data away, and its
  index is made of the thread's index and of values that never change.
- All launches are in this file, with blocks of one known shape, which becomes the tile's; they stay as they are.
  Where blocks are put together, the grid's extent is a number that the kernel is handed, too.
- The array that is stored to does not overlap those that are loaded, as it could not now: other blocks load from there.

It is refused where the accesses would not move fewer sectors in all.

## Cost

A tile of shared memory in each block and a barrier. The shape of the block is written into the kernel. Results stay
the same bit for bit.
"""

from __future__ import annotations

from dataclasses import dataclass

from tree_sitter import Node

from warpwright.facts.memory import wavefronts
from warpwright.facts.model import WARP, Access, AccessKind, Dim3, Kernel, Space
from warpwright.facts.types import builtin_type
from warpwright.rewrites._code import body, by_cost, overlaps
from warpwright.rewrites._gain import no_fewer_sectors
from warpwright.rewrites._guards import Condition, Guard, comparisons, guard_of
from warpwright.rewrites._indent import end_with_comment
from warpwright.rewrites._launched import block_of_all_launches
from warpwright.rewrites._layout import free_name, indent_unit, without_text
from warpwright.rewrites._locals import is_template_type
from warpwright.rewrites._movable import block_by_directive, unmovable
from warpwright.rewrites._other_thread import NotRetracedError, OtherThread
from warpwright.rewrites._row_tiles import row_edits, rows_of
from warpwright.rewrites._shared_types import element_type
from warpwright.rewrites.base import Declined, Reliance, Rewrite
from warpwright.syntax.edits import TextEdit
from warpwright.syntax.nodes import descendants, enclosing, node_at, uncommented
from warpwright.syntax.source import Source, Span

NAME = "stage-transpose-in-shared"
title = "Transpose through a shared-memory tile"
goals = ("speed",)
relies_on = (Reliance.GRID, Reliance.BLOCK, Reliance.APART, Reliance.SHARED)

STRIDED = 4.0
"""Sectors for each one needed from which an access is worth a tile and a barrier."""
LEAST_SIDE = 4
"""Extent of a block below which a tile cannot fill a sector from both sides."""
WIDEST_PAD = 8
"""Elements behind each row of the tile that are tried."""

_NUMBERS = ("half", "__half", "__nv_bfloat16", "nv_bfloat16", "float2", "float4", "double2", "int2", "int4", "__half2")


@dataclass(frozen=True, slots=True)
class _Copy:
    """`target[...] = value;`, whose strided access is `element`, the target or a load in the value."""

    statement: Node
    target: Node
    value: Node
    element: Node
    array: str
    guard: Guard

    @property
    def stores(self) -> bool:
        return self.element == self.target


def propose(kernel: Kernel, at: Span | None) -> Rewrite | Declined:
    if reason := unmovable(kernel):
        return Declined(NAME, reason)
    strided = [
        a
        for a in by_cost([a for a in kernel.accesses if a.space is Space.GLOBAL and (a.excess or 0.0) >= STRIDED])
        if at is None or overlaps(a.span, at)
    ]
    if not strided:
        return Declined(NAME, "No access to global memory here is known to be strided.")
    if kernel.shared_arrays or kernel.barriers:
        return Declined(NAME, f"{kernel.name} uses shared memory or barriers already.")
    try:
        return _staged(kernel, strided[0])
    except NotRetracedError as reason:
        return Declined(NAME, str(reason))


def _staged(kernel: Kernel, access: Access) -> Rewrite:
    source = kernel.source
    shape = block_of_all_launches(kernel)
    if isinstance(shape, str):
        raise NotRetracedError(shape)
    if reason := block_by_directive(kernel):
        raise NotRetracedError(reason)
    flat = shape[1:] == (1, 1) and shape[0] % WARP == 0
    if not flat and (shape[2] != 1 or min(shape[:2]) < LEAST_SIDE):
        sides = " x ".join(map(str, shape))
        raise NotRetracedError(f"A block of {sides} threads is not a tile: it needs two sides of {LEAST_SIDE} or more.")
    for second in kernel.accesses:
        if second.space is Space.GLOBAL and second.span != access.span and (second.excess or 0.0) >= STRIDED:
            raise NotRetracedError(f"`{second.span.one_line}` is strided, too: a tile serves one of the two.")
    copy = _copy(kernel, access)
    kind = _element_type(kernel, copy.array)
    if flat:
        edits = row_edits(kernel, copy.statement, copy.target, copy.element, copy.guard, shape[0], kind, access.bytes)
    else:
        edits = _edits(kernel, copy, shape, kind, access.bytes)
    if reason := no_fewer_sectors(kernel, edits):
        raise NotRetracedError(reason)
    got, ideal = access.sectors_per_request or 0.0, access.ideal_sectors_per_request or 0.0
    verb = "stores" if copy.stores else "loads"
    x, y, _ = shape
    passed = f"its {x} x {y} elements"
    if flat:
        passed = f"{rows_of(access.bytes)} rows of {x} elements, each of which was a block's,"
    return Rewrite(
        rewrite=NAME,
        title=title,
        source=source,
        edits=tuple(edits),
        explanation=(
            f"A warp {verb} elements of {copy.array} that lie far apart: {got:g} sectors/request (ideal "
            f"{ideal:g}). The block now passes {passed} through a tile in shared memory, and its threads "
            "take them up there in the order in which they lie in the other array. It costs the tile and a barrier."
        ),
    )


def _copy(kernel: Kernel, access: Access) -> _Copy:
    """The kernel's only statement, which is an assignment to an element, and its guard."""
    source, block = kernel.source, body(kernel)
    node = node_at(source.root, access.span.start, access.span.end) if access.span.source is source else None
    while node is not None and node.type != "subscript_expression" and node.end_byte <= access.span.end:
        node = node.parent
    assignment = node
    while assignment is not None and assignment.type != "assignment_expression":
        assignment = assignment.parent
    statement = assignment.parent if assignment is not None else None
    if block is None or node is None or assignment is None or statement is None:
        raise NotRetracedError(f"`{access.expression}` is not in an assignment of {kernel.name}.")
    target, value = assignment.child_by_field_name("left"), assignment.child_by_field_name("right")
    operator = assignment.child_by_field_name("operator")
    line = source.position(statement.start_byte)[0]
    plain = operator is not None and operator.type == "=" and statement.type == "expression_statement"
    if target is None or value is None or not plain or target.type != "subscript_expression":
        raise NotRetracedError(f"Line {line} is not a plain assignment to an element.")
    argument = node.child_by_field_name("argument")
    array = source.node_text(argument) if argument is not None else ""
    if array not in {p.name for p in kernel.parameters if p.is_pointer}:
        raise NotRetracedError(f"`{array}` is not an array that {kernel.name} is given.")
    if access.kind is AccessKind.ATOMIC:
        raise NotRetracedError(f"`{access.expression}` is atomic.")
    guard = _guard(source, block, statement)
    outer = guard.around or statement
    for other in uncommented(block):
        inside = other in guard.early or other == outer or other.type == "declaration"
        if not inside or (other.end_byte > outer.end_byte):
            raise NotRetracedError(f"{kernel.name} does something else at line {source.position(other.start_byte)[0]}.")
    within = uncommented(statement.parent) if guard.around is not None and statement.parent != guard.around else []
    for other in within:
        if other != statement and other.type != "declaration":
            raise NotRetracedError(f"{kernel.name} does something else at line {source.position(other.start_byte)[0]}.")
    stored = source.node_text(target.child_by_field_name("argument") or target)
    if any(source.node_text(use) == stored for use in descendants(value, "identifier")):
        raise NotRetracedError(f"`{stored}` is loaded and stored.")
    return _Copy(statement, target, value, node, array, guard)


def _guard(source: Source, block: Node, statement: Node) -> Guard:
    """The comparisons under which the assignment is done; with `if (...) assignment;`, too."""
    branch = statement.parent
    inner = branch.parent if branch is not None and branch.type == "compound_statement" else branch
    outer = enclosing(inner, "if_statement") if inner is not None and inner.type == "if_statement" else None
    if outer is not None and outer.start_byte > block.start_byte:
        return _nested_guard(source, block, statement)
    if branch is None or branch.type != "if_statement":
        guard = guard_of(source, block, statement)
        if isinstance(guard, str):
            raise NotRetracedError(guard.replace("The loop", "The assignment").replace("before the loop", "before it"))
        return guard
    clause = branch.child_by_field_name("condition")
    conditions = comparisons(source, clause.child_by_field_name("value") if clause is not None else None, leaves=False)
    line = source.position(branch.start_byte)[0]
    if branch.parent != block or branch.child_by_field_name("alternative") is not None:
        raise NotRetracedError(f"The `if` at line {line} has an `else` or stands in another statement.")
    if conditions is None:
        raise NotRetracedError(f"The condition at line {line} is more than comparisons.")
    for leave in descendants(block, "return_statement"):
        raise NotRetracedError(f"Threads may leave at line {source.position(leave.start_byte)[0]}.")
    return Guard((), branch, (), tuple(conditions))


def _nested_guard(source: Source, block: Node, statement: Node) -> Guard:
    """The comparisons of an `if` in an `if`, which only declare beside it."""
    conditions: list[Condition] = []
    node = statement
    while node.parent is not None and node.parent != block:
        around = node.parent
        line = source.position(around.start_byte)[0]
        if around.type == "if_statement":
            clause = around.child_by_field_name("condition")
            test = clause.child_by_field_name("value") if clause is not None else None
            found = comparisons(source, test, leaves=False)
            if found is None:
                raise NotRetracedError(f"The condition at line {line} is more than comparisons.")
            if around.child_by_field_name("alternative") is not None:
                raise NotRetracedError(f"The `if` at line {line} has an `else` or stands in another statement.")
            conditions[:0] = found
        elif around.type != "compound_statement":
            raise NotRetracedError(f"The assignment stands in another statement than an `if` at line {line}.")
        for other in uncommented(around) if around.type == "compound_statement" else []:
            if other != node and other.type != "declaration":
                line = source.position(other.start_byte)[0]
                raise NotRetracedError(f"The branches around the assignment do something else at line {line}.")
        node = around
    for leave in descendants(block, "return_statement"):
        raise NotRetracedError(f"Threads may leave at line {source.position(leave.start_byte)[0]}.")
    return Guard((), node, (), tuple(conditions))


def _element_type(kernel: Kernel, array: str) -> str:
    kind = element_type(kernel, array)
    if builtin_type(kind) is None and kind not in _NUMBERS and not is_template_type(kernel, kind):
        raise NotRetracedError(f"`{array}` holds {kind}, which may not be put into shared memory as it is.")
    return kind


def _edits(kernel: Kernel, copy: _Copy, shape: Dim3, kind: str, size: int) -> list[TextEdit]:
    source, block = kernel.source, body(kernel)
    x, y, _ = shape
    text = source.code_text()
    tile = free_name(text, "tile")
    pad = _pad(x, y, size)
    axes, lines = {"threadIdx.x": "threadIdx.y", "threadIdx.y": "threadIdx.x"}, []
    if x != y:
        names = {axis: free_name(text, f"tile_{axis}") for axis in "xy"}
        axes = {f"threadIdx.{axis}": name for axis, name in names.items()}
        number = f"(threadIdx.y * {x} + threadIdx.x)"
        lines = [
            f"const unsigned int {names['x']} = {number} / {y};",
            f"const unsigned int {names['y']} = {number} % {y};",
        ]
    outer = copy.guard.around or copy.statement
    other = OtherThread(kernel, axes, "_out" if copy.stores else "_in", outer.start_byte)
    tests = " && ".join(_test(other, condition) for condition in copy.guard.conditions)
    element = other.text(copy.element.child_by_field_name("argument") or copy.element) + other_index(
        other, copy.element
    )
    own = f"{tile}[threadIdx.y][threadIdx.x]"
    theirs = f"{tile}[{axes['threadIdx.y']}][{axes['threadIdx.x']}]"
    lines += other.lines.values()
    assignment = f"{element} = {theirs};" if copy.stores else f"{theirs} = {element};"
    unit = indent_unit(source, block) if block is not None else "  "
    lines += [f"if ({tests})", f"{unit}{assignment}"] if tests else [assignment]
    indent = source.line_indent(outer.start_byte)
    first = block.named_children[0] if block is not None else outer
    row = f"{x} + {pad}" if pad else str(x)
    declared = f"__shared__ {kind} {tile}[{y}][{row}];\n{source.line_indent(first.start_byte)}"
    edits = [TextEdit(first.start_byte, first.start_byte, declared)]
    edits += _own_edits(source, copy, own, unit)
    if copy.stores:
        end = end_with_comment(source, outer.end_byte)
        new = "".join(f"\n{indent}{line}" for line in ["__syncthreads();", *lines])
        return [*edits, TextEdit(end, end, new)]
    new = "".join(f"{line}\n{indent}" for line in [*lines, "__syncthreads();"])
    return [*edits, TextEdit(outer.start_byte, outer.start_byte, new)]


def other_index(other: OtherThread, element: Node) -> str:
    """The bracketed index of an element as the other thread computes it."""
    indices = element.child_by_field_name("indices")
    return other.text(indices) if indices is not None else ""


def _test(other: OtherThread, condition: Condition) -> str:
    return f"{other.text(condition.left)} {condition.operator} {other.text(condition.right)}"


def _own_edits(source: Source, copy: _Copy, own: str, unit: str) -> list[TextEdit]:
    """The assignment as it is, with the tile in the place of the strided element; early returns become its `if`."""
    edits = [TextEdit(copy.element.start_byte, copy.element.end_byte, own)]
    if copy.guard.early:
        tests = " && ".join(condition.text(source) for condition in copy.guard.conditions)
        indent = source.line_indent(copy.statement.start_byte)
        start = copy.statement.start_byte
        edits.append(TextEdit(start, start, f"if ({tests})\n{indent}{unit}"))
        edits += [without_text(source, n.start_byte, end_with_comment(source, n.end_byte)) for n in copy.guard.early]
    return edits


def _pad(x: int, y: int, size: int) -> int:
    """The fewest elements behind each row of `x` with which a warp's rows and columns lie in the most banks."""
    threads = range(x * y)
    costs: list[int] = []
    for pad in range(WIDEST_PAD + 1):
        total = 0
        for first in range(0, len(threads), WARP):
            warp = threads[first : first + WARP]
            rows = [(t // x * (x + pad) + t % x) * size for t in warp]
            columns = [(t % y * (x + pad) + t // y) * size for t in warp]
            for addresses in (rows, columns):
                total += wavefronts([*addresses, *[None] * (WARP - len(addresses))], size)
        costs.append(total)
    return costs.index(min(costs))
