"""Edits that give a launch another grid or block."""

from __future__ import annotations

import re

from tree_sitter import Node

from warpwright.facts.model import Kernel, Launch
from warpwright.rewrites._code import called_name
from warpwright.syntax.edits import TextEdit
from warpwright.syntax.nodes import launch_configuration, node_at, uncommented
from warpwright.syntax.source import Source


def block_divided(kernel: Kernel, launch: Launch, axis: str, by: int) -> TextEdit | str:
    """The edit that makes a launch's block smaller along an axis, where it stands: or the reason why it cannot be.

    What is read of the block elsewhere, as for the grid, stays.
    """
    source = kernel.source
    if launch.span is None or launch.span.source is not source:
        return f"{kernel.name} is launched at {launch.source}, in another file than the kernel's."
    node = node_at(source.root, launch.span.start, launch.span.end)
    configuration = uncommented(launch_configuration(node)) if node is not None and launch_configuration(node) else []
    if len(configuration) < 2:
        return f"The launch at {launch.source} is in a macro."
    block = configuration[1]
    extents = extents_of(source, block)
    if extents:
        place = "xyz".index(axis)
        if place < len(extents):
            return TextEdit(extents[place].start_byte, extents[place].end_byte, quotient(source, extents[place], by))
    text = source.node_text(block)
    if block.type == "identifier" and re.search(rf"\bdim3\b[^;]*\b{text}\b", source.text(0, block.start_byte)):
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
