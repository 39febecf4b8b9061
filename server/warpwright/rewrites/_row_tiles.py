"""A transpose between the threads of a one-dimensional block and a number of blocks: through a tile of several rows.

Example: with `channel = blockIdx.y`, a block that took 256 pixels of one channel takes those of eight, and stores for
each pixel the eight channels that lie side by side.
"""

from __future__ import annotations

from collections.abc import Iterator

from tree_sitter import Node

from warpwright.algebra.sums import coefficient
from warpwright.facts.memory import wavefronts
from warpwright.facts.model import SECTOR_BYTES, WARP, Kernel
from warpwright.rewrites._code import body, host_launches, squeezed
from warpwright.rewrites._formulas import same
from warpwright.rewrites._grids import arguments_of, grid_formula
from warpwright.rewrites._guards import Guard
from warpwright.rewrites._indent import end_with_comment
from warpwright.rewrites._indices import Indices, indices_of
from warpwright.rewrites._launch_shape import grid_divided_by
from warpwright.rewrites._layout import free_name, indent_unit, reindented, without_text
from warpwright.rewrites._locals import locals_of
from warpwright.rewrites._other_thread import NotRetracedError, OtherThread
from warpwright.syntax.edits import TextEdit, apply_edits
from warpwright.syntax.encoding import decoded
from warpwright.syntax.nodes import descendants, uncommented

WIDEST_PAD = 8
"""Elements behind each row of the tile that are tried."""


