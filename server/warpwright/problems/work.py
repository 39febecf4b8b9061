"""How much a kernel does at a shape, as far as its text says: threads, and iterations of the loops of each."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

from tree_sitter import Node

from warpwright.facts.model import Kernel
from warpwright.problems.expressions import ExpressionError, Value, evaluate
from warpwright.problems.model import Problem
from warpwright.problems.shapes import Shape
from warpwright.syntax.nodes import ancestors, descendants
from warpwright.syntax.source import Source


def work_at(kernel: Kernel, problem: Problem, shape: Shape) -> int:
    """Threads of the launch times the iterations of the deepest loops that each runs; loops whose bounds are not the
    kernel's parameters, and those that step by more than 1, as one iteration. 0 where it cannot be launched."""
    try:
        case = problem.case(shape)
    except ExpressionError:
        return 0
    threads = math.prod(case.grid) * math.prod(case.block)
    loops = list(descendants(kernel.node, "for_statement")) if kernel.node is not None else []
    counts = {loop.start_byte: _iterations(kernel.source, loop, case.scalars) for loop in loops}
    nests = (math.prod(counts.get(n.start_byte, 1) for n in _around(loop)) for loop in loops)
    return threads * max(nests, default=1)


def _around(loop: Node) -> list[Node]:
    return [loop, *(n for n in ancestors(loop) if n.type == "for_statement")]


def _iterations(source: Source, loop: Node, values: Mapping[str, Value]) -> int:
    """Of `for (int i = 0; i < n; i++)`, by the values of parameters."""
    condition, update = loop.child_by_field_name("condition"), loop.child_by_field_name("update")
    left = condition.child_by_field_name("left") if condition is not None else None
    right = condition.child_by_field_name("right") if condition is not None else None
    operator = condition.child_by_field_name("operator") if condition is not None else None
    if left is None or right is None or operator is None or update is None or operator.type not in ("<", "<="):
        return 1
    name = re.escape(source.plain_text(left))
    if not re.fullmatch(rf"{name}\+\+|\+\+{name}|{name}\+=1", re.sub(r"\s+", "", source.node_code(update))):
        return 1
    try:
        return max(1, int(evaluate(source.plain_text(right), values)))
    except ExpressionError:
        return 1
