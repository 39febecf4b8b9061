"""Put the sums of several rows together at once, so that what all of them need is loaded once.

## Before

```cuda
__global__ void mix(float *out, const float *weights, const float *values, int rows, int length, int width) {
  int column = blockIdx.x * blockDim.x + threadIdx.x;
  int row = blockIdx.y;
  if (column >= width || row >= rows) return;
  float sum = 0.0f;
  for (int k = 0; k < length; k++)
    sum += weights[row * length + k] * values[k * width + column];
  out[row * width + column] = sum;
}

void run(float *out, const float *weights, const float *values, int rows, int length, int width) {
  mix<<<dim3((width + 63) / 64, rows), 64>>>(out, weights, values, rows, length, width);
}
```

## After

```cuda
__global__ void mix(float *out, const float *weights, const float *values, int rows, int length, int width) {
  int column = blockIdx.x * blockDim.x + threadIdx.x;
  int row = blockIdx.y * 4;
  if (column >= width || row >= rows) return;
  float sum[4];
  #pragma unroll
  for (int r = 0; r < 4; r++) {
    sum[r] = 0.0f;
  }
  for (int k = 0; k < length; k++) {
    #pragma unroll
    for (int r = 0; r < 4; r++) {
      const int row_r = row + r < rows ? row + r : rows - 1;
      sum[r] += weights[row_r * length + k] * values[k * width + column];
    }
  }
  #pragma unroll
  for (int r = 0; r < 4; r++) {
    const int row_r = row + r;
    if (row_r < rows) {
      out[row_r * width + column] = sum[r];
    }
  }
}

void run(float *out, const float *weights, const float *values, int rows, int length, int width) {
  mix<<<dim3((width + 63) / 64, (rows + 3) / 4), 64>>>(out, weights, values, rows, length, width);
}
```

The rows may be those of a loop instead of blocks: `for (int c = 0; c < 64; c++)` around such a loop then steps by 4.

## Assumes

- The row is the block's index in y, tested against a parameter that the grid is seen to reach, or the counter of a
  loop by 1. Threads of several rows have nothing to do with each other.
- A loop over something else than the rows loads what does not depend on the row. Nothing is stored before its end, and
  what the rows change in common they change after it, where they keep their order.

## Cost

Registers for the values of each row, and four times fewer blocks. Rows beyond the last are computed as that one again,
and stored nowhere. Results stay the same bit for bit.
"""

from __future__ import annotations

import re

from tree_sitter import Node

from warpwright.cuda.numbers import number_at
from warpwright.facts.model import Access, AccessKind, Kernel, Space
from warpwright.rewrites._code import (
    NoMatchError,
    body_of,
    macros_naming,
    matched,
    names,
    require_marked,
    squeezed,
)
from warpwright.rewrites._grids import launches_along_x
from warpwright.rewrites._guards import comparisons, is_early_return
from warpwright.rewrites._jam import ROWS, Rows, depends_on_row, jammed, shared_loops
from warpwright.rewrites._launch_shape import covers, grid_divided_by
from warpwright.rewrites._launched import in_header
from warpwright.rewrites._layout import indent_unit, line_of
from warpwright.rewrites._locals import Locals, locals_of
from warpwright.rewrites._loops import counted_loop, pragmas_before
from warpwright.rewrites._movable import unmovable
from warpwright.rewrites._thread_numbers import OF_GRID
from warpwright.rewrites._threads import TIES, unfit_call
from warpwright.rewrites.base import Declined, Reliance, Rewrite
from warpwright.syntax.edits import TextEdit
from warpwright.syntax.nodes import declared_name, descendants, node_at, uncommented
from warpwright.syntax.source import Span

NAME = "several-rows-at-once"
title = "Reduce several rows at once"
goals = ("speed",)
relies_on = (Reliance.GRID, Reliance.APART)

FEWEST_BLOCKS = 1024
"""Of a grid that is known: with fewer, a quarter of it leaves multiprocessors idle (an H200 has 132)."""


