"""The grid of a launch as a formula, whether it covers a kernel's data, and its text with another extent."""

from __future__ import annotations

import re

from tree_sitter import Node

from warpwright.algebra.trials import Values, holds
from warpwright.cuda.functions import called_name
from warpwright.facts.host_scopes import read_definitions, written_names
from warpwright.facts.model import Basis, Kernel, Launch
from warpwright.rewrites._code import host_launches, is_enclosed, macro_texts, unseen_launch
from warpwright.rewrites._formulas import Formula, constant, formula, member_formula
from warpwright.rewrites._host_variables import written
from warpwright.syntax.edits import TextEdit
from warpwright.syntax.nodes import declared_name, descendants, enclosing, launch_configuration, node_at, uncommented
from warpwright.syntax.source import Source

_DECLARATIONS = ("declaration", "parameter_declaration", "field_declaration")
_OPERANDS = (
    "identifier", "number_literal", "call_expression", "parenthesized_expression", "field_expression",
    "qualified_identifier", "subscript_expression",
)  # fmt: skip


def launches_in_sight(kernel: Kernel) -> list[Launch] | str:
    """Every launch of a kernel, all with one-dimensional blocks of known size and one-dimensional grids, written in its
    file; or the reason why they are not."""
    launches = launches_along_x(kernel)
    if isinstance(launches, str):
        return launches
    wide = next((launch for launch in launches if launch.grid[1:] != (1, 1)), None)
    return launches if wide is None else f"The launch at {wide.source} has more than one dimension."


def launches_along_x(kernel: Kernel) -> list[Launch] | str:
    """As `launches_in_sight`, where grids may have extents in y and z."""
    launches = launches_of_flat_blocks(kernel)
    for launch in launches if not isinstance(launches, str) else ():
        if launch.basis is not Basis.EXACT:
            return f"The block of the launch at {launch.source} is not known from the text."
    return launches


def launches_of_flat_blocks(kernel: Kernel) -> list[Launch] | str:
    """As `launches_along_x`, where the size of a block may be a formula."""
    if reason := unseen_launch(kernel):
        return reason
    launches = host_launches(kernel)
    if not launches:
        return f"No launch of {kernel.name} is in this file, and its grid has to change with the kernel."
    for launch in launches:
        if launch.span is None or launch.span.source is not kernel.source or call_of(launch) is None:
            return f"The launch at {launch.source} is in a macro or in another file than the kernel."
        if launch.basis is Basis.EXACT and launch.block[0] is not None and launch.block[1:] != (1, 1):
            return f"The launch at {launch.source} has more than one dimension."
        if block_formula(kernel.source, launch) is None:
            return f"The block of the launch at {launch.source} is not known from the text."
    return launches


def call_of(launch: Launch) -> Node | None:
    """The launch's call in the text; None where it is in a macro."""
    span = launch.span
    node = node_at(span.source.root, span.start, span.end) if span is not None else None
    while node is not None and launch_configuration(node) is None:
        node = next(iter(descendants(node, "call_expression")), None) if node.type != "call_expression" else None
    return node


def extent(source: Source, launch: Launch, axis: int = 0, place: int = 0) -> tuple[Node, str] | None:
    """What is written for the grid's extent in x, y or z, and the text that names it: `grid.x` where `grid` is a dim3;
    at place 1 for the block's. None where neither a number nor a dim3 is written, or it says nothing of that axis."""
    call = call_of(launch)
    configuration = launch_configuration(call) if call is not None else None
    written = uncommented(configuration)
    if len(written) <= place:
        return None
    value = written[place]
    arguments: Node | None = None
    if value.type == "call_expression" and called_name(value, source) == "dim3":
        arguments = value.child_by_field_name("arguments")
    elif value.type == "compound_literal_expression":
        arguments = value.child_by_field_name("value")
    elif value.type == "initializer_list":
        arguments = value
    if arguments is not None:
        inner = uncommented(arguments)
        return (inner[axis], source.node_text(inner[axis])) if axis < len(inner) else None
    text = source.node_text(value)
    if value.type == "identifier" and _dim3_value(source, value, axis) is not None:
        return value, f"{text}.{'xyz'[axis]}"
    return (value, text) if axis == 0 else None


