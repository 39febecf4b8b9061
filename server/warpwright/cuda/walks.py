"""The nodes of a source, and those of a function, by type, found once: tracing host code asks for the same ones again
and again."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from functools import lru_cache
from heapq import merge
from operator import itemgetter

from tree_sitter import Node

from warpwright.syntax.nodes import descendants, walk
from warpwright.syntax.source import Source

_KINDS = frozenset({
    "call_expression", "declaration", "assignment_expression", "preproc_def", "preproc_function_def",
    "init_declarator", "enumerator", "function_definition", "type_definition", "alias_declaration",
    "template_function", "parameter_declaration", "update_expression", "pointer_expression", "return_statement",
    "struct_specifier", "class_specifier", "template_type", "optional_parameter_declaration", "for_range_loop",
    "switch_statement", "if_statement", "template_instantiation", "field_initializer", "function_declarator",
})  # fmt: skip
_MOST_SOURCES = 24
_MOST_FUNCTIONS = 64


@lru_cache(maxsize=_MOST_SOURCES)
def _by_type(source: Source) -> dict[str, tuple[list[int], list[Node]]]:
    found: dict[str, tuple[list[int], list[Node]]] = {kind: ([], []) for kind in _KINDS}
    for node in walk(source.root):
        if node.type in found:
            starts, nodes = found[node.type]
            starts.append(node.start_byte)
            nodes.append(node)
    return found


def nodes_below(source: Source, scope: Node, *types: str) -> Iterator[Node]:
    """What `descendants` gives, for the types that are kept: the nodes in `scope` in the order of the text."""
    return merge(*(_of_type(source, scope, kind) for kind in types), key=lambda node: (node.start_byte, -node.end_byte))


def _of_type(source: Source, scope: Node, kind: str) -> Iterator[Node]:
    starts, nodes = _by_type(source)[kind]
    for place in range(bisect_left(starts, scope.start_byte), len(nodes)):
        if starts[place] >= scope.end_byte:
            return
        if nodes[place].end_byte <= scope.end_byte:
            yield nodes[place]


@lru_cache(maxsize=_MOST_SOURCES)
def every_call(source: Source) -> tuple[Node, ...]:
    """The calls of a text, half-written ones too, in the order of the text."""
    return tuple(descendants(source.closed_root, "call_expression"))


def nodes_in(function: Node, *types: str) -> Iterator[Node]:
    """What `descendants` gives of a function, of whichever tree it is, for any types."""
    kinds = _inside(function)
    found = kinds.get(types[0], ()) if len(types) == 1 else merge(*(kinds.get(kind, ()) for kind in types))
    return map(itemgetter(1), found)


@lru_cache(maxsize=_MOST_FUNCTIONS)
def _inside(function: Node) -> dict[str, list[tuple[int, Node]]]:
    """Each node with its number in the order of the text, by which lists of several types are merged."""
    found: dict[str, list[tuple[int, Node]]] = {}
    for number, node in enumerate(walk(function)):
        found.setdefault(node.type, []).append((number, node))
    return found
