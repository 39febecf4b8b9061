"""Let each thread go through several rows, and compute once what does not depend on the row.

## Before

```cuda
__global__ void damp(float *x, float rate, int rows, int width) {
  int j = blockIdx.x * blockDim.x + threadIdx.x;
  int row = blockIdx.y;
  if (row >= rows || j >= width) return;
  x[row * width + j] *= exp(-0.25 * rate * j);
}

void run(float *x, float rate, int rows, int width) {
  damp<<<dim3((width + 127) / 128, rows), 128>>>(x, rate, rows, width);
}
```

## After

```cuda
__global__ void damp(float *x, float rate, int rows, int width) {
  int j = blockIdx.x * blockDim.x + threadIdx.x;
  if (j >= width) return;
  const double exp_value = exp(-0.25 * rate * j);
  for (int row = blockIdx.y; row < rows; row += gridDim.y) {
    x[row * width + j] *= exp_value;
  }
}

void run(float *x, float rate, int rows, int width) {
  damp<<<dim3((width + 127) / 128, (rows + 7) / 8), 128>>>(x, rate, rows, width);
}
```

## Assumes

- The row is a variable that is set to the block's index in y, or in z, which nothing else uses. What is computed once
  are calls of CUDA's own functions, such as `pow` and `exp`, of numbers that are the same for all rows.
- Threads have nothing to do with each other: no shared memory, barrier, atomic or exchange within a warp. What the work
  on a row changes, it declares, or it lies in memory.
- All launches are in this file, with one-dimensional blocks and a grid that is seen to have a block for each row.

## Cost

Registers for what is kept, and an eighth of the blocks: a grid of few rows fills fewer multiprocessors. Results stay
the same bit for bit.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from tree_sitter import Node

from warpwright.algebra.trials import Values, holds
from warpwright.facts.model import Kernel, Launch
from warpwright.facts.types import builtin_type
from warpwright.rewrites._code import (
    NoMatchError,
    functions_of,
    macros_naming,
    matched,
    require_marked,
    squeezed,
)
from warpwright.rewrites._elementwise import declared_in
from warpwright.rewrites._formulas import Formula, same
from warpwright.rewrites._grids import arguments_of, divided_along, grid_formula, launches_along_x
from warpwright.rewrites._guarded_work import GuardedWork, guarded_work
from warpwright.rewrites._guards import is_early_return
from warpwright.rewrites._invariant_calls import hoisted, invariant_expressions
from warpwright.rewrites._layout import indent_unit, line_of, reindented, with_comment, without_text
from warpwright.rewrites._locals import Locals, changed_names, locals_of
from warpwright.rewrites._movable import movable_body
from warpwright.rewrites._row_loop import root_name, targets
from warpwright.rewrites._thread_numbers import OF_GRID
from warpwright.rewrites._threads import TIES, unfit_call
from warpwright.rewrites.base import Declined, Reliance, Rewrite
from warpwright.syntax.edits import TextEdit, apply_edits
from warpwright.syntax.encoding import decoded, encoded
from warpwright.syntax.nodes import BREAKABLE, declared_name, descendants, enclosing, uncommented
from warpwright.syntax.source import Source, Span

NAME = "loop-over-rows"
title = "Loop over rows: compute shared work once"
goals = ("speed",)
relies_on = (Reliance.GRID,)

ROWS = 8
"""Rows of a thread: what they share takes an eighth of the time then, and enough blocks are left of most grids."""
FEWEST_BLOCKS = 512
"""Of a grid that is known, afterwards: an H200 has 132 multiprocessors."""


@dataclass(frozen=True, slots=True)
class _Rows:
    """`row` is declared as the block's index along `axis`, which `tested` tests."""

    row: str
    axis: str
    declaration: Node
    tested: GuardedWork


def propose(kernel: Kernel, at: Span | None) -> Rewrite | Declined:
    block = movable_body(kernel)
    require_marked(kernel, at)
    return _rewrite(kernel, block)


def _rewrite(kernel: Kernel, block: Node) -> Rewrite:
    source, variables = kernel.source, locals_of(kernel)
    rows = _rows(kernel, block, variables)
    inside = {name for statement in rows.tested.work for name in declared_in(source, statement)}
    pointers = {p.name for p in kernel.parameters if p.is_pointer}

    def is_fixed(name: str) -> bool:
        return variables.is_fixed(name) and name not in inside | pointers | {rows.row}

    expressions = invariant_expressions(source, rows.tested.work, is_fixed)
    if not expressions:
        raise NoMatchError(f"Nothing to gain: the work on a row of {kernel.name} computes nothing that all rows share.")
    _require_independent(kernel, block, rows, inside)
    launches = matched(launches_along_x(kernel))
    limit = rows.tested.bound
    bound = source.node_text(limit) if limit is not None else _counted(kernel, launches, rows.axis, variables)
    edits = [_fewer(kernel, launch, rows.axis, bound) for launch in launches]
    lines, replaced = hoisted(source, expressions, variables.types)
    text = source.node_text(expressions[0])
    return Rewrite(
        rewrite=NAME,
        title=title,
        source=source,
        edits=(*_kernel_edits(source, block, rows, bound, lines, replaced), *edits),
        explanation=(
            f"Each thread computed `{text}` for one row, though all rows share it. Now a thread computes it once and "
            f"goes on to the rows that lie one grid further: the grid has one block for {ROWS} of them, so it is "
            f"computed an eighth as often."
        ),
    )


