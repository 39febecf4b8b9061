"""Whether a comment above the cursor asks for a kernel. Pure: no model is needed to tell."""

from __future__ import annotations

import re

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
    """The kernel that the comment just above a cursor asks for, in its words; None if there is no such request.

    The comment stands outside functions, at most one blank line lies between it and the cursor (a byte offset), the
    cursor's line is empty, and no declaration follows that may be the answer.

    >>> text = b"// kernel: add two\\n// vectors\\n"
    >>> requested_kernel(Source("a.cu", text), len(text))
    'add two vectors'
    >>> text = b"// the kernel is slow\\n"
    >>> requested_kernel(Source("a.cu", text), len(text)) is None
    True
    """
    before, after = source.data[:offset], source.data[offset:]
    above = before.rstrip()
    newlines = before[len(above) :].count(b"\n")
    if not above or not 1 <= newlines <= 2 or after.split(b"\n", 1)[0].strip() or _WRITTEN_ALREADY.match(after):
        return None
    comment = source.root.descendant_for_byte_range(len(above) - 1, len(above) - 1)
    if comment is None or comment.type != "comment" or comment.end_byte != len(above):
        return None
    if any(node.type in ("compound_statement", "field_declaration_list") for node in ancestors(comment)):
        return None
    match = _ASKS.match(_words(source, comment))
    return next(words for words in match.groups() if words) if match else None


def _words(source: Source, comment: Node) -> str:
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
