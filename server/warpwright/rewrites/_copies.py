"""Statements that copy an element of global memory to a tile in shared memory, or a zero at the edges."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tree_sitter import Node

from warpwright.cuda.functions import called_name
from warpwright.facts.model import Kernel
from warpwright.facts.types import builtin_type
from warpwright.rewrites._code import NoMatchError
from warpwright.rewrites._layout import line_of
from warpwright.rewrites._locals import Locals
from warpwright.syntax.nodes import uncommented
from warpwright.syntax.source import Source

SIZES = (4, 8)
"""Bytes of one asynchronous copy that a number can be (CUDA C++ Programming Guide, "Pipeline Primitives Interface")."""
_ZERO = re.compile(r"0(?:\.0*)?[fF]?")


@dataclass(frozen=True, slots=True)
class Copy:
    """`target = element;` or `target = condition ? element : 0;`: the tile's element and what is copied to it."""

    statement: Node
    tile: str
    target: Node
    element: Node
    array: str
    type: str
    condition: Node | None
    zero: str


def copy_of(kernel: Kernel, variables: Locals, statement: Node) -> Copy | None:
    """The copy that a statement is; None where it is none. Raises NoMatchError where it cannot be asynchronous."""
    source = kernel.source
    assignment = next(iter(uncommented(statement)), None) if statement.type == "expression_statement" else None
    if assignment is None or assignment.type != "assignment_expression":
        return None
    if not any(c.type == "=" for c in assignment.children):
        return None
    target, value = assignment.child_by_field_name("left"), assignment.child_by_field_name("right")
    tile = _array(source, target)
    shared = next((a for a in kernel.shared_arrays if a.name == tile), None)
    if target is None or value is None or shared is None:
        return None
    line = line_of(source, statement)
    while value.type == "parenthesized_expression" and len(uncommented(value)) == 1:
        value = uncommented(value)[0]
    condition: Node | None = None
    zero = ""
    if value.type == "conditional_expression":
        condition, other = value.child_by_field_name("condition"), value.child_by_field_name("alternative")
        if other is None or not _ZERO.fullmatch(source.node_code(other)):
            raise NoMatchError(f"What fills the edges at line {line} is not 0.")
        zero = source.node_text(other)
        value = value.child_by_field_name("consequence") or value
    if value.type == "call_expression" and called_name(value, source) == "__ldg":
        address = next(iter(uncommented(value.child_by_field_name("arguments"))), None)
        value = address.child_by_field_name("argument") or value if address is not None else value
    array = _array(source, value) if value.type == "subscript_expression" else ""
    kind = builtin_type(shared.element_type)
    if not array or array in {a.name for a in kernel.shared_arrays} or array not in variables.types:
        raise NoMatchError(f"What line {line} puts into `{tile}` is not an element of global memory as it is.")
    if kind is None or builtin_type(variables.types[array]) != kind or kind.size not in SIZES:
        raise NoMatchError(
            f"`{array}` holds {variables.types[array]} and `{tile}` {shared.element_type}: no copy of 4 or 8 bytes."
        )
    return Copy(statement, tile, target, value, array, shared.element_type, condition, zero)


def _array(source: Source, node: Node | None) -> str:
    while node is not None and node.type == "subscript_expression":
        node = node.child_by_field_name("argument")
    return source.node_text(node) if node is not None and node.type == "identifier" else ""
