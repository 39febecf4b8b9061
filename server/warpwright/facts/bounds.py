"""Accesses that certainly lie outside of the array that they are to.

Example: `x[i] *= 2;` with 1,024 threads, where the host's `cudaMalloc(&x, 1000 * sizeof(float))` stands before the
launch. What is kept is certain: addresses and conditions follow from the text, as do the launch and the allocation.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from warpwright.facts.memory import Pattern
from warpwright.facts.model import WARP, AccessKind, Dim3, OutOfBounds
from warpwright.facts.position import Position
from warpwright.facts.values import ASSUMED, EXACT, Region, Value
from warpwright.syntax.source import Span

_Key = tuple[tuple[str, int, int], AccessKind, int]
"""An access, and the array: two of one name, in two functions, are told apart by their objects."""


@dataclass(frozen=True, slots=True)
class _Request:
    """A request of `bytes` per lane to an array, `first` from its start."""

    span: Span
    kind: AccessKind
    array: Region
    block: Dim3
    warp: int
    first: int
    pattern: Pattern
    bytes: int

    @property
    def top(self) -> int:
        return self.first + self.pattern.top

    @property
    def bottom(self) -> int:
        return self.first + self.pattern.bottom


@dataclass(slots=True)
class Extremes:
    """The lowest and the highest byte that each access is certain to touch."""

    lowest: dict[_Key, _Request] = field(default_factory=lambda: {})
    highest: dict[_Key, _Request] = field(default_factory=lambda: {})

    def access(
        self,
        span: Span,
        kind: AccessKind,
        size: int,
        pointer: Value,
        where: tuple[int, Pattern],
        position: Position,
    ) -> None:
        """A request of a warp."""
        region = pointer.region
        if region is None or region.bytes is None or pointer.basis != EXACT or pointer.soft:
            return
        if position.thinned or any(g.undecided or g.value.basis >= ASSUMED for g in position.guards):
            return
        first, pattern = where
        key = span.key, kind, id(region)
        high, low = self.highest.get(key), self.lowest.get(key)
        within = high is not None and first + pattern.top <= high.top
        if within and low is not None and first + pattern.bottom >= low.bottom:
            return
        request = _Request(span, kind, region, position.block, position.warp, first, pattern, size)
        if high is None or request.top > high.top:
            self.highest[key] = request
        if low is None or request.bottom < low.bottom:
            self.lowest[key] = request

    def outside(self, launch: int) -> Iterator[OutOfBounds]:
        """Of each access one thread that is outside of its array."""
        for key, high in self.highest.items():
            low = self.lowest[key]
            if low.bottom < 0:
                yield _found(low, low.bottom, launch)
            elif high.top + high.bytes > (high.array.bytes or 0):
                yield _found(high, high.top, launch)


def _found(request: _Request, address: int, launch: int) -> OutOfBounds:
    lane = request.pattern.offsets.index(address - request.first)
    thread = request.warp * WARP + lane
    array, size = request.array.name, request.array.bytes or 0
    return OutOfBounds(request.span, array, request.kind, launch, request.block, thread, address, request.bytes, size)
