"""Edits that give a launch another grid or block."""

from __future__ import annotations

import re

from tree_sitter import Node

from warpwright.facts.aliasing import argument_texts
from warpwright.facts.model import Kernel, Launch
from warpwright.rewrites._code import called_name, names, squeezed
from warpwright.rewrites._threads import constant_of
from warpwright.syntax.edits import TextEdit
from warpwright.syntax.nodes import enclosing, launch_configuration, node_at, uncommented
from warpwright.syntax.source import Source


def block_divided(kernel: Kernel, launch: Launch, axis: str, by: int) -> TextEdit | str:
    """The edit that makes a launch's block smaller along an axis, where it stands: or the reason why it cannot be.

    What is read of the block elsewhere, as for the grid, stays.
    """
    configuration = _configuration(kernel, launch)
    if isinstance(configuration, str):
        return configuration
    source, block = kernel.source, configuration[1]
    extents = extents_of(source, block)
    if extents:
        place = "xyz".index(axis)
        if place < len(extents):
            return TextEdit(extents[place].start_byte, extents[place].end_byte, quotient(source, extents[place], by))
    text = source.node_text(block)
    if _is_shape(source, block):
        last = 2 if launch.block[2] != 1 else 1 if launch.block[1] != 1 else 0
        parts = [f"{text}.{a}{f' / {by}' if a == axis else ''}" for a in "xyz"[: last + 1]]
        return TextEdit(block.start_byte, block.end_byte, f"dim3({', '.join(parts)})")
    return f"The block of the launch at {launch.source} is not written as a dim3 whose extents could be changed."


def extents_of(source: Source, shape: Node) -> list[Node]:
    """The extents of `dim3(x, y)`, `{x, y}` and `dim3{x, y}` as written; empty for anything else."""
    match shape.type:
        case "call_expression" if called_name(shape, source) == "dim3":
            return uncommented(shape.child_by_field_name("arguments"))
        case "initializer_list":
            return uncommented(shape)
        case "compound_literal_expression":
            return uncommented(shape.child_by_field_name("value"))
    return []


