"""Counted loops: `for (int i = 0; i < n; i++)` in its usual spellings."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tree_sitter import Node

from warpwright.facts.types import builtin_type
from warpwright.rewrites._code import squeezed
from warpwright.syntax.source import Source


@dataclass(frozen=True, slots=True)
class CountedLoop:
    """A loop whose variable is declared in it, an integer of 32 or 64 bits, from `start` while it is less than `bound`.

    `step` is what is added after each iteration, None for 1.
    """

    node: Node
    name: str
    type: str
    start: Node
    bound: Node
    step: Node | None
    body: Node


def counted_loop(source: Source, node: Node) -> CountedLoop | None:
    """The parts of a `for`; None where it is not such a loop."""
    return _counted(source, node, node.child_by_field_name("condition"))


def loop_of_two_bounds(source: Source, node: Node) -> tuple[CountedLoop, Node] | None:
    """The parts of `for (int i = first; i < last && i < n; i++)`, with the one bound in them, and the other."""
    condition = node.child_by_field_name("condition")
    operator = condition.child_by_field_name("operator") if condition is not None else None
    if condition is None or operator is None or operator.type != "&&":
        return None
    one, other = (_counted(source, node, condition.child_by_field_name(side)) for side in ("left", "right"))
    return (one, other.bound) if one is not None and other is not None else None


def _counted(source: Source, node: Node, condition: Node | None) -> CountedLoop | None:
    """The parts of a `for` that runs while the condition holds."""
    initializer = node.child_by_field_name("initializer")
    update, body = node.child_by_field_name("update"), node.child_by_field_name("body")
    if initializer is None or condition is None or update is None or body is None:
        return None
    kind = initializer.child_by_field_name("type") if initializer.type == "declaration" else None
    declared = initializer.children_by_field_name("declarator") if kind is not None else []
    if kind is None or len(declared) != 1 or declared[0].type != "init_declarator":
        return None
    name, start = declared[0].child_by_field_name("declarator"), declared[0].child_by_field_name("value")
    known = builtin_type(source.node_text(kind))
    if name is None or name.type != "identifier" or start is None or known is None or not known.is_integer:
        return None
    variable = source.node_text(name)
    left, bound = condition.child_by_field_name("left"), condition.child_by_field_name("right")
    operator = condition.child_by_field_name("operator")
    less = condition.type == "binary_expression" and operator is not None and source.node_text(operator) == "<"
    if not less or left is None or bound is None or source.node_text(left) != variable or (known.size or 0) < 4:
        return None
    steps = _steps(source, update, variable)
    return CountedLoop(node, variable, source.node_text(kind), start, bound, steps[0], body) if steps else None


def _steps(source: Source, update: Node, name: str) -> list[Node | None]:
    """What the update adds, None for 1; an empty list where it does something else."""
    text, v = squeezed(source.node_text(update)), re.escape(name)
    if re.fullmatch(rf"{v}\+\+|\+\+{v}|{v}\+=1|{v}={v}\+1", text):
        return [None]
    return [update.child_by_field_name("right")] if re.match(rf"{v}\+=", text) else []


def only_statement(body: Node) -> Node | None:
    """The one statement of a loop's body, with or without braces; None where there are more."""
    inner = [c for c in body.named_children if c.type != "comment"] if body.type == "compound_statement" else [body]
    return inner[0] if len(inner) == 1 else None


def pragmas_before(source: Source, node: Node) -> list[Node]:
    """The directives right before a statement, such as `#pragma unroll`, in order of the text."""
    found: list[Node] = []
    before = node.prev_named_sibling
    while before is not None and before.type == "preproc_call":
        found.insert(0, before)
        before = before.prev_named_sibling
    return found
