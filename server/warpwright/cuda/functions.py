"""Functions of host and device code: their names, and the calls of them."""

from __future__ import annotations

import re

from tree_sitter import Node

from warpwright.cuda.declared import declared
from warpwright.syntax.nodes import function_declarator, uncommented
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
    return next((source.node_code(each.type) for each in declared(source, function, name) if each.type), None)


def called_name(call: Node, source: Source) -> str:
    """The last name of what is called: `sync` for `cg::sync(block)` and for `block.sync()`; of a cast that reads as a
    call, `(real)(x)`, the type.

    Empty where something else than a name is called.
    """
    function = call.child_by_field_name("function")
    while function is not None and function.type == "parenthesized_expression" and len(uncommented(function)) == 1:
        function = uncommented(function)[0]
    while function is not None and function.type in ("template_function", "qualified_identifier", "field_expression"):
        function = function.child_by_field_name("name") or function.child_by_field_name("field")
    return source.node_text(function) if function is not None and function.is_named else ""
