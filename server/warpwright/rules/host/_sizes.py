"""Whether one size of the host is larger than another whatever their variables hold.

Both are evaluated with the same positive numbers for what the function does not give a value: `n * sizeof(float)` is
larger than `n / 2 * sizeof(float)`, and nothing is known of `m * sizeof(float)`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tree_sitter import Node

from warpwright.algebra.integers import integer_operation
from warpwright.facts.types import builtin_type
from warpwright.rules.host._pointers import HostFunction
from warpwright.syntax.nodes import uncast

_TRIED = (96, 256, 1000, 4093)
_MOST_DEPTH = 40
_OTHER_TYPE = 8
"""Bytes of a type that is not built in: the same on both sides."""


def is_larger(function: HostFunction, one: Node, other: Node) -> bool:
    names: dict[str, None] = {}
    if _value(function, one, names.setdefault, 0) is None or _value(function, other, names.setdefault, 0) is None:
        return False
    for numbers in _numbers(list(names)):
        left = _value(function, one, numbers.get, 0)
        right = _value(function, other, numbers.get, 0)
        if left is None or right is None or left <= right:
            return False
    return True


def _numbers(names: list[str]) -> list[Mapping[str, int]]:
    """Numbers for the names: all alike, rising and falling."""
    alike = [dict.fromkeys(names, number) for number in _TRIED]
    rising = {name: 64 + 33 * at for at, name in enumerate(names)}
    falling = dict(zip(names, reversed(rising.values()), strict=True))
    return [*alike, rising, falling]


def _value(function: HostFunction, node: Node, of: Callable[[str], int | None], depth: int) -> int | None:
    """The value of an integer expression, with that of each name that nothing in the function sets; None where it has
    other parts. While names are only collected, `of` gives none, and each counts as 1."""
    source, node = function.source, uncast(function.source, node)
    text = source.node_code(node)
    if depth > _MOST_DEPTH:
        return None
    if node.type == "number_literal":
        digits = text.lower().rstrip("ul").replace("'", "")
        return int(digits) if digits.isdecimal() else None
    if node.type == "sizeof_expression":
        kind = node.child_by_field_name("type")
        known = builtin_type(source.node_code(kind)) if kind is not None else None
        return (known.size if known is not None else _OTHER_TYPE) if kind is not None else None
    if node.type == "binary_expression":
        parts = [node.child_by_field_name(name) for name in ("left", "operator", "right")]
        left, operator, right = parts
        if left is None or operator is None or right is None:
            return None
        one, other = (_value(function, side, of, depth + 1) for side in (left, right))
        return None if one is None or other is None else integer_operation(operator.type, one, other)
    if node.type != "identifier" or function.settings.get(text):
        return None
    declared = function.declared.get(text, [])
    value = declared[0][1].child_by_field_name("value") if len(declared) == 1 else None
    if value is not None:
        return _value(function, value, of, depth + 1)
    return None if len(declared) > 1 else of(text) or 1
