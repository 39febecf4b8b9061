"""Races: two accesses of one place by two threads, of which one writes, with nothing that orders them (see `order`).

A space is cut into cells, as wide as the narrowest access that the kernel makes to it. Each cell has the stamps of its
last write and of its last two reads by different threads. A write of the value that is there already is not reported,
as many threads may set one flag; nor are two strong accesses, nor the plain read with which a loop around `atomicCAS`
begins, as the programming guide writes it: what it finds is compared before it is used. Of a race that is one only
because nothing orders the lanes of one warp, the kind is `missing-syncwarp`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from warpwright.emulator.machine.effects import (
    ACCESSES,
    first_guesses,
    is_acquiring,
    is_fence,
    is_of_block,
    is_strong,
    narrowest_access,
    stores_to,
)
from warpwright.emulator.machine.faults import FoundFault, race_in, thread_of
from warpwright.emulator.machine.group import Array, Group, Layout, taken
from warpwright.emulator.machine.memory import GLOBAL_WINDOW, Stretch
from warpwright.emulator.machine.order import (
    ACCESS_AT,
    MOST_ACCESSES,
    MOST_THREADS,
    STRONG,
    THREAD,
    THREAD_AT,
    Clock,
    Fences,
    Order,
    access_number,
    thread_number,
)
from warpwright.emulator.machine.stored import Stored, values_at
from warpwright.emulator.machine.unused import UnusedStores
from warpwright.facts.profile import FaultKind

if TYPE_CHECKING:
    from warpwright.emulator.launch import Prepared

MOST_SHADOW_BYTES = 4 << 30
"""Of stamps for global memory; where a launch's arrays would need more, its global memory is not checked."""


class Shadow:
    """The stamps of a stretch's cells of `1 << shift` bytes."""

    def __init__(self, size: int, shift: int) -> None:
        cells = (size >> shift) + 1
        self.shift = shift
        self.write: Array = np.zeros(cells, dtype=np.uint64)
        self.read: Array = np.zeros(cells, dtype=np.uint64)
        self.other: Array = np.zeros(cells, dtype=np.uint64)
        self.has_other = False

    def cells(self, index: Array, size: int) -> Iterator[Array]:
        """The cells of accesses of `size` bytes, one of each access at a time."""
        first = index >> self.shift if self.shift else index
        for k in range(max(1, size >> self.shift)):
            yield first + k if k else first


class Watch:
    """What the checks of a launch share between its batches."""

    def __init__(self, prepared: Prepared) -> None:
        self.prepared = prepared
        program = prepared.program
        self.clock = Clock()
        steps = [step for step, i in enumerate(program.steps) if i.opcode in ACCESSES]
        self.steps = (*steps[:MOST_ACCESSES], steps[-1] if steps else 0)
        self.stamps = {step: np.uint64(min(n, MOST_ACCESSES) << ACCESS_AT) for n, step in enumerate(steps)}
        guesses = first_guesses(program.steps)
        for step in steps:
            if is_strong(program.steps[step]) or step in guesses:
                self.stamps[step] |= STRONG
        self.of_block: Array = np.array([is_of_block(program.steps[step]) for step in self.steps], dtype=bool)
        """Of each number of an access, whether it is atomic in its own block alone."""
        self.acquiring = frozenset(step for step in steps if is_acquiring(program.steps[step]))
        self.fencing = frozenset(step for step in steps if is_fence(program.steps[step]))
        self.can_check = prepared.threads * prepared.blocks <= MOST_THREADS
        has_fences = any(is_fence(i) for i in program.steps)
        self.fences = Fences(prepared.threads, prepared.blocks) if has_fences and self.can_check else None
        self.unused = UnusedStores(program.steps, self.steps)
        self.global_shadow: Shadow | None = None
        shift = narrowest_access(program.steps, "global").bit_length() - 1
        wanted = 24 * (prepared.memory.size >> shift)
        if stores_to(program.steps, "global") and wanted <= MOST_SHADOW_BYTES and self.can_check:
            self.global_shadow = Shadow(prepared.memory.size, shift)
        self.shared_shift = narrowest_access(program.steps, "shared").bit_length() - 1
        self.has_shared = bool(prepared.shared_bytes) and self.can_check


