"""Which number a text stands for at a place of a file: literals, constants and macros that are numbers, and what is
computed of them."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from tree_sitter import Node

from warpwright.algebra.integers import integer_operation
from warpwright.cuda.declared import declarations
from warpwright.syntax.encoding import encoded
from warpwright.syntax.nodes import descendants, enclosing, uncommented
from warpwright.syntax.source import Source

_DEEPEST = 32
_FUNCTION = "function_definition"
_CONSTANT = re.compile(r"\bconst(?:expr)?\b")


def integer(literal: str) -> int | None:
    """The value of an integer literal as C reads it: decimal, hexadecimal, octal or binary, with any suffix.

    >>> integer("0x1fU"), integer("017"), integer("0b11"), integer("1'000ull"), integer("08"), integer("1.0f")
    (31, 15, 3, 1000, None, None)
    """
    found = re.fullmatch(r"(0[xX](?=.)|0[bB]|0(?=\d)|)([\da-fA-F]+)[uUlLzZ]*", literal.replace("'", ""))
    try:
        return int(found[2], {"": 10, "0": 8, "0x": 16, "0b": 2}[found[1].lower()]) if found else None
    except ValueError:
        return None


@dataclass(frozen=True, slots=True)
class _Declared:
    """A declaration of a name; `value` where it is a constant that is an expression."""

    function: Node | None
    value: Node | None


def number_at(source: Source, place: Node, text: str, others: Mapping[str, str] | None = None) -> int | None:
    """The number that an expression is at a place; None where that is not certain.

    What the function around the place declares hides what the file does. A name that is declared or defined in several
    ways there, as by the sides of an `#if`, is no number. `others` are macros of the files that this one includes.
    """
    return _of_text(_Place(source, place, others or {}, {}), text, 0)


def file_constants(source: Source) -> Mapping[str, Node]:
    """The values of `const` and `constexpr` variables outside of functions and classes, each declared once."""
    outside = {name: [each for each in _seen(source, name) if each.function is None] for name in declarations(source)}
    return {name: v for name, seen in outside.items() if len(seen) == 1 and (v := seen[0].value) is not None}


@dataclass(frozen=True, slots=True)
class _Place:
    source: Source
    node: Node
    others: Mapping[str, str]
    known: dict[str, int | None]
    """The names that were met, so that each is read once and one that leads to itself is no number."""


def _of_text(place: _Place, text: str, depth: int) -> int | None:
    text = text.strip()
    if re.fullmatch(r"\d[\w']*", text):
        return integer(text)
    if re.fullmatch(r"[A-Za-z_]\w*", text):
        return _named(place, text, depth)
    return _value(place, *_parsed(text), depth) if depth < _DEEPEST else None


@lru_cache(maxsize=256)
def _parsed(text: str) -> tuple[Source, Node | None]:
    """An expression as a tree; None for what is no expression."""
    source = Source("expression", encoded(f"int x = ({text});"))
    declared = next(descendants(source.root, "init_declarator"), None)
    return source, declared.child_by_field_name("value") if declared is not None and not source.root.has_error else None


def _value(place: _Place, source: Source, node: Node | None, depth: int) -> int | None:
    if node is None or depth > _DEEPEST:
        return None
    match node.type:
        case "number_literal":
            return integer(source.node_text(node))
        case "identifier":
            return _named(place, source.node_text(node), depth)
        case "parenthesized_expression" if len(inner := uncommented(node)) == 1:
            return _value(place, source, inner[0], depth + 1)
        case "unary_expression":
            value = _value(place, source, node.child_by_field_name("argument"), depth + 1)
            sign = node.child_by_field_name("operator")
            return {"-": -value, "+": value}.get(sign.type) if sign is not None and value is not None else None
        case "binary_expression":
            sides = (_value(place, source, node.child_by_field_name(side), depth + 1) for side in ("left", "right"))
            left, right = sides
            operator = node.child_by_field_name("operator")
            if operator is None or left is None or right is None:
                return None
            return integer_operation(operator.type, left, right)
    return None


def _named(place: _Place, name: str, depth: int) -> int | None:
    if name not in place.known:
        place.known[name] = None
        place.known[name] = _meaning(place, name, depth)
    return place.known[name]


def _meaning(place: _Place, name: str, depth: int) -> int | None:
    source, here = place.source, _function_of(place.node)
    every = _seen(source, name)
    local = [each for each in every if each.function is not None and each.function == here]
    seen = local or [each for each in every if each.function is None]
    texts = _macros(source).get(name) or ({place.others[name]} if name in place.others and not seen else set())
    if len(seen) + len(texts) != 1:
        return None
    if texts:
        return _of_text(place, next(iter(texts)), depth + 1)
    return _value(place, source, seen[0].value, depth + 1)


def _function_of(node: Node) -> Node | None:
    return node if node.type == _FUNCTION else enclosing(node, _FUNCTION)


def _seen(source: Source, name: str) -> list[_Declared]:
    """The variables and parameters of a name; those of functions that are only declared left out."""
    found = []
    for each in declarations(source).get(name, ()):
        function, declarator = enclosing(each.node, _FUNCTION), each.declarator
        if function is None and each.node.type != "declaration":
            continue
        if next(descendants(declarator, "function_declarator"), None) is not None:
            continue
        inner, value = declarator.child_by_field_name("declarator"), declarator.child_by_field_name("value")
        plain = declarator.type == "init_declarator" and inner is not None and inner.type == "identifier"
        written = source.code_text(each.node.start_byte, declarator.start_byte)
        is_constant = plain and each.node.type == "declaration" and _CONSTANT.search(written)
        found.append(_Declared(function, value if is_constant else None))
    return found


@lru_cache(maxsize=16)
def _macros(source: Source) -> Mapping[str, set[str]]:
    """What stands behind the name of each macro, once for each that differs; "" for one with parameters."""
    found: dict[str, set[str]] = defaultdict(set)
    for macro in descendants(source.root, "preproc_def", "preproc_function_def"):
        name, value = macro.child_by_field_name("name"), macro.child_by_field_name("value")
        if name is not None:
            text = source.node_code(value).strip() if value is not None and macro.type == "preproc_def" else ""
            found[source.node_text(name)].add(text)
    return found
