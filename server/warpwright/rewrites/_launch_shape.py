"""Edits that give a launch another grid or block."""

from __future__ import annotations

import re

from tree_sitter import Node

from warpwright.algebra.trials import Values, holds
from warpwright.cuda.functions import called_name
from warpwright.facts.model import Kernel, Launch
from warpwright.rewrites._grids import arguments_of, as_operand, divided_text, grid_formula, is_shape
from warpwright.rewrites._threads import times
from warpwright.syntax.edits import TextEdit
from warpwright.syntax.nodes import launch_configuration, node_at, uncommented
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
            return TextEdit(extents[place].start_byte, extents[place].end_byte, _divided(source, extents[place], by))
    text = source.node_text(block)
    if is_shape(source, block):
        last = 2 if launch.block[2] != 1 else 1 if launch.block[1] != 1 else 0
        parts = [f"{text}.{a}{f' / {by}' if a == axis else ''}" for a in "xyz"[: last + 1]]
        return TextEdit(block.start_byte, block.end_byte, f"dim3({', '.join(parts)})")
    return f"The block of the launch at {launch.source} is not written as a dim3 whose extents could be changed."


def block_made_smaller(kernel: Kernel, launch: Launch, axis: str, by: int) -> TextEdit | str:
    """As `block_divided`, where the block may also be a number along x, of a text that can be divided."""
    configuration = _configuration(kernel, launch)
    if isinstance(configuration, str):
        return configuration
    source, block = kernel.source, configuration[1]
    if axis == "x" and not extents_of(source, block) and not is_shape(source, block):
        return TextEdit(block.start_byte, block.end_byte, _divided(source, block, by))
    return block_divided(kernel, launch, axis, by)


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


def _divided(source: Source, node: Node, by: int) -> str:
    """An expression divided by a number: `TILE / 2`, `(a + b) / 2`; a literal as the number that it gives."""
    text = source.node_text(node)
    if re.fullmatch(r"[1-9]\d*", text) and int(text) % by == 0:
        return str(int(text) // by)
    plain = node.type != "binary_expression" and as_operand(source, node, text) == text
    return f"{text} / {by}" if plain else f"({text}) / {by}"


def grid_divided(kernel: Kernel, launch: Launch, by: int) -> TextEdit | str:
    """The edit that divides a launch's grid in x, rounded up, where it stands; or the reason why it cannot be."""
    configuration = _configuration(kernel, launch)
    if isinstance(configuration, str):
        return configuration
    source, grid = kernel.source, configuration[0]
    extents = extents_of(source, grid)
    if not extents and is_shape(source, grid):
        text = source.node_text(grid)
        rest = f", {text}.y, {text}.z" if launch.grid[1:] != (1, 1) else ""
        return TextEdit(grid.start_byte, grid.end_byte, f"dim3(({text}.x + {by - 1}) / {by}{rest})")
    x = extents[0] if extents else grid
    return TextEdit(x.start_byte, x.end_byte, divided_text(source, x, source.node_text(x), by))


def grid_multiplied(kernel: Kernel, launch: Launch, by: int, axis: str) -> TextEdit | str:
    """The edit that gives a launch's grid so many times as many blocks along an axis, where it stands; or why it cannot
    be."""
    configuration = _configuration(kernel, launch)
    if isinstance(configuration, str):
        return configuration
    source, grid = kernel.source, configuration[0]
    extents = extents_of(source, grid)
    if not extents and is_shape(source, grid):
        text = source.node_text(grid)
        last = max(axis, *(a for a, n in zip("xyz", launch.grid, strict=True) if n != 1), "x")
        parts = [f"{text}.{a} * {by}" if a == axis else f"{text}.{a}" for a in "xyz" if a <= last]
        return TextEdit(grid.start_byte, grid.end_byte, f"dim3({', '.join(parts)})")
    place = "xyz".index(axis)
    if place >= len(extents or [grid]):
        return f"The grid of the launch at {launch.source} is not written as a dim3 with an extent in {axis}."
    node = extents[place] if extents else grid
    text = source.node_text(node)
    literal = re.fullmatch(r"[1-9]\d*", text)
    return TextEdit(node.start_byte, node.end_byte, str(int(text) * by) if literal else times(source, node, by))


def grid_divided_by(kernel: Kernel, launch: Launch, by: tuple[int, ...]) -> list[TextEdit] | str:
    """The edits that divide a launch's grid in x, y and, if `by` says it, z, rounded up, where it stands; or why it
    cannot be."""
    configuration = _configuration(kernel, launch)
    if isinstance(configuration, str):
        return configuration
    source, grid = kernel.source, configuration[0]
    extents = extents_of(source, grid)
    text = source.node_text(grid)
    if not extents and is_shape(source, grid):
        parts = [divided_text(source, grid, f"{text}.{axis}", n) for axis, n in zip("xyz", by, strict=False)]
        rest = f", {text}.z" if launch.grid[2] != 1 and len(by) < 3 else ""
        return [TextEdit(grid.start_byte, grid.end_byte, f"dim3({', '.join(parts)}{rest})")]
    if len(extents) < len(by):
        return f"The grid of the launch at {launch.source} is not written as a dim3 whose extents could be changed."
    return [
        TextEdit(extent.start_byte, extent.end_byte, divided_text(source, extent, source.node_text(extent), n))
        for extent, n in zip(extents, by, strict=False)
        if n > 1
    ]


def covers(kernel: Kernel, launch: Launch, parameter: str, axis: int = 0) -> bool:
    """Whether a launch is seen to have as many threads in x (axis 0) or y as the argument for a parameter, or more, and
    none for 0: every index that is less than the argument is in the grid then."""
    if isinstance(_configuration(kernel, launch), str):
        return False
    grid, threads = grid_formula(kernel.source, launch, axis), launch.block[axis]
    wanted = arguments_of(kernel, launch).get(parameter)
    if grid is None or wanted is None or threads is None:
        return False

    def enough(values: Values) -> bool | None:
        blocks, elements = grid.value(values), wanted.value(values)
        if blocks is None or elements is None:
            return None
        return int(blocks) * threads >= elements and (elements > 0 or blocks < 1)

    return holds(enough, grid.symbols | wanted.symbols)


def launches_for_none(kernel: Kernel, launch: Launch, axis: int) -> bool:
    """Whether there is a block along an axis where the sizes in its grid are 0, as for `(n - 1) / 256 + 1`."""
    if isinstance(_configuration(kernel, launch), str):
        return False
    grid = grid_formula(kernel.source, launch, axis)
    blocks = grid.value(dict.fromkeys(grid.symbols, 0)) if grid is not None and grid.symbols else None
    return blocks is not None and blocks >= 1


def _configuration(kernel: Kernel, launch: Launch) -> list[Node] | str:
    """Grid and block of a launch as they stand between `<<<` and `>>>`, or the reason why there are none."""
    source = kernel.source
    if launch.span is None or launch.span.source is not source:
        return f"{kernel.name} is launched at {launch.source}, in another file than the kernel's."
    node = node_at(source.root, launch.span.start, launch.span.end)
    call = launch_configuration(node) if node is not None else None
    found = uncommented(call)
    return found if len(found) >= 2 else f"The launch at {launch.source} is in a macro."
