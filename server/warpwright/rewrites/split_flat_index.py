"""Let the axes of the grid be the axes of the data, where each thread takes its flat index apart by divisions.

## Before

```cuda
__global__ void upsample(float *out, const float *in, int planes, int height, int width) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= planes * 4 * height * width)
    return;
  int x = i % (2 * width);
  int y = i / (2 * width) % (2 * height);
  int plane = i / (4 * height * width);
  out[i] = in[(plane * height + y / 2) * width + x / 2];
}

void run(float *out, const float *in, int planes, int height, int width) {
  int total = planes * 4 * height * width;
  upsample<<<(total + 127) / 128, 128>>>(out, in, planes, height, width);
}
```

## After

```cuda
__global__ void upsample(float *out, const float *in, int planes, int height, int width) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  int i = (blockIdx.z * (2 * height) + blockIdx.y) * (2 * width) + x;
  if (x >= 2 * width)
    return;
  int y = blockIdx.y;
  int plane = blockIdx.z;
  out[i] = in[(plane * height + y / 2) * width + x / 2];
}

void run(float *out, const float *in, int planes, int height, int width) {
  int total = planes * 4 * height * width;
  upsample<<<dim3((2 * width + 127) / 128, 2 * height, planes), 128>>>(out, in, planes, height, width);
}
```

What the flat index is divided by twice is the second axis; all that is left is the third, which the kernel may take
apart further. An index of row and column alone, `i / width` and `i % width`, becomes `blockIdx.x` and a column along y
where the divisions are of 64 bits, or where an access is strided: `stage-transpose-in-shared` can follow then.

## Assumes

- The kernel works on element i below a bound, and knows its thread by i alone: no shared memory, barrier or operation
  of a warp. Each element is then worked on once, as before, by another thread.
- All launches are in this file and one-dimensional, cover the elements, and hand over what the index is divided by.
- The second and third axis have fewer than 65,536 rows and planes. Run-time extents are taken to.

## Cost

Each row is rounded up to whole blocks: rows much shorter than a block leave threads idle. An integer division by a
run-time value is some twenty instructions, in each thread. Results stay the same bit for bit.
"""

from __future__ import annotations

import re

from tree_sitter import Node

from warpwright.algebra.sums import symbols
from warpwright.facts.model import Kernel, Launch, Space
from warpwright.facts.types import builtin_type
from warpwright.rewrites._code import NoMatchError, as_factor, body, macros_naming, matched, names
from warpwright.rewrites._elementwise import Elements, match_elements, not_the_thread
from warpwright.rewrites._flat_index import (
    Part,
    as_text,
    axes_of,
    formula_of,
    parts_of,
    planes_of,
    quotient,
    require_handed,
)
from warpwright.rewrites._gain import edited_kernel
from warpwright.rewrites._grids import arguments_of, call_of, extent, launches_in_sight, uncovered
from warpwright.rewrites._indices import Indices, Polynomial, combined, indices_of
from warpwright.rewrites._launch_shape import launches_for_none
from warpwright.rewrites._layout import free_name, line_of, with_comment, without_text
from warpwright.rewrites._movable import block_by_directive, unmovable
from warpwright.rewrites._thread_numbers import NUMBER, WARP_LEVEL, calls_by_number
from warpwright.rewrites.base import Declined, Reliance, Rewrite
from warpwright.syntax.edits import TextEdit
from warpwright.syntax.nodes import descendants, uncommented
from warpwright.syntax.source import Source, Span

NAME = "split-flat-index"
title = "Replace the flat index by grid dimensions"
goals = ("speed",)
relies_on = (Reliance.GRID, Reliance.BLOCK, Reliance.SIZES)

MOST_BLOCKS = 65535
"""Largest grid extent in y and z (CUDA C++ Programming Guide, "Technical Specifications per Compute Capability")."""

STRIDED = 4.0
"""Sectors for each one needed from which an access is taken to be worth a tile."""

_WIDE = ("long", "size_t", "64")


