"""A parameter more for a kernel, which is told by it how many blocks its launches have."""

from __future__ import annotations

from dataclasses import dataclass

from tree_sitter import Node

from warpwright.facts.model import Kernel
from warpwright.rewrites._code import host_launches, names
from warpwright.rewrites._grids import call_of, extent
from warpwright.rewrites._layout import free_name, line_of
from warpwright.syntax.edits import TextEdit
from warpwright.syntax.nodes import descendants, uncommented


@dataclass(frozen=True, slots=True)
class AddedSize:
    """The parameter's name, and the edits that declare it and hand it over."""

    name: str
    edits: tuple[TextEdit, ...]


def added_size(kernel: Kernel) -> AddedSize | str:
    """The number of blocks in x as the last parameter of a kernel, under the launches' name of it where that is one; a
    reason where it cannot be handed over.

    All launches stand in the kernel's file, as the caller has seen to.
    """
    source = kernel.source
    declarator = _declarator(kernel)
    parameters = declarator.child_by_field_name("parameters") if declarator is not None else None
    listed = uncommented(parameters)
    if parameters is None or not listed or any("=" in source.node_code(each) for each in listed):
        return f"The parameters of {kernel.name} are not plain enough to add one."
    for use in names(source.root, source, kernel.name):
        parent = use.parent
        if parent is not None and parent.type == "function_declarator" and parent != declarator:
            return f"{kernel.name} is declared at line {line_of(source, use)}, too."
    written = {found[1] for launch in host_launches(kernel) if (found := extent(source, launch)) is not None}
    wanted = next(iter(written)) if len(written) == 1 else ""
    name = free_name(kernel.span.code, wanted if wanted.isidentifier() else "blocks")
    edits = [TextEdit(listed[-1].end_byte, listed[-1].end_byte, f", int {name}")]
    for launch in host_launches(kernel):
        found, call = extent(source, launch), call_of(launch)
        arguments = call.child_by_field_name("arguments") if call is not None else None
        given = uncommented(arguments)
        if found is None or len(given) != len(listed):
            return f"The launch at {launch.source} is not written so that an argument can be added."
        node, text = found
        if any(True for _ in descendants(node, "call_expression", "assignment_expression", "update_expression")):
            return f"The grid of the launch at {launch.source} is not a plain number that could be handed over."
        edits.append(TextEdit(given[-1].end_byte, given[-1].end_byte, f", {text}"))
    return AddedSize(name, tuple(edits))


def _declarator(kernel: Kernel) -> Node | None:
    """The part of the kernel's definition that holds its name and its parameters."""
    node = kernel.node
    while node is not None and node.type != "function_declarator":
        node = node.child_by_field_name("declarator")
    return node
