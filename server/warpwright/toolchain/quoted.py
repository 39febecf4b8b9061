"""Where in a source line a compiler's caret points.

nvcc shows a line after the preprocessor: without comments, with macros expanded, with `__global__` spelled out. So the
tokens of both are set beside each other; what has no counterpart is in a macro's expansion.
"""

from __future__ import annotations

import re
from difflib import SequenceMatcher

_TOKEN = re.compile(
    r'"(?:\\.|[^"\\])*"?|\'(?:\\.|[^\'\\])*\'?|(?:[^\W\d]|\\[uU][0-9a-fA-F]{4,8})(?:\w|\\[uU][0-9a-fA-F]{4,8})*'
    r"|\.?\d[\w.']*|<<<|>>>|::|->|[-+*/%&|^<>=!]=|&&|\|\||\+\+|--|[^\w\s]"
)
_COMMENT = re.compile(r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'|/\*.*?(?:\*/|$)|//.*$')
_ESCAPE = re.compile(r"\\[uU]([0-9a-fA-F]{4,8})")
_MOST_TOKENS = 400
"""Of a line; to set longer ones beside each other takes too long."""

Columns = tuple[int, int]
"""The characters of a line from the first, counted from 0, to behind the last."""


def columns_of(line: str, quoted: str, caret: int) -> Columns:
    """The token of `line` that is meant by character `caret` of `quoted`, the same line as the compiler shows it; the
    macro where an expansion is meant; all of the line's text where nothing is quoted.

    >>> line = "  /* é */ out[i] = f(x, y); // f"
    >>> first, last = columns_of(line, "  out[i] = f(x, y);", 11)
    >>> line[first:last], line[:first]
    ('f', '  /* é */ out[i] = ')
    >>> line = "  a = TWICE(b) + c;"
    >>> [line[slice(*columns_of(line, "  a = (2 * b) + c;", at))] for at in (2, 9, 16)]
    ['a', 'TWICE', 'c']
    """
    tokens = [match.span() for match in _TOKEN.finditer(_without_comments(line))]
    shown = [match.span() for match in _TOKEN.finditer(quoted)]
    whole = len(line) - len(line.lstrip()), max(len(line.rstrip()), len(line) - len(line.lstrip()))
    if caret < 0 or not tokens or len(tokens) > _MOST_TOKENS or len(shown) > _MOST_TOKENS:
        return whole
    wanted = next((index for index, (_, end) in enumerate(shown) if caret < end), len(shown) - 1)
    mine = [line[start:end] for start, end in tokens]
    theirs = [unescaped(quoted[start:end]) for start, end in shown]
    before = 0
    for block in SequenceMatcher(None, mine, theirs, autojunk=False).get_matching_blocks():
        if block.b <= wanted < block.b + block.size:
            return tokens[block.a + wanted - block.b]
        if block.b > wanted:
            return _expanded(tokens, mine, theirs, before, block.a)
        before = block.a + block.size
    return tokens[-1]


def unescaped(text: str) -> str:
    r"""
    >>> unescaped(r'variable "\u00e9" was declared')
    'variable "é" was declared'
    """
    return _ESCAPE.sub(lambda match: _character(int(match[1], 16)), text)


def _character(code: int) -> str:
    return chr(code) if code < 0x110000 and not 0xD800 <= code < 0xE000 else "\N{REPLACEMENT CHARACTER}"


def _expanded(tokens: list[Columns], mine: list[str], theirs: list[str], start: int, end: int) -> Columns:
    """The macro whose expansion is meant, from tokens [start, end) of the line: the name that did not survive it."""
    gone = set(mine) - set(theirs)
    names = [index for index in range(end) if mine[index] in gone and mine[index].isidentifier()]
    if names:
        return tokens[names[-1]]
    return (tokens[start][0], tokens[end - 1][1]) if start < end else tokens[max(0, start - 1)]


def _without_comments(line: str) -> str:
    """The line with blanks for its comments, of which one may have begun above and one may end below."""
    opened, ended, _ = line.partition("*/")
    if ended and "/*" not in opened:
        line = " " * (len(opened) + 2) + line[len(opened) + 2 :]
    return _COMMENT.sub(lambda match: match[0] if match[0][0] in "\"'" else " " * len(match[0]), line)
