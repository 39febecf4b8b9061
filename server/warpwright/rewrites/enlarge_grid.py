"""Launch more blocks, where a loop that steps by the size of the grid has few of them go over much data.

## Before

```cuda
__global__ void add_rows(float *matrix, const float *column, int rows, int cols) {
  int col = blockIdx.x * blockDim.x + threadIdx.x;
  if (col >= cols)
    return;
  for (int row = blockIdx.y; row < rows; row += gridDim.y)
    matrix[row * cols + col] += column[row];
}

void run(float *matrix, const float *column, int rows) {
  dim3 grid(8, 16);
  add_rows<<<grid, 128>>>(matrix, column, rows, 1000);
}
```

## After

```cuda
__global__ void add_rows(float *matrix, const float *column, int rows, int cols) {
  int col = blockIdx.x * blockDim.x + threadIdx.x;
  if (col >= cols)
    return;
  for (int row = blockIdx.y; row < rows; row += gridDim.y)
    matrix[row * cols + col] += column[row];
}

void run(float *matrix, const float *column, int rows) {
  dim3 grid(8, 16);
  add_rows<<<dim3(grid.x, grid.y * 64), 128>>>(matrix, column, rows, 1000);
}
```

## Assumes

- The kernel is one loop that starts at the block's index, or at the thread's, and steps by the size of the grid along
  that axis, which it uses for nothing else. Every element is then worked on once with any number of blocks.
- An iteration uses nothing of the one before, and what it stores is used by no other iteration. There are no shared
  memory, barriers or atomics.
- All launches are in this file, with a number of blocks along the axis that is written as a constant.
- Arrays that are handed to different parameters do not overlap.

It is refused where the threads of the launch fill a large GPU already, or each has but a few iterations.

## Cost

Blocks that find nothing left start and end at once. What stands before the loop is done by more threads. Results stay
the same bit for bit.
"""

from __future__ import annotations

from tree_sitter import Node

from warpwright.algebra.sums import symbols
from warpwright.facts.model import AccessKind, Kernel, Launch, Space
from warpwright.rewrites._code import NoMatchError, host_launches, matched, squeezed
from warpwright.rewrites._grids import grid_formula
from warpwright.rewrites._guards import is_early_return
from warpwright.rewrites._indices import Indices, Polynomial, indices_of
from warpwright.rewrites._launch_shape import grid_multiplied
from warpwright.rewrites._launched import block_of_all_launches
from warpwright.rewrites._layout import line_of
from warpwright.rewrites._limits import THREADS
from warpwright.rewrites._locals import declared_names
from warpwright.rewrites._loops import Counter, counted_loop, counter_of
from warpwright.rewrites._movable import movable_body
from warpwright.rewrites._threads import unfit_call
from warpwright.rewrites.base import Declined, Reliance, Rewrite
from warpwright.syntax.edits import TextEdit
from warpwright.syntax.nodes import ancestors, descendants, uncommented
from warpwright.syntax.source import Span

NAME = "enlarge-grid"
title = "Launch a larger grid"
goals = ("speed",)
relies_on = (Reliance.APART,)

WAVES = 4
"""So many times THREADS are launched, so that blocks that end early leave none of them idle."""
MOST_BLOCKS = 65535
"""Largest grid extent in y and z (CUDA C++ Programming Guide, "Technical Specifications per Compute Capability")."""


def propose(kernel: Kernel, at: Span | None) -> Rewrite | Declined:
    block = movable_body(kernel)
    return _enlarged(kernel, block)


def _enlarged(kernel: Kernel, block: Node) -> Rewrite:
    source = kernel.source
    loop = next((s for s in uncommented(block) if s.type == "for_statement"), None)
    counter = counter_of(source, loop) if loop is not None else None
    if loop is None or counter is None or counter.step is None or counted_loop(source, loop) is None:
        raise NoMatchError(f"{kernel.name} is not a loop that steps by the size of the grid.")
    shape = matched(block_of_all_launches(kernel))
    if kernel.shared_arrays or kernel.barriers:
        raise NoMatchError(f"{kernel.name} uses shared memory or barriers.")
    indices = indices_of(kernel, shape)
    axis = _axis(indices, counter)
    _require_alone(kernel, block, loop)
    _require_header_alone(indices, block, counter, axis)
    _require_independent(indices, block, loop, counter)
    factor = _factor(kernel, loop, axis)
    edits: list[TextEdit] = []
    for launch in host_launches(kernel):
        multiplied = matched(grid_multiplied(kernel, launch, factor, axis))
        edits += [multiplied] if multiplied not in edits else []
    threads = min(_threads(launch) for launch in host_launches(kernel))
    return Rewrite(
        rewrite=NAME,
        title=title,
        source=source,
        edits=tuple(edits),
        explanation=(
            f"{threads:,} threads go over the data, each with one element on its way at a time: too few to keep the "
            f"memory of a large GPU busy, which holds {THREADS:,} threads and more. With {factor} times as many blocks "
            f"along {axis} each thread has {factor} times fewer iterations, and that many more elements are on their "
            "way. The kernel stays as it is: its loop takes any number of blocks."
        ),
    )


