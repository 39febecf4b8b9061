"""Loops of few steps, which take no longer than to move what they work on."""

from __future__ import annotations

from tree_sitter import Node

from warpwright.rewrites._indices import Indices
from warpwright.rewrites._loops import counted_loop
from warpwright.syntax.nodes import LOOPS, descendants

SHORT = 16
"""Steps of a loop over which the time of an element is still that of moving it."""


def is_short(indices: Indices, node: Node) -> bool:
    """Whether a loop is known to have so few steps, and holds no other loop."""
    loop = counted_loop(indices.kernel.source, node) if node.type == "for_statement" else None
    if loop is None or any(inner != node for inner in descendants(node, *LOOPS)):
        return False
    start, bound = indices.number(loop.start), indices.number(loop.bound)
    return start is not None and bound is not None and bound - start <= SHORT
