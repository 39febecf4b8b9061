"""Functions of host and device code: their names, and the calls of them."""

from __future__ import annotations

import re

from tree_sitter import Node

from warpwright.cuda.walks import nodes_below
from warpwright.syntax.nodes import descendants, function_declarator
from warpwright.syntax.source import Source

CONVERSION = "operator cast"
"""What the member functions are called that turn a struct into another type."""


def function_name(source: Source, node: Node) -> str | None:
    """The unqualified name of a function definition; CONVERSION for `operator T*()`."""
    conversion = node.child_by_field_name("declarator")
    if conversion is not None and conversion.type == "operator_cast":
        return CONVERSION
    declarator = function_declarator(node)
    name = declarator.child_by_field_name("declarator") if declarator is not None else None
    if name is None:
        return None
    text = source.node_code(name).rsplit("::", 1)[-1].strip()
    return "".join(text.split()) if re.match(r"operator\W", text) else text.split("<")[0].strip()


def declared_type(source: Source, function: Node, name: str) -> str | None:
    """The text of the type that a local variable or parameter of a function was declared with."""
    for node in nodes_below(source, function, "declaration", "parameter_declaration"):
        declared = node.child_by_field_name("type")
        if declared is not None and any(
            source.node_code(i) == name
            for d in node.children_by_field_name("declarator")
            for i in [*descendants(d, "identifier")][:1]
        ):
            return source.node_code(declared)
    return None
