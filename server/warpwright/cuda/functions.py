"""Functions of host and device code: their names, and the calls of them."""

from __future__ import annotations

import re

from tree_sitter import Node

from warpwright.syntax.nodes import function_declarator
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
    text = source.node_text(name).rsplit("::", 1)[-1].strip()
    return "".join(text.split()) if re.match(r"operator\W", text) else text.split("<")[0].strip()
