"""Questions about tree-sitter nodes that many layers ask."""

from __future__ import annotations

from collections.abc import Iterator

from tree_sitter import Node


def walk(node: Node) -> Iterator[Node]:
    """The node and everything below it, in text order, without recursion (generated code nests deep)."""
    stack = [node]
    while stack:
        node = stack.pop()
        yield node
        stack.extend(reversed(node.children))


def descendants(node: Node, *types: str) -> Iterator[Node]:
    return (n for n in walk(node) if n.type in types)


def ancestors(node: Node) -> Iterator[Node]:
    """Parents, nearest first."""
    parent = node.parent
    while parent is not None:
        yield parent
        parent = parent.parent


def enclosing(node: Node, *types: str) -> Node | None:
    return next((n for n in ancestors(node) if n.type in types), None)


def node_at(root: Node, start: int, end: int) -> Node | None:
    """The smallest named node that covers bytes [start, end)."""
    return root.named_descendant_for_byte_range(start, end)