def _rows(kernel: Kernel, block: Node, variables: Locals) -> _Rows:
    source, statements = kernel.source, uncommented(block)
    for statement in statements:
        declarators = statement.children_by_field_name("declarator") if statement.type == "declaration" else []
        value = declarators[0].child_by_field_name("value") if len(declarators) == 1 else None
        axis = re.fullmatch(r"blockIdx\.([yz])", squeezed(source.node_code(value))) if value is not None else None
        row = declared_name(source, declarators[0]) if axis is not None else ""
        if axis is None or not variables.is_fixed(row):
            continue
        known = builtin_type(variables.types.get(row, ""))
        if known is not None and (known.size or 0) < 4:
            raise NoMatchError(f"`{row}` has {8 * (known.size or 0)} bits, which going on by a grid may overflow.")
        found = guarded_work(source, variables, row, [s for s in statements if s != statement])
        if found is not None:
            return _Rows(row, axis[1], statement, found)
    raise NoMatchError(f"{kernel.name} has no variable that is set to the block's index in y and keeps it.")


def _require_independent(kernel: Kernel, block: Node, rows: _Rows, inside: set[str]) -> None:
    source, text = kernel.source, kernel.source.node_code(block)
    if found := re.search(TIES.pattern + r"|\batomic\w*", text):
        raise NoMatchError(f"{kernel.name} uses `{found.group()}`, so its threads are not independent.")
    uses = [squeezed(source.node_code(n)) for n in descendants(block, "field_expression")]
    if uses.count(f"blockIdx.{rows.axis}") != 1 or f"gridDim.{rows.axis}" in uses:
        raise NoMatchError(f"{kernel.name} uses the index of its block for more than the row.")
    for word in descendants(block, "identifier"):
        whole = word.parent is None or word.parent.type != "field_expression"
        if source.node_text(word) in ("blockIdx", "gridDim") and whole:
            raise NoMatchError(f"`{source.node_text(word)}` is used as a whole at line {line_of(source, word)}.")
    called = {
        name
        for name, found in functions_of(source).items()
        if name != kernel.name and any(OF_GRID.search(source.node_code(function)) for function in found)
    }
    for hidden in [*macros_naming(source, OF_GRID), *sorted(called)]:
        if re.search(rf"\b{re.escape(hidden)}\b", text):
            raise NoMatchError(f"{kernel.name} uses {hidden}, which reads the block's index.")
    if reason := unfit_call(kernel, block):
        raise NoMatchError(reason)
    for statement in rows.tested.work:
        for changed in changed_names(source, statement):
            if changed not in inside:
                raise NoMatchError(f"`{changed}` changes in the work on a row, and is declared before.")
        for leave in descendants(statement, "return_statement"):
            around = enclosing(leave, *BREAKABLE)
            if around is not None and around.start_byte >= statement.start_byte:
                raise NoMatchError(f"Threads may leave at line {line_of(source, leave)}, within a loop.")
    reached = {p.name for p in kernel.parameters if p.is_pointer} | inside
    for target in (t for statement in rows.tested.work for t in targets(statement, source)):
        if target.type != "identifier" and root_name(source, target) not in reached:
            raise NoMatchError(f"`{source.node_text(target)}` changes in the work on a row, and is declared before.")
    for statement in rows.tested.before:
        for address in descendants(statement, "reference_declarator", "pointer_expression"):
            line = line_of(source, address)
            raise NoMatchError(f"`{source.node_text(address)}` at line {line} may be changed by the work on a row.")
        if statement.type != "declaration" and not is_early_return(statement):
            raise NoMatchError(f"Line {line_of(source, statement)} stands before the work on a row, and may do more.")
    for static in descendants(block, "storage_class_specifier"):
        raise NoMatchError(f"`{source.node_text(static)}` at line {line_of(source, static)} is one for all rows.")


