"""Let each thread move four consecutive elements of a row as one `float4`.

## Before

```cuda
__global__ void add_outer(float *__restrict__ m, const float *__restrict__ u, const float *v, int rows, int columns) {
  int j = blockIdx.x * blockDim.x + threadIdx.x;
  int i = blockIdx.y;
  if (i >= rows || j >= columns) return;
  m[i * columns + j] += u[j] * v[i];
}

void run(float *m, const float *u, const float *v, int rows, int columns) {
  dim3 grid((columns + 127) / 128, rows);
  add_outer<<<grid, 128>>>(m, u, v, rows, columns);
}
```

## After

```cuda
__global__ void add_outer(float *__restrict__ m, const float *__restrict__ u, const float *v, int rows, int columns) {
  int j = blockIdx.x * blockDim.x + threadIdx.x;
  int i = blockIdx.y;
  if (i >= rows) return;
  const bool whole = (reinterpret_cast<size_t>(m) | reinterpret_cast<size_t>(u)) % 16 == 0 && columns % 4 == 0;
  const auto vectors = whole ? columns / 4 : 0;
  if (j < vectors) {
    alignas(16) float m_values[4];
    *reinterpret_cast<float4 *>(m_values) = *reinterpret_cast<const float4 *>(&m[i * columns + 4 * j]);
    alignas(16) float u_values[4];
    *reinterpret_cast<float4 *>(u_values) = *reinterpret_cast<const float4 *>(&u[4 * j]);
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      m_values[k] += u_values[k] * v[i];
    }
    *reinterpret_cast<float4 *>(&m[i * columns + 4 * j]) = *reinterpret_cast<const float4 *>(m_values);
  }
  for (j += 4 * vectors; j < columns; j += blockDim.x * gridDim.x) {
    m[i * columns + j] += u[j] * v[i];
  }
}

void run(float *m, const float *u, const float *v, int rows, int columns) {
  dim3 grid((columns + 127) / 128, rows);
  add_outer<<<dim3((grid.x + 3) / 4, grid.y), 128>>>(m, u, v, rows, columns);
}
```

A `double` goes in pairs; elements of two bytes or one go by eights. A loop over rows around the work stays around it.

## Assumes

- The kernel does the same to each element of a row, and stores in a row at the element's own place. Where a row starts
  is a product with a parameter, such as `i * columns`: whether that is a multiple of four is asked at run time, and so
  is whether the arrays are aligned. Where they are not, elements go one by one.
- All launches are in this file, with one-dimensional blocks and a grid that is seen to cover the row.
- Five quarters of the row's elements stay under the largest value of the index's type.
- Arrays that are stored do not overlap others that are handed over.

## Cost

Registers for four elements, and a quarter of the threads. The work stands in the text twice. Results stay the same bit
for bit.
"""

from __future__ import annotations

import re

from tree_sitter import Node

from warpwright.facts.aliasing import restricted
from warpwright.facts.model import AccessKind, Kernel, Launch, Space
from warpwright.rewrites._code import NoMatchError, matched, names, require_marked, squeezed
from warpwright.rewrites._elementwise import (
    initial_value,
    not_by_element,
    not_the_thread,
    without_const,
)
from warpwright.rewrites._grids import as_operand, divided_along, extent, launches_along_x, uncovered
from warpwright.rewrites._layout import free_name, indent_unit, reindented, with_comment
from warpwright.rewrites._locals import changed_names
from warpwright.rewrites._loops import header_of
from warpwright.rewrites._movable import movable_body
from warpwright.rewrites._row_elements import (
    Line,
    Row,
    indices_at,
    multiples,
    require_even,
    row_lines,
    row_start,
    row_work,
    same_in_row,
)
from warpwright.rewrites._strided import step_of
from warpwright.rewrites.base import Declined, Reliance, Rewrite
from warpwright.syntax.edits import TextEdit, apply_edits
from warpwright.syntax.encoding import decoded
from warpwright.syntax.nodes import declared_name
from warpwright.syntax.source import Source, Span

NAME = "vectorize-rows"
title = "Vectorize row accesses"
goals = ("speed",)
relies_on = (Reliance.GRID, Reliance.APART, Reliance.SIZES)

WIDEST = 16
"""Bytes that one lane can load or store at once (CUDA C++ Programming Guide, "Device Memory Accesses")."""
MOST = 8
"""Elements of one thread: more of one byte each would only cost registers."""
FEW_ADDRESSES = 4.0
"""Different addresses in a request for one of which it makes no difference where the lanes lie."""
MOST_IN_Y = 65535
"""Blocks that a grid may have in y (CUDA C++ Programming Guide, "Compute Capabilities")."""


def propose(kernel: Kernel, at: Span | None) -> Rewrite | Declined:
    block = movable_body(kernel)
    require_marked(kernel, at)
    return _vectorized(kernel, block)