def quotient(source: Source, node: Node, by: int) -> str:
    """An expression divided by a number: `TILE / 2`, `(a + b) / 2`; a literal as the number that it gives."""
    text = source.node_text(node)
    if re.fullmatch(r"[1-9]\d*", text) and int(text) % by == 0:
        return str(int(text) // by)
    plain = node.type in ("identifier", "call_expression", "parenthesized_expression", "field_expression")
    return f"{text} / {by}" if plain else f"({text}) / {by}"


def grid_divided(kernel: Kernel, launch: Launch, by: int) -> TextEdit | str:
    """The edit that divides a launch's grid in x, rounded up, where it stands; or the reason why it cannot be."""
    configuration = _configuration(kernel, launch)
    if isinstance(configuration, str):
        return configuration
    source, grid = kernel.source, configuration[0]
    extents = extents_of(source, grid)
    if not extents and _is_shape(source, grid):
        text = source.node_text(grid)
        rest = f", {text}.y, {text}.z" if launch.grid[1:] != (1, 1) else ""
        return TextEdit(grid.start_byte, grid.end_byte, f"dim3(({text}.x + {by - 1}) / {by}{rest})")
    x = extents[0] if extents else grid
    if re.fullmatch(r"[1-9]\d*", source.node_text(x)) and int(source.node_text(x)) % by == 0:
        return TextEdit(x.start_byte, x.end_byte, str(int(source.node_text(x)) // by))
    return TextEdit(x.start_byte, x.end_byte, f"({source.node_text(x)} + {by - 1}) / {by}")


def grid_divided_by(kernel: Kernel, launch: Launch, by: tuple[int, int]) -> list[TextEdit] | str:
    """The edits that divide a launch's grid in x and in y, rounded up, where it stands; or why it cannot be."""
    configuration = _configuration(kernel, launch)
    if isinstance(configuration, str):
        return configuration
    source, grid = kernel.source, configuration[0]
    extents = extents_of(source, grid)
    text = source.node_text(grid)
    if not extents and _is_shape(source, grid):
        parts = [_rounded_up(f"{text}.{axis}", n) for axis, n in zip("xy", by, strict=True)]
        rest = f", {text}.z" if launch.grid[2] != 1 else ""
        return [TextEdit(grid.start_byte, grid.end_byte, f"dim3({', '.join(parts)}{rest})")]
    if len(extents) < 2:
        return f"The grid of the launch at {launch.source} is not written as a dim3 whose extents could be changed."
    return [
        TextEdit(extent.start_byte, extent.end_byte, _rounded_up(source.node_text(extent), n))
        for extent, n in zip(extents, by, strict=False)
        if n > 1
    ]


def _rounded_up(text: str, by: int) -> str:
    if by == 1:
        return text
    if re.fullmatch(r"[1-9]\d*", text):
        return str(-(-int(text) // by))
    return f"({text} + {by - 1}) / {by}"


def covers(kernel: Kernel, launch: Launch, parameter: str, axis: int = 0) -> bool:
    """Whether the launch's grid in x (axis 0) or y is made of the argument for a parameter, divided by the block's
    extent and rounded up.

    Every index that is less than the argument is in the grid then. Read are `(n + 255) / 256` and its other spellings,
    through variables of the function that launches.
    """
    configuration = _configuration(kernel, launch)
    known_names = [p.name for p in kernel.parameters]
    if isinstance(configuration, str) or parameter not in known_names or launch.block[axis] is None:
        return False
    arguments = argument_texts(launch)
    if known_names.index(parameter) >= len(arguments):
        return False
    source = kernel.source
    counted = squeezed(arguments[known_names.index(parameter)])
    made = _made_of(source, configuration[0], axis)
    if made is None:
        return False
    written, between = squeezed(source.node_text(made)), source.text(made.end_byte, configuration[0].start_byte)
    match = next((m for form in _ROUNDED_UP if (m := re.fullmatch(form, written))), None)
    if match is None or squeezed(match["n"]) != counted:
        return False
    if any(_changes(word, between) for word in re.findall(r"[A-Za-z_]\w*", match["n"])):
        return False
    threads, found = launch.block[axis], match.groupdict()
    block = squeezed(source.node_text(configuration[1]))
    less = found.get("less")
    known = constant_of(source, found["b"])
    extents = extents_of(source, configuration[1])
    own = source.node_text(extents[axis]) if axis < len(extents) else block if axis == 0 else ""
    is_block = known == threads or found["b"] in (own, f"{block}.{'xyz'[axis]}")
    return is_block and threads is not None and (less is None or int(less) == threads - 1)


def launches_for_none(kernel: Kernel, launch: Launch, axis: int) -> bool:
    """Whether there is a block along an axis where there are no elements, as for `(n - 1) / 256 + 1`."""
    configuration = _configuration(kernel, launch)
    made = None if isinstance(configuration, str) else _made_of(kernel.source, configuration[0], axis)
    return (
        made is not None and re.fullmatch(rf"\(.+-1\)/{_WORD}\+1", squeezed(kernel.source.node_text(made))) is not None
    )


_WORD = r"[\w.]+"
_ROUNDED_UP = (
    rf"\((?P<n>.+)\+(?P<b>{_WORD})-1\)/(?P=b)",
    rf"\((?P<b>{_WORD})-1\+(?P<n>.+)\)/(?P=b)",
    rf"\((?P<n>.+)\+\((?P<b>{_WORD})-1\)\)/(?P=b)",
    rf"\((?P<n>.+)-1\)/(?P<b>{_WORD})\+1",
    rf"\((?P<n>.+)\+(?P<less>\d+)\)/(?P<b>{_WORD})",
)


def _changes(name: str, text: str) -> bool:
    """Whether a text may assign to a variable: `n = 3`, `n += 2`, `n++`, `f(&n)`."""
    after = rf"\b{name}\s*(?:(?:[-+*/%&|^]|<<|>>)?=(?!=)|\+\+|--)"
    return re.search(rf"{after}|(?:\+\+|--|&)\s*{name}\b", text) is not None


def _made_of(source: Source, grid: Node, axis: int) -> Node | None:
    """The expression of a grid's extent along an axis; of a variable, what the function that launches sets it to, once.
    None where that is not certain."""
    extents = extents_of(source, grid)
    function = enclosing(grid, "function_definition", "lambda_expression")
    if extents:
        return _made_of(source, extents[axis], 0) if axis < len(extents) else None
    if grid.type != "identifier" or function is None:
        return grid if axis == 0 else None
    found: list[Node] = []
    for use in names(function, source, source.node_text(grid)):
        parent = use.parent
        value = parent.child_by_field_name("value") if parent is not None else None
        if parent is None:
            continue
        if parent.type == "init_declarator" and parent.child_by_field_name("declarator") == use and value is not None:
            found.append(value)
        elif parent.type in ("assignment_expression", "update_expression", "pointer_expression", "declaration") or (
            parent.type == "field_expression" and parent.parent is not None and _is_target(parent)
        ):
            return None
    if len(found) != 1:
        return None
    if found[0].type not in ("argument_list", "initializer_list"):
        return _made_of(source, found[0], axis)
    inner = uncommented(found[0])
    return _made_of(source, inner[axis], 0) if axis < len(inner) else None


def _is_target(member: Node) -> bool:
    """Whether a member is assigned or stepped, as in `grid.x = 4`."""
    parent = member.parent
    kinds = ("assignment_expression", "update_expression")
    first = parent is not None and (parent.child_by_field_name("left") or parent.child_by_field_name("argument"))
    return parent is not None and parent.type in kinds and first == member


def _configuration(kernel: Kernel, launch: Launch) -> list[Node] | str:
    """Grid and block of a launch as they stand between `<<<` and `>>>`, or the reason why there are none."""
    source = kernel.source
    if launch.span is None or launch.span.source is not source:
        return f"{kernel.name} is launched at {launch.source}, in another file than the kernel's."
    node = node_at(source.root, launch.span.start, launch.span.end)
    call = launch_configuration(node) if node is not None else None
    found = uncommented(call)
    return found if len(found) >= 2 else f"The launch at {launch.source} is in a macro."


def _is_shape(source: Source, node: Node) -> bool:
    """Whether it is a variable of the type dim3."""
    name = re.escape(source.node_text(node))
    declared = re.search(rf"\bdim3\b[^;]*\b{name}\b", source.text(0, node.start_byte))
    return node.type == "identifier" and declared is not None
