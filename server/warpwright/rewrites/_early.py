"""`if (i >= n) return;` at the outermost level of a kernel, made an `if (i < n) {...}` around what follows it.

Every thread then comes to the end of the kernel, where a barrier or an operation of a whole warp may stand.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from tree_sitter import Node

from warpwright.cuda.numbers import number_at
from warpwright.facts.model import Kernel
from warpwright.facts.types import builtin_type
from warpwright.rewrites._code import condition_of, squeezed
from warpwright.rewrites._guards import comparisons, is_early_return
from warpwright.rewrites._layout import indent_unit, line_of
from warpwright.rewrites._locals import locals_of
from warpwright.rewrites._threads import NUMBERS
from warpwright.syntax.edits import TextEdit
from warpwright.syntax.nodes import descendants
from warpwright.syntax.source import Source


def early_returns(source: Source, block: Node) -> list[Node] | str:
    """The early returns of a kernel's outermost level, or the reason why a `return` is none."""
    found = [child for child in block.named_children if is_early_return(child)]
    for leave in descendants(block, "return_statement"):
        if not any(early.start_byte <= leave.start_byte < early.end_byte for early in found):
            return f"Threads may leave at line {line_of(source, leave)}."
    return found


def negated(kernel: Kernel, branch: Node) -> str:
    """What holds where the condition of an `if` does not: `i < n` for `if (i >= n)` with integers, else `!(...)`, which
    a NaN passes as it failed the other."""
    source, types = kernel.source, locals_of(kernel).types
    test = condition_of(branch)
    conditions = comparisons(source, test, leaves=True) if test is not None else None
    if test is not None and conditions and is_integer_text(source, test, types):
        return " && ".join(condition.text(source) for condition in conditions)
    text = source.node_text(test) if test is not None else ""
    return f"!{text}" if squeezed(text).isidentifier() else f"!({text})"


def is_integer_text(source: Source, node: Node, types: Mapping[str, str]) -> bool:
    """Whether an expression is plainly one of integers: of literals, the thread's index, constants and variables of
    integer types, elements of such pointers among them."""
    if any(True for _ in descendants(node, "call_expression", "cast_expression")):
        return False
    for number in descendants(node, "number_literal"):
        if not re.fullmatch(r"(?:0[xX][\da-fA-F]+|\d+)[uUlL]*", source.node_code(number)):
            return False
    for name in descendants(node, "identifier"):
        text = source.node_text(name)
        kind = builtin_type(types[text]) if text in types else None
        if text not in NUMBERS and number_at(source, name, text) is None and not (kind is not None and kind.is_integer):
            return False
    return True


def around_rest(kernel: Kernel, block: Node, early: Node, last: Node) -> list[TextEdit]:
    """Put what follows an early return, up to the statement `last`, into braces of the opposite condition, indented."""
    source, unit = kernel.source, indent_unit(kernel.source, block)
    edits = [TextEdit(early.start_byte, early.end_byte, f"if ({negated(kernel, early)}) {{")]
    first = source.position(early.end_byte)[0]
    until = source.position(last.end_byte)[0]
    for line in range(first + 1, until + 1):
        text = source.line_text(line)
        if text.strip() and not text.lstrip().startswith("#"):
            start = source.line_starts[line - 1]
            edits.append(TextEdit(start, start, unit))
    return edits


def closing(unit: str, depth: int) -> list[str]:
    """The braces that end what was put behind conditions, the innermost first."""
    return [f"{unit * (depth - 1 - level)}}}" for level in range(depth)]


def without_overlap(edits: list[TextEdit]) -> list[TextEdit]:
    """The edits but for the indents of lines that another edit replaces."""
    replaced = [edit for edit in edits if edit.start < edit.end]
    return [e for e in edits if e.start < e.end or not any(r.start < e.start < r.end for r in replaced)]
