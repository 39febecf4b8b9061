"""Where the interpreter stands: which warp of which block, in which loop, under which conditions."""

from __future__ import annotations

from dataclasses import dataclass, field

from warpwright.facts.model import Dim3
from warpwright.facts.progress import LoopPosition
from warpwright.facts.values import Value
from warpwright.syntax.source import Span


# Not frozen: one is made for each condition that is run, and a frozen one takes three times as long.
@dataclass(slots=True, eq=False)
class Guard:
    """A condition under which the interpreter stands: the lanes that entered and those that passed."""

    span: Span
    entered: int
    passed: int
    value: Value
    undecided: bool
    otherwise: bool = False  # the other side of an undecided one


@dataclass(slots=True)
class Position:
    """Where the interpreter stands: the block and warp, and for how many others like it they count."""

    block: Dim3
    warp: int
    warp_weight: float
    block_weight: float
    edge: bool  # the block is the last along an axis of its grid
    inside: tuple[tuple[int, int] | None, ...] = ()  # by axis: its number among blocks like it, and how many they are
    loop: LoopPosition = field(default_factory=LoopPosition)
    thinned: bool = False  # some lanes have left on a condition on data
    guards: list[Guard] = field(default_factory=lambda: [])  # the conditions around the statement that is run