def _vectorized(kernel: Kernel, block: Node) -> Rewrite:
    source, row = kernel.source, row_work(kernel, block)
    launches = matched(launches_along_x(kernel))
    if reason := not_the_thread(kernel, row.elements, launches):
        raise NoMatchError(reason)
    require_even(kernel, row, launches)
    if reason := not_by_element(kernel, row.elements, same_in_row(kernel, row, launches)):
        raise NoMatchError(reason)
    for access in kernel.accesses:
        if access.kind is AccessKind.ATOMIC:
            raise NoMatchError(f"Nothing to gain: the time goes into `{access.span.one_line}`, one for each element.")
    lines = row_lines(kernel, row, launches)
    factor = min(MOST, WIDEST // max(line.array.size for line in lines))
    for line in lines:
        if multiples(kernel, row, line, launches, factor) is None:
            text = f"{line.array.name}[{source.node_text(line.index)}]"
            raise NoMatchError(f"Nothing to gain: `{text}` stays one by one, and its lanes would lie {factor} apart.")
    moved = {line.array.name for line in lines}
    for access in kernel.accesses:
        others = access.space is Space.GLOBAL and access.array not in moved and access.lanes is not None
        if others and (access.addresses_per_request or 0.0) > FEW_ADDRESSES:
            text = access.span.one_line
            raise NoMatchError(f"Nothing to gain: `{text}` stays one by one, and its lanes would lie {factor} apart.")
    stored = {line.array.name for line in lines if line.array.is_stored}
    edits = [edit for launch in launches for edit in _launch_edits(kernel, row, lines, launch, factor)]
    widths = sorted({line.array.vector(factor) for line in lines})
    listed = " and ".join(dict.fromkeys(line.array.name for line in lines))
    apart = stored <= set(restricted(kernel)) or len(row.elements.work) == 1
    return Rewrite(
        rewrite=NAME,
        title=f"Vectorize rows: {factor} elements per access ({' and '.join(widths)})",
        source=source,
        edits=(*edits, *_kernel_edits(kernel, block, row, lines, factor)),
        explanation=(
            f"Each thread works on {factor} consecutive elements of {listed}, which it moves as one "
            f"{' or '.join(widths)}, so that fewer instructions keep more bytes in flight. Rows that do not start at a "
            "multiple of as many elements, and arrays at an address that is not aligned, go one by one."
        ),
        safe=apart,
    )


def _launch_edits(kernel: Kernel, row: Row, lines: list[Line], launch: Launch, factor: int) -> list[TextEdit]:
    """A share of the blocks in x. Where a fixed number of blocks in y takes the rows in turn, as many more in y."""
    if reason := uncovered(kernel, launch, row.elements.bound):
        raise NoMatchError(reason)
    source, edit = kernel.source, divided_along(kernel.source, launch, "x", factor)
    if isinstance(edit, str):
        raise NoMatchError(edit)
    blocks, written = launch.grid[1], extent(source, launch, 1)
    if row.loop is None or blocks is None or written is None:
        return [edit]
    if not _takes_turns(kernel, row, lines, launch) or blocks * factor > MOST_IN_Y:
        raise NoMatchError(
            f"Nothing to gain: the grid at {launch.source} has an extent of {blocks} in y, and a share of it in x "
            "would be too few blocks to keep a GPU at work."
        )
    node, text = written
    if text == source.node_text(node):
        return [edit, TextEdit(node.start_byte, node.end_byte, f"{as_operand(source, node, text)} * {factor}")]
    return [TextEdit(edit.start, edit.end, edit.new_text.replace(text, f"{text} * {factor}"))]


def _takes_turns(kernel: Kernel, row: Row, lines: list[Line], launch: Launch) -> bool:
    """Whether the loop is `for (i = blockIdx.y; i < rows; i += gridDim.y)` over rows that have no element in common."""
    source, loop = kernel.source, row.loop
    if loop is None:
        return False
    initializer = loop.child_by_field_name("initializer")
    value = initial_value(initializer) if initializer is not None and initializer.type == "declaration" else None
    target = initializer.child_by_field_name("declarator") if initializer is not None else None
    number = declared_name(source, target) if target is not None else ""
    step, condition = step_of(source, loop), loop.child_by_field_name("condition")
    texts = [squeezed(source.node_code(n)) if n is not None else "" for n in (value, step, condition)]
    if texts[:2] != ["blockIdx.y", "gridDim.y"] or not re.fullmatch(rf"{re.escape(number)}<\w+", texts[2]):
        return False
    indices, bound = indices_at(kernel, [launch]), source.node_text(row.elements.bound)
    for line in lines:
        if line.array.is_stored:
            start = row_start(indices, row, line.index) or {}
            with_row = [product for product in start if number in product]
            if with_row != [tuple(sorted((bound, number)))]:
                return False
    return not any(number == name for s in row.elements.work for name in changed_names(source, s))


def _kernel_edits(kernel: Kernel, block: Node, row: Row, lines: list[Line], factor: int) -> list[TextEdit]:
    source, column, guard = kernel.source, row.column, row.tested.guard or block
    launches = launches_along_x(kernel)
    known = launches if not isinstance(launches, str) else []
    parameters = dict.fromkeys(p for line in lines for p in multiples(kernel, row, line, known, factor) or ())
    unit, indent = indent_unit(source, block), source.line_indent(guard.start_byte)
    text, bound = source.code_text(), source.node_text(row.elements.bound)
    whole, vectors = free_name(text, "whole"), free_name(text, "vectors")
    arrays = dict.fromkeys(line.array.name for line in lines)
    addresses = " | ".join(f"reinterpret_cast<size_t>({name})" for name in arrays)
    addresses = f"({addresses})" if len(arrays) > 1 else addresses
    bytes_each = max(line.array.size for line in lines) * factor
    tests = [f"{addresses} % {bytes_each} == 0", *(f"{name} % {factor} == 0" for name in parameters)]
    others, inner = row.tested.others, indent
    head = f"if ({' || '.join(others)}) return;\n{indent}" if others and row.tested.is_early else ""
    tail = ""
    if others and not row.tested.is_early:
        inner, head, tail = indent + unit, f"if ({' && '.join(others)}) {{\n{indent}{unit}", f"\n{indent}}}"
    out = [
        f"const bool {whole} = {' && '.join(tests)};",
        f"const auto {vectors} = {whole} ? {bound} / {factor} : 0;",
        f"if ({column} < {vectors}) {{",
    ]
    deep = unit
    if row.loop is not None:
        out.append(f"{unit}{header_of(source, row.loop)} {{")
        deep = 2 * unit
    out += [
        f"{deep}{each}" if not each.startswith("#") else each
        for each in _vector_lines(source, row, lines, factor, unit, inner + deep)
    ]
    out += [f"{unit}}}"] if row.loop is not None else []
    step = f"{column} += blockDim.x * gridDim.x"
    out += ["}", f"for ({column} += {factor} * {vectors}; {column} < {bound}; {step}) {{"]
    first, last = row.tested.work[0], row.tested.work[-1]
    start, end = first.start_byte, with_comment(source, last)[1]
    above = first.prev_named_sibling
    while above is not None and above.type == "comment" and above.start_byte > guard.start_byte:
        out.insert(0, reindented(source.node_text(above), source.line_indent(above.start_byte), inner))
        above = above.prev_named_sibling
    rest = reindented(source.text(start, end), source.line_indent(start), inner + unit)
    out += [f"{unit}{rest}", "}"]
    written = "\n".join(line if line.startswith("#") else f"{inner}{line}" for line in out).removeprefix(inner)
    until = end if row.tested.is_early else guard.end_byte
    return [
        *without_const(source, row.elements.declaration),
        TextEdit(guard.start_byte, max(until, end), f"{head}{written}{tail}"),
    ]


def _vector_lines(source: Source, row: Row, lines: list[Line], factor: int, unit: str, indent: str) -> list[str]:
    """The work on one vector of each array, without its indent."""
    column, text = row.column, source.code_text()
    counter, taken, values = free_name(text, "k"), text, []
    for line in lines:
        values.append(free_name(taken, f"{line.array.name}_values"))
        taken += f" {values[-1]} "
    out: list[str] = []
    stores: list[str] = []
    edits: list[TextEdit] = []
    for line, name in zip(lines, values, strict=True):
        array, index = line.array, _at_vector(source, line.index, column, factor)
        vector = array.vector(factor)
        out.append(f"alignas({array.size * factor}) {array.type} {name}[{factor}];")
        if array.is_loaded:
            out.append(
                f"*reinterpret_cast<{vector} *>({name}) = *reinterpret_cast<const {vector} *>(&{array.name}[{index}]);"
            )
        if array.is_stored:
            stores.append(
                f"*reinterpret_cast<{vector} *>(&{array.name}[{index}]) = *reinterpret_cast<const {vector} *>({name});"
            )
        edits += [TextEdit(use.start_byte, use.end_byte, f"{name}[{counter}]") for use in array.uses]
    for statement in row.elements.work:
        for use in names(statement, source, column):
            if not any(edit.start <= use.start_byte < edit.end for edit in edits):
                edits.append(TextEdit(use.start_byte, use.end_byte, f"({factor} * {column} + {counter})"))
    start, end = row.elements.start, with_comment(source, row.elements.work[-1])[1]
    shifted = [TextEdit(edit.start - start, edit.end - start, edit.new_text) for edit in edits]
    work = decoded(apply_edits(source.data[start:end], shifted))
    work = reindented(work, source.line_indent(start), indent + unit)
    return [
        *out,
        "#pragma unroll",
        f"for (int {counter} = 0; {counter} < {factor}; ++{counter}) {{",
        f"{unit}{work}",
        "}",
        *stores,
    ]


def _at_vector(source: Source, index: Node, column: str, factor: int) -> str:
    """An index with the column of a vector's first element."""
    out, at = "", index.start_byte
    for use in names(index, source, column):
        alone = use.parent is None or use == index or _is_added(use)
        out += source.text(at, use.start_byte) + (f"{factor} * {column}" if alone else f"({factor} * {column})")
        at = use.end_byte
    return out + source.text(at, index.end_byte)


def _is_added(use: Node) -> bool:
    parent = use.parent
    operator = parent.child_by_field_name("operator") if parent is not None else None
    return operator is not None and re.fullmatch(r"[+-]", operator.type) is not None
