"""What an index is for each thread of a block, where the text and the launches say it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import product

from tree_sitter import Node

from warpwright.algebra.integers import integer_operation
from warpwright.cuda.numbers import file_constants, integer
from warpwright.facts.model import Dim3
from warpwright.rewrites._code import macro_texts
from warpwright.rewrites._names import assignments
from warpwright.syntax.nodes import descendants, uncommented
from warpwright.syntax.source import Source

_NO_INDEX = re.compile(r"\b(?:char|short|bool|float|double|half|u?int(?:8|16)_t|pointer)\b")
"""Types that an index may not fit into."""
_DEPTH = 16
"""How many variables deep an index is followed."""


def threads_of(shape: Dim3) -> Iterator[Dim3]:
    """Every threadIdx of a block, x fastest."""
    return ((x, y, z) for z, y, x in product(range(shape[2]), range(shape[1]), range(shape[0])))


class Indices:
    """Evaluates index expressions of one block of text: of threadIdx, blockDim, constants, macros that are numbers, and
    variables that are set once, where they are declared."""

    def __init__(self, block: Node, source: Source) -> None:
        self.source = source
        self.given = assignments(block, source)
        self.declared = declared_types(block, source)
        self.macros = macro_texts(source)
        self.constants = file_constants(source)

    def value(self, node: Node, thread: Dim3, shape: Dim3, depth: int = _DEPTH) -> int | None:
        """The value for one thread of a block of that shape; None where the text does not say it, or a step of it does
        not fit in 31 bits."""
        found = self._value(node, thread, shape, depth) if depth else None
        return found if found is not None and 0 <= found < 1 << 31 else None

    def _value(self, node: Node, thread: Dim3, shape: Dim3, depth: int) -> int | None:
        source = self.source
        match node.type:
            case "number_literal":
                return integer(source.node_text(node))
            case "parenthesized_expression" | "subscript_argument_list":
                inner = uncommented(node)
                return self.value(inner[0], thread, shape, depth) if len(inner) == 1 else None
            case "field_expression":
                return _special(source.node_text(node), thread, shape)
            case "identifier":
                return self._named(source.node_text(node), thread, shape, depth)
            case "binary_expression":
                left, right, op = (node.child_by_field_name(n) for n in ("left", "right", "operator"))
                if left is None or right is None or op is None:
                    return None
                a, b = (self.value(side, thread, shape, depth) for side in (left, right))
                return integer_operation(source.node_text(op), a, b) if a is not None and b is not None else None
        return None

    def _named(self, name: str, thread: Dim3, shape: Dim3, depth: int) -> int | None:
        if name in self.given or name in self.declared:
            values, kinds = self.given.get(name, []), self.declared.get(name, [])
            if len(values) != 1 or len(kinds) != 1 or _NO_INDEX.search(kinds[0]):
                return None
            return self.value(values[0], thread, shape, depth - 1)
        texts = self.macros.get(name, [])
        if texts:
            return integer(texts[0].strip(" ()")) if len(texts) == 1 else None
        value = self.constants.get(name)
        return self.value(value, thread, shape, depth - 1) if value is not None else None


def declared_types(block: Node, source: Source) -> dict[str, list[str]]:
    """The types with which a block declares each variable; "pointer" for one that is not plainly of its type."""
    found: dict[str, list[str]] = {}
    for declaration in descendants(block, "declaration", "parameter_declaration", "for_range_loop"):
        kind = declaration.child_by_field_name("type")
        for declarator in declaration.children_by_field_name("declarator"):
            name = next(descendants(declarator, "identifier"), None)
            if name is not None and kind is not None:
                inner = (
                    declarator.child_by_field_name("declarator") if declarator.type == "init_declarator" else declarator
                )
                plain = inner is not None and inner.type == "identifier"
                found.setdefault(source.node_text(name), []).append(source.node_text(kind) if plain else "pointer")
    return found


def _special(text: str, thread: Dim3, shape: Dim3) -> int | None:
    name, _, axis = text.replace(" ", "").partition(".")
    values = {"threadIdx": thread, "blockDim": shape}.get(name)
    return values["xyz".index(axis)] if values is not None and axis in ("x", "y", "z") else None
