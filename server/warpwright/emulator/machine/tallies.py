"""What a run counts, for each instruction of the kernel."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from warpwright.emulator.machine.group import Array, Group


@dataclass(slots=True)
class Traffic:
    """Of one memory instruction that moves `bytes` for each lane: warp-wide requests and what they moved.

    Sectors of global and local memory, wavefronts of shared memory; `ideal` is the fewest possible, as Nsight Compute
    has it.
    """

    bytes: int = 0
    requests: int = 0
    lanes: int = 0
    moved: int = 0
    ideal: int = 0


@dataclass(slots=True)
class Tallies:
    """Counts over all batches of a launch. `warps` and `lanes` say, for each block of code, how often it ran; of a
    guarded instruction `on` has the lanes for which its guard held."""

    block_sizes: tuple[int, ...]
    warps: list[int] = field(init=False)
    lanes: list[int] = field(init=False)
    on: dict[int, int] = field(default_factory=lambda: {})
    divergent: dict[int, int] = field(default_factory=lambda: {})
    traffic: dict[tuple[int, str], Traffic] = field(default_factory=lambda: {})
    lane_steps: int = 0
    _group_size: int = 0

    def __post_init__(self) -> None:
        self.warps = [0] * len(self.block_sizes)
        self.lanes = [0] * len(self.block_sizes)

    def enter(self, block: int, group: Group) -> None:
        self.warps[block] += group.warps
        self.lanes[block] += group.size
        self.lane_steps += group.size * (self.block_sizes[block] or 1)
        self._group_size = group.size

    def guard(self, step: int, on: int | None, holds: bool) -> None:
        """A guarded instruction ran: for `on` lanes, or, where that is None, for all or none."""
        count = on if on is not None else self._group_size * holds
        self.on[step] = self.on.get(step, 0) + int(count)

    def diverge(self, step: int, taken: Group, stay: Group, group: Group) -> None:
        """Some lanes of the group were taken elsewhere; count the warps with lanes of both kinds."""
        both = taken.warps + stay.warps - group.warps
        if both:
            self.divergent[step] = self.divergent.get(step, 0) + both

    def move(self, step: int, space: str, group: Group, size: int, counts: tuple[Array, Array]) -> None:
        moved, ideal = counts
        traffic = self.traffic.setdefault((step, space), Traffic(size))
        traffic.requests += group.warps
        traffic.lanes += group.size
        traffic.moved += int(np.sum(moved))
        traffic.ideal += int(np.sum(ideal))