def grid_formula(source: Source, launch: Launch, axis: int = 0) -> Formula | None:
    """The number of blocks in x, y or z; None where the text does not say how it is made."""
    return _extent_formula(source, extent(source, launch, axis), _block_size(source, launch))


def block_formula(source: Source, launch: Launch) -> Formula | None:
    """The number of threads in a block of one dimension; None where the text does not say how it is made, or leaves
    other dimensions open."""
    if launch.basis is Basis.EXACT and launch.block[0] is not None:
        return constant(launch.block[0]) if launch.block[1:] == (1, 1) else None
    call = call_of(launch)
    shapes = uncommented(launch_configuration(call)) if call is not None else []
    if len(shapes) < 2 or (is_shape(source, shapes[1]) and _dim3_value(source, shapes[1], 0) is None):
        return None
    others = [extent(source, launch, axis, 1) for axis in (1, 2)]
    if any(other is not None and source.node_text(other[0]) != "1" for other in others):
        return None
    return _extent_formula(source, extent(source, launch, 0, 1), {})


def _extent_formula(source: Source, written: tuple[Node, str] | None, bound: dict[str, Formula]) -> Formula | None:
    if written is None:
        return None
    node, text = written
    variable = node.child_by_field_name("argument") if node.type == "field_expression" else None
    member = re.fullmatch(r"\w+\.([xyz])", text)
    if variable is None and text == source.node_text(node):
        return formula(source, node, bound)
    value = _dim3_value(source, variable or node, "xyz".index(member[1])) if member else None  # of type dim3
    return formula(source, value or node, bound) if value is not None or variable else None


def written_extent(source: Source, launch: Launch, axis: int = 0) -> Node | None:
    """The expression that a grid's extent is set to, in the launch or where its dim3 is; None where it is not plain."""
    written = extent(source, launch, axis)
    if written is None:
        return None
    node, text = written
    return node if text == source.node_text(node) else _dim3_value(source, node, axis)


def _block_size(source: Source, launch: Launch) -> dict[str, Formula]:
    """What `block.x` is in `dim3 block(256); ... <<<(n + block.x - 1) / block.x, block>>>`, and where the block is
    `dim3(block.y, block.x)`; and `threads` in `<<<(n + threads - 1) / threads, threads>>>` where callers say it."""
    call = call_of(launch)
    shapes = uncommented(launch_configuration(call)) if call is not None and launch.basis is Basis.EXACT else []
    block = shapes[1] if len(shapes) > 1 else None
    if block is not None and block.type == "call_expression" and called_name(block, source) == "dim3":
        given = zip(uncommented(block.child_by_field_name("arguments")), launch.block, strict=False)
        members = {source.node_text(n): size for n, size in given if n.type == "field_expression"}
        return {text: constant(size) for text, size in members.items() if size is not None}
    if block is None or block.type != "identifier":
        return {}
    name = source.node_text(block)
    if _dim3_value(source, block, 0) is None:
        threads = launch.block[0] if _keeps(source, block) else None
        return {name: constant(threads)} if threads is not None else {}
    sizes = zip("xyz", launch.block, strict=True)
    return {f"{name}.{axis}": constant(threads) for axis, threads in sizes if threads is not None}


def _keeps(source: Source, variable: Node) -> bool:
    """Whether a number has one value in the function that names it: no more than one place sets it."""
    function, name = enclosing(variable, "function_definition"), source.node_text(variable)
    if function is None or _is_dim3(source, function, name):
        return False
    set_at = [d for d in read_definitions(source, function).get(name, []) if d.kind != "declare"]
    return len(set_at) <= 1 and not any(source.node_text(n) == name for n in written(function))


