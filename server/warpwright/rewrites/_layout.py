"""Names, indents and lines for what a rewrite adds to a text."""

from __future__ import annotations

import re

from tree_sitter import Node

from warpwright.syntax.edits import TextEdit
from warpwright.syntax.source import Source


def free_name(text: str, wanted: str) -> str:
    """`wanted`, with a number behind it where the text uses the name already.

    >>> free_name("int lane = 0;", "lane"), free_name("int lanes;", "lane")
    ('lane2', 'lane')
    """
    names = (wanted, *(f"{wanted}{n}" for n in range(2, 1000)))
    return next(name for name in names if not re.search(rf"\b{name}\b", text))


def indent_unit(source: Source, block: Node) -> str:
    """By what the statements of a block in braces stand further in than the line that opens it; two spaces where
    nothing tells."""
    function = block.parent if block.parent is not None and block.parent.type == "function_definition" else block
    outer = source.line_indent(function.start_byte)
    for child in block.named_children:
        inner = source.line_indent(child.start_byte)
        opens_line = not source.text(_line_start(source, child.start_byte), child.start_byte).strip()
        if child.type not in ("comment", "preproc_call") and opens_line and inner.startswith(outer) and inner != outer:
            return inner[len(outer) :]
    return "  "


def _line_start(source: Source, offset: int) -> int:
    return source.line_starts[source.position(offset)[0] - 1]


def line_of(source: Source, node: Node) -> int:
    """The line where a node starts, from 1."""
    return source.position(node.start_byte)[0]


def before_statement(source: Source, node: Node, lines: list[str]) -> TextEdit:
    """Lines put before a statement, at its indent, and before the directives that are its own: `#pragma unroll`."""
    indent, first = source.line_indent(node.start_byte), node
    while (before := first.prev_named_sibling) is not None and before.type == "preproc_call":
        first = before
    if first is not node:
        at = _line_start(source, first.start_byte)
        return TextEdit(at, at, "".join(f"{indent}{line}\n" for line in lines))
    return TextEdit(node.start_byte, node.start_byte, "".join(f"{line}\n{indent}" for line in lines))


def after_statement(source: Source, node: Node, lines: list[str]) -> TextEdit:
    """Lines put after a statement, and behind a comment on its last line, at the indent of the line where it starts."""
    indent = source.line_indent(node.start_byte)
    at = node.end_byte
    following = node.next_sibling
    if following is not None and following.type == "comment":
        same_line = source.position(following.start_byte)[0] == source.position(node.end_byte)[0]
        at = following.end_byte if same_line else at
    return TextEdit(at, at, "".join(f"\n{indent}{line}" for line in lines))


def without_lines(source: Source, node: Node) -> TextEdit:
    """Delete a statement, and its lines where nothing else is on them."""
    return without_text(source, node.start_byte, node.end_byte)


def without_text(source: Source, start: int, end: int) -> TextEdit:
    """Delete bytes [start, end), and their lines where nothing else is on them."""
    line_start = _line_start(source, start)
    last = source.position(end)[0]
    line_end = source.line_starts[last] if last < len(source.line_starts) else len(source.data)
    alone = not source.text(line_start, start).strip() and not source.text(end, line_end).strip()
    return TextEdit(line_start, line_end, "") if alone else TextEdit(start, end, "")


def with_comment(source: Source, node: Node) -> tuple[int, int]:
    """From a statement's first byte to the end of a comment behind it on its last line."""
    following = node.next_named_sibling
    if (
        following is not None
        and following.type == "comment"
        and "\n" not in source.code_text(node.end_byte, following.start_byte)
    ):
        return node.start_byte, following.end_byte
    return node.start_byte, node.end_byte


def with_comments(source: Source, node: Node) -> tuple[int, int]:
    """As `with_comment`, from the first of the comments on lines of their own before the statement."""
    start, end = with_comment(source, node)
    before = node.prev_named_sibling
    while before is not None and before.type == "comment":
        if source.text(_line_start(source, before.start_byte), before.start_byte).strip():
            break
        start, before = before.start_byte, before.prev_named_sibling
    return start, end


def reindented(text: str, old: str, new: str) -> str:
    """A statement's text, from its first character on, at another indentation; its first line has none in the text.

    >>> reindented("for (;;)\\n    f();", "  ", "    ")
    'for (;;)\\n      f();'
    """
    first, *rest = text.split("\n")
    moved = [new + line[len(old) :] if line.startswith(old) and line.strip() else line for line in rest]
    return "\n".join([first, *moved])