def propose(kernel: Kernel, at: Span | None) -> Rewrite | Declined:
    if reason := unmovable(kernel):
        return Declined(NAME, reason)
    elements = match_elements(kernel)
    if isinstance(elements, str):
        return Declined(NAME, elements)
    return _split(kernel, elements)


def _split(kernel: Kernel, elements: Elements) -> Rewrite:
    source = kernel.source
    launches = matched(launches_in_sight(kernel))
    sizes = {launch.block[0] or 0 for launch in launches}
    indices = indices_of(kernel, (min(sizes), 1, 1) if len(sizes) == 1 else None)
    _require_alone(kernel, elements, indices, launches)
    parts = [part for statement in elements.work for part in parts_of(indices, elements.index, statement)]
    row, plane = axes_of(elements.index, parts)
    if plane is None and not _is_wide(indices, elements) and not _is_strided(kernel):
        raise NoMatchError(f"Nothing to gain: two divisions of 32 bits take `{elements.index}` apart once.")
    for polynomial in (row, plane) if plane is not None else (row,):
        require_handed(indices, polynomial)
    for launch in launches:
        if reason := uncovered(kernel, launch, elements.bound):
            raise NoMatchError(reason)
    rest = planes_of(kernel, indices, elements.bound, launches, _plane_size(row, plane))
    edits = _kernel_edits(kernel, indices, elements, parts, row, plane)
    for launch in launches:
        _require_long_rows(kernel, launch, row)
        edit = _launch_edit(kernel, launch, row, plane, rest)
        edits += [edit] if edit not in edits else []
    _require_extents(kernel, edits)
    return Rewrite(
        rewrite=NAME,
        title=title,
        source=source,
        edits=tuple(edits),
        explanation=(
            f"Each thread took `{elements.index}` apart by divisions by run-time values, of some twenty instructions "
            "each. The grid now has an axis for each part, so that the parts are blockIdx and the column, and "
            f"`{elements.index}` is put together by two multiplications where it is needed. Rows are rounded up to "
            "whole blocks: rows much shorter than a block would leave threads idle."
        ),
    )


def _plane_size(row: Polynomial, plane: Polynomial | None) -> Polynomial:
    """Elements of a plane, or of a row where there are no planes."""
    return row if plane is None else combined("*", row, plane) or {}


def _is_wide(indices: Indices, elements: Elements) -> bool:
    """Whether the flat index is a number of 64 bits, whose division is dear."""
    known = builtin_type(indices.variables.types.get(elements.index, ""))
    return known is not None and (known.size or 0) > 4


def _is_strided(kernel: Kernel) -> bool:
    """Whether some access could do with a tile of rows and columns, which a flat index hides."""
    return any(a.space is Space.GLOBAL and (a.excess or 0.0) >= STRIDED for a in kernel.accesses)


def _require_alone(kernel: Kernel, elements: Elements, indices: Indices, launches: list[Launch]) -> None:
    """The kernel's work depends on the thread by the flat index alone."""
    source, block, index = kernel.source, body(kernel), elements.index
    if kernel.shared_arrays or kernel.barriers:
        raise NoMatchError(f"{kernel.name} uses shared memory or barriers.")
    if reason := not_the_thread(kernel, elements, launches) or block_by_directive(kernel):
        raise NoMatchError(reason)
    if not indices.variables.is_fixed(index):
        raise NoMatchError(f"`{index}` changes in {kernel.name}.")
    if indices.variables.types.get(index) == "auto":
        raise NoMatchError(f"The type of `{index}` is not written.")
    for statement in elements.before:
        if statement != elements.declaration:
            raise NoMatchError(f"Line {line_of(source, statement)} stands before the test of `{index}`.")
    text = "".join(source.node_code(statement) for statement in elements.work)
    if found := NUMBER.search(text) or WARP_LEVEL.search(text):
        raise NoMatchError(f"{kernel.name} uses `{found.group()}` beside `{index}`.")
    for macro in macros_naming(source, re.compile(rf"{NUMBER.pattern}|\b{re.escape(index)}\b")):
        if re.search(rf"\b{re.escape(macro)}\b", text):
            raise NoMatchError(f"The macro {macro} reads the thread's index.")
    if block is not None and (reason := calls_by_number(kernel, block)):
        raise NoMatchError(reason)


