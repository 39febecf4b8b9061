"""Markdown in which text from a user's file can do no harm."""

from __future__ import annotations

import re
from pathlib import PurePath

_SHOWN = 100
_SPECIAL = "\\`*_{}[]<>#+|~"
_CODE = re.compile(r"(?<!`)(`+)(?!`).*?(?<!`)\1(?!`)")
"""As Markdown has it: a run of backticks up to the next of the same length."""


def code(text: str) -> str:
    """Source text as inline code on one line, cut where it is long.

    >>> code("a[i]"), code("x `y`"), code("``[x](y)``")
    ('`a[i]`', '`` x `y` ``', '``` ``[x](y)`` ```')
    """
    text = " ".join(text.split())
    if len(text) > _SHOWN:
        text = text[: _SHOWN - 1] + "…"
    if not text:
        return ""
    if "`" not in text:
        return f"`{text}`"
    fence = "`" * (1 + max(map(len, re.findall("`+", text))))
    return f"{fence} {text} {fence}"


def prose(text: str) -> str:
    """A sentence that may quote source text, with Markdown's own characters escaped; `code` spans in it are kept.

    >>> prose("lanes step by `n * 4` bytes: a<b>*")
    'lanes step by `n * 4` bytes: a\\\\<b\\\\>\\\\*'
    >>> prose("``` `` [x](y) `")
    '\\\\`\\\\`\\\\` \\\\`\\\\` \\\\[x\\\\](y) \\\\`'
    """
    text, at, out = " ".join(text.split()), 0, []
    for span in _CODE.finditer(text):
        out += [_escaped(text[at : span.start()]), span[0]]
        at = span.end()
    return "".join([*out, _escaped(text[at:])])


def place(source: str) -> str:
    """A place such as `/home/me/src/a.cu:41` by its file's name, which is what a hover has room for.

    >>> place("/home/me/src/a.cu:41"), place("__launch_bounds__")
    ('a.cu:41', '__launch_bounds__')
    """
    return PurePath(source).name or source


def _escaped(text: str) -> str:
    return "".join(f"\\{c}" if c in _SPECIAL else c for c in text)
