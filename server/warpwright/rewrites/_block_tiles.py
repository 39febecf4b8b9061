"""The text of a matrix product that a block computes in tiles, each thread several elements in registers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from tree_sitter import Node

from warpwright.algebra.sums import coefficient
from warpwright.facts.types import builtin_type
from warpwright.rewrites._code import NoMatchError
from warpwright.rewrites._elements import Elements, Variable, element_text
from warpwright.rewrites._guards import Guard
from warpwright.rewrites._layout import free_name, indent_unit, reindented, with_comment, without_text
from warpwright.rewrites._loops import pragmas_before
from warpwright.rewrites._products import Load, Product
from warpwright.rewrites._tiles import is_for, zero_of
from warpwright.syntax.edits import TextEdit, apply_edits
from warpwright.syntax.encoding import decoded
from warpwright.syntax.nodes import descendants

_ZERO = re.compile(r"0+(?:\.0*)?[fF]?|\.0+[fF]?")


@dataclass(frozen=True, slots=True)
class Plan:
    """A block of `block` threads, `fewer` times fewer in y, computes `extents` elements in x and in y. `lanes`
    consecutive threads take consecutive elements along the axis `fast`; the tiles are `depth` steps deep."""

    block: tuple[int, int]
    fewer: int
    extents: Mapping[str, int]
    fast: str
    lanes: int
    depth: int

    @property
    def threads(self) -> int:
        return self.block[0] * self.block[1] // self.fewer

    @property
    def columns(self) -> int:
        """Elements of a thread along the fast axis, `lanes` apart."""
        return self.extents[self.fast] // self.lanes

    @property
    def rows(self) -> int:
        """Elements of a thread across, next to each other."""
        return self.extents["xy"[self.fast == "x"]] * self.lanes // self.threads


@dataclass(frozen=True, slots=True)
class _Names:
    """The names that the new text has beside the user's."""

    thread: str
    first: str
    lane: str
    sums: str
    row: str
    column: str
    step: str
    at: str
    start: str
    tiles: tuple[str, str]
    parts: tuple[str, str]


def product_text(block: Node, product: Product, guard: Guard, elements: Elements, plan: Plan) -> TextEdit:
    """The kernel's statements in place of those that compute one element. Raises NoMatchError."""
    source = elements.indices.kernel.source
    names = _names(source.code_text(), product)
    outer = [n for n in block.named_children if n.type != "comment"]
    indent, unit = source.line_indent(outer[0].start_byte), indent_unit(source, block)
    per_element = [n for n in outer if n not in elements.hoisted]
    kind = elements.indices.variables.types[product.sum]
    lines = [*_tiles(product, plan, names)]
    lines += [source.text(*with_comment(source, statement)) for statement in elements.hoisted]
    lines += [
        f"const int {names.thread} = threadIdx.y * blockDim.x + threadIdx.x;",
        f"const int {names.first} = {names.thread} / {plan.lanes} * {plan.rows};",
        f"const int {names.lane} = {names.thread} % {plan.lanes};",
        f"{kind} {names.sums}[{plan.rows}][{plan.columns}] = {{}};",
    ]
    start = _initial(product, guard, elements, per_element, names)
    values = _element_values(elements, plan, names)
    if start is not None:
        text = element_text(elements, per_element, values, start)
        lines += _for_each(plan, names, unit, reindented(text, indent, ""))
    lines += _sum_loop(product, guard, elements, plan, names, unit)
    loop_start = next((p.start_byte for p in pragmas_before(source, product.loop.node)), product.loop.node.start_byte)
    without_loop = without_text(source, loop_start, with_comment(source, product.loop.node)[1])
    values[product.sum] = f"{names.sums}[{names.row}][{names.column}]"
    text = element_text(elements, per_element, values, [without_loop])
    lines += _for_each(plan, names, unit, reindented(text, indent, ""))
    new = "\n".join(lines).replace("\n", f"\n{indent}")
    new = re.sub(r"[ \t]+$", "", new, flags=re.MULTILINE)
    return TextEdit(outer[0].start_byte, with_comment(source, outer[-1])[1], new)


def _names(text: str, product: Product) -> _Names:
    taken = text

    def free(wanted: str) -> str:
        nonlocal taken
        name = free_name(taken, wanted)
        taken += f" {name}"
        return name

    one, other = product.loads
    return _Names(
        free("thread"), free("first"), free("lane"), free(f"{product.sum}s"), free("r"), free("c"), free("e"),
        free("at"), free(f"{product.loop.name}_start"), (free(f"{one.array}_tile"), free(f"{other.array}_tile")),
        (free(f"{one.array}_part"), free(f"{other.array}_part")),
    )  # fmt: skip


