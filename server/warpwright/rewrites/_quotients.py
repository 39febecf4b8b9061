"""What of a floating-point quotient a product with the reciprocal could not stand for."""

from __future__ import annotations

import re

from tree_sitter import Node

from warpwright.cuda.functions import called_name
from warpwright.facts.model import Kernel
from warpwright.facts.types import builtin_type
from warpwright.rewrites._code import body, names
from warpwright.rewrites._indices import Indices
from warpwright.rewrites._invariant_calls import COSTLY
from warpwright.syntax.nodes import ancestors, descendants
from warpwright.syntax.source import Source

_WHOLE = re.compile(
    r"(?:floor|ceil|trunc|l?l?round|l?l?rint|nearbyint|fmod|remainder|modf)f?|__(?:float|double)2u?(?:int|ll)_\w+|int|unsigned"
)
"""Functions whose result jumps from one whole number to the next."""
_STEADY = re.compile(r"f?(?:max|min)f?|fabsf?|float|double|static_cast")


def computed_from_data(source: Source, indices: Indices, name: str) -> str:
    """The variable, of those that a name is computed from, that is more than a parameter that keeps its value."""
    waiting, seen = [name], {name}
    while waiting:
        each = waiting.pop()
        value = indices.variables.values.get(each)
        if value is None and not indices.variables.is_fixed(each):
            return each
        for part in (
            descendants(value, "call_expression", "subscript_expression", "pointer_expression") if value else ()
        ):
            name = called_name(part, source) if part.type == "call_expression" else ""
            if not (_STEADY.fullmatch(name) or COSTLY.fullmatch(name)):
                return each
        names = {source.node_text(n) for n in descendants(value, "identifier")} if value is not None else set()
        more = {n for n in names if n in indices.variables.types or n in indices.variables.changed} - seen
        waiting += sorted(more)
        seen |= more
    return ""


def made_whole(source: Source, indices: Indices, division: Node, through: frozenset[str] = frozenset()) -> str:
    """What rounds the quotient to a whole number, or a variable that it goes into; empty for nothing. `through` are
    the variables whose uses were looked at already."""
    child = division
    for parent in ancestors(division):
        if parent.type.endswith("_statement"):
            return ""
        if parent.type in ("init_declarator", "assignment_expression"):
            field = "declarator" if parent.type == "init_declarator" else "left"
            holder = parent.child_by_field_name(field)
            own = holder is not None and holder.type == "identifier" and holder != child
            if holder is not None and own and (whole := _of_variable(source, indices, holder, through)):
                return whole
        if parent.type == "subscript_expression" and child != parent.child_by_field_name("argument"):
            return source.node_text(child)
        if parent.type == "call_expression":
            cast = re.match(r"static_cast\s*<([^>]*)>", source.node_code(parent))
            to = builtin_type(cast[1].strip()) if cast is not None else None
            if _WHOLE.fullmatch(called_name(parent, source)) or (to is not None and to.is_integer):
                return source.node_text(parent)
        target = parent.child_by_field_name("left") or parent.child_by_field_name("declarator")
        kind = parent.child_by_field_name("type") if parent.type in ("cast_expression", "declaration") else None
        text = source.node_code(kind) if kind is not None else ""
        if parent.type == "assignment_expression" and target is not None:
            name = next(descendants(target, "identifier"), target)
            text = indices.variables.types.get(source.node_text(name), "").replace("*", "").strip()
        known = builtin_type(text)
        if known is not None and known.is_integer:
            return source.node_text(parent)
        child = parent
    return ""


def _of_variable(source: Source, indices: Indices, holder: Node, through: frozenset[str]) -> str:
    """What rounds a variable that is set to a quotient, where it is used."""
    name, block = source.node_text(holder), body(indices.kernel)
    kind = builtin_type(indices.variables.types.get(name, "float"))
    if name in through or block is None or (kind is not None and kind.is_integer):
        return ""
    uses = (use for use in names(block, source, name) if use != holder)
    return next((whole for use in uses if (whole := made_whole(source, indices, use, through | {name}))), "")


def wider_than_float(kernel: Kernel, indices: Indices, node: Node) -> str:
    """What in a dividend may be a double, or is not known; empty where all is float or integer."""
    source = kernel.source
    for part in descendants(node, "number_literal", "identifier", "call_expression", "cast_expression"):
        text = source.node_text(part)
        if part.type == "number_literal":
            if re.search(r"[.eE]", text) and not text.endswith(("f", "F")) and not text.startswith("0x"):
                return text
        elif part.type == "call_expression":
            name = called_name(part, source)
            if not re.fullmatch(r"(?:\w+f|__\w+f|__ldg|float|f?min|f?max|fm\w+f|__expf|__fdividef)", name):
                return text
        elif part.type == "cast_expression" or not _is_narrow(indices, part, text):
            cast = part.child_by_field_name("type")
            if cast is None or source.node_text(cast) not in ("float", "int", "unsigned", "unsigned int"):
                return text
    return ""


def _is_narrow(indices: Indices, node: Node, name: str) -> bool:
    parent = node.parent
    if name in ("threadIdx", "blockIdx", "blockDim", "gridDim"):
        return True
    if parent is not None and parent.type == "call_expression" and parent.child_by_field_name("function") == node:
        return True
    if any(n.type == "subscript_argument_list" for n in ancestors(node)):
        return True
    shared = next((a.element_type for a in indices.kernel.shared_arrays if a.name == name), None)
    kind = builtin_type(shared or indices.variables.types.get(name, "?"))
    return kind is not None and (kind.is_integer or kind.name == "float")