def _axis(indices: Indices, counter: Counter) -> str:
    """The axis of the grid that the loop goes along."""
    start, step, threads = indices.read(counter.start), indices.read(counter.step), indices.block
    for place, axis in enumerate("xyz"):
        if step == {(f"gridDim.{axis}",): 1} and start == {(f"blockIdx.{axis}",): 1}:
            return axis
        size = threads[place] if threads is not None else 0
        own: Polynomial = {(f"blockIdx.{axis}",): size, (f"threadIdx.{axis}",): 1}
        if step == {(f"gridDim.{axis}",): size} and start == own:
            return axis
    raise NoMatchError(f"The loop over {counter.name} does not start at the block's index and step by the grid size.")


def _require_alone(kernel: Kernel, block: Node, loop: Node) -> None:
    """The kernel is declarations, early returns and the loop."""
    for statement in uncommented(block):
        early = is_early_return(statement) and statement.end_byte <= loop.start_byte
        if statement != loop and statement.type != "declaration" and not early:
            line = line_of(kernel.source, statement)
            raise NoMatchError(f"{kernel.name} does something beside the loop at line {line}.")
    if reason := unfit_call(kernel, block):
        raise NoMatchError(reason)


def _require_header_alone(indices: Indices, block: Node, counter: Counter, axis: str) -> None:
    """The block's index along the axis, and the number of blocks, decide where the loop starts and steps alone."""
    source, values = indices.kernel.source, indices.variables.values
    header = [node for node in (counter.start, counter.step) if node is not None]
    allowed = [(node.start_byte, node.end_byte) for node in header]
    names_in = {source.node_text(n) for node in header for n in descendants(node, "identifier")}
    for name in sorted(names_in & values.keys()):
        uses = [u for u in descendants(block, "identifier") if source.node_text(u) == name]
        declared = values[name].parent
        outside = [u for u in uses if u.parent != declared and not any(a <= u.start_byte < b for a, b in allowed)]
        if not outside:
            allowed.append((values[name].start_byte, values[name].end_byte))
    for node in descendants(block, "field_expression", "identifier"):
        text = squeezed(source.node_code(node))
        whole = node.type == "identifier" and text in ("blockIdx", "gridDim")
        part = node.parent is not None and node.parent.type == "field_expression"
        if (text in (f"blockIdx.{axis}", f"gridDim.{axis}") or (whole and not part)) and not any(
            a <= node.start_byte < b for a, b in allowed
        ):
            raise NoMatchError(f"`{text}` is used at line {line_of(source, node)} for something other than the loop.")


def _require_independent(indices: Indices, block: Node, loop: Node, counter: Counter) -> None:
    kernel, source, inside = indices.kernel, indices.kernel.source, loop.child_by_field_name("body")
    if inside is None:
        raise NoMatchError(f"The loop over {counter.name} has no body.")
    if any(a.kind is AccessKind.ATOMIC for a in kernel.accesses):
        raise NoMatchError(f"{kernel.name} uses atomics, whose order would change.")
    for jump in descendants(inside, "break_statement", "return_statement"):
        around = next((a for a in ancestors(jump) if a.type.endswith(("for_statement", "while_statement"))), None)
        if jump.type == "return_statement" or around == loop:
            raise NoMatchError(f"The loop is left at line {line_of(source, jump)}.")
    declared, stored = declared_names(source, inside), dict[str, Polynomial]()
    pointers = {p.name for p in kernel.parameters if p.is_pointer}
    for pointer in descendants(block, "pointer_declarator", "reference_declarator"):
        raise NoMatchError(f"What is declared at line {line_of(source, pointer)} may lead to any element.")
    for change in descendants(inside, "assignment_expression", "update_expression"):
        target = change.child_by_field_name("left") or change.child_by_field_name("argument")
        first = next(descendants(target, "identifier"), None) if target is not None else None
        name = source.node_text(first) if first is not None else ""
        if name in declared or target is None:
            continue
        at = _index(indices, target)
        if name not in pointers or at is None or counter.name not in symbols(at):
            line = line_of(source, change)
            raise NoMatchError(f"`{source.node_text(target)}` at line {line} is not an element of the iteration's own.")
        if _overlaps(indices, at, counter.name):
            line = line_of(source, change)
            raise NoMatchError(f"`{source.node_text(target)}` at line {line} may be stored by several iterations.")
        if stride := _may_be_zero(indices, at, change, loop, counter):
            raise NoMatchError(f"Where {stride} is 0, all iterations store to one element, and the last one counts.")
        if stored.setdefault(name, at) != at:
            raise NoMatchError(f"`{name}` is stored to at several places.")
    for use in descendants(block, "identifier"):
        name = source.node_text(use)
        if name in stored and (use.parent is None or _index(indices, use.parent) != stored[name]):
            raise NoMatchError(f"`{name}` is used at line {line_of(source, use)} other than at the stored element.")


