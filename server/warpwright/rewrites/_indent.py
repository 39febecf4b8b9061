"""Lines around what is put into a loop or a condition."""

from __future__ import annotations

import re
from collections.abc import Iterable

from tree_sitter import Node

from warpwright.syntax.edits import TextEdit
from warpwright.syntax.encoding import encoded
from warpwright.syntax.source import Source


def opens_line(source: Source, node: Node) -> bool:
    """Whether nothing stands before a node in its line."""
    return not source.text(source.line_starts[source.position(node.start_byte)[0] - 1], node.start_byte).strip()


def end_with_comment(source: Source, end: int) -> int:
    """The end of a comment that follows in the same line, else the place itself."""
    rest = source.text(end, min(len(source.data), end + 400)).split("\n")[0]
    comment = re.match(r"[ \t]*(?://.*|/\*.*?\*/[ \t]*$)", rest)
    return end + len(encoded(comment.group().rstrip())) if comment else end


def blank_lines_end(source: Source, start: int) -> int:
    """Where the last of the blank lines starts that follow a place; the place itself where none does."""
    blank = re.match(rb"(?:[ \t]*\r?\n)*(?=[ \t]*\r?\n)", source.data[start:])
    return start + blank.end() if blank else start


def indented(source: Source, statements: Iterable[Node], unit: str) -> list[TextEdit]:
    """Edits that move whole lines of statements further in; none for lines that another statement shares."""
    nodes = list(statements)
    if not nodes or not opens_line(source, nodes[0]):
        return []
    first, last = source.position(nodes[0].start_byte)[0], source.position(nodes[-1].end_byte)[0]
    starts = [source.line_starts[line - 1] for line in range(first, last + 1) if source.line_text(line).strip()]
    return [TextEdit(start, start, unit) for start in starts]


def braced_lines(head: str, lines: list[str], unit: str) -> list[str]:
    """A loop or a condition over lines, which are one step further in; in braces where there are several."""
    if len(lines) == 1:
        return [head, unit + lines[0]]
    return [f"{head} {{", *(unit + line for line in lines), "}"]