def _require_long_rows(kernel: Kernel, launch: Launch, row: Polynomial) -> None:
    length, threads = formula_of(arguments_of(kernel, launch), row), launch.block[0] or 1
    number = length.value({}) if length is not None and not length.symbols else None
    if number is not None and 2 * number < threads:
        raise NoMatchError(f"Nothing to gain: rows of {number} elements would leave most of {threads} threads idle.")


def _kernel_edits(
    kernel: Kernel, indices: Indices, elements: Elements, parts: list[Part], row: Polynomial, plane: Polynomial | None
) -> list[TextEdit]:
    source, index = kernel.source, elements.index
    declared = elements.declaration.child_by_field_name("type")
    kind = source.node_text(declared) if declared is not None else "int"
    own = _column(indices, elements, parts)
    column = own[0] if own is not None else free_name(kernel.span.code, "column")
    whole = _plane_size(row, plane)
    edits: list[TextEdit] = []
    for part in parts:
        if own is not None and part.node == own[2]:
            continue
        text = _value(part, row, plane, whole, column)
        known, made = builtin_type(kind), " " in text
        wide = known is None or known.size != 4
        if "blockIdx" in text and (not _is_initial(source, part.node) or (wide and made)):
            text = text if known is not None and not wide and known.kind == "uint" else f"({kind}){text}"
            text = f"({text})" if made and not _is_initial(source, part.node) else text
        edits.append(TextEdit(part.node.start_byte, part.node.end_byte, text))
    gone = [(p.node.start_byte, p.node.end_byte) for p in parts]
    left = [
        use
        for statement in elements.work
        for use in names(statement, source, index)
        if not any(start <= use.start_byte < end for start, end in gone)
    ]
    indent = source.line_indent(elements.declaration.start_byte)
    initial = source.node_text(elements.initial)
    if plane is None:
        initial = re.sub(r"\bblockIdx\s*\.\s*x\b", "blockIdx.y", initial)
    first = f"{own[1] if own is not None else kind} {column} = {initial};"
    if left:
        cast = f"({kind})" if any(word in kind for word in _WIDE) else ""
        rows = f"{cast}blockIdx.x"
        if plane is not None:
            rows = f"({cast}blockIdx.z * {as_factor(as_text(plane))} + blockIdx.y)"
        first += f"\n{indent}{kind} {index} = {rows} * {as_factor(as_text(row))} + {column};"
    edits.append(TextEdit(elements.declaration.start_byte, elements.declaration.end_byte, first))
    if own is not None:
        edits.append(without_text(source, *with_comment(source, own[3])))
    clause = elements.guard.child_by_field_name("condition")
    test = clause.child_by_field_name("value") if clause is not None else None
    if test is None:
        raise NoMatchError(f"The test of `{index}` is not seen.")
    inside = f"{column} {'>=' if elements.early else '<'} {as_text(row)}"
    edits.append(TextEdit(test.start_byte, test.end_byte, inside))
    return edits


def _is_initial(source: Source, node: Node) -> bool:
    """Whether it is the value that a variable of a type that is written starts with."""
    declarator = node.parent
    declaration = declarator.parent if declarator is not None and declarator.type == "init_declarator" else None
    kind = declaration.child_by_field_name("type") if declaration is not None else None
    return kind is not None and source.node_text(kind) != "auto"


def _column(indices: Indices, elements: Elements, parts: list[Part]) -> tuple[str, str, Node, Node] | None:
    """The user's variable that holds the column, has room for those behind the row too, and keeps it: its name, its
    type, its value, and its declaration, whose only one it is."""
    source = indices.kernel.source
    for part in parts:
        declarator = part.node.parent
        declaration = declarator.parent if declarator is not None and declarator.type == "init_declarator" else None
        if part.divisor != {(): 1} or declarator is None or declaration is None or declaration not in elements.work:
            continue
        name, kind = declarator.child_by_field_name("declarator"), declaration.child_by_field_name("type")
        alone = len(declaration.children_by_field_name("declarator")) == 1
        whole_line = source.line_code(line_of(source, declaration)).strip() == source.node_code(declaration)
        known = builtin_type(source.node_text(kind)) if kind is not None else None
        typed = known is not None and known.is_integer and (known.size or 0) >= 4
        kept = name is not None and name.type == "identifier" and indices.variables.is_fixed(source.node_text(name))
        if name is not None and kind is not None and kept and typed and alone and whole_line:
            return source.node_text(name), source.text(declaration.start_byte, name.start_byte).strip(), part.node, (
                declaration
            )  # fmt: skip
    return None


