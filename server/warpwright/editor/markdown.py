"""Markdown in which text from a user's file can do no harm."""

from __future__ import annotations

from pathlib import PurePath

_SHOWN = 100
_SPECIAL = "\\`*_{}[]<>#+|~"


def code(text: str) -> str:
    """Source text as inline code on one line, cut where it is long.

    >>> code("a[i]"), code("x `y`")
    ('`a[i]`', '`` x `y` ``')
    """
    text = " ".join(text.split())
    if len(text) > _SHOWN:
        text = text[: _SHOWN - 1] + "…"
    if not text:
        return ""
    return f"`` {text} ``" if "`" in text else f"`{text}`"


def prose(text: str) -> str:
    """A sentence that may quote source text, with Markdown's own characters escaped; `code` spans in it are kept.

    >>> prose("lanes step by `n * 4` bytes: a<b>*")
    'lanes step by `n * 4` bytes: a\\\\<b\\\\>\\\\*'
    """
    parts = " ".join(text.split()).split("`")
    if len(parts) % 2 == 0:
        return _escaped("`".join(parts))
    return "`".join(part if index % 2 else _escaped(part) for index, part in enumerate(parts))


def number(value: float) -> str:
    """
    >>> number(32.0), number(8.4999), number(1 / 3)
    ('32', '8.5', '0.33')
    """
    return f"{round(value, 2):g}" if abs(value) < 1e6 else f"{value:.0f}"


def place(source: str) -> str:
    """A place such as `/home/me/src/a.cu:41` by its file's name, which is what a hover has room for.

    >>> place("/home/me/src/a.cu:41"), place("__launch_bounds__")
    ('a.cu:41', '__launch_bounds__')
    """
    return PurePath(source).name or source


def _escaped(text: str) -> str:
    return "".join(f"\\{c}" if c in _SPECIAL else c for c in text)
