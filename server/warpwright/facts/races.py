"""Accesses of different warps to one address of shared memory between which no barrier stands.

Example: `tile[threadIdx.x] = x; y = tile[threadIdx.x + 1];` with a block of two warps: thread 31 reads what thread 32
writes, and nothing says which comes first.

What is kept is certain. A warp is followed from its start for as long as the text decides every barrier on its way:
its accesses up to the next barrier are those of one interval, which has the barriers before as its name. Two warps of a
block that came through the same barriers are in an interval together. Accesses whose address or whose condition is not
exact are left out, and a warp is not followed behind a loop's iterations that are skipped, a barrier that some of its
lanes do not reach, or a call of something that is not in the text.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from warpwright.facts.memory import Pattern
from warpwright.facts.model import WARP, AccessKind, Dim3, Race
from warpwright.facts.position import Position
from warpwright.facts.values import ASSUMED, EXACT, Region, Value
from warpwright.syntax.source import Span

MOST_REQUESTS = 4000
"""Of a kernel's shared memory that are kept."""

_Use = tuple[Span, AccessKind, int, int, Pattern]
"""A request: the access's place and kind, the bytes of a lane, where its first lane's address is, and all of them."""

_ByWarp = dict[int, dict[_Use, None]]


@dataclass(slots=True)
class Intervals:
    """The requests to shared memory of each interval: those of a block to an array, by warp."""

    requests: dict[tuple[Dim3, int, int], tuple[Region, _ByWarp]] = field(default_factory=lambda: {})
    interval: int = 0
    lost: bool = False  # what the warp does from here on is not followed
    parted: bool = False  # whether the warp comes further than this is not known
    guessed: bool = False  # what its variables hold may follow from a number that is assumed
    doubts: int = 0  # conditions within expressions that do not say for certain what is run
    kept: int = 0

    def begin_warp(self) -> None:
        self.interval, self.lost, self.parted, self.guessed, self.doubts = 0, False, False, False, 0

    @property
    def is_doubtful(self) -> bool:
        """Whether the warp may not do what is run now."""
        return self.parted or self.doubts > 0

    def barrier(self, span: Span, *, whole: bool, position: Position) -> None:
        """The warp is at a barrier of the block; `whole` where all of its lanes are."""
        self.lost = self.lost or not whole or not _is_certain(position)
        self.interval = hash((self.interval, span.key))

    def access(
        self,
        span: Span,
        kind: AccessKind,
        size: int,
        pointer: Value,
        where: tuple[int, Pattern] | None,
        position: Position,
    ) -> None:
        """A request of the warp to shared memory."""
        if self.lost or self.is_doubtful or self.kept >= MOST_REQUESTS or where is None or pointer.region is None:
            return
        if pointer.basis != EXACT or pointer.soft or not _is_certain(position):
            return
        self.kept += 1
        # Arrays of one name and type in two functions are equal, and not one: an array is told by its object.
        key = (position.block, id(pointer.region), self.interval)
        _, by_warp = self.requests.setdefault(key, (pointer.region, {}))
        by_warp.setdefault(position.warp, {})[span, kind, size, *where] = None

    def races(self, launch: int) -> Iterator[Race]:
        """One for each write and other access that meet, by their places."""
        found: set[tuple[tuple[str, int, int], tuple[str, int, int]]] = set()
        for region, by_warp in self.requests.values():
            kinds = {use[1] for uses in by_warp.values() for use in uses}
            if len(by_warp) < 2 or AccessKind.STORE not in kinds or len(kinds) < 2:
                continue
            for race in _between(by_warp, region, launch):
                key = (race.write.key, race.other.key)
                if key not in found:
                    found.add(key)
                    yield race


def _between(by_warp: _ByWarp, region: Region, launch: int) -> Iterator[Race]:
    """The races of one interval. What a warp has written itself it may read: then another's write may be of the same
    value."""
    written: dict[int, list[tuple[int, int, Span]]] = {}  # by address: warp, lane and place
    own: dict[int, set[int]] = {}
    for warp, uses in by_warp.items():
        for span, kind, size, first, pattern in uses:
            if kind is AccessKind.STORE:
                for lane, address in _units(first, pattern, size):
                    written.setdefault(address, []).append((warp, lane, span))
                    own.setdefault(warp, set()).add(address)
    seen: set[tuple[int, int]] = set()
    for warp, uses in by_warp.items():
        for span, kind, size, first, pattern in uses:
            if kind is AccessKind.STORE:
                continue
            for lane, address in _units(first, pattern, size):
                if address in own.get(warp, ()):
                    continue
                for other, writer, place in written.get(address, ()):
                    if other != warp and (place.start, span.start) not in seen:
                        seen.add((place.start, span.start))
                        threads = other * WARP + writer, warp * WARP + lane
                        yield Race(region.name, place, span, kind, launch, threads, address)


def _units(first: int, pattern: Pattern, size: int) -> Iterator[tuple[int, int]]:
    """Each lane with the addresses of the words that it moves, of a smaller access its own."""
    for lane, offset in enumerate(pattern.offsets):
        if offset is not None:
            for word in range(0, size, 4):
                yield lane, first + offset + word


def _is_certain(position: Position) -> bool:
    """Whether the conditions around are known; that an assumed size lets a loop go on is taken for granted."""
    return not any(g.undecided or (g.value.basis >= ASSUMED and g.value.thread) for g in position.guards)