def _value(part: Part, row: Polynomial, plane: Polynomial | None, whole: Polynomial, column: str) -> str:
    """What an expression of the flat index is of the block's indices and the column."""
    last = "blockIdx.z" if plane is not None else "blockIdx.x"
    match part:
        case Part(divisor=d, modulus=m) if d == {(): 1} and m == row:
            return column
        case Part(divisor=d, modulus=m) if d == row and plane is not None and m == plane:
            return "blockIdx.y"
        case Part(divisor=d, modulus=None) if d == row and plane is not None:
            return f"blockIdx.z * {as_factor(as_text(plane))} + blockIdx.y"
        case Part(divisor=d, modulus=None) if d == whole:
            return last
        case Part(divisor=d, modulus=None) if (rest := quotient(d, whole)) is not None:
            return f"{last} / {as_factor(as_text(rest))}"
        case Part(divisor=d, modulus=m) if m is not None and (rest := quotient(d, whole)) is not None:
            inner = last if rest == {(): 1} else f"{last} / {as_factor(as_text(rest))}"
            return f"{inner} % {as_factor(as_text(m))}"
    raise NoMatchError("The index is not split into rows and planes of one size.")


def _launch_edit(
    kernel: Kernel, launch: Launch, row: Polynomial, plane: Polynomial | None, rest: Polynomial
) -> TextEdit:
    source, call, written = kernel.source, call_of(launch), extent(kernel.source, launch)
    given = uncommented(call.child_by_field_name("arguments")) if call is not None else []
    if written is None or len(given) != len(kernel.parameters):
        raise NoMatchError(f"The grid of the launch at {launch.source} is not written as a number or a dim3.")
    used = {name for value in (row, plane or {}, rest) for name in symbols(value)}
    new: dict[str, str] = {}
    for parameter, argument in zip(kernel.parameters, given, strict=True):
        if parameter.name in used:
            for part in descendants(argument, "call_expression", "update_expression", "assignment_expression"):
                raise NoMatchError(f"`{source.node_text(part)}` is handed over for `{parameter.name}`.")
            new[parameter.name] = as_factor(source.node_text(argument))
    block, node = launch.block[0] or 1, _grid_node(written[0])
    columns, last = f"({as_text(row, new)} + {block - 1}) / {block}", as_text(rest, new)
    if launches_for_none(kernel, launch, 0):
        if plane is not None or rest != row:
            raise NoMatchError(f"The grid at {launch.source} has a block where no element is, and rows may be there.")
        columns, last = (f"({last} > 0 ? {blocks} : 1)" for blocks in (columns, last))
    text = f"dim3({last}, {columns})" if plane is None else f"dim3({columns}, {as_text(plane, new)}, {last})"
    return TextEdit(node.start_byte, node.end_byte, text)


def _grid_node(extent_node: Node) -> Node:
    """The grid that an extent is written in: the whole of `dim3(n)` for n."""
    parent = extent_node.parent
    called = parent.parent if parent is not None and parent.type == "argument_list" else None
    return called if called is not None and called.type == "call_expression" else extent_node


def _require_extents(kernel: Kernel, edits: list[TextEdit]) -> None:
    """The new grids are ones that a launch may have, with rows that are not much shorter than a block."""
    edited = edited_kernel(kernel, edits)
    for launch in edited.launches if edited is not None else ():
        for axis, blocks in zip("yz", launch.grid[1:], strict=True):
            if blocks is not None and blocks > MOST_BLOCKS:
                raise NoMatchError(f"The grid would have {blocks} blocks in {axis}, more than a launch may.")
