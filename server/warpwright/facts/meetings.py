"""Whether the warps of a block come through barriers that a part of its threads meets at: numbered ones, as inline
assembly names them, and objects of `cuda::barrier`.

Example: three warps come to `bar.sync 1, 128;`. It waits for a fourth, which has ended.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from warpwright.syntax.source import Span

BLOCK = 0
"""The barrier of `__syncthreads()`."""


@dataclass(frozen=True, slots=True)
class Step:
    """So many threads of a warp come to a barrier, which opens when `threads` have come, or, where that is None, all
    warps that have not ended; `waits`: until it opens."""

    span: Span
    barrier: Hashable
    comes: int
    waits: bool
    threads: int | None


class Stuck(NamedTuple):
    """A step at which a warp waits forever, with one that never comes there, None where all do, and how many threads
    are there."""

    step: Step
    warp: int
    absent: int | None
    came: int


@dataclass(slots=True)
class _Meeting:
    """Warps on their ways, each as far as it comes."""

    ways: Mapping[int, Sequence[Step]]
    at: dict[int, int] = field(default_factory=lambda: {})
    opened: dict[Hashable, int] = field(default_factory=lambda: {})  # how often each barrier has
    came: dict[Hashable, int] = field(default_factory=lambda: {})  # since then
    last: dict[tuple[int, Hashable], int] = field(default_factory=lambda: {})  # openings when a warp came there
    blocked: dict[int, Step] = field(default_factory=lambda: {})

    def go(self, warp: int) -> bool:
        """Whether the warp made a step."""
        step = self.blocked.get(warp)
        if step is not None and self._is_closed(warp, step):
            return False
        self.blocked.pop(warp, None)
        way, start = self.ways[warp], self.at.get(warp, 0)
        for place in range(start, len(way)):
            step = way[place]
            self.at[warp] = place + 1
            if step.comes:
                self._come(warp, step)
            if step.waits and self._is_closed(warp, step):
                self.blocked[warp] = step
                return True
        return start < len(way) or step is not None

    def _is_closed(self, warp: int, step: Step) -> bool:
        return self.opened.get(step.barrier, 0) == self.last.get((warp, step.barrier), -1)

    def _come(self, warp: int, step: Step) -> None:
        barrier = step.barrier
        self.last[warp, barrier] = self.opened.get(barrier, 0)
        self.came[barrier] = self.came.get(barrier, 0) + step.comes
        if step.threads is not None and self.came[barrier] >= step.threads:
            self._open(barrier)

    def _open(self, barrier: Hashable) -> None:
        self.opened[barrier] = self.opened.get(barrier, 0) + 1
        self.came[barrier] = 0

    def open_for_all(self) -> bool:
        """Whether a barrier opened at which all warps wait that have not ended."""
        waited = {step.barrier for step in self.blocked.values()}
        going = [warp for warp, way in self.ways.items() if warp in self.blocked or self.at.get(warp, 0) < len(way)]
        step = next(iter(self.blocked.values()), None)
        if step is None or step.threads is not None or len(waited) > 1 or len(going) > len(self.blocked):
            return False
        self._open(step.barrier)
        return True


def stuck(ways: Mapping[int, Sequence[Step]]) -> Stuck | None:
    """The last warp that waits at the first barrier that never opens; `ways` are those of all warps of a block."""
    meeting = _Meeting(ways)
    while any(meeting.go(warp) for warp in ways) or meeting.open_for_all():
        pass
    if not meeting.blocked:
        return None
    step = min(meeting.blocked.values(), key=lambda step: (step.threads is None, step.span.start))
    there = [warp for warp, at in meeting.blocked.items() if at.barrier == step.barrier]
    absent = min((w for w, way in ways.items() if all(at.barrier != step.barrier for at in way)), default=None)
    return Stuck(meeting.blocked[max(there)], max(there), absent, meeting.came[step.barrier])
