"""Whether host expressions can have one value alone: made of numbers, constants and variables that are set once."""

from __future__ import annotations

import re
from collections.abc import Iterable

from tree_sitter import Node

from warpwright.facts.host_scopes import HostScope, written_names
from warpwright.facts.types import BUILTIN_TYPES
from warpwright.facts.unit import Unit
from warpwright.syntax.nodes import descendants

_CALLS = re.compile(r"dim3|(?:std::)?(?:min|max)|ceilf?")
_EXTENT = re.compile(r"\w+\.[xyz]")
_WORD = re.compile(r"\b[A-Za-z_]\w*")


def is_settled(unit: Unit, scope: HostScope, nodes: Iterable[Node]) -> bool:
    """Whether no name in some expressions of a function is a parameter, a member, or set more than once.

    Example: not `n` after `int n = 0; while (next()) n++;`.
    """
    changed = _changed(scope)
    waiting = list(nodes)
    seen: set[str] = set()
    while waiting:
        node = waiting.pop()
        if _has_other_parts(scope, node):
            return False
        names = {scope.source.node_text(n) for n in descendants(node, "identifier")} - seen
        seen |= names
        for name in names:
            values = [d for d in scope.definitions.get(name, ()) if d.kind != "declare"]
            if name in changed or len(values) > 1 or any(d.value is None or d.kind == "written" for d in values):
                return False
            waiting += [d.value for d in values if d.value is not None]
            if not values and not _is_constant(unit, name) and name != "dim3":
                return False
    return True


def _changed(scope: HostScope) -> set[str]:
    """What a function counts up, or adds to."""
    if scope.function is None:
        return set()
    return {
        scope.source.node_text(name)
        for node in descendants(scope.function, "update_expression", "assignment_expression")
        if node.type == "update_expression" or (o := node.child_by_field_name("operator")) is None or o.type != "="
        for name in written_names(node)
    }


def _has_other_parts(scope: HostScope, node: Node) -> bool:
    """Whether an expression reads members or elements, other than `.x` of what is set whole, or calls what is not
    known."""
    if any(True for _ in descendants(node, "subscript_expression", "lambda_expression")):
        return True
    for member in descendants(node, "field_expression"):
        text = scope.source.node_text(member)
        if not _EXTENT.fullmatch(text) or any(f"{text[:-1]}{axis}" in scope.definitions for axis in "xyz"):
            return True
    called = (n.child_by_field_name("function") for n in descendants(node, "call_expression"))
    return any(f is None or not _CALLS.fullmatch(scope.source.node_text(f)) for f in called)


def _is_constant(unit: Unit, name: str) -> bool:
    """Whether a name is that of a number that never changes, of a type as in `sizeof(P)`, or of a macro of such."""
    if _CALLS.fullmatch(name) or name in BUILTIN_TYPES or name in unit.types or name in unit.enumerators:
        return True
    macro = unit.macros.get(name)
    if macro is not None:
        return all(_is_constant(unit, word) for word in _WORD.findall(macro.body) if word != name)
    variable = unit.variables.get(name)
    return variable is not None and variable.is_const
