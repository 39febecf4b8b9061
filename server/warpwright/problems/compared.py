"""The numbers that a kernel's text compares with, so that values on both sides of each can be tried; and those by which
it multiplies or divides, so that values can be tried that rounding meets half-way.

Example: 1000 of `if (x > 1000.0f)`, 123456 of `if (i == 123456)`, 6 of `fminf(x, 6.0f)` and 3 of `case 3:`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

from tree_sitter import Node

from warpwright.cuda.walks import nodes_below
from warpwright.facts.model import Kernel, Program
from warpwright.problems.expressions import ExpressionError, Number, Value
from warpwright.problems.host import HostExpressions
from warpwright.syntax.names import unqualified
from warpwright.syntax.nodes import uncommented, walk
from warpwright.syntax.source import Source

MOST_NUMBERS = 32
ALWAYS_TRIED = 8
"""Whole numbers up to this are among the values of each run."""
_COMPARISONS = ("<", "<=", ">", ">=", "==", "!=")
_LIMITS = ("min", "max", "fmin", "fmax", "fminf", "fmaxf", "__hmin", "__hmax", "clamp")
_SCALES = ("*", "/", "%", "&")
_OF_A_BLOCK = re.compile(r"threadIdx\.[xyz]|warpSize|lane\w*|warp\w*|tid")


def scaling_numbers(program: Program, kernel: Kernel) -> tuple[Value, ...]:
    """The numbers by which the kernel and the program's device functions multiply or divide, or of which they take the
    remainder or the bits, smallest first."""
    found: set[Value] = set()
    for source, function in _device_code(program, kernel):
        constants = _Constants(HostExpressions(program, source, None), source, function)
        for node in walk(function):
            operator = node.child_by_field_name("operator")
            if node.type != "binary_expression" or operator is None or source.node_text(operator) not in _SCALES:
                continue
            for side in (node.child_by_field_name("left"), node.child_by_field_name("right")):
                value = constants.value(side) if side is not None else None
                if value is not None and math.isfinite(value) and abs(value) not in (0, 1):
                    found.add(value)
    return tuple(sorted(found)[:MOST_NUMBERS])


def compared_numbers(program: Program, kernel: Kernel) -> tuple[Value, ...]:
    """Those of the kernel and of the program's device functions, smallest first; not those that every run tries."""
    found: set[Value] = set()
    for source, function in _device_code(program, kernel):
        for value in _numbers(_Constants(HostExpressions(program, source, None), source, function), function):
            is_small = value == int(value) and abs(value) <= ALWAYS_TRIED if math.isfinite(value) else True
            found |= set() if is_small else {value}
    return tuple(sorted(found)[:MOST_NUMBERS])


def _device_code(program: Program, kernel: Kernel) -> Iterator[tuple[Source, Node]]:
    """The kernel and the program's device functions, each with the file that it stands in."""
    for source in program.sources.values():
        for function in nodes_below(source, source.root, "function_definition"):
            kinds = {child.type for child in function.children}
            if _is_of(source, function, kernel) or ("__device__" in kinds and "__global__" not in kinds):
                yield source, function


def _is_of(source: Source, function: Node, kernel: Kernel) -> bool:
    return kernel.node is not None and (source.path, function.start_byte) == (
        kernel.source.path,
        kernel.node.start_byte,
    )


def _numbers(constants: _Constants, function: Node) -> Iterator[Value]:
    text = constants.source.plain_text
    for node in walk(function):
        if node.type == "binary_expression":
            operator = node.child_by_field_name("operator")
            sides = [node.child_by_field_name("left"), node.child_by_field_name("right")]
            if operator is None or text(operator) not in _COMPARISONS or None in sides:
                continue
            values = [constants.value(side) for side in sides if side is not None]
            others = [text(side) for side in reversed(sides) if side is not None]
            if None in values:
                yield from (
                    v for v, o in zip(values, others, strict=True) if v is not None and not _OF_A_BLOCK.fullmatch(o)
                )
        elif node.type == "call_expression":
            called = node.child_by_field_name("function")
            if called is not None and unqualified(text(called)) in _LIMITS:
                given = uncommented(node.child_by_field_name("arguments"))
                yield from (value for each in given if (value := constants.value(each)) is not None)
        elif node.type == "case_statement":
            label = node.child_by_field_name("value")
            if label is not None and (value := constants.value(label)) is not None:
                yield value


class _Constants:
    """What expressions of a function are worth by the file's constants and the function's own."""

    def __init__(self, outside: HostExpressions, source: Source, function: Node) -> None:
        self.outside = outside
        self.source = source
        self.own: dict[str, Node] = {}
        for declared in nodes_below(source, function, "init_declarator"):
            name, value = declared.child_by_field_name("declarator"), declared.child_by_field_name("value")
            around = declared.parent
            kinds = {source.plain_text(c) for c in around.children if c.type == "type_qualifier"} if around else set()
            if name is not None and value is not None and kinds & {"const", "constexpr"}:
                self.own[source.plain_text(name)] = value

    def value(self, node: Node) -> Value | None:
        """None for what is no constant."""
        node = self.own.get(self.source.plain_text(node), node)
        try:
            expression = self.outside.resolve(node)
        except ExpressionError:
            return None
        return expression.value if isinstance(expression, Number) else None
