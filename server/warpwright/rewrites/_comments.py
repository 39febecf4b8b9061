"""The user's comments, kept by every rewrite: those of text that it replaces stand above what it makes of it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from tree_sitter import Node

from warpwright.rewrites.base import Rewrite
from warpwright.syntax.edits import TextEdit
from warpwright.syntax.encoding import decoded, encoded
from warpwright.syntax.nodes import descendants
from warpwright.syntax.source import Source

_OPENING = re.compile(rb"//|/\*")


def with_comments(rewrite: Rewrite) -> Rewrite:
    """The same with each comment of its source that its edits would drop, on a line of its own above the edit.

    A comment is kept where its words stand in the result's comments as often as before. One that ends in a backslash
    goes on in whatever line follows it: it is left to the rewrite.
    """
    source = rewrite.source
    if not any(_OPENING.search(source.data, edit.start, edit.end) for edit in rewrite.edits):
        return rewrite
    comments = list(descendants(source.root, "comment"))
    before, after = _text_of(source), _text_of(rewrite.apply())
    lost = {
        words: _count(words, before) - _count(words, after) for words in {_words(source, each) for each in comments}
    }
    taken = [
        *((each.start, each.end) for each in rewrite.edits),
        *((each.start_byte, each.end_byte) for each in comments),
    ]
    above: dict[int, list[str]] = {}
    for edit in rewrite.edits:
        for comment in comments:
            text, words = source.node_text(comment).rstrip(), _words(source, comment)
            is_inside = edit.start <= comment.start_byte and comment.start_byte + len(encoded(text)) <= edit.end
            if is_inside and lost[words] > 0 and not text.endswith("\\"):
                lost[words] -= 1
                above.setdefault(_line_above(source, edit.start, taken), []).append(text)
    newline = "\r\n" if b"\r\n" in source.data else "\n"
    added = [
        TextEdit(at, at, "".join(f"{_indent(source, at)}{text}{newline}" for text in texts))
        for at, texts in above.items()
    ]
    return replace(rewrite, edits=(*added, *rewrite.edits)) if added else rewrite


def _text_of(source: Source) -> str:
    """All comments, one a line: two that came to stand one behind the other in a line are one for the grammar."""
    return "\n".join(_words(source, each) for each in descendants(source.root, "comment"))


def _words(source: Source, comment: Node) -> str:
    return " ".join(source.node_text(comment).split())


def _count(words: str, comments: str) -> int:
    return len(re.findall(rf"(?<!\S){re.escape(words)}(?!\S)", comments))


def _line_above(source: Source, at: int, taken: Sequence[tuple[int, int]]) -> int:
    """The start of the line of a place; of an earlier one where it lies within what is `taken`, edits and comments, or
    the line goes on with a directive from the one before."""
    at = _start_of_line(source, at)
    while at:
        covering = next((start for start, end in taken if start < at < end), None)
        if covering is not None:
            at = _start_of_line(source, covering)
        elif source.data[:at].rstrip(b"\r\n").endswith(b"\\"):
            at = _start_of_line(source, at - 1)
        else:
            break
    return at


def _start_of_line(source: Source, at: int) -> int:
    return source.data.rfind(b"\n", 0, at) + 1


def _indent(source: Source, at: int) -> str:
    line = source.data[at:].partition(b"\n")[0]
    return decoded(line[: len(line) - len(line.lstrip(b" \t"))])
