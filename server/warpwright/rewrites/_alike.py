"""Whether all threads of a block come to a place, equally often."""

from __future__ import annotations

from tree_sitter import Node

from warpwright.facts.model import Kernel
from warpwright.rewrites._code import NoMatchError
from warpwright.rewrites._layout import line_of
from warpwright.rewrites._locals import locals_of
from warpwright.rewrites._uniform import is_even_loop, is_uniform
from warpwright.syntax.nodes import ancestors


def require_alike_around(kernel: Kernel, block: Node, node: Node) -> None:
    """All threads of a block come to a statement, or an expression, equally often. Raises NoMatchError."""
    source, variables = kernel.source, locals_of(kernel)
    for around in ancestors(node):
        if around == block:
            return
        if around.type == "compound_statement" or not around.type.endswith("_statement"):
            continue
        if around.type in ("expression_statement", "return_statement"):
            continue
        clause = around.child_by_field_name("condition")
        value = clause.child_by_field_name("value") if clause is not None and around.type == "if_statement" else None
        alike = value is not None and is_uniform(kernel, variables, value)
        if not alike and not (around.type == "for_statement" and is_even_loop(kernel, around)):
            raise NoMatchError(
                f"What stands at line {line_of(source, around)} around the branch may part the block as well."
            )
