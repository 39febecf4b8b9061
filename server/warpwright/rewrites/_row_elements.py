"""The work of a kernel on the elements of rows, and the arrays that it uses at an element's own place in a row."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tree_sitter import Node

from warpwright.algebra.sums import symbols
from warpwright.facts.model import Kernel, Launch
from warpwright.facts.types import builtin_type
from warpwright.rewrites._code import NoMatchError, body, names, squeezed
from warpwright.rewrites._element_arrays import ElementArray, row_array
from warpwright.rewrites._elementwise import Elements, declared_in, declares, initial_value, inner_statements
from warpwright.rewrites._guarded_work import GuardedWork, guarded_work, uses
from warpwright.rewrites._indices import Indices, Polynomial, combined, indices_of
from warpwright.rewrites._layout import line_of
from warpwright.rewrites._locals import locals_of
from warpwright.syntax.nodes import LOOPS, descendants, uncommented


@dataclass(frozen=True, slots=True)
class Row:
    """`tested` is the test of the column, `elements` the work on one element, in a `loop` over rows if there is one."""

    column: str
    tested: GuardedWork
    loop: Node | None
    elements: Elements


@dataclass(frozen=True, slots=True)
class Line:
    """An array at one place, which is the element's own in a row that may start anywhere: all uses of it there."""

    array: ElementArray
    index: Node


def row_work(kernel: Kernel, block: Node) -> Row:
    source, variables, statements = kernel.source, locals_of(kernel), uncommented(block)
    for declaration in statements:
        declarators = declaration.children_by_field_name("declarator") if declaration.type == "declaration" else []
        initial = initial_value(declaration) if len(declarators) == 1 else None
        target = declarators[0].child_by_field_name("declarator") if len(declarators) == 1 else None
        column = source.node_text(target) if target is not None else ""
        if initial is None or not declares(source, declaration, column) or not variables.is_fixed(column):
            continue
        if "threadIdx" not in source.node_code(initial):
            continue
        found = guarded_work(source, variables, column, [s for s in statements if s != declaration])
        if found is None or found.guard is None or found.bound is None:
            continue
        for before in found.before:
            plain = before.type == "declaration" and "__shared__" not in source.node_code(before)
            if not plain and not leaves(before):
                raise NoMatchError(f"Line {line_of(source, before)} stands before the work on a row, and may do more.")
        loop = found.work[0] if len(found.work) == 1 and found.work[0].type == "for_statement" else None
        work = inner_statements(loop, "body") if loop is not None else list(found.work)
        header = (
            [loop.child_by_field_name(f) for f in ("initializer", "condition", "update")] if loop is not None else []
        )
        if any(part is not None and uses(source, part, column) for part in header):
            raise NoMatchError(f"The loop at line {line_of(source, found.work[0])} goes over the elements of a row.")
        for inner in (n for s in work for n in descendants(s, *LOOPS)):
            raise NoMatchError(
                f"Nothing to gain: the time of an element goes into its loop at line {line_of(source, inner)}."
            )
        for jump in (n for s in work for n in descendants(s, "continue_statement", "break_statement")):
            raise NoMatchError(f"The work on an element may end early at line {line_of(source, jump)}.")
        if not work:
            raise NoMatchError(f"{kernel.name} does nothing to an element.")
        elements = Elements(
            column, declaration, initial, found.guard, found.bound, found.is_early, tuple(work), found.before
        )
        return Row(column, found, loop, elements)
    raise NoMatchError(f"{kernel.name} does not compare the thread's index in x with the length of a row.")


def leaves(statement: Node) -> bool:
    """`if (...) return;`"""
    inner = inner_statements(statement) if statement.type == "if_statement" else []
    return [s.type for s in inner] == ["return_statement"] and statement.child_by_field_name("alternative") is None


def same_in_row(kernel: Kernel, row: Row, launches: list[Launch]) -> set[str]:
    """Variables that are known to be the same for all threads of a row of blocks."""
    indices = indices_at(kernel, launches)
    values = {name: indices.named(name) for name in indices.variables.values if name != row.column}
    return {name for name, value in values.items() if value is not None and symbols(value) <= _known(indices, row)}


def _known(indices: Indices, row: Row) -> set[str]:
    """What is the same for all threads of a row of blocks: the block's index in y and z, sizes, and parameters."""
    variables = indices.variables
    pointers = {p.name for p in indices.kernel.parameters if p.is_pointer}
    fixed = {name for name in variables.parameters - pointers if variables.is_fixed(name)}
    own = {f"{each}.{axis}" for each in ("blockDim", "gridDim") for axis in "xyz"} | {"blockIdx.y", "blockIdx.z"}
    return fixed | own | _counted(indices, row)


def _counted(indices: Indices, row: Row) -> set[str]:
    """The variable of the loop over rows."""
    source, loop = indices.kernel.source, row.loop
    initializer = loop.child_by_field_name("initializer") if loop is not None else None
    return set(declared_in(source, initializer)) if initializer is not None else set()


