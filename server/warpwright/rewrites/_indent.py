"""New text beside old: indented as its neighbours are, under names that are free."""

from __future__ import annotations

import re
from collections.abc import Iterable

from tree_sitter import Node

from warpwright.facts.model import Kernel
from warpwright.rewrites._code import macro_texts
from warpwright.syntax.edits import TextEdit
from warpwright.syntax.nodes import uncommented
from warpwright.syntax.source import Source


def indent_unit(source: Source, block: Node) -> str:
    """By how much the statements of a block stand further in than the line that opens it; two blanks where they stand
    on that line."""
    outer = source.line_indent(block.start_byte)
    for statement in uncommented(block):
        inner = source.line_indent(statement.start_byte)
        if inner.startswith(outer) and len(inner) > len(outer):
            return inner[len(outer) :]
    return "  "


def moved(text: str, old: str, new: str) -> str:
    """Lines that were indented by `old`, with `new` instead; the first line has no indent yet and gets none.

    >>> moved("a;\\n    if (b)\\n      c;", "    ", "  ")
    'a;\\n  if (b)\\n    c;'
    """
    first, *rest = text.split("\n")
    return "\n".join([first, *(new + line.removeprefix(old) if line.strip() else line for line in rest)])


def opens_line(source: Source, node: Node) -> bool:
    """Whether nothing stands before a node in its line."""
    return not source.text(source.line_starts[source.position(node.start_byte)[0] - 1], node.start_byte).strip()


def end_with_comment(source: Source, end: int) -> int:
    """The end of a comment that follows in the same line, else the place itself."""
    rest = source.text(end, min(len(source.data), end + 400)).split("\n")[0]
    comment = re.match(r"[ \t]*(?://.*|/\*.*?\*/[ \t]*$)", rest)
    return end + len(comment.group().rstrip().encode()) if comment else end


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


def free_name(kernel: Kernel, *wanted: str) -> str:
    """A name that neither a kernel nor a macro of its file uses: one of those wanted, or the first with a number."""
    used = set(re.findall(r"[A-Za-z_]\w*", kernel.span.text))
    for name, texts in macro_texts(kernel.source).items():
        used |= {name, *(word for text in texts for word in re.findall(r"[A-Za-z_]\w*", text))}
    return next(n for n in (*wanted, *(f"{wanted[0]}_{i}" for i in range(2, 10_000))) if n not in used)