def propose(kernel: Kernel, at: Span | None) -> Rewrite | Declined:
    block = body_of(kernel)
    require_marked(kernel, at)
    if reason := unmovable(kernel):
        return Declined(NAME, reason)
    reason = "Nothing to gain: no loop here loads the same for several rows."
    try:
        found = _of_blocks(kernel, block)
        if found is not None:
            return found
    except NoMatchError as mismatch:
        reason = str(mismatch)
    for node in descendants(block, "for_statement"):
        try:
            found = _of_loop(kernel, block, node)
            if found is not None:
                return found
        except NoMatchError as mismatch:
            reason = str(mismatch)
    return Declined(NAME, reason)


def _of_blocks(kernel: Kernel, block: Node) -> Rewrite | None:
    """The rewrite where the row is the number of the block in y; None where there is no such row."""
    source, variables, statements = kernel.source, locals_of(kernel), uncommented(block)
    row = next((n for n, v in variables.values.items() if squeezed(source.node_code(v)) == "blockIdx.y"), "")
    place = next((p for p, s in enumerate(statements) if is_early_return(s) and _tests(kernel, s, row)), None)
    if not row or place is None:
        return None
    guard, bound = statements[place], _tests(kernel, statements[place], row)
    if len(list(names(guard, source, row))) > 1:
        raise NoMatchError(f"Line {line_of(source, guard)} tests {row} in several ways.")
    while place + 1 < len(statements) and is_early_return(statements[place + 1]):
        if any(names(statements[place + 1], source, row)):
            raise NoMatchError(f"Line {line_of(source, statements[place + 1])} tests {row} again.")
        place += 1
    rows = Rows(tuple(statements[place + 1 :]), row, variables.types[row], bound, may_store=True)
    if not _shares(kernel, rows):
        return None
    _require_alone(kernel, block, variables, rows, [s for s in statements[: place + 1] if s != guard], bound)
    edits: list[TextEdit] = []
    launches = matched(launches_along_x(kernel))
    for launch in launches:
        if not covers(kernel, launch, bound, 1):
            raise NoMatchError(f"The grid at {launch.source} is not seen to have a block for each {row}.")
        x, y, z = launch.grid
        if x is not None and y is not None and z is not None and x * y * z < FEWEST_BLOCKS * ROWS:
            raise NoMatchError(f"Nothing to gain: the grid at {launch.source} has {x * y * z} blocks.")
        divided = matched(grid_divided_by(kernel, launch, (1, ROWS)))
        edits += divided
    value = variables.values[row]
    edits.append(TextEdit(value.end_byte, value.end_byte, f" * {ROWS}"))
    return _rewritten(kernel, block, rows, edits)


def _tests(kernel: Kernel, early: Node, row: str) -> str:
    """The parameter that an early return tests the row against; empty for none."""
    clause = early.child_by_field_name("condition")
    test = clause.child_by_field_name("value") if clause is not None else None
    parameters = {p.name for p in kernel.parameters if not p.is_pointer}
    for condition in (comparisons(kernel.source, test, leaves=True) or []) if test is not None else []:
        left, right = (kernel.source.node_text(side) for side in (condition.left, condition.right))
        if (left, condition.operator) == (row, "<") and right in parameters:
            return right
    return ""


def _require_alone(kernel: Kernel, block: Node, variables: Locals, rows: Rows, before: list[Node], bound: str) -> None:
    """Nothing but the work depends on the row, and threads of different rows have nothing to do with each other."""
    source, text = kernel.source, kernel.source.node_code(block)
    if reason := in_header(kernel):
        raise NoMatchError(reason)
    if tied := re.search(TIES.pattern + r"|\batomic\w*", text):
        raise NoMatchError(f"{kernel.name} uses `{tied.group()}`, so its threads are not independent.")
    if reason := unfit_call(kernel, block):
        raise NoMatchError(reason)
    if not variables.is_fixed(bound):
        raise NoMatchError(f"`{bound}` changes.")
    uses = [squeezed(source.node_code(n)) for n in descendants(block, "field_expression")]
    if uses.count("blockIdx.y") != 1 or "gridDim.y" in uses:
        raise NoMatchError(f"{kernel.name} uses the index of its block in y for more than the row.")
    if used := next((m for m in macros_naming(source, OF_GRID) if re.search(rf"\b{re.escape(m)}\b", text)), None):
        raise NoMatchError(f"The macro {used} reads the block's index.")
    for statement in before:
        for use in descendants(statement, "identifier"):
            declares = statement.type == "declaration" and any(
                declared_name(source, d) == rows.name for d in statement.children_by_field_name("declarator")
            )
            if source.node_text(use) == rows.name and not declares:
                raise NoMatchError(f"Line {line_of(source, use)} uses {rows.name} before it is tested.")
        if statement.type != "declaration" and not is_early_return(statement):
            raise NoMatchError(f"Line {line_of(source, statement)} stands before the row is tested, and may do more.")