def _dim3_value(source: Source, variable: Node, axis: int) -> Node | None:
    """An extent in `dim3 grid(n, m)`, `dim3 grid = dim3(n)`, `dim3 grid{n}`, `grid = dim3(n)` and `grid.x = n`; None
    where it is set otherwise, more than once, or as an `if` decides."""
    function, name = enclosing(variable, "function_definition"), source.node_text(variable)
    found = read_definitions(source, function) if function is not None else {}
    if function is None or not _is_dim3(source, function, name):
        return None
    members = [d for a in "xyz" for d in found.get(f"{name}.{a}", [])]
    whole = [d for d in found.get(name, []) if d.kind != "declare"]
    written = sum(source.node_text(n) == name for n in written_names(function))
    assigned = [d for d in whole if d.value is not None and _is_assigned(d.value)]
    if len(whole) > 1 or written != len(members) + len(assigned) or any(d.sides for d in (*members, *assigned)):
        return None
    if any(d.start > variable.start_byte for d in (*whole, *members)):
        return None
    here = found.get(f"{name}.{'xyz'[axis]}", [])
    if here:
        plain = len(here) == 1 and here[0].kind == "=" and all(d.start < here[0].start for d in whole)
        return here[0].value if plain else None
    value = whole[0].value if whole else None
    if value is None:
        return None
    if value.type == "call_expression":
        value = value.child_by_field_name("arguments") if called_name(value, source) == "dim3" else None
    listed = uncommented(value)
    if whole[0].kind != "construct" and not listed:
        return None
    return listed[axis] if axis < len(listed) else None


def _is_assigned(value: Node) -> bool:
    return value.parent is not None and value.parent.type == "assignment_expression"


def _is_dim3(source: Source, function: Node, name: str) -> bool:
    for declaration in descendants(function, "declaration"):
        kind = declaration.child_by_field_name("type")
        if kind is not None and source.node_text(kind) == "dim3":
            for declarator in declaration.children_by_field_name("declarator"):
                if source.node_text(declarator.child_by_field_name("declarator") or declarator) == name:
                    return True
    return False


def arguments_of(kernel: Kernel, launch: Launch) -> dict[str, Formula]:
    """What a launch hands to the kernel's parameters, by their names; those that are no formulas are left out."""
    call = call_of(launch)
    given = uncommented(call.child_by_field_name("arguments")) if call is not None else []
    formulas = {
        p.name: formula(kernel.source, argument)
        for p, argument in zip(kernel.parameters, given, strict=False)
        if not p.is_pointer
    }
    formulas |= _members(kernel, given)
    return {name: value for name, value in formulas.items() if value is not None}


def _members(kernel: Kernel, given: list[Node]) -> dict[str, Formula | None]:
    """`p.n` for each member that the kernel reads of a structure that a launch hands over by its name."""
    places = {p.name: argument for p, argument in zip(kernel.parameters, given, strict=False) if not p.is_pointer}
    source, found = kernel.source, dict[str, Formula | None]()
    for member in descendants(kernel.node, "field_expression") if kernel.node is not None else ():
        owner, field = member.child_by_field_name("argument"), member.child_by_field_name("field")
        argument = places.get(source.node_text(owner)) if owner is not None else None
        if owner is None or field is None or argument is None or argument.type != "identifier":
            continue
        text = source.node_code(member)
        if text == f"{source.node_text(owner)}.{source.node_text(field)}" and text not in found:
            found[text] = member_formula(source, argument, source.node_text(field))
    return found


def uncovered(kernel: Kernel, launch: Launch, bound: Node) -> str:
    """Why a launch is not known to have as many threads as a bound in the kernel, or more; empty where it is."""
    source, text = kernel.source, kernel.source.node_text(bound)
    grid, block = grid_formula(source, launch), _along_x(source, launch)
    given, inside = arguments_of(kernel, launch), formula(source, bound)
    elements = formula(source, bound, given) if inside is not None and inside.symbols <= given.keys() else None
    if grid is None or elements is None or block is None:
        return f"Whether the grid at {launch.source} covers {text} cannot be told from the text."

    def covers(values: Values) -> bool | None:
        blocks, threads, wanted = grid.value(values), block.value(values), elements.value(values)
        return None if blocks is None or wanted is None or threads is None else int(blocks) * threads >= wanted

    if not holds(covers, grid.symbols | elements.symbols | block.symbols):
        return f"The grid at {launch.source} is not seen to cover {text}, so other elements would be reached than now."
    return ""


