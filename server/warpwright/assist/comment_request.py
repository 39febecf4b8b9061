"""Whether a comment above the cursor asks for a kernel. Pure: no model is needed to tell."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tree_sitter import Node

from warpwright.syntax.nodes import ancestors
from warpwright.syntax.source import Source

# "kernel: add two vectors", "CUDA kernel that adds ...", "write a fast kernel for ...". A comment that describes code
# ("the kernel is slow", "kernel launch follows") asks for nothing.
_ASKS = re.compile(
    r"""
      (?:cuda\s+)?kernel\s*:\s*(\S.*)
    | (?:an?\s+)?(?:\w+\s+)?cuda\s+kernel\s+(?:that|which|to|for)\s+(\S.*)
    | an?\s+(?:\w+\s+)?kernel\s+(?:that|which|to|for)\s+(\S.*)
    | (?:write|generate|create|implement)\s+(?:me\s+)?(?:an?\s+)?((?:\w+\s+){0,3}kernel\s+\S.*)
    """,
    re.IGNORECASE | re.VERBOSE,
)
_SIGNS = re.compile(r"^\s*(?://+!?|/\*+!?|\*(?!/))|\*+/\s*$")  # //, ///, /**, a star that starts a line, */
_WRITTEN_ALREADY = re.compile(rb"\s*(?:__global__|__device__|template\b|extern\b|static\b|#)")


def requested_kernel(source: Source, offset: int) -> str | None:
    """The kernel that the comment just above a cursor asks for, or at whose end it stands, in its words; None if there
    is no such request.

    The comment stands outside functions, at most one blank line lies between it and the cursor (a byte offset), behind
    which its line is empty, and neither more of the comment nor a declaration follows that may be the answer.

    >>> text = b"// kernel: add two\\n// vectors\\n"
    >>> requested_kernel(Source("a.cu", text), len(text))
    'add two vectors'
    >>> text = b"// the kernel is slow\\n"
    >>> requested_kernel(Source("a.cu", text), len(text)) is None
    True
    """
    comment = comment_above(source, offset)
    if comment is None:
        return None
    match = _ASKS.match(words_of(source, comment))
    return next(words for words in match.groups() if words) if match else None


def comment_above(source: Source, offset: int) -> Node | None:
    """The comment above a cursor, or at whose end it stands, where what it asks for may be written, as
    `requested_kernel` says."""
    before, after = source.data[:offset], source.data[offset:]
    above = before.rstrip()
    newlines = before[len(above) :].count(b"\n")
    if not above or newlines > 2 or after.split(b"\n", 1)[0].strip() or _WRITTEN_ALREADY.match(after):
        return None
    if not newlines and after.lstrip().startswith(b"//"):
        return None
    comment = source.root.descendant_for_byte_range(len(above) - 1, len(above) - 1)
    if comment is None or comment.type != "comment" or source.data[len(above) : comment.end_byte].strip():
        return None
    if not newlines and source.data[: comment.start_byte].rpartition(b"\n")[2].strip():
        return None  # behind code, which it speaks of
    if any(node.type in ("compound_statement", "field_declaration_list") for node in ancestors(comment)):
        return None
    return comment


@dataclass(frozen=True, slots=True)
class Asked:
    """What a comment asks for, and the byte offset at which the kernel is to be placed: behind the comment's line."""

    words: str
    placed: int


def asked_at(source: Source, offset: int) -> Asked | None:
    """What the comment asks for in which a cursor (a byte offset) stands, or which ends just above it.

    Who runs a command on a comment means it: it need not name a kernel. None where there is none, or one in a function.

    >>> asked_at(Source("a.cu", b"// add two\\n// vectors\\nint x;"), 3)
    Asked(words='add two vectors', placed=22)
    """
    comment = _comment_at(source, offset)
    if comment is None or any(n.type in ("compound_statement", "field_declaration_list") for n in ancestors(comment)):
        return None
    below = comment.next_sibling
    while (
        below is not None
        and source.node_text(comment).startswith("//")
        and source.node_text(below).startswith("//")
        and below.start_point.row == comment.end_point.row + 1
    ):
        comment, below = below, below.next_sibling
    words = words_of(source, comment)
    match = _ASKS.match(words)
    end = source.data.find(b"\n", comment.end_byte)
    placed = end + 1 if end >= 0 else len(source.data)
    wanted = next(group for group in match.groups() if group) if match else words
    return Asked(wanted, placed) if wanted else None


def _comment_at(source: Source, offset: int) -> Node | None:
    """The comment around a place, or above a place on a blank line the one that ends there with one such line between
    them at most."""
    before, after = source.data[:offset], source.data[offset:]
    line = before[before.rfind(b"\n") + 1 :] + after.split(b"\n", 1)[0]
    above = (len(before.rstrip()) - 1,) if not line.strip() else ()
    for at in (offset, offset - 1, *above):
        node = source.root.descendant_for_byte_range(at, at) if 0 <= at < len(source.data) else None
        if node is not None and node.type == "comment" and source.data[node.end_byte : offset].count(b"\n") <= 2:
            return node
    return None


def words_of(source: Source, comment: Node) -> str:
    """The text of a comment and of the line comments directly above it, without their signs, on one line."""
    lines: list[str] = []
    last: Node | None = comment
    while last is not None and last.type == "comment":
        text = source.node_text(last)
        lines.insert(0, text)
        above = last.prev_sibling
        continues = text.startswith("//") and above is not None and source.node_text(above).startswith("//")
        last = above if continues and above is not None and above.end_point.row + 1 == last.start_point.row else None
    bare = (_SIGNS.sub("", line) for text in lines for line in text.splitlines())
    return " ".join(" ".join(bare).split())