class Races:
    """The checks of one batch. `index` are byte places in the batch's shared or the launch's global memory."""

    def __init__(self, watch: Watch, layout: Layout, first_block: int, shared: Stretch) -> None:
        self.watch = watch
        self.layout = layout
        self.first_block = first_block
        self.stretch = shared
        self.order = Order(watch.clock, watch.fences, layout, first_block, watch.prepared.program.cluster)
        self.shared = Shadow(shared.size, watch.shared_shift) if watch.has_shared else None

    def shadow(self, space: str) -> Shadow | None:
        """The stamps of a space; None where it is not checked."""
        if self.watch.clock.has_ended:
            return None
        if space == "shared":
            return self.shared
        return self.watch.global_shadow if space == "global" else None

    def load(self, step: int, group: Group, space: str, index: Array, size: int) -> None:
        """Lanes read `size` bytes each."""
        self.watch.unused.loads.add(step)
        if step in self.watch.acquiring:
            self.order.acquire(group)
        shadow = self.shadow(space)
        if shadow is None:
            return
        stamp = group.pick(self.order.stamps) | self.watch.stamps[step]
        for cell in shadow.cells(_spread(index, group), size):
            last = shadow.write.take(cell)
            self._compare(step, group, shadow, cell, last, stamp)
            if shadow is self.shared:
                self.watch.unused.note_read(last)
            before = shadow.read.take(cell)
            suspects = self._suspects(shadow, group, before, stamp)
            if suspects is not None:
                self._keep(shadow, group, cell[suspects], before[suspects], stamp[suspects], suspects)
            shadow.read[cell] = stamp
            lost = (shadow.read.take(cell) != stamp).nonzero()[0][::-1]
            if len(lost):  # the first of them is kept, the last is in `read`: likely of two warps
                shadow.other[cell[lost]] = stamp[lost]
                shadow.has_other = True

    def _keep(self, shadow: Shadow, group: Group, cell: Array, before: Array, own: Array, places: Array) -> None:
        """Keep reads that these come after, but where the lane is of one warp with the read before it and there is a
        read of another warp still: of two warps more can be said than of one."""
        if shadow.has_other:
            kept = shadow.other.take(cell)
            floor = taken(self.order.checked_from(group), places) if shadow is self.shared else np.uint64(1)
            better = (kept >= floor) & (_warp(kept) != _warp(own)) & (_warp(before) == _warp(own))
            if better.any():
                cell, before = cell[~better], before[~better]
        shadow.other[cell] = before
        shadow.has_other = True

    def store(
        self,
        step: int,
        group: Group,
        space: str,
        index: Array,
        size: int,
        stored: Stored | None = None,
    ) -> None:
        """Lanes are about to write; `stored` says what, but of atomics."""
        if step in self.watch.fencing:
            self.order.fence(group)
        shadow = self.shadow(space)
        if shadow is None:
            return
        stamp = group.pick(self.order.stamps) | self.watch.stamps[step]
        for cell in shadow.cells(_spread(index, group), size):
            last = shadow.write.take(cell)
            self._compare(step, group, shadow, cell, last, stamp, stored)
            if shadow is self.shared:
                self.watch.unused.note_read(last, self.watch.stamps[step] if stored is not None else None)
            for read in (shadow.read, shadow.other) if shadow.has_other else (shadow.read,):
                self._compare(step, group, shadow, cell, read.take(cell), stamp, stored, behind_read=True)
            shadow.write[cell] = stamp
        if shadow is self.shared and stored is not None:
            self._note_store(step, group, index)

    def atomic(self, step: int, group: Group, space: str, index: Array, size: int) -> None:
        """Lanes are about to change elements atomically."""
        if step in self.watch.acquiring:
            self.order.acquire(group)
        self.store(step, group, space, index, size)
        shadow = self.shadow(space)
        if shadow is not None and shadow is not self.shared and self._is_of_block(step):
            cell = _spread(index, group) >> shadow.shift
            winners = shadow.write.take(cell)
            places = self._are_apart(step, group.lanes, winners).nonzero()[0]
            if len(places):
                self._note(True, step, step, group, shadow, cell, places[0], winners[places[0]], len(places))

    def _is_of_block(self, step: int) -> bool:
        return bool(self.watch.of_block[int(access_number(self.watch.stamps[step]))])

    def _are_apart(self, step: int, lanes: Array, stamps: Array) -> Array:
        """Whether an atomic operation of these lanes and the accesses with the stamps are of two blocks, and one is
        atomic in its own alone."""
        threads = self.layout.threads
        scoped = self.watch.of_block[access_number(stamps)] | self._is_of_block(step)
        apart: Array = scoped & (thread_number(stamps) // threads != self.first_block + lanes // threads)
        return apart

    def clash(self, step: int, group: Group, space: str, index: Array, lost: Array, stored: Stored) -> None:
        """The lanes at these places in the group wrote what another lane of the same instruction wrote over."""
        shadow = self.shadow(space)
        if shadow is None or self.watch.stamps[step] & STRONG:
            return
        cell = _spread(index, group) >> shadow.shift
        places = lost.nonzero()[0]
        winners = shadow.write.take(cell[places])
        losers = thread_number(group.pick(self.order.stamps)[places])
        places = places[thread_number(winners) != losers]
        if len(places):
            first = places[0]
            self._note(True, step, step, group, shadow, cell, first, shadow.write[cell[first]], len(places), stored)

    def _suspects(self, shadow: Shadow, group: Group, stamps: Array, own: Array) -> Array | None:
        """The places in the group where an earlier access of another thread may be unordered with this one."""
        late = stamps >= self.order.checked_from(group) if shadow is self.shared else stamps != 0
        if not late.any():
            return None
        late &= (stamps ^ own) & THREAD != 0
        places = late.nonzero()[0]
        return places if len(places) else None

    def _compare(
        self,
        step: int,
        group: Group,
        shadow: Shadow,
        cell: Array,
        earlier: Array,
        own: Array,
        stored: Stored | None = None,
        *,
        behind_read: bool = False,
    ) -> None:
        """Look for races of accesses with the stamps `own` and the earlier ones of the same cells: of writes of what is
        there already, with those `behind_read` alone."""
        suspects = self._suspects(shadow, group, earlier, own)
        if suspects is not None:
            self._judge(step, group, shadow, cell, suspects, earlier, stored, behind_read)

    def _judge(
        self,
        step: int,
        group: Group,
        shadow: Shadow,
        cell: Array,
        suspects: Array,
        stamps: Array,
        stored: Stored | None,
        behind_read: bool,
    ) -> None:
        old = stamps[suspects]
        places = suspects
        if self.watch.stamps[step] & STRONG:
            weak = (old & STRONG == 0) | self._are_apart(step, group.lanes[places], old)
            old, places = old[weak], places[weak]
        bad, is_warp = self.order.unordered(group.lanes[places], old)
        if stored is not None and not behind_read and bad.any():
            bad &= stored.changes(places)
        if not bad.any():
            return
        numbers = np.where(bad, access_number(old), -1)
        for number in np.unique(numbers[bad]):
            here = numbers == number
            across = here & ~is_warp
            is_across = bool(across.any())
            at = int(np.argmax(across if is_across else here))
            other = self.watch.steps[int(number)]
            count = int(np.count_nonzero(here))
            self._note(is_across, step, other, group, shadow, cell, places[at], old[at], count, stored)

    def _note(
        self,
        is_across: bool,
        step: int,
        other_step: int,
        group: Group,
        shadow: Shadow,
        cell: Array,
        place: int,
        old: Array,
        count: int,
        stored: Stored | None = None,
    ) -> None:
        """Note a race; `is_across` where it is one also if a warp's lanes run in lockstep."""
        prepared = self.watch.prepared
        lane = int(group.lanes[place])
        byte = int(cell[place]) << shadow.shift
        stretch = self.stretch if shadow is self.shared else prepared.memory
        values = values_at(prepared.program.steps[step], stretch, byte, stored, int(place))
        if shadow is self.shared:
            byte %= prepared.shared_stride
            space, address, holder = "shared", byte, prepared.shared_place(byte)
        else:
            space, address, holder = "global", GLOBAL_WINDOW + byte, prepared.memory.place(byte)
        fault = FoundFault(
            race_in(space) if is_across else FaultKind.MISSING_SYNCWARP,
            step,
            "",
            thread_of(self.first_block * self.layout.threads + lane, prepared.grid, prepared.block),
            address,
            count,
            other_step,
            thread_of(int(thread_number(old)), prepared.grid, prepared.block),
            space,
            *holder,
            values,
        )
        prepared.note(fault)

    def _note_store(self, step: int, group: Group, index: Array) -> None:
        """Remember a store to shared memory whose values nobody may come to read."""
        watch = self.watch
        number = int(access_number(watch.stamps[step]))
        if not watch.unused.is_new(number):
            return
        lane = int(group.lanes[0])
        byte = int(index[0] if index.ndim else index) % watch.prepared.shared_stride
        thread = thread_of(self.first_block * self.layout.threads + lane, watch.prepared.grid, watch.prepared.block)
        array, offset = watch.prepared.shared_place(byte)
        watch.unused.unread[number] = FoundFault(
            FaultKind.UNUSED_RESULT, step, "", thread, byte, space="shared", array=array, offset=offset
        )


def _warp(stamps: Array) -> Array:
    """The warp of a stamp's thread, where blocks are whole warps; else nearly that."""
    return (stamps & THREAD) >> np.uint64(THREAD_AT + 5)


def _spread(index: Array, group: Group) -> Array:
    return index if index.ndim else np.full(group.size, index)
