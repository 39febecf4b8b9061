"""Whether a text that compiles may be shown behind a cursor: it closes what it opens, and does not stand there yet."""

from __future__ import annotations

from warpwright.syntax.encoding import encoded
from warpwright.syntax.source import Source

_LEAST_CHARACTERS = 8
"""Of a line that says something by itself."""


def unfit(source: Source, at: int, text: str, opened: int = 0) -> str:
    """Why a text is not shown at a byte offset, as a clause; "" where it may be. So many braces are `opened` before it
    that it closes.

    >>> source = Source("a.cu", b"// twice x\\n\\n__global__ void twice(float* x) {}\\n")
    >>> unfit(source, 11, "__global__ void twice(float* x) {}\\n"), unfit(source, 11, "int a;\\n}\\n")
    ('it repeats the text below', 'it closes a brace that it did not open')
    """
    depth = opened
    for character in Source("shown.cu", encoded(text)).code_text():
        depth += (character == "{") - (character == "}")
        if depth < 0:
            return "it closes a brace that it did not open"
    if depth:
        return "it leaves a brace open"
    below = next((line.strip() for line in source.text(at).splitlines() if line.strip()), "")
    if len(below) >= _LEAST_CHARACTERS and below in (line.strip() for line in text.splitlines()):
        return "it repeats the text below"
    return ""
