"""The loops of host code around a launch, and the variables that they move."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from tree_sitter import Node

from warpwright.cuda.walks import nodes_below
from warpwright.syntax.nodes import LOOPS, ancestors, descendants, uncommented
from warpwright.syntax.source import Source

Relation = Literal["<", "<=", ">", ">=", "!=", ""]


@dataclass(frozen=True, slots=True)
class Moved:
    """A variable that each iteration of a loop moves. `update` is the expression that does; `start` its value before
    the loop, None where that stands elsewhere. Where the loop tests the variable, `relation` and `bound` are the test.
    """

    name: str
    update: Node
    start: Node | None = None
    relation: Relation = ""
    bound: Node | None = None


@dataclass(frozen=True, slots=True)
class Listed:
    """A variable that takes values from a list: `for (int block : {64, 128})`, or those of an array."""

    name: str
    values: tuple[Node, ...]


def moved_variables(source: Source, place: Node) -> Iterator[Moved | Listed]:
    """The variables of the loops around a place, the innermost first; each name once."""
    seen: set[str] = set()
    for loop in ancestors(place):
        if loop.type in ("function_definition", "lambda_expression"):
            return
        if loop.type not in LOOPS:
            continue
        for each in _of_range(source, loop) if loop.type == "for_range_loop" else _of_loop(source, loop):
            if each.name not in seen:
                seen.add(each.name)
                yield each


def _of_range(source: Source, loop: Node) -> Iterator[Listed]:
    declared, over = loop.child_by_field_name("declarator"), loop.child_by_field_name("right")
    name = next(descendants(declared, "identifier"), None) if declared is not None else None
    if declared is not None and declared.type == "identifier":
        name = declared
    if name is None or over is None:
        return
    listed = over if over.type == "initializer_list" else _initial_list(source, loop, source.node_code(over))
    if listed is not None:
        yield Listed(source.node_code(name), tuple(uncommented(listed)))


def _initial_list(source: Source, place: Node, name: str) -> Node | None:
    """The list in braces that a variable is defined with, before a place or in the file."""
    for node in reversed([*nodes_below(source, source.root, "init_declarator")]):
        declared, value = node.child_by_field_name("declarator"), node.child_by_field_name("value")
        label = declared if declared is not None and declared.type == "identifier" else None
        if label is None and declared is not None:
            label = next(descendants(declared, "identifier"), None)
        if node.start_byte < place.start_byte and label is not None and source.node_code(label) == name:
            return value if value is not None and value.type == "initializer_list" else None
    return None


def _of_loop(source: Source, loop: Node) -> Iterator[Moved]:
    starts = _starts(source, loop)
    condition = loop.child_by_field_name("condition")
    for update in _updates(loop):
        target = update.child_by_field_name("left") or update.child_by_field_name("argument")
        if target is None or target.type != "identifier":
            continue
        name = source.node_code(target)
        relation, bound = _test(source, condition, name)
        yield Moved(name, update, starts.get(name), relation, bound)


def _starts(source: Source, loop: Node) -> dict[str, Node]:
    """The values that a `for` gives variables before its first iteration."""
    found: dict[str, Node] = {}
    first = loop.child_by_field_name("initializer")
    for node in descendants(first, "init_declarator", "assignment_expression") if first is not None else ():
        name = node.child_by_field_name("declarator") or node.child_by_field_name("left")
        value = node.child_by_field_name("value") or node.child_by_field_name("right")
        if name is not None and value is not None:
            found.setdefault(source.node_code(name), value)
    return found


def _updates(loop: Node) -> Sequence[Node]:
    """The expressions that move a variable once an iteration: those of a `for`'s head, and statements of the body."""
    found: list[Node] = []
    head = loop.child_by_field_name("update")
    if head is not None:
        whole = [head, *descendants(head, "update_expression", "assignment_expression")]
        found += dict.fromkeys(n for n in whole if n.type in ("update_expression", "assignment_expression"))
    body = loop.child_by_field_name("body")
    for statement in uncommented(body) if body is not None and body.type == "compound_statement" else ():
        if statement.type == "expression_statement" and uncommented(statement):
            inner = uncommented(statement)[0]
            found += [inner] if inner.type in ("update_expression", "assignment_expression") else []
    return found


_MIRRORED: dict[str, Relation] = {"<": ">", ">": "<", "<=": ">=", ">=": "<=", "!=": "!="}


def _test(source: Source, condition: Node | None, name: str) -> tuple[Relation, Node | None]:
    node = condition
    while node is not None and node.type in ("parenthesized_expression", "condition_clause") and uncommented(node):
        node = uncommented(node)[0]
    if node is None or node.type != "binary_expression":
        return "", None
    left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
    operator = node.child_by_field_name("operator")
    sign = source.node_code(operator) if operator is not None else ""
    if sign not in _MIRRORED or left is None or right is None:
        return "", None
    if source.node_code(left) == name:
        return _MIRRORED[_MIRRORED[sign]], right
    return (_MIRRORED[sign], left) if source.node_code(right) == name else ("", None)
