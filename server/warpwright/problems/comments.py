"""What directives share, of a kernel and of an extension's function: where they stand, and sizes as they write them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from tree_sitter import Node

from warpwright.problems.expressions import ExpressionError
from warpwright.problems.shapes import Shape
from warpwright.syntax.source import Source

_SIZE = re.compile(r"([A-Za-z_]\w*)\s*=\s*(\d+)")


def directive_pattern(verbs: str) -> re.Pattern[str]:
    """Matches a line of a comment that is a directive: one of the verbs, parted by `|`, and the rest."""
    return re.compile(rf"^\s*(?://+|/?\*+)?\s*warpwright:\s*({verbs})\b\s*(.*?)\s*(?:\*/)?$")


def take_directives(source: Source, node: Node, pattern: re.Pattern[str], take: Callable[[str, str], None]) -> None:
    """Hand the verb and the rest of each directive above a definition to `take`.

    Raises ExpressionError, with the line, for one that `take` cannot read.
    """
    for line, verb, rest in _directives_above(source, node, pattern):
        try:
            take(verb, rest)
        except ExpressionError as error:
            raise ExpressionError(
                f"{source.path}:{line}: the directive `{verb} {rest}` cannot be read: {error}"
            ) from None


def _directives_above(source: Source, node: Node, pattern: re.Pattern[str]) -> Iterator[tuple[int, str, str]]:
    """(line, verb, rest) in the comments that stand directly above a definition, its template line included."""
    if node.parent is not None and node.parent.type == "template_declaration":
        node = node.parent
    comments = []
    before = node.prev_sibling
    while before is not None and before.type == "comment":
        comments.append(before)
        before = before.prev_sibling
    for comment in reversed(comments):
        first = source.position(comment.start_byte)[0]
        for offset, text in enumerate(source.node_text(comment).splitlines()):
            if match := pattern.match(text):
                yield first + offset, match[1], match[2]


def read_sizes(text: str) -> Shape:
    """`width=4096 height=4096` as a shape. Raises ExpressionError.

    >>> read_sizes("width=4096, height = 33")
    {'width': 4096, 'height': 33}
    """
    shape: Shape = {name: int(value) for name, value in _SIZE.findall(text)}
    if not shape or _SIZE.sub("", text).strip(" ,"):
        raise ExpressionError("expected `symbol=value`, one or more")
    return shape