def rows_of(size: int) -> int:
    """Rows of the tile: as many as fill a sector with elements of so many bytes, sixteen at most."""
    return min(SECTOR_BYTES // size, 16)


def row_edits(
    kernel: Kernel, statement: Node, target: Node, element: Node, guard: Guard, threads: int, kind: str, size: int
) -> list[TextEdit]:
    """Edits of the kernel and its launches. `element` is the strided one, the target of the assignment or a load; it
    is of the type `kind`, of `size` bytes. Raises NotRetracedError with the reason against it."""
    source, block = kernel.source, body(kernel)
    if block is None:
        raise NotRetracedError(f"The body of {kernel.name} is not in this file.")
    indices = indices_of(kernel, (threads, 1, 1))
    axis = _axis(indices, element)
    rows = rows_of(size)
    if rows < 2:
        raise NotRetracedError(f"An element of {size} bytes fills a sector by itself.")
    count = _count(kernel, axis)
    edits: list[TextEdit] = []
    by = {"x": (rows, 1), "y": (1, rows), "z": (1, 1, rows)}[axis]
    for launch in host_launches(kernel):
        divided = grid_divided_by(kernel, launch, by)
        if isinstance(divided, str):
            raise NotRetracedError(divided)
        edits += [edit for edit in divided if edit not in edits]
    text = source.code_text()
    tile, row, place = (free_name(text, name) for name in ("tile", "row", "e"))
    stores = element == target
    of_block = f"blockIdx.{axis}"
    start = next((s for s in uncommented(block) if _names(kernel, s, of_block)), None)
    if start is None or start == statement:
        raise NotRetracedError(f"No variable of {kernel.name} holds {of_block}.")
    alone = {"threadIdx.y": "threadIdx.y", "threadIdx.z": "threadIdx.z"}  # 0
    axes = {**alone, "threadIdx.x": f"{place} / {rows}", of_block: f"({of_block} * {rows} + {place} % {rows})"}
    other = OtherThread(kernel, axes, "_out" if stores else "_in", start.start_byte)
    tests = [f"{other.text(c.left)} {c.operator} {other.text(c.right)}" for c in guard.conditions]
    if not _is_tested(kernel, guard, of_block, count):
        tests.insert(0, f"{of_block} * {rows} + {place} % {rows} < {count}")
    index = element.child_by_field_name("indices")
    moved = other.text(element.child_by_field_name("argument") or element) + (other.text(index) if index else "")
    held = f"{tile}[{place} % {rows}][{place} / {rows}]"
    unit, first = indent_unit(source, block), block.named_children[0]
    indent = source.line_indent(first.start_byte)
    theirs = [
        "#pragma unroll",
        f"for (int {row} = 0; {row} < {rows}; {row}++) {{",
        f"{unit}const unsigned int {place} = {row} * {threads} + threadIdx.x;",
        *(unit + line for line in other.lines.values()),
        f"{unit}if ({' && '.join(tests)})",
        f"{2 * unit}{f'{moved} = {held};' if stores else f'{held} = {moved};'}",
        "}",
    ]
    pad = _pad(rows, threads, size)
    declared = f"__shared__ {kind} {tile}[{rows}][{f'{threads} + {pad}' if pad else threads}];\n{indent}"
    last = guard.around or statement
    own = _own_loop(kernel, block, start, last, statement, guard, of_block, rows, count, row,
                    {element: f"{tile}[{row}][threadIdx.x]"})  # fmt: skip
    barrier = "__syncthreads();"
    end = end_with_comment(source, last.end_byte)
    if stores:
        whole = own + "".join(f"\n{indent}{line}" for line in (barrier, *theirs))
    else:
        whole = "".join(f"{line}\n{indent}" for line in (*theirs, barrier)) + own
    for leave in guard.early:
        if leave.start_byte < start.start_byte:
            edits.append(without_text(source, leave.start_byte, end_with_comment(source, leave.end_byte)))
    edits.append(TextEdit(first.start_byte, first.start_byte, declared))
    edits.append(TextEdit(start.start_byte, end, whole))
    return edits


def _axis(indices: Indices, element: Node) -> str:
    """The axis of the grid along which the strided element's neighbours lie: the index grows by 1 with it."""
    index = next(iter(uncommented(element.child_by_field_name("indices"))), None)
    value = indices.read(index)
    for axis in "xyz":
        if value is not None and coefficient(value, f"blockIdx.{axis}") == 1:
            return axis
    text = indices.kernel.source.node_text(element)
    raise NotRetracedError(f"The neighbours of `{text}` are not those of the next block in x, y or z.")


def _count(kernel: Kernel, axis: str) -> str:
    """The parameter that says how many blocks there are along an axis, at every launch."""
    source, launches, block = kernel.source, host_launches(kernel), body(kernel)
    members = descendants(block, "field_expression") if block is not None else ()
    if any(squeezed(source.node_code(n)) == f"gridDim.{axis}" for n in members):
        raise NotRetracedError(f"{kernel.name} uses gridDim.{axis}, which would have another value.")
    changed = locals_of(kernel).changed
    found = [p.name for p in kernel.parameters if not p.is_pointer and p.name not in changed]
    for launch in launches:
        grid, given = grid_formula(source, launch, "xyz".index(axis)), arguments_of(kernel, launch)
        found = [name for name in found if grid is not None and name in given and same(grid, given[name])]
    if not found:
        raise NotRetracedError(
            f"How many blocks a launch has in {axis} is not what {kernel.name} is handed as a number."
        )
    return found[0]


def _is_tested(kernel: Kernel, guard: Guard, of_block: str, count: str) -> bool:
    """Whether the guard keeps away the blocks behind the last."""
    source, indices = kernel.source, indices_of(kernel, None)
    return any(
        c.operator == "<" and source.node_text(c.right) == count and indices.read(c.left) == {(of_block,): 1}
        for c in guard.conditions
    )


def _names(kernel: Kernel, statement: Node, of_block: str) -> bool:
    nodes = descendants(statement, "field_expression")
    return any(squeezed(kernel.source.node_code(node)) == of_block for node in nodes)


def _own_loop(
    kernel: Kernel,
    block: Node,
    start: Node,
    last: Node,
    statement: Node,
    guard: Guard,
    of_block: str,
    rows: int,
    count: str,
    row: str,
    new: dict[Node, str],
) -> str:
    """The kernel's statements from the first that names the block's index, for each of its rows."""
    source = kernel.source
    edits = [TextEdit(node.start_byte, node.end_byte, text) for node, text in new.items()]
    for node in descendants(block, "field_expression"):
        inside = start.start_byte <= node.start_byte and not any(_holds(n, node) for n in new)
        if inside and squeezed(source.node_code(node)) == of_block:
            alone = node.parent is not None and node.parent.type == "init_declarator"
            number = f"{of_block} * {rows} + {row}"
            edits.append(TextEdit(node.start_byte, node.end_byte, number if alone else f"({number})"))
    early = [node for node in guard.early if node.start_byte >= start.start_byte]
    edits = [e for e in edits if not any(n.start_byte <= e.start < n.end_byte for n in early)]
    for node in early:
        following = node.next_named_sibling
        edits.append(TextEdit(node.start_byte, following.start_byte if following is not None else node.end_byte, ""))
    old, unit = source.line_indent(start.start_byte), indent_unit(source, block)
    if guard.early:
        tests = " && ".join(condition.text(source) for condition in guard.conditions)
        edits.append(TextEdit(statement.start_byte, statement.start_byte, f"if ({tests})\n{old}{unit}"))
    end = end_with_comment(source, last.end_byte)
    moved = [TextEdit(e.start - start.start_byte, e.end - start.start_byte, e.new_text) for e in _in_order(edits)]
    inner = decoded(apply_edits(source.data[start.start_byte : end], moved))
    head = f"#pragma unroll\n{old}for (int {row} = 0; {row} < {rows}; {row}++) {{\n{old}{unit}"
    bound = f"if ({of_block} * {rows} + {row} >= {count}) break;\n{old}{unit}"
    tested = _is_tested(kernel, guard, of_block, count)
    return f"{head}{'' if tested else bound}{reindented(inner, old, old + unit)}\n{old}}}"


def _holds(outer: Node, inner: Node) -> bool:
    return outer.start_byte <= inner.start_byte < outer.end_byte


def _in_order(edits: list[TextEdit]) -> Iterator[TextEdit]:
    return iter(sorted(edits, key=lambda edit: (edit.start, edit.end)))


def _pad(rows: int, threads: int, size: int) -> int:
    """The fewest elements behind each row of the tile with which its rows and columns lie in the most banks."""
    costs: list[int] = []
    for pad in range(WIDEST_PAD + 1):
        width = threads + pad
        along = [lane * size for lane in range(WARP)]
        across = [(lane % rows * width + lane // rows) * size for lane in range(WARP)]
        costs.append(wavefronts(along, size) + wavefronts(across, size))
    return costs.index(min(costs))