def _along_x(source: Source, launch: Launch) -> Formula | None:
    """The number of threads of a block in x, whatever there is in y and z."""
    known = launch.basis is Basis.EXACT and launch.block[0] is not None
    return constant(launch.block[0] or 0) if known else block_formula(source, launch)


def divided(source: Source, launch: Launch, factor: int) -> TextEdit | str:
    """The launch with a grid of so many times fewer blocks, rounded up; or the reason why it cannot be written."""
    written = extent(source, launch)
    if written is None:
        return f"The grid of the launch at {launch.source} is not written as a number or a dim3."
    node, text = written
    return TextEdit(node.start_byte, node.end_byte, divided_text(source, node, text, factor))


def divided_along(source: Source, launch: Launch, axis: str, by: int) -> TextEdit | str:
    """The launch with so many times fewer blocks in x, y or z, and as many as before in the others."""
    written = extent(source, launch, "xyz".index(axis))
    if written is None:
        return f"The grid of the launch at {launch.source} is not written as a number or a dim3."
    node, text = written
    new = divided_text(source, node, text, by)
    if text != source.node_text(node):  # a variable of type dim3
        name, last = (
            source.node_text(node),
            3 if axis == "z" or launch.grid[2] != 1 else 2 if axis == "y" or launch.grid[1] != 1 else 1,
        )
        new = f"dim3({', '.join(new if a == axis else f'{name}.{a}' for a in 'xyz'[:last])})"
    return TextEdit(node.start_byte, node.end_byte, new)


def divided_text(source: Source, node: Node, text: str, by: int) -> str:
    """A number of blocks divided, rounded up: `(grid.x + 3) / 4`; a literal as the number that it gives.

    `text` is what is written for `node`, or a member of it.
    """
    if by == 1:
        return text
    if re.fullmatch(r"[1-9]\d*", text):
        return str(-(-int(text) // by))
    return f"({as_operand(source, node, text)} + {by - 1}) / {by}"


def as_operand(source: Source, node: Node, text: str) -> str:
    """An expression that something may be added to: in parentheses where its own operators, or those of a macro in it,
    would be taken apart."""
    plain = node.type in _OPERANDS or (node.type == "binary_expression" and _operator(node) in ("*", "/", "+", "-"))
    macros = macro_texts(source)
    loose = any(
        not is_enclosed(macro) and not re.fullmatch(r"[\w.]*", macro)
        for name in descendants(node, "identifier")
        for macro in map(str.strip, macros.get(source.node_text(name), ()))
    )
    return text if plain and not loose else f"({text})"


def capped(source: Source, launch: Launch, most: int) -> TextEdit | str:
    """The launch with a grid of no more than so many blocks; or the reason why it cannot be written."""
    written = extent(source, launch)
    if written is None:
        return f"The grid of the launch at {launch.source} is not written as a number or a dim3."
    node, text = written
    given = as_operand(source, node, text)
    chosen = f"{given} < {most} ? {given} : {most}"
    alone = node.parent is not None and node.parent.type == "argument_list"
    return TextEdit(node.start_byte, node.end_byte, chosen if alone else f"({chosen})")


def _operator(node: Node) -> str:
    operator = node.child_by_field_name("operator")
    return operator.type if operator is not None else ""


def is_shape(source: Source, node: Node) -> bool:
    """Whether it is a variable of the type dim3: as the function that names it declares it, or else the file."""
    if node.type != "identifier":
        return False
    name, function = source.node_text(node), enclosing(node, "function_definition")
    for scope in (function, source.root):
        kinds: list[str] = []
        for declaration in descendants(scope, *_DECLARATIONS) if scope is not None else ():
            for declarator in declaration.children_by_field_name("declarator"):
                local = enclosing(declaration, "function_definition") not in (None, function)
                if declared_name(source, declarator) == name and not local:
                    kind, value = declaration.child_by_field_name("type"), declarator.child_by_field_name("value")
                    written = source.node_text(kind) if kind is not None else ""
                    made = called_name(value, source) if value is not None and value.type == "call_expression" else ""
                    kinds.append(made if written == "auto" else written)
        if kinds:
            return set(kinds) == {"dim3"}
    return False
