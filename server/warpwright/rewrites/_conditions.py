"""Whether every iteration of a loop comes to a piece of its code."""

from __future__ import annotations

from collections.abc import Iterator

from tree_sitter import Node

from warpwright.syntax.nodes import LOOPS, ancestors, descendants, enclosing

_CONDITIONAL = ("if_statement", "switch_statement", "conditional_expression")


def deciding_conditions(node: Node, loop: Node) -> Iterator[Node]:
    """What decides within the loop whether the node is evaluated, the innermost first."""
    child = node
    for parent in ancestors(node):
        if parent == loop:
            return
        first = parent.child_by_field_name("condition") or parent.child_by_field_name("left")
        decides = parent.type in _CONDITIONAL or (
            parent.type == "binary_expression" and any(c.type in ("&&", "||") for c in parent.children)
        )
        if decides and (first is None or child != first):
            yield parent
        child = parent


def jumps_before(node: Node, loop: Node) -> Iterator[Node]:
    """What may leave the iteration before it comes to the node."""
    for jump in descendants(loop, "break_statement", "continue_statement", "return_statement", "goto_statement"):
        left = enclosing(jump, *LOOPS) if jump.type in ("break_statement", "continue_statement") else loop
        around = left is not None and left.start_byte <= node.start_byte < left.end_byte
        if around and jump.end_byte <= node.start_byte:
            yield jump
