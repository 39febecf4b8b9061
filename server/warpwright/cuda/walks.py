"""The nodes of a source by type, found once: tracing host code asks for the same ones again and again."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from functools import lru_cache
from heapq import merge

from tree_sitter import Node

from warpwright.syntax.nodes import walk
from warpwright.syntax.source import Source

_KINDS = frozenset({
    "call_expression", "declaration", "assignment_expression", "preproc_def", "preproc_function_def",
    "init_declarator", "enumerator", "function_definition", "type_definition", "alias_declaration",
    "template_function", "parameter_declaration", "update_expression", "pointer_expression", "return_statement",
    "struct_specifier", "class_specifier", "template_type", "optional_parameter_declaration", "for_range_loop",
})  # fmt: skip
_MOST_SOURCES = 24


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
