"""What the conditions around a launch say of host variables, and which launches they keep from being reached.

Example: of `if (threads == 512) k<512><<<grid, threads>>>(x); else k<256><<<grid, threads>>>(x);` in a function that is
called with 256 the second alone is reached, with a block of 256; in one of which no call is found the first is
reached with a block of 512.
"""

from __future__ import annotations

from collections.abc import Iterator

from tree_sitter import Node

from warpwright.cuda.paths import LaunchPath, parameter_place
from warpwright.cuda.walks import nodes_below
from warpwright.facts.model import Program
from warpwright.problems.expressions import Expression, ExpressionError, Number, evaluate
from warpwright.problems.host import HostExpressions, Pinned, Way
from warpwright.syntax.nodes import ancestors, enclosing, walk
from warpwright.syntax.source import Source

_NOT_FOLLOWED = ("call_expression", "subscript_expression", "field_expression", "assignment_expression")
"""In a value: what may be another thing each time."""


def decided(program: Program, path: LaunchPath) -> Pinned | None:
    """The host variables that the conditions around a path's launch and calls compare with numbers, each with its
    value there; None where one of them does not hold, so that the launch is not reached on this path."""
    pinned: dict[tuple[int, str], Expression] = {}
    for depth in range(len(path.calls) + 1):
        source, function = path.scope(depth)
        if function is None:
            continue
        place = path.site.call if depth == 0 else path.calls[depth - 1].node
        reader = HostExpressions(program, source, function, way=Way(path, {}, depth))
        for name, value, holds in _compared(source, function, place, reader):
            known = _value(reader, name) if _is_settled(path, depth, name) else None
            if known is not None and (known == value) is not holds:
                return None
            if known is not None or holds:
                _pin(pinned, path, depth, name, value if holds or known is None else known)
    return pinned


def _compared(source: Source, function: Node, place: Node, reader: HostExpressions) -> Iterator[tuple[str, int, bool]]:
    """(variable, number, whether they are equal) for each comparison that decides whether a place is reached."""
    inner = place
    for outer in ancestors(place):
        if outer == function:
            return
        if outer.type == "if_statement":
            condition = outer.child_by_field_name("condition")
            holds = inner == outer.child_by_field_name("consequence")
            if condition is not None and inner != condition:
                parts = list(_parts(condition)) if holds else [condition]
                for part in parts:
                    if (found := _equality(source, part, reader)) is not None:
                        yield (*found, holds)
        elif outer.type == "case_statement":
            switch = enclosing(outer, "switch_statement")
            on, value = switch and switch.child_by_field_name("condition"), outer.child_by_field_name("value")
            name = _plain(on) if on is not None else None
            number = _number(value, reader) if value is not None else None
            if name is not None and name.type == "identifier" and number is not None:
                yield source.plain_text(name), number, True
        inner = outer


def _plain(node: Node) -> Node:
    """Behind parentheses and the clause of a condition."""
    while node.type in ("condition_clause", "parenthesized_expression") and len(node.named_children) == 1:
        node = node.named_children[0]
    return node


def _parts(condition: Node) -> Iterator[Node]:
    """What a condition asks all of: both sides of `&&`."""
    node = _plain(condition)
    operator = node.child_by_field_name("operator")
    if node.type == "binary_expression" and operator is not None and operator.type == "&&":
        for side in ("left", "right"):
            child = node.child_by_field_name(side)
            if child is not None:
                yield from _parts(child)
    else:
        yield node


def _equality(source: Source, condition: Node, reader: HostExpressions) -> tuple[str, int] | None:
    """The variable and the number of `threads == 512`."""
    node = _plain(condition)
    operator = node.child_by_field_name("operator")
    if node.type != "binary_expression" or operator is None or operator.type != "==":
        return None
    left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
    for name, value in ((left, right), (right, left)):
        if name is not None and value is not None and name.type == "identifier":
            number = _number(value, reader)
            if number is not None:
                return source.plain_text(name), number
    return None


def _number(node: Node, reader: HostExpressions) -> int | None:
    try:
        found = reader.resolve(node)
    except ExpressionError:
        return None
    return found.value if isinstance(found, Number) and isinstance(found.value, int) else None


def _value(reader: HostExpressions, name: str) -> int | None:
    """The value of a host variable, as far as the text has one."""
    try:
        value = evaluate(reader.resolve_name(name), reader.defaults)
    except ExpressionError:
        return None
    return value if isinstance(value, int) else None


def _is_settled(path: LaunchPath, depth: int, name: str) -> bool:
    """Whether a host variable has one value on a path, whatever iteration it is: it is given one, once, that is made of
    such variables and numbers, or is such an argument."""
    source, function = path.scope(depth)
    if function is None or f"&{name}" in source.plain_text(function).replace(" ", ""):
        return False
    place = parameter_place(source, function, name)
    given = list(_given(source, function, name))
    if place is None and not given:
        return len(list(_given(source, source.root, name))) < 2  # a constant or a macro of the file
    if place is not None:
        passed = path.argument(depth, place)
        return not given and passed is not None and _all_settled(path, passed[1], passed[0])
    return len(given) == 1 and given[0] is not None and _all_settled(path, depth, given[0])


def _all_settled(path: LaunchPath, depth: int, value: Node) -> bool:
    if any(node.type in _NOT_FOLLOWED for node in walk(value)):
        return False
    source, _ = path.scope(depth)
    named = [node for node in walk(value) if node.type == "identifier"]
    return all(_is_settled(path, depth, source.plain_text(node)) for node in named)


def _given(source: Source, scope: Node, name: str) -> Iterator[Node | None]:
    """The values that a variable is given, None for one that a step makes."""
    for node in nodes_below(source, scope, "init_declarator", "assignment_expression", "update_expression"):
        fields = ("declarator", "left", "argument")
        target = next((child for field in fields if (child := node.child_by_field_name(field)) is not None), None)
        if target is not None and source.plain_text(target) == name:
            operator = node.child_by_field_name("operator")
            plain = operator is None or source.plain_text(operator) == "="
            yield (node.child_by_field_name("value") or node.child_by_field_name("right")) if plain else None


def _pin(pinned: dict[tuple[int, str], Expression], path: LaunchPath, depth: int, name: str, value: int) -> None:
    """Set a variable, and those of the callers that are passed for it."""
    pinned[depth, name] = Number(value)
    source, function = path.scope(depth)
    place = parameter_place(source, function, name)
    passed = path.argument(depth, place) if place is not None else None
    if passed is not None and passed[0].type == "identifier":
        _pin(pinned, path, passed[1], path.scope(passed[1])[0].plain_text(passed[0]), value)
