"""What a report for people is made of, before it is drawn in a terminal or written as Markdown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

Json = Mapping[str, Any]
Tone = Literal["", "good", "bad", "warn", "dim", "strong"]

JUDGES = {"baseline": "the original", "reference": "the reference in torch", "formula": "the formula"}
"""With what outputs are compared, by the name that a report's environment has for it."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A piece of text. `drawn` is a picture of characters, each of which keeps its place."""

    text: str
    tone: Tone = ""
    drawn: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """`head` names the columns; those whose number is in `left` are aligned to the left, the others to the right."""

    head: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    left: frozenset[int] = frozenset({0})


@dataclass(frozen=True, slots=True)
class Section:
    title: str
    blocks: tuple[Cell | Table, ...]


def cells(*texts: str) -> tuple[Cell, ...]:
    return tuple(Cell(text) for text in texts)


def shape_text(shape: Mapping[str, int]) -> str:
    """
    >>> shape_text({"width": 1237, "height": 853}), shape_text({})
    ('1237 x 853', 'its one shape')
    """
    return " x ".join(str(size) for size in shape.values()) or "its one shape"


def shape_names(shapes: list[Mapping[str, int]]) -> str:
    """What the numbers of `shape_text` are, as the head of a column.

    >>> shape_names([{"width": 1237, "height": 853}])
    'width x height'
    """
    return " x ".join(dict.fromkeys(name for shape in shapes for name in shape))


def count(number: int, noun: str) -> str:
    """
    >>> count(1, "shape"), count(2, "shape")
    ('1 shape', '2 shapes')
    """
    return f"{number} {noun}{'' if number == 1 else 's'}"


def figure(value: float) -> str:
    """A difference or a share of one, to two digits.

    >>> figure(0.0), figure(2.38e-07), figure(12.0), figure(float("inf"))
    ('0', '2.4e-07', '12', 'inf')
    """
    return f"{value:.2g}"


def microseconds(value: float | None) -> str:
    """
    >>> microseconds(87.648), microseconds(2504.1), microseconds(0.93), microseconds(None)
    ('87.6 us', '2504 us', '0.93 us', '-')
    """
    if value is None:
        return "-"
    return f"{value:.0f} us" if value >= 1000 else f"{value:.1f} us" if value >= 2 else f"{value:.2f} us"