def _tiles(product: Product, plan: Plan, names: _Names) -> list[str]:
    return [
        f"__shared__ __align__(16) {load.element_type} {tile}[{plan.depth}]"
        f"[{plan.extents[load.axis]}{_padding(product, load)}];"
        for load, tile in zip(product.loads, names.tiles, strict=True)
    ]


def _padding(product: Product, load: Load) -> str:
    """Of a tile that is filled across its rows: lanes would store to one bank; 4 elements keep wide loads aligned."""
    return " + 4" if _runs_along_sum(product, load) else ""


def _runs_along_sum(product: Product, load: Load) -> bool:
    return coefficient(load.value, product.loop.name) == 1


def _initial(
    product: Product, guard: Guard, elements: Elements, statements: list[Node], names: _Names
) -> list[TextEdit] | None:
    """What makes of the text of an element the one that sets its sum; None where all start at 0."""
    source = elements.indices.kernel.source
    value = elements.declared(product.sum).value
    if value is None:
        raise NoMatchError(f"`{product.sum}` has no initial value where it is declared.")
    for variable in elements.each:
        uses = [source.node_text(n) for n in descendants(variable.declarator, "identifier")]
        if variable.name != product.sum and product.sum in uses:
            raise NoMatchError(f"`{variable.name}` is made of what `{product.sum}` starts at.")
    if _ZERO.fullmatch(source.node_code(value)):
        return None
    loop = product.loop.node
    start = next((p.start_byte for p in pragmas_before(source, loop)), loop.start_byte)
    ends = f"\n{source.line_indent(guard.around.start_byte)}}}" if guard.around is not None else ""
    text = f"{names.sums}[{names.row}][{names.column}] = {product.sum};{ends}"
    comments = [n for s in statements for n in descendants(s, "comment")]
    return [
        *(without_text(source, n.start_byte, n.end_byte) for n in comments if n.start_byte < start),
        TextEdit(start, with_comment(source, statements[-1])[1], text),
    ]


def _element_values(elements: Elements, plan: Plan, names: _Names) -> dict[str, str]:
    found: dict[str, str] = {}
    for axis, name in elements.own.items():
        fast = f"{names.lane} + {names.column} * {plan.lanes}"
        place = fast if axis == plan.fast else f"{names.first} + {names.row}"
        found[name] = _index(elements, name, axis, plan, place)
    return found


def _index(elements: Elements, name: str, axis: str, plan: Plan, place: str) -> str:
    """The index of an element at a place in the block's tile; in 64 bits where the user's is."""
    kind = elements.indices.variables.types[name]
    known = builtin_type(kind)
    wide = known is not None and known.size == 8
    number = f"blockIdx.{axis}"
    number = number if not wide else f"({kind}){number}"
    return f"{number} * {plan.extents[axis]} + {place}"


def _for_each(plan: Plan, names: _Names, unit: str, text: str) -> list[str]:
    """A text once for each element of a thread."""
    return [
        "#pragma unroll",
        f"for (int {names.row} = 0; {names.row} < {plan.rows}; {names.row}++) {{",
        f"{unit}#pragma unroll",
        f"{unit}for (int {names.column} = 0; {names.column} < {plan.columns}; {names.column}++) {{",
        *(f"{unit}{unit}{line}" for line in text.split("\n")),
        f"{unit}}}",
        "}",
    ]


def _sum_loop(product: Product, guard: Guard, elements: Elements, plan: Plan, names: _Names, unit: str) -> list[str]:
    """The loop over tiles: they are filled, then read into registers and multiplied step by step."""
    source, loop = elements.indices.kernel.source, product.loop
    bound = source.node_text(loop.bound)
    if late := [v.name for v in elements.each if re.search(rf"\b{re.escape(v.name)}\b", bound)]:
        raise NoMatchError(f"The loop's bound depends on `{late[0]}`, which is known for an element alone.")
    lines = [f"for ({loop.type} {names.start} = 0; {names.start} < {bound}; {names.start} += {plan.depth}) {{"]
    for load, tile in zip(product.loads, names.tiles, strict=True):
        lines += [f"{unit}{line}" for line in _fill(product, load, tile, guard, elements, plan, names, unit)]
    lines += [f"{unit}__syncthreads();", *(f"{unit}{line}" for line in _multiply(product, elements, plan, names, unit))]
    return [*lines, f"{unit}__syncthreads();", "}"]