def _counted(kernel: Kernel, launches: list[Launch], axis: str, variables: Locals) -> str:
    """The parameter that is the number of rows at every launch, where the kernel does not test the row."""
    for parameter in kernel.parameters:
        if parameter.is_pointer or not variables.is_fixed(parameter.name):
            continue
        pairs = [(_blocks(kernel, each, axis), arguments_of(kernel, each).get(parameter.name)) for each in launches]
        if all(blocks is not None and given is not None and same(blocks, given) for blocks, given in pairs):
            return parameter.name
    raise NoMatchError(
        f"{kernel.name} does not test the row against the number of rows, and no parameter is that number."
    )


def _blocks(kernel: Kernel, launch: Launch, axis: str) -> Formula | None:
    return grid_formula(kernel.source, launch, "xyz".index(axis))


def _fewer(kernel: Kernel, launch: Launch, axis: str, bound: str) -> TextEdit:
    """The launch with a block for several rows. Raises NoMatchError where it has none for some row, or too few."""
    source, blocks, place = kernel.source, _blocks(kernel, launch, axis), "xyz".index(axis)
    given = arguments_of(kernel, launch).get(bound)
    if blocks is None or given is None:
        raise NoMatchError(
            f"Whether the grid at {launch.source} has a block for each row cannot be told from the text."
        )

    def covers(values: Values) -> bool | None:
        there, wanted = blocks.value(values), given.value(values)
        return None if there is None or wanted is None else there >= wanted

    if not holds(covers, blocks.symbols | given.symbols):
        raise NoMatchError(f"The grid at {launch.source} is not seen to have a block for each row.")
    x, y, z = launch.grid
    along = launch.grid[place]
    if not blocks.symbols and along is not None and along < ROWS:
        raise NoMatchError(f"Nothing to gain: the grid at {launch.source} has {along} rows.")
    if not blocks.symbols and x is not None and y is not None and z is not None and x * y * z < FEWEST_BLOCKS * ROWS:
        raise NoMatchError(
            f"Nothing to gain: the grid at {launch.source} has {x * y * z} blocks, and {ROWS} times fewer would leave "
            "multiprocessors idle."
        )
    return matched(divided_along(source, launch, axis, ROWS))


def _kernel_edits(
    source: Source, block: Node, rows: _Rows, bound: str, lines: list[str], replaced: list[TextEdit]
) -> list[TextEdit]:
    unit = indent_unit(source, block)
    kind = rows.declaration.child_by_field_name("type")
    first = rows.tested.guard or rows.tested.work[0]
    last = rows.tested.guard if rows.tested.guard is not None and not rows.tested.is_early else rows.tested.work[-1]
    indent = source.line_indent(first.start_byte)
    head, tail, inner = "", "", indent
    if rows.tested.is_early and rows.tested.others:
        head = f"if ({' || '.join(rows.tested.others)}) return;\n{indent}"
    elif rows.tested.others:
        inner = indent + unit
        head, tail = f"if ({' && '.join(rows.tested.others)}) {{\n{inner}", f"\n{indent}}}"
    head += "".join(f"{line}\n{inner}" for line in lines)
    row = rows.row
    declared = f"{source.node_text(kind) if kind is not None else 'int'} {row} = blockIdx.{rows.axis}"
    head += f"for ({declared}; {row} < {bound}; {row} += gridDim.{rows.axis}) {{\n{inner}{unit}"
    start, end = rows.tested.work[0].start_byte, with_comment(source, rows.tested.work[-1])[1]
    if rows.tested.guard is not None:  # comments before the first statement are kept
        inner_block = rows.tested.work[0].parent or block
        clause = rows.tested.guard.child_by_field_name("condition")
        behind = (
            with_comment(source, rows.tested.guard)[1] if rows.tested.is_early or clause is None else clause.end_byte
        )
        start = next(n.start_byte for n in inner_block.named_children if n.start_byte >= behind)
    inside = [
        TextEdit(n.start_byte, n.end_byte, "continue;")
        for s in rows.tested.work
        for n in descendants(s, "return_statement")
    ]
    shifted = [TextEdit(e.start - start, e.end - start, e.new_text) for e in [*replaced, *inside]]
    work = decoded(apply_edits(source.data[start:end], shifted))
    work = reindented(work, source.line_indent(rows.tested.work[0].start_byte), inner + unit)
    until = max(end, with_comment(source, last)[1])
    _, comment = with_comment(source, rows.declaration)
    kept = source.text(rows.declaration.end_byte, comment)
    ahead = comment - len(encoded(kept.lstrip()))
    return [
        TextEdit(rows.declaration.start_byte, ahead, "")
        if kept
        else without_text(source, rows.declaration.start_byte, rows.declaration.end_byte),
        TextEdit(first.start_byte, until, f"{head}{work}\n{inner}}}{tail}"),
    ]