def _overlaps(indices: Indices, at: Polynomial, counter: str) -> bool:
    """Whether an index that moves with the loop may move as far by something else: `i + k`, `(row + k) * width`."""
    variables = indices.variables

    def factors(name: str) -> set[tuple[str, ...]]:
        return {tuple(n for n in product if n != name) for product in at if name in product}

    moving = {n for n in symbols(at) if n != counter and (n.startswith("threadIdx") or not variables.is_fixed(n))}
    return any(factors(name) & factors(counter) for name in moving)


def _may_be_zero(indices: Indices, at: Polynomial, change: Node, loop: Node, counter: Counter) -> str:
    """What the loop's counter is multiplied by where that is not known to be positive, in words; "" where it is, or
    where several threads went over the elements before, in an order that nobody knew.

    Known are sizes that something before or around the store is compared to: under `col < width`, `width` is no 0.
    """
    kernel, source, place = indices.kernel, indices.kernel.source, "xyz".index(_axis(indices, counter))
    alone = any(launch.grid[place] == 1 for launch in host_launches(kernel))
    if "threadIdx" in source.node_code(counter.start) or not alone:
        return ""
    early = [s for s in uncommented(loop.parent) if s.end_byte <= loop.start_byte and is_early_return(s)]
    around = [each for each in ancestors(change) if each.start_byte > loop.start_byte]
    tests = [(test, "<") for test in around] + [(test, ">=") for test in early]
    limits = {
        squeezed(source.node_code(right))
        for test, operator in tests
        if (condition := test.child_by_field_name("condition")) is not None
        for compared in descendants(condition, "binary_expression")
        if (sign := compared.child_by_field_name("operator")) is not None and sign.type == operator
        if (right := compared.child_by_field_name("right")) is not None
    }
    factors = {name for product in at if counter.name in product for name in product if name != counter.name}
    return ", ".join(sorted(name for name in factors if name not in limits))


def _index(indices: Indices, element: Node) -> Polynomial | None:
    while element.type == "field_expression":
        inner = element.child_by_field_name("argument")
        if inner is None:
            return None
        element = inner
    index = element.child_by_field_name("indices") if element.type == "subscript_expression" else None
    inside = uncommented(index)
    return indices.read(inside[0]) if len(inside) == 1 else None


def _factor(kernel: Kernel, loop: Node, axis: str) -> int:
    """How many times as many blocks are launched. Raises NoMatchError where that would not help."""
    iterations = min(
        (
            a.iterations
            for a in kernel.accesses
            if a.space is Space.GLOBAL and a.in_loop and loop.start_byte <= a.span.start < loop.end_byte
        ),
        default=0.0,
    )
    factor = 1
    fewest = min(_threads(launch) for launch in host_launches(kernel))
    for launch in host_launches(kernel):
        blocks = grid_formula(kernel.source, launch, "xyz".index(axis))
        if blocks is None or blocks.symbols or blocks.value({}) is None:
            raise NoMatchError(f"How many blocks the launch at {launch.source} has in {axis} is not a constant.")
    while fewest * factor < WAVES * THREADS and factor * 4 <= iterations:
        factor *= 2
    if fewest >= THREADS:
        raise NoMatchError(f"Nothing to gain: {fewest:,} threads fill the multiprocessors of a large GPU.")
    if factor == 1:
        raise NoMatchError("Nothing to gain: each thread has but a few iterations.")
    for launch in host_launches(kernel):
        extent = launch.grid["xyz".index(axis)] or 1
        if axis != "x" and extent * factor > MOST_BLOCKS:
            raise NoMatchError(f"A grid may not have {extent * factor} blocks in {axis}.")
    return factor


def _threads(launch: Launch) -> int:
    """Threads of a launch. Raises NoMatchError where the text does not say how many."""
    x, y, z = launch.grid
    if x is None or y is None or z is None or launch.threads is None:
        raise NoMatchError(f"How many blocks the launch at {launch.source} has is not known from the text.")
    return x * y * z * launch.threads
