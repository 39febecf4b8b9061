"""Which accesses of straight-line code the compiler makes one of.

A lane's neighbouring words become one access of 8 or 16 bytes where the compiler knows that the first of them is a
multiple of that: `s[4 * t] + s[4 * t + 1] + ...` of a shared array, whose start it aligns as it likes, or the members
of a `float4`. Three words of four are loaded as four. A word that was loaded or stored just before is kept in its
register. What is in between decides: loads of one space are not moved over its stores nor the other way round, and
nothing is moved over a barrier, an atomic or a branch; successive iterations of an innermost loop are unrolled.

    x = s[k]; y = s[k + 1];          one access of 8 bytes if k is even
    x = s[k]; r[t] = 0; y = s[k + 1];     two of 4, for r is shared as well

Observed in the machine code of nvcc 13.0 -O3 for sm_90.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from warpwright.facts import ir
from warpwright.facts.memory import Pattern
from warpwright.facts.model import WIDEST
from warpwright.facts.values import Region

WIDTHS = (WIDEST, 8, 4)
PENDING = 64
"""Requests that are looked at together."""


# Not frozen: one is made for each request, and a frozen one takes three times as long.
@dataclass(slots=True, eq=False)
class Pending:
    """One request as the text has it: the address of the first lane that is on, and those of all as seen from it.
    `known` is the power of two up to which the compiler knows how its array and what is added to it are aligned, in
    bytes; `order` counts the requests."""

    order: int
    region: Region | None
    first: int
    pattern: Pattern
    size: int
    known: int
    weight: float

    def is_at(self, other: Pending, distance: int) -> bool:
        """Whether every lane is `distance` bytes further than in the other request, and the same lanes are on."""
        return self.first - other.first == distance and self.pattern.offsets == other.pattern.offsets


AnyPending = TypeVar("AnyPending", bound=Pending)


def chains(requests: Iterable[AnyPending], fill: bool) -> Iterator[tuple[int, list[AnyPending]]]:
    """Groups of requests that become one, each with its width in bytes; a request alone keeps its own.

    `fill` allows a word that nobody asked for among four, which a load may bring and a store must not touch.

    >>> from warpwright.facts.memory import placed
    >>> _, pattern = placed([16 * lane for lane in range(32)])
    >>> words = [Pending(i, None, 4 * i, pattern, 4, 16, 1.0) for i in range(6)]
    >>> [(width, [w.order for w in group]) for width, group in chains(words, True)]
    [(16, [0, 1, 2, 3]), (8, [4, 5])]
    >>> [width for width, _ in chains(words[1:3], True)], [width for width, _ in chains(words[:3], False)]
    ([4, 4], [8, 4])
    """
    groups: dict[tuple[Region | None, int, float], list[AnyPending]] = {}
    for request in requests:
        groups.setdefault((request.region, request.size, request.weight), []).append(request)
    for (_, size, _), group in groups.items():
        if len(group) == 1:
            yield size, group
            continue
        left = sorted(group, key=lambda r: (r.first, r.order))
        while left:
            run = _run(left, size)
            width = size
            for wide in WIDTHS:
                words = wide // size
                enough = len(run) >= words or (fill and words == 4 and len(run) == 3)
                if words > 1 and enough and _is_aligned(run[0], wide):
                    width, run = wide, run[:words]
                    break
            else:
                run = run[:1]
            taken = {request.order for request in run}
            left = [request for request in left if request.order not in taken]
            yield width, run


def _run(ordered: list[AnyPending], size: int) -> list[AnyPending]:
    """The first request and those that follow it without a gap, up to the widest access."""
    run = [ordered[0]]
    for request in ordered[1:]:
        distance = size * len(run)
        if distance >= WIDEST or request.first - run[0].first > distance:
            break
        if request.is_at(run[0], distance):
            run.append(request)
    return run


def _is_aligned(request: Pending, width: int) -> bool:
    return not (request.known % width or request.first % width or request.pattern.divisor % width)


def is_straight(body: ir.Stmt) -> bool:
    """Whether a loop's body is one piece that the compiler can unroll: no loop in it, and no way out of it."""
    match body:
        case ir.Block(body=statements):
            return all(is_straight(child) for child in statements)
        case ir.If(then=then, otherwise=otherwise):
            return is_straight(then) and (otherwise is None or is_straight(otherwise))
        case ir.Loop() | ir.Switch() | ir.Return() | ir.Break() | ir.Goto() | ir.Label():
            return False
        case _:
            return True
