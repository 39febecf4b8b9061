"""Phrases with choices in them: `<compute|take> the <sum|total> of {x}`.

`<a|b|>` is one of its parts, which may hold others; `{name}` is filled in. In a formula `<` is a comparison, so choices
are made in phrases only.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from random import Random

_INNERMOST = re.compile(r"<([^<>]*\|[^<>]*)>")
_SLOT = re.compile(r"\{(\w+)\}")


def chosen(phrase: str, chance: Random) -> str:
    """The phrase with each choice made, innermost first.

    >>> chosen("<|>a <very|very> good <one|one>", Random(1))
    'a very good one'
    """
    while (found := _INNERMOST.search(phrase)) is not None:
        phrase = phrase[: found.start()] + chance.choice(found[1].split("|")) + phrase[found.end() :]
    return phrase


def filled(text: str, slots: Mapping[str, str]) -> str:
    """The text with its slots filled; what fills them may have slots, too.

    >>> filled("{a}, {b}", {"a": "x[{b}]", "b": "i"})
    'x[i], i'
    """
    for _ in range(6):
        changed = _SLOT.sub(lambda found: slots.get(found[1], found[0]), text)
        if changed == text:
            break
        text = changed
    return text


def tidy(text: str) -> str:
    """Words as they are printed: one blank, none before a comma, no empty parentheses.

    >>> tidy("the  sum , of ( ) x ,,")
    'the sum, of x'
    >>> tidy("rows: , x[:, 1:] , , y[b, :]")
    'rows: x[:, 1:], y[b, :]'
    >>> tidy("x[:, ::2].sum() : , y")
    'x[:, ::2].sum(): y'
    """
    text = re.sub(r"(?<!\w)\(\s*\)", "", text)
    text = re.sub(r"\s+", " ", text)
    text = re.sub(r":( [,;:])+", ":", text)
    text = re.sub(r"([,;])( ?[,;])+", r"\1", text)
    text = re.sub(r"(?<=[\w)\]'\"]) ([,;:)]|\.(?!\.))", r"\1", text)
    text = re.sub(r"\(\s+", "(", text)
    return text.strip(" ,;")


def lines(text: str) -> tuple[str, ...]:
    """The phrases of a table: one a line."""
    return tuple(line.strip() for line in text.splitlines() if line.strip())


def weighted(chance: Random, among: Iterable[tuple[str, float]]) -> str:
    """One of the names, as often as its weight says."""
    names, weights = zip(*among, strict=True)
    return str(chance.choices(names, weights)[0])