def _fill(
    product: Product, load: Load, tile: str, guard: Guard, elements: Elements, plan: Plan, names: _Names, unit: str
) -> list[str]:
    source, loop, indices = elements.indices.kernel.source, product.loop, elements.indices
    extent = plan.extents[load.axis]
    along_sum = _runs_along_sum(product, load)
    width = plan.depth if along_sum else extent
    step, own_place = f"{names.at} % {width}", f"{names.at} / {width}"
    if not along_sum:
        step, own_place = own_place, step
    own = elements.own[load.axis]
    tests = [c.text(source) for c in guard.conditions if is_for(indices, c, load.axis)]
    bound = indices.number(loop.bound)
    if bound is None or bound % plan.depth:
        tests.append(f"{loop.name} < {source.node_text(loop.bound)}")
    value = source.node_text(load.node)
    needed = elements.needed([value, *tests], (own,))
    if other := [v.name for v in needed if v.name in elements.own.values()]:
        raise NoMatchError(f"`{value}` depends on `{other[0]}`, which the other factor's axis picks.")
    if tests:
        value = f"{' && '.join(dict.fromkeys(tests))} ? {value} : {zero_of(indices.kernel, load)}"
    return [
        "#pragma unroll",
        f"for (int {names.step} = 0; {names.step} < {plan.depth * extent // plan.threads}; {names.step}++) {{",
        f"{unit}const int {names.at} = {names.thread} + {names.step} * {plan.threads};",
        f"{unit}const {loop.type} {loop.name} = {names.start} + {step};",
        f"{unit}{_declared(elements, elements.declared(own))} = {_index(elements, own, load.axis, plan, own_place)};",
        *(f"{unit}{_declared(elements, v)} = {source.node_text(v.value)};" for v in needed if v.value is not None),
        f"{unit}{tile}[{step}][{own_place}] = {value};",
        "}",
    ]


def _declared(elements: Elements, variable: Variable) -> str:
    """A variable's declaration without its value: `const int row`."""
    source = elements.indices.kernel.source
    first = variable.statement.children_by_field_name("declarator")[0]
    inner = variable.declarator.child_by_field_name("declarator") or variable.declarator
    return f"{source.text(variable.statement.start_byte, first.start_byte)}{source.node_text(inner)}"


def _multiply(product: Product, elements: Elements, plan: Plan, names: _Names, unit: str) -> list[str]:
    source, name = elements.indices.kernel.source, product.loop.name
    lines: list[str] = []
    edits: list[TextEdit] = []
    start = product.statement.start_byte
    for load, tile, part in zip(product.loads, names.tiles, names.parts, strict=True):
        fast = load.axis == plan.fast
        counter, count = (names.column, plan.columns) if fast else (names.row, plan.rows)
        place = f"{names.lane} + {counter} * {plan.lanes}" if fast else f"{names.first} + {counter}"
        lines += [
            f"{load.element_type} {part}[{count}];",
            "#pragma unroll",
            f"for (int {counter} = 0; {counter} < {count}; {counter}++) {part}[{counter}] = {tile}[{name}][{place}];",
        ]
        edits += [TextEdit(n.start_byte - start, n.end_byte - start, f"{part}[{counter}]") for n in load.nodes]
    for use in descendants(product.statement, "identifier"):
        if source.node_text(use) == product.sum:
            whole = f"{names.sums}[{names.row}][{names.column}]"
            edits.append(TextEdit(use.start_byte - start, use.end_byte - start, whole))
    data = source.data[start : product.statement.end_byte]
    statement = decoded(apply_edits(data, edits))
    first, *more = reindented(statement, source.line_indent(start), "").split("\n")
    lines += [
        "#pragma unroll",
        f"for (int {names.row} = 0; {names.row} < {plan.rows}; {names.row}++) {{",
        f"{unit}#pragma unroll",
        f"{unit}for (int {names.column} = 0; {names.column} < {plan.columns}; {names.column}++) {first}",
        *(f"{unit}{line}" for line in more),
        "}",
    ]
    head = f"for (int {name} = 0; {name} < {plan.depth}; {name}++) {{"
    return ["#pragma unroll", head, *(f"{unit}{line}" for line in lines), "}"]
