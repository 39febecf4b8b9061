"""What happened before what: the times at which threads met, and what one block made known to another.

Time is one count for the whole launch, which a meeting of threads (a barrier, a warp's synchronisation) or a fence
moves on. Each access carries a *stamp*: its thread's own time (that of its last meeting), its number in the grid, the
number of the instruction among those that access memory, and whether the access is strong (atomic, or ordered by its
own text). An earlier access of another thread came before this one if

- both are of one block, and it is older than this thread's last block barrier (`floor`), or
- both are of one warp, and it is older than this thread's last meeting with its warp (`seen`): lockstep orders nothing
  since Volta (CUDA C++ Programming Guide, "Independent Thread Scheduling"), or
- its thread, or one that met it at a barrier or in its warp, has run a fence since, and this thread's block has since
  read something by an atomic or a strong load: the last-block pattern, a barrier of the grid, or
- both are of one block, its thread has run a fence since, and this thread's warp has since read something so (a lock)
  or found a phase of an mbarrier at an end: to arrive there is a fence, or
- both are of one cluster, and it is older than this thread's last barrier of the cluster (`cluster_floor`).

Where that is not certain it is taken as ordered: of a program without a race nothing is said. So a barrier of some of a
block's threads orders, for those, what any thread of the block did before.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from warpwright.emulator.machine.group import WARP, Array, Group, Layout, taken

TIME_BITS, THREAD_BITS, ACCESS_BITS = 22, 28, 13
ACCESS_AT = 1
THREAD_AT = ACCESS_AT + ACCESS_BITS
TIME_AT = THREAD_AT + THREAD_BITS
MOST_TIMES = (1 << TIME_BITS) - 1
MOST_THREADS = 1 << THREAD_BITS
MOST_ACCESSES = (1 << ACCESS_BITS) - 1
STRONG = np.uint64(1)
THREAD = np.uint64((MOST_THREADS - 1) << THREAD_AT)


def thread_number(stamps: Array) -> Array:
    """The number in the grid of the thread of each stamp."""
    return ((stamps & THREAD) >> np.uint64(THREAD_AT)).astype(np.int64)


def access_number(stamps: Array) -> Array:
    return ((stamps >> np.uint64(ACCESS_AT)) & np.uint64(MOST_ACCESSES)).astype(np.int64)


@dataclass(slots=True)
class Clock:
    """The launch's time. Behind its last value nothing is checked any more."""

    now: int = 0

    def tick(self) -> np.uint64:
        self.now = min(self.now + 1, MOST_TIMES)
        return np.uint64(self.now << TIME_AT)

    @property
    def has_ended(self) -> bool:
        return self.now == MOST_TIMES


