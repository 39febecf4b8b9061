"""Threads that others wait for and that do not come: lanes that the mask of a `__syncwarp()`, shuffle or vote names,
and threads and blocks at a barrier of the grid, of a cluster, or of a part of a block. And lanes that such a mask
leaves out.

What is kept is certain: of warps that are followed to their end with nothing guessed. A lane that is absent from one
call may come to another of its kind: it is missed where it makes fewer such calls than those that wait.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from warpwright.facts.meetings import Step, stuck
from warpwright.facts.model import WARP, Dim3, MissedWait
from warpwright.facts.position import Guard, Position
from warpwright.facts.values import LANE_BITS
from warpwright.syntax.source import Span

GRID, CLUSTER, COALESCED = "grid", "cluster", "coalesced"
_Warp = tuple[Dim3, int]


@dataclass(frozen=True, slots=True)
class LanesWait:
    """Lanes `mask` of each tile of a warp wait for each other, or threads of several blocks, `alive` of which have not
    ended. `named` are those that they wait for, None where that is not known, and `parted` is a condition on which some
    have left a loop around."""

    span: Span
    kind: str
    tile: int
    named: int | None
    mask: int
    alive: int
    position: Position
    parted: Guard | None


@dataclass(frozen=True, slots=True)
class _Call:
    """Lanes `on` of a warp that wait for those of `named`, `alive` of which have not ended."""

    span: Span
    kind: str
    named: int
    on: int
    alive: int


@dataclass(slots=True)
class Waits:
    calls: dict[_Warp, list[_Call]] = field(default_factory=lambda: {})
    ways: dict[_Warp, list[Step]] = field(default_factory=lambda: {})
    unsure: set[_Warp] = field(default_factory=set)
    cluster: frozenset[Dim3] = frozenset()  # the blocks of the first one
    pathless: set[_Warp] = field(default_factory=set)  # warps that may come to other barriers than are known

    def call(self, block: Dim3, warp: int, span: Span, kind: str, named: int, on: int, alive: int) -> None:
        self.calls.setdefault((block, warp), []).append(_Call(span, kind, named, on, alive))

    def step(self, block: Dim3, warp: int, step: Step) -> None:
        self.ways.setdefault((block, warp), []).append(step)

    def end_warp(self, block: Dim3, warp: int, *, certain: bool) -> None:
        self.calls.setdefault((block, warp), [])
        if not certain:
            self.unsure.add((block, warp))

    def missed(self, launch: int, warps: int) -> Iterator[MissedWait]:
        """One for each place, in blocks of so many warps."""
        found: dict[tuple[str, int, int], MissedWait] = {}
        for miss in (
            *self._outside(launch),
            *self._absent(launch),
            *self._over_blocks(launch),
            *self._stuck(launch, warps),
        ):
            found.setdefault(miss.span.key, miss)
        yield from found.values()

    def _outside(self, launch: int) -> Iterator[MissedWait]:
        for (block, warp), calls in self.calls.items():
            for call in calls:
                stray = call.on & ~call.named
                if stray:
                    yield MissedWait(call.span, launch, (block, block), (_thread(warp, stray), None))

    def _absent(self, launch: int) -> Iterator[MissedWait]:
        for (block, warp), calls in self.calls.items():
            if (block, warp) in self.unsure:
                continue
            for call in calls:
                waiting = max(_made(calls, call.kind, lane) for lane in LANE_BITS if call.on & lane)
                absent = call.named & call.alive & ~call.on
                absent = sum(lane for lane in LANE_BITS if absent & lane and _made(calls, call.kind, lane) < waiting)
                if absent:
                    threads = _thread(warp, call.on), _thread(warp, absent)
                    yield MissedWait(call.span, launch, (block, block), threads)

    def _stuck(self, launch: int, warps: int) -> Iterator[MissedWait]:
        """Of blocks that were followed whole and have barriers of parts of them, one that does not come through."""
        known = self.calls.keys() - self.unsure - self.pathless
        for block in {block for block, _ in self.ways}:
            ways = {warp: self.ways.get((block, warp), []) for place, warp in known if place == block}
            if len(ways) < warps or all(step.threads is None for way in ways.values() for step in way):
                continue
            found = stuck(dict(sorted(ways.items())))
            if found is not None:
                threads = found.warp * WARP, None if found.absent is None else found.absent * WARP
                wanted = found.step.threads or 0
                yield MissedWait(found.step.span, launch, (block, block), threads, found.came, wanted)

    def _over_blocks(self, launch: int) -> Iterator[MissedWait]:
        """Of warps of which some come to the grid's barriers or a cluster's, one that comes less often."""
        for kind in (GRID, CLUSTER):
            counts = {
                place: sum(call.kind == kind for call in calls)
                for place, calls in self.calls.items()
                if place not in self.unsure and (kind == GRID or place[0] in self.cluster)
            }
            if len(set(counts.values())) < 2:
                continue
            (block, warp), most = max(counts.items(), key=lambda item: item[1])
            (other, absent), _ = min(counts.items(), key=lambda item: (item[1], item[0]))
            last = [call for call in self.calls[block, warp] if call.kind == kind][most - 1]
            yield MissedWait(last.span, launch, (block, other), (_thread(warp, last.on), absent * WARP))


def _made(calls: list[_Call], kind: str, lane: int) -> int:
    return sum(call.kind == kind and call.on & lane != 0 for call in calls)


def _thread(warp: int, lanes: int) -> int:
    return warp * WARP + (lanes & -lanes).bit_length() - 1
