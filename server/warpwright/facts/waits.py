"""Threads that others wait for and that do not come: lanes that the mask of a `__syncwarp()`, shuffle or vote names,
and threads and blocks at a barrier of the grid or at one that inline assembly names. And lanes that such a mask leaves
out.

What is kept is certain: of warps that are followed to their end with nothing guessed. A lane that is absent from one
call may come to another of its kind: it is missed where it makes fewer such calls than those that wait.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from warpwright.facts.model import WARP, Dim3, MissedWait
from warpwright.facts.values import LANE_BITS
from warpwright.syntax.source import Span

GRID = "grid"
NAMED_BARRIER = re.compile(
    r"^\s*(?:__)?asm\b[^\"]*\"\s*bar(?:rier)?(?:\.cta)?\.(?:sync|arrive)(?:\.aligned)?\s+(?P<name>\d+)\s*,"
    r"\s*(?P<threads>\d+)\s*;(?:\\n|\\t|\s)*\"[^\"]*(?:\"memory\"[^\"]*)?$"
)
"""One statement of assembly that waits for, or tells, so many threads of the block."""
_Warp = tuple[Dim3, int]


@dataclass(frozen=True, slots=True)
class _Call:
    """Lanes `on` of a warp that wait for those of `named`, `alive` of which have not ended."""

    span: Span
    kind: str
    named: int
    on: int
    alive: int


@dataclass(frozen=True, slots=True)
class _Arrival:
    """Lanes `on` of a warp, for which a whole warp is counted, at a barrier that waits for so many threads."""

    span: Span
    warp: int
    on: int
    threads: int


@dataclass(slots=True)
class Waits:
    calls: dict[_Warp, list[_Call]] = field(default_factory=lambda: {})
    arrivals: dict[tuple[Dim3, str], list[_Arrival]] = field(default_factory=lambda: {})
    unsure: set[_Warp] = field(default_factory=set)

    def call(self, block: Dim3, warp: int, span: Span, kind: str, named: int, on: int, alive: int) -> None:
        self.calls.setdefault((block, warp), []).append(_Call(span, kind, named, on, alive))

    def arrive(self, block: Dim3, warp: int, span: Span, name: str, threads: int, on: int) -> None:
        self.arrivals.setdefault((block, name), []).append(_Arrival(span, warp, on, threads))

    def end_warp(self, block: Dim3, warp: int, *, certain: bool) -> None:
        self.calls.setdefault((block, warp), [])
        if not certain:
            self.unsure.add((block, warp))

    def missed(self, launch: int, warps: int) -> Iterator[MissedWait]:
        """One for each place, in blocks of so many warps."""
        found: dict[tuple[str, int, int], MissedWait] = {}
        for miss in (*self._outside(launch), *self._absent(launch), *self._grid(launch), *self._named(launch, warps)):
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

    def _named(self, launch: int, warps: int) -> Iterator[MissedWait]:
        """Of blocks that were followed whole, the last warp at a named barrier that waits for more, and one that never
        comes there."""
        for (block, _), arrivals in self.arrivals.items():
            followed = {warp for place, warp in self.calls.keys() - self.unsure if place == block}
            absent = followed - {arrival.warp for arrival in arrivals}
            threads = {arrival.threads for arrival in arrivals}
            if len(followed) < warps or not absent or len(threads) != 1 or 0 in threads:
                continue
            if len(arrivals) * WARP % threads.pop():
                last = arrivals[-1]
                yield MissedWait(last.span, launch, (block, block), (_thread(last.warp, last.on), min(absent) * WARP))

    def _grid(self, launch: int) -> Iterator[MissedWait]:
        """Of warps of which some come to the grid's barriers, one that comes less often."""
        counts = {
            place: sum(call.kind == GRID for call in calls)
            for place, calls in self.calls.items()
            if place not in self.unsure
        }
        if len(set(counts.values())) < 2:
            return
        (block, warp), most = max(counts.items(), key=lambda item: item[1])
        (other, absent), _ = min(counts.items(), key=lambda item: (item[1], item[0]))
        last = [call for call in self.calls[block, warp] if call.kind == GRID][most - 1]
        yield MissedWait(last.span, launch, (block, other), (_thread(warp, last.on), absent * WARP))


def _made(calls: list[_Call], kind: str, lane: int) -> int:
    return sum(call.kind == kind and call.on & lane != 0 for call in calls)


def _thread(warp: int, lanes: int) -> int:
    return warp * WARP + (lanes & -lanes).bit_length() - 1