@dataclass(slots=True)
class Fences:
    """What blocks told each other: for each thread, each warp and each block of the grid the last time that a fence
    covered, and for each block its last acquiring access. Made where a kernel has fences."""

    threads: int
    blocks: int
    of_thread: Array = field(init=False)
    of_warp: Array = field(init=False)
    of_block: Array = field(init=False)
    acquired: Array = field(init=False)

    def __post_init__(self) -> None:
        self.of_thread = np.zeros(self.threads * self.blocks, dtype=np.uint64)
        self.of_warp = np.zeros(-(-self.threads // WARP) * self.blocks, dtype=np.uint64)
        self.of_block = np.zeros(self.blocks, dtype=np.uint64)
        self.acquired = np.zeros(self.blocks, dtype=np.uint64)

    def released(self, old: Array) -> Array:
        """Whether the threads of these stamps, or one that met them in their warp, have run a fence since."""
        thread, time = thread_number(old), old >> np.uint64(TIME_AT)
        warp = thread // self.threads * -(-self.threads // WARP) + thread % self.threads // WARP
        covered: Array = (time <= self.of_thread[thread]) | (time < self.of_warp[warp])
        return covered

    def ordered(self, old: Array, block: Array) -> Array:
        """Whether earlier accesses with the stamps `old` came before what the blocks with these numbers do now."""
        thread, time = thread_number(old), old >> np.uint64(TIME_AT)
        released = self.released(old) | (time < self.of_block[thread // self.threads])
        known: Array = released & (time <= self.acquired[block])
        return known


class Order:
    """The times of one batch's lanes. `floor` and `seen` are one number while all lanes have the same."""

    def __init__(self, clock: Clock, fences: Fences | None, layout: Layout, first_block: int, cluster: int) -> None:
        self.clock = clock
        self.fences = fences
        self.layout = layout
        self.first_block = first_block
        self.cluster = max(1, cluster)
        self.first_thread = first_block * layout.threads
        self._identity: Array = (layout.every + self.first_thread).astype(np.uint64) << np.uint64(THREAD_AT)
        self._acquired: Array = np.zeros(layout.blocks * layout.warps_per_block, dtype=np.uint64)  # of each warp
        self._everyone_at(clock.tick())
        self.cluster_floor = self.floor

    def _everyone_at(self, time: np.uint64) -> None:
        self.stamps: Array = self._identity | time
        self.floor: Array = time
        self.seen: Array = time

    def meet(self, groups: list[Group], is_all: bool) -> None:
        """Threads met at a barrier of their block; `is_all` where no other thread of the batch is left."""
        time = self.clock.tick()
        if is_all:
            self._everyone_at(time)
            return
        self.floor = self._spread(self.floor)
        self.seen = self._spread(self.seen)
        for group in groups:
            self.stamps[group.lanes] = group.pick(self._identity) | time
            self.floor[group.lanes] = time
            self.seen[group.lanes] = time

    def meet_in_warps(self, group: Group) -> None:
        """Lanes of each warp met."""
        time = self.clock.tick()
        if group.at is None:
            self.stamps = self._identity | time
            self.seen = time
            return
        self.stamps[group.at] = group.pick(self._identity) | time
        self.seen = self._spread(self.seen)
        self.seen[group.at] = time

    def meet_in_clusters(self, group: Group) -> None:
        """Threads met at the barrier of their cluster."""
        self.meet([group], False)
        self.cluster_floor = self._spread(self.cluster_floor)
        self.cluster_floor[group.lanes] = taken(self.floor, group.lanes)

    def learn(self, group: Group, floors: Array) -> None:
        """Lanes found that others have arrived, and know what those knew: of the block what is older than `floors`."""
        self.floor = self._spread(self.floor)
        self.floor[group.lanes] = np.maximum(self.floor[group.lanes], floors)
        self._acquired[group.warp] = self.clock.now

    def checked_from(self, group: Group) -> Array:
        """The time before which nothing in shared memory is unordered with what these lanes do."""
        return group.pick(self.floor if self.cluster == 1 else self.cluster_floor)

    def fence(self, group: Group) -> None:
        """Lanes ran a fence whose scope is the device: it covers what they did and what they know of their block."""
        if self.fences is None:
            return
        lanes = group.lanes
        self.fences.of_thread[lanes + self.first_thread] = group.pick(self.stamps) >> np.uint64(TIME_AT)
        floor = np.broadcast_to(group.pick(self.floor) >> np.uint64(TIME_AT), group.size)
        np.maximum.at(self.fences.of_block, group.block + self.first_block, floor)
        seen = np.broadcast_to(group.pick(self.seen) >> np.uint64(TIME_AT), group.size)
        np.maximum.at(self.fences.of_warp, group.warp + self.first_block * self.layout.warps_per_block, seen)
        self.stamps[lanes] = group.pick(self._identity) | self.clock.tick()

    def acquire(self, group: Group) -> None:
        """Lanes read what another block, or another thread of theirs, may have announced."""
        if self.fences is not None:
            self.fences.acquired[group.block + self.first_block] = self.clock.now
            self._acquired[group.warp] = self.clock.now

    def unordered(self, lanes: Array, old: Array) -> tuple[Array, Array]:
        """Whether accesses stamped `old` are unordered with one that each lane makes now, and are of its own warp."""
        threads = self.layout.threads
        there = thread_number(old) - self.first_thread
        in_batch = (there >= 0) & (there < self.layout.lanes)
        there = np.where(in_batch, there, 0)
        is_block = in_batch & (there // threads == lanes // threads)
        is_warp = is_block & (there % threads // WARP == lanes % threads // WARP)
        ordered = is_block & (old < taken(self.floor, lanes))
        ordered |= is_warp & ((old < taken(self.seen, lanes)) | (there == lanes))
        if self.cluster > 1:
            span = threads * self.cluster
            ordered |= in_batch & (there // span == lanes // span) & (old < taken(self.cluster_floor, lanes))
        if self.fences is not None and not ordered.all():
            ordered |= ~is_block & self.fences.ordered(old, lanes // threads + self.first_block)
            known = self._acquired[self.layout.warp_of[lanes]]
            ordered |= is_block & self.fences.released(old) & (old >> np.uint64(TIME_AT) <= known)
        return ~ordered, is_warp

    def _spread(self, values: Array) -> Array:
        return values if values.ndim else np.full(self.layout.lanes, values)
