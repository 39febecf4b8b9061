"""Whether an expression is a float, where the text says it."""

from __future__ import annotations

import re

from tree_sitter import Node

from warpwright.cuda.functions import called_name
from warpwright.facts.model import Kernel
from warpwright.facts.types import builtin_type
from warpwright.rewrites._code import body, functions_of, macro_texts
from warpwright.rewrites._locals import locals_of
from warpwright.syntax.nodes import declared_name, descendants, uncommented

_IN_FLOAT = re.compile(
    r"__\w+f|(?:exp|exp2|exp10|expm1|log|log2|log10|log1p|pow|sqrt|rsqrt|cbrt|sin|cos|tan|tanh|erf|erfc|fabs|fmin|fmax"
    r"|fma|floor|ceil|hypot)f|float"
)
"""Functions whose result is a float whatever they are given."""
_LITERAL = re.compile(r"[-+]?\d+\.?\d*(?:[eE][-+]?\d+)?[fF]|[-+]?\d*\.\d+(?:[eE][-+]?\d+)?[fF]")


def is_float(kernel: Kernel, node: Node) -> bool:
    """Whether an expression of a kernel is known to have the type float: sums, products and quotients of floats and
    integers, one of them a float."""
    return _kind(kernel, node) == "float"


def _kind(kernel: Kernel, node: Node) -> str:
    """ "float", "int" for any integer type, or empty where it is another type or not known."""
    source = kernel.source
    text = source.node_text(node)
    match node.type:
        case "number_literal":
            digits = not text.startswith(("0x", "0X")) and not re.search(r"[.eEpP]", text) and text[-1] not in "fF"
            return "float" if _LITERAL.fullmatch(text) else "int" if digits else ""
        case "identifier":
            if text in macro_texts(source):
                return ""
            return _of_type(locals_of(kernel).types.get(text, ""), kernel, text, is_pointer=False)
        case "subscript_expression":
            array = node.child_by_field_name("argument")
            name = source.node_text(array) if array is not None and array.type == "identifier" else ""
            return _of_type(locals_of(kernel).types.get(name, ""), kernel, name, is_pointer=True)
        case "field_expression":
            whole, member = node.child_by_field_name("argument"), node.child_by_field_name("field")
            name = source.node_text(whole) if whole is not None and whole.type == "identifier" else ""
            vector = re.fullmatch(r"float[1-4]", locals_of(kernel).types.get(name, "")) is not None
            return "float" if vector and member is not None and source.node_text(member) in ("x", "y", "z", "w") else ""
        case "parenthesized_expression":
            inner = uncommented(node)
            return _kind(kernel, inner[0]) if len(inner) == 1 else ""
        case "unary_expression":
            operand = node.child_by_field_name("argument")
            return _kind(kernel, operand) if operand is not None and text[0] in "+-" else ""
        case "cast_expression":
            kind = node.child_by_field_name("type")
            return "float" if kind is not None and source.node_text(kind) == "float" else ""
        case "call_expression":
            name = called_name(node, source)
            own = name in functions_of(source) or name in macro_texts(source)
            return "float" if _IN_FLOAT.fullmatch(name) and not own else ""
        case "binary_expression":
            operator = node.child_by_field_name("operator")
            sides = [node.child_by_field_name(side) for side in ("left", "right")]
            kinds = {_kind(kernel, side) if side is not None else "" for side in sides}
            if operator is None or operator.type not in ("+", "-", "*", "/") or "" in kinds:
                return ""
            return "float" if "float" in kinds else "int"
    return ""


def _of_type(written: str, kernel: Kernel, name: str, *, is_pointer: bool) -> str:
    """The kind of a variable of that type, or of an element of it."""
    parameter = next((p for p in kernel.parameters if p.name == name), None)
    if parameter is not None and parameter.is_pointer != is_pointer:
        return ""
    if parameter is None and is_pointer != _is_array(kernel, name):
        return ""
    known = builtin_type(written)
    if known is None:
        return ""
    return "float" if known.name == "float" else "int" if known.is_integer else ""


def _is_array(kernel: Kernel, name: str) -> bool:
    """Whether a variable of the kernel is an array or a pointer."""
    block, source = body(kernel), kernel.source
    for declaration in descendants(block, "declaration") if block is not None else ():
        for declarator in declaration.children_by_field_name("declarator"):
            if declared_name(source, declarator) == name:
                inner = (
                    declarator.child_by_field_name("declarator") if declarator.type == "init_declarator" else declarator
                )
                return inner is not None and inner.type in ("array_declarator", "pointer_declarator")
    return False
