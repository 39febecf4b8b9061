"""Whether the comment at a place holds a formula."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tree_sitter import Node

from warpwright.assist.comment_request import comment_above
from warpwright.facts.model import Kernel
from warpwright.formulas.lexer import FormulaError
from warpwright.formulas.model import Formula
from warpwright.formulas.resolve import formula_of
from warpwright.syntax.nodes import ancestors
from warpwright.syntax.source import Source

_SIGNS = re.compile(r"^\s*(?://+!?|/\*+!?|\*(?!/|\*))?\s?|\s*\*+/\s*$")
_EQUATION = re.compile(r"^\s*[A-Za-z_][\w.]*'?\s*(?:\[[^=]*\])?\s*(?:\+|\*|max|min)?=(?!=)\s*\S")
_READ_AS = re.compile(r"^\s*(?:draft, )?read as:\s*(?=\S)")
"""How the line begins in which ghost text says what it took a comment to mean."""
MOST_LINES = 60


@dataclass(frozen=True, slots=True)
class FormulaComment:
    """A formula in a comment; `placed` is the byte at which what is written for it begins, a line's start or the
    file's end."""

    formula: Formula
    placed: int


def formula_at(source: Source, offset: int) -> FormulaComment | None:
    """The formula in the comment around a byte, or just above it, outside of functions. Prose may stand above or below.
    A line that says what the prose was read as is the formula.

    >>> text = b"// Rows that sum to 1:\\n// y[r, c] = x[r, c] / sum[c] x[r, c]\\nint n;\\n"
    >>> found = formula_at(Source("a.cu", text), 30)
    >>> found.formula.text, found.placed
    ('y[r, c] = x[r, c] / sum[c] x[r, c]', 61)
    """
    comments = _comments_at(source, offset)
    if not comments or any(n.type in ("compound_statement", "field_declaration_list") for n in ancestors(comments[0])):
        return None
    formula = said_in(lines_of(map(source.node_text, comments)))
    if formula is None:
        return None
    end = source.data.find(b"\n", comments[-1].end_byte)
    return FormulaComment(formula, end + 1 if end >= 0 else len(source.data))


def formula_of_kernel(kernel: Kernel) -> Formula | None:
    """The formula in the comment just above a kernel."""
    if kernel.node is None:
        return None
    outer = kernel.node.parent
    node = outer if outer is not None and outer.type == "template_declaration" else kernel.node
    found = formula_at(kernel.source, node.start_byte)
    return None if found is None else found.formula


def lines_of(comments: Iterable[str]) -> list[str]:
    """The lines of comments without their signs."""
    return [_SIGNS.sub("", line) for each in comments for line in each.splitlines()]


def said_in(lines: list[str]) -> Formula | None:
    """The formula that the lines of a comment say: that of a line that says what the others were read as, else the
    longest run of lines that is one."""
    read_as = [_READ_AS.sub("", line) for line in lines if _READ_AS.match(line)]
    return _formula(read_as[-1]) if read_as else formula_in(lines[:MOST_LINES])


def formula_above(source: Source, offset: int) -> FormulaComment | None:
    """The formula in the comment just above a cursor on an empty line, below which nothing is written yet."""
    return formula_at(source, offset) if comment_above(source, offset) is not None else None


def formula_in(lines: list[str]) -> Formula | None:
    """The longest run of lines that is a formula, an equation among them.

    >>> formula_in(["How often each bin occurs:", "h: i32[64]", "h[bin[i]] += 1"]).text
    'h: i32[64]\\nh[bin[i]] += 1'
    """
    found = (_formula("\n".join(lines[first:last]).strip("\n")) for first, last in _runs(lines))
    return next((each for each in found if each is not None), None)


def _formula(text: str) -> Formula | None:
    try:
        return formula_of(text)
    except FormulaError:
        return None


def _runs(lines: list[str]) -> Iterator[tuple[int, int]]:
    """Runs of lines with an equation, those that begin first, the longest of them first."""
    equations = [number for number, line in enumerate(lines) if _EQUATION.match(line)]
    if not equations:
        return
    declared = [n for n, line in enumerate(lines) if re.match(r"^\s*[A-Za-z_]\w*\s*:\s*[A-Za-z]\w*\s*(\[|\{|$)", line)]
    for first in sorted({*equations, *(n for n in declared if n < equations[-1])}):
        for last in range(len(lines), max(first, equations[0]), -1):
            yield first, last


def _comments_at(source: Source, offset: int) -> list[Node]:
    """The comment around a place or above it, with the line comments that it goes on from and that go on from it."""
    node = _one_at(source, offset)
    if node is None:
        return []
    found = [node]
    if source.node_text(node).startswith("//"):
        while (above := found[0].prev_sibling) is not None and _continues(source, above, found[0]):
            found.insert(0, above)
        while (below := found[-1].next_sibling) is not None and _continues(source, found[-1], below):
            found.append(below)
    return found


def _continues(source: Source, one: Node, other: Node) -> bool:
    both = all(each.type == "comment" and source.node_text(each).startswith("//") for each in (one, other))
    return both and one.end_point.row + 1 == other.start_point.row


def _one_at(source: Source, offset: int) -> Node | None:
    before = source.data[:offset]
    for at in (offset, offset - 1, len(before.rstrip()) - 1):
        node = source.root.descendant_for_byte_range(at, at) if 0 <= at < len(source.data) else None
        if node is not None and node.type == "comment" and source.data[node.end_byte : offset].count(b"\n") <= 1:
            return node
    return None