def _of_loop(kernel: Kernel, block: Node, node: Node) -> Rewrite | None:
    """The rewrite where the row is the counter of a loop by 1 around another loop; None for any other loop."""
    source = kernel.source
    loop = counted_loop(source, node)
    if loop is None or loop.step is not None or not any(True for _ in descendants(loop.body, "for_statement")):
        return None
    bound = source.node_text(loop.bound)
    count, start = (number_at(source, node, text) for text in (bound, source.node_text(loop.start)))
    plain = loop.bound.type in ("identifier", "number_literal")
    if not plain or loop.body.type != "compound_statement":
        return None
    whole = count is not None and start is not None and count > start and (count - start) % ROWS == 0
    rows = Rows(tuple(uncommented(loop.body)), loop.name, loop.type, "" if whole else bound, may_store=False)
    if not _shares(kernel, rows):
        return None
    line = line_of(source, node)
    if count is not None and start is not None and count - start < 2 * ROWS:
        raise NoMatchError(f"Nothing to gain: the loop at line {line} has few iterations.")
    if tied := re.search(TIES.pattern + r"|\batomic\w*", source.node_code(node)):
        raise NoMatchError(f"The loop at line {line} uses `{tied.group()}`.")
    if reason := unfit_call(kernel, node):
        raise NoMatchError(reason)
    if not whole and count is None and not locals_of(kernel).is_fixed(bound):
        raise NoMatchError(f"`{bound}` may change in the loop at line {line}.")
    if pragmas_before(source, node):
        raise NoMatchError(f"A directive says how the loop at line {line} is compiled.")
    update = node.child_by_field_name("update") or node
    step = TextEdit(update.start_byte, update.end_byte, f"{loop.name} += {ROWS}")
    return _rewritten(kernel, block, rows, [step])


def _shares(kernel: Kernel, rows: Rows) -> list[Access]:
    """The loads within the shared loops that all rows do alike, of addresses that the lanes do not share."""
    source, loops = kernel.source, shared_loops(kernel, rows)
    found: list[Access] = []
    for access in kernel.accesses:
        if access.kind is not AccessKind.LOAD or access.space is not Space.GLOBAL or not access.by_thread:
            continue
        if access.span.source is not source or access.iterations < ROWS:
            continue
        inside = any(loop.start_byte <= access.span.start < loop.end_byte for loop in loops)
        node = node_at(source.root, access.span.start, access.span.end) if inside else None
        if node is not None and not depends_on_row(kernel, rows, node):
            found.append(access)
    return found


def _rewritten(kernel: Kernel, block: Node, rows: Rows, edits: list[TextEdit]) -> Rewrite:
    source = kernel.source
    unit = indent_unit(source, block)
    lines = jammed(kernel, rows, unit)
    first, last = rows.statements[0], rows.statements[-1]
    indent = source.line_indent(first.start_byte)
    shared = ", ".join(dict.fromkeys(access.expression for access in _shares(kernel, rows)))
    return Rewrite(
        rewrite=NAME,
        title=title,
        source=source,
        edits=(*edits, TextEdit(first.start_byte, last.end_byte, f"\n{indent}".join(lines))),
        explanation=(
            f"For each {rows.name} the loop loaded {shared} again, which do not depend on it. Now each thread puts "
            f"{ROWS} of them together at once, in registers, and loads these once for all. Every value is computed in "
            "the same order as before, so the results are the same bit for bit."
        ),
    )