def require_even(kernel: Kernel, row: Row, launches: list[Launch]) -> None:
    """All threads of a row of blocks come to the work, and go through the same rows. Raises NoMatchError where that is
    not certain."""
    source, loop, indices = kernel.source, row.loop, indices_at(kernel, launches)
    known = _known(indices, row)
    header = [loop.child_by_field_name(f) for f in ("initializer", "condition", "update")] if loop is not None else []
    tests = [statement.child_by_field_name("condition") for statement in row.tested.before if leaves(statement)]
    texts = [source.node_text(part) for part in (*header, *tests) if part is not None] + list(row.tested.others)
    for text in texts:
        if found := re.search(r"[\w>]\s*\(|\[|->|&(?!&)|(?<!\w)\s\*\w", text.removeprefix("(")):
            raise NoMatchError(f"`{found.group().strip()}` in `{text}` may give something else in another thread.")
        for word in re.findall(r"[A-Za-z_]\w*(?:\s*\.\s*\w+)?", text):
            value = indices.named(word) if "." not in word else None
            is_same = squeezed(word) in known or (value is not None and symbols(value) <= known)
            if not is_same and builtin_type(word) is None and word not in ("const", "auto"):
                raise NoMatchError(f"`{word}` in `{text}` may be something else in another thread of the row.")


def indices_at(kernel: Kernel, launches: list[Launch]) -> Indices:
    sizes = {launch.block[0] or 0 for launch in launches}
    return indices_of(kernel, (min(sizes), 1, 1) if len(sizes) == 1 else None)


def row_lines(kernel: Kernel, row: Row, launches: list[Launch]) -> list[Line]:
    """The arrays that are moved as vectors, by the place in the row at which they are used."""
    source, indices = kernel.source, indices_at(kernel, launches)
    found: list[Line] = []
    for parameter in kernel.parameters:
        if not parameter.is_pointer:
            continue
        places: dict[str, Node] = {}
        for use in (u for s in row.elements.work for u in names(s, source, parameter.name)):
            index = use.parent.child_by_field_name("indices") if use.parent is not None else None
            inner = uncommented(index)
            if len(inner) == 1 and row_start(indices, row, inner[0]) is not None:
                places.setdefault(squeezed(source.node_code(inner[0])), inner[0])
        arrays = [(row_array(kernel, row.elements, parameter, text), node) for text, node in places.items()]
        moved = [(array, node) for array, node in arrays if isinstance(array, ElementArray)]
        refused = next((array for array, _ in arrays if isinstance(array, str)), "")
        stores = any(array.is_stored for array, _ in moved)
        is_whole = sum(len(array.uses) for array, _ in moved) == _count(kernel, parameter.name)
        if not parameter.is_const and (refused or not is_whole or (stores and len(places) != 1)):
            raise NoMatchError(
                refused or f"`{parameter.name}` is used elsewhere than at the element's own place in its row."
            )
        if moved and not is_whole:
            _require_few(kernel, row, indices, parameter.name, [use for array, _ in moved for use in array.uses])
        found += [Line(array, node) for array, node in moved]
    if found and not any(row_start(indices, row, line.index) for line in found):
        raise NoMatchError(f"The elements of {kernel.name} lie in no rows.")
    if not any(line.array.is_stored for line in found):
        raise NoMatchError(f"Nothing to gain: {kernel.name} stores no elements of a row as they lie.")
    return found


def _require_few(kernel: Kernel, row: Row, indices: Indices, name: str, moved: list[Node]) -> None:
    """The other uses of an array that is moved are at one place for all threads of a row."""
    source, block = kernel.source, body(kernel)
    for use in names(block, source, name) if block is not None else ():
        index = use.parent.child_by_field_name("indices") if use.parent is not None else None
        inner = uncommented(index)
        place = indices.read(inner[0]) if len(inner) == 1 else None
        if use.parent not in moved and (place is None or not symbols(place) <= _known(indices, row)):
            text = source.node_text(use.parent or use)
            raise NoMatchError(f"Nothing to gain: `{text}` stays one by one, and its lanes would lie apart.")


def _count(kernel: Kernel, name: str) -> int:
    block = body(kernel)
    return sum(1 for _ in names(block, kernel.source, name)) if block is not None else 0


def row_start(indices: Indices, row: Row, index: Node) -> Polynomial | None:
    """Where the row starts of which an index is the element's own place; None for any other index."""
    own, place = indices.named(row.column), indices.read(index)
    if own is None or place is None or not uses(indices.kernel.source, index, row.column):
        return None
    start = combined("-", place, own)
    return start if start is not None and symbols(start) <= _known(indices, row) else None


def multiples(kernel: Kernel, row: Row, line: Line, launches: list[Launch], factor: int) -> tuple[str, ...] | None:
    """Parameters that have to be multiples of a vector's length, for the row to start at one. Raises NoMatchError for a
    stored array whose rows start elsewhere; None for a loaded one."""
    indices = indices_at(kernel, launches)
    start, wanted = row_start(indices, row, line.index), dict[str, None]()
    sizes = {p.name for p in kernel.parameters if not p.is_pointer and indices.variables.is_fixed(p.name)}
    for product, times in (start or {}).items():
        if times % factor == 0:
            continue
        known = sorted(name for name in product if name in sizes)
        if not known:
            if line.array.is_stored:
                text = kernel.source.node_text(line.index)
                raise NoMatchError(
                    f"Where the row of `{line.array.name}[{text}]` starts is not a multiple of {factor}."
                )
            return None
        bound = kernel.source.node_text(row.elements.bound)
        wanted[bound if bound in known else known[0]] = None
    return tuple(wanted)
