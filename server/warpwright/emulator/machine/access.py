"""Loads, stores and atomics of a batch: where an address lies, whether the access is allowed, what it moves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from warpwright.emulator.machine import atomics, traffic
from warpwright.emulator.machine.faults import FoundFault, KernelFaultError, thread_of
from warpwright.emulator.machine.group import WARP, Array, Group, Layout, taken
from warpwright.emulator.machine.memory import (
    ALLOCATED,
    BLOCK_WINDOW,
    GLOBAL_WINDOW,
    LOCAL_WINDOW,
    READY,
    SHARED_WINDOW,
    UNSIGNED,
    WINDOW_BYTES,
    Allocation,
    Stretch,
)
from warpwright.emulator.machine.races import Races
from warpwright.emulator.machine.reach import Reach
from warpwright.emulator.machine.stored import Stored
from warpwright.emulator.merging import Merged
from warpwright.facts.profile import FaultKind, Thread

if TYPE_CHECKING:
    from warpwright.emulator.launch import Prepared
    from warpwright.emulator.machine.clusters import Clusters
    from warpwright.emulator.machine.warpgroup import Warpgroups

_Located = tuple[Stretch, Array, Allocation | None]
"""A space's bytes, the place in them for each lane, and the array that holds all of them, if one does."""


class Access:
    """The memories of one batch. Addresses are uint32 or uint64 arrays over a group, or one number for all of it.

    `space` is a PTX state space, "generic" where the address decides. `size` is the bytes of an element, `count` the
    elements that a lane moves (of `.v2` and `.v4`). Where there is a `mask`, the other lanes do nothing.
    """

    def __init__(self, prepared: Prepared, layout: Layout, first_block: int) -> None:
        self.layout = layout
        self.first_block = first_block
        self.prepared = prepared
        self.program = prepared.program
        self.tallies = prepared.tallies
        self.shared_stride = prepared.shared_stride
        self.local_stride = -(-prepared.program.local_bytes // 16) * 16
        self.memory = prepared.memory
        self.shared = Stretch(layout.blocks * self.shared_stride, ALLOCATED)
        self.races = Races(prepared.watch, layout, first_block, self.shared)
        self.local = Stretch(layout.lanes * self.local_stride, ALLOCATED)
        self.warpgroups: Warpgroups | None = None
        self.clusters: Clusters | None = None

    # What translated code asks for

    def load(
        self,
        step: int,
        group: Group,
        space: str,
        address: Array,
        size: int,
        count: int,
        mask: Array | None,
        used: Array | None = None,
    ) -> tuple[Array, ...]:
        """The elements, as unsigned numbers of `size` bytes; zero for lanes that the mask leaves out. `used` are the
        lanes whose values count, where not all do (see `emulator.selects`); there is no mask then."""
        inner, places = _chosen(group, mask)
        if not inner.size:
            return tuple(UNSIGNED[size](0) for _ in range(count))
        values = self._load(step, inner, space, taken(address, places), size, count, used)
        if places is None:
            return values
        spread = tuple(np.zeros(group.size, dtype=UNSIGNED[size]) for _ in values)
        for whole, part in zip(spread, values, strict=True):
            whole[places] = part
        return spread

    def store(
        self,
        step: int,
        group: Group,
        space: str,
        address: Array,
        size: int,
        values: Sequence[Array],
        mask: Array | None,
    ) -> None:
        """Put elements, as unsigned numbers of `size` bytes, at consecutive places from each lane's address."""
        inner, places = _chosen(group, mask)
        if inner.size:
            chosen = [taken(value, places) for value in values]
            self._store(step, inner, space, taken(address, places), size, chosen)

    def atomic(
        self,
        step: int,
        group: Group,
        space: str,
        address: Array,
        kind: str,
        operation: str,
        operands: Sequence[Array],
        mask: Array | None,
    ) -> Array:
        """Change each lane's element one after the other, in lane order, and give what each found, of `kind`."""
        inner, places = _chosen(group, mask)
        if not inner.size:
            return atomics.zero(kind)
        chosen = [taken(operand, places) for operand in operands]
        values = self._atomic(step, inner, space, taken(address, places), kind, operation, chosen)
        if places is None:
            return values
        found = atomics.zeros(kind, group.size)
        found[places] = values
        return found

    # One space at a time

    def _load(
        self, step: int, group: Group, space: str, address: Array, size: int, count: int, used: Array | None
    ) -> tuple[Array, ...]:
        if space == "generic":
            parts = self._parts(group, address)
            if len(parts) > 1:
                spread = tuple(np.zeros(group.size, dtype=UNSIGNED[size]) for _ in range(count))
                for inner, places, there, own in parts:
                    those = None if used is None else taken(used, places)
                    for whole, part in zip(
                        spread, self._load(step, inner, there, own, size, count, those), strict=True
                    ):
                        whole[places] = part
                return spread
            _, _, space, address = parts[0]
        located = self._locate(step, group, space, address, size * count)
        self._count(step, group, space, address, located[1], size * count)
        return self._fetched(step, group, space, address, size, count, located, used)

    def fetch(
        self, step: int, group: Group, space: str, address: Array, size: int, count: int = 1
    ) -> tuple[Array, ...]:
        """What `load` gives of one space, checked and not counted."""
        located = self._locate(step, group, space, address, size * count)
        return self._fetched(step, group, space, address, size, count, located)

    def _fetched(
        self,
        step: int,
        group: Group,
        space: str,
        address: Array,
        size: int,
        count: int,
        located: _Located,
        used: Array | None = None,
    ) -> tuple[Array, ...]:
        stretch, index, holder = located
        readers, places = _chosen(group, used)
        if readers.size:
            where = stretch, taken(index, places), holder
            self._check_read(step, readers, space, taken(address, places), size, count, where)
        return tuple(stretch.load(index + k * size if k else index, size) for k in range(count))

    def _check_read(
        self, step: int, group: Group, space: str, address: Array, size: int, count: int, located: _Located
    ) -> None:
        """Note what is read and nobody has written, races, and what the read-only cache may hold as it was."""
        stretch, index, holder = located
        if space in {"global", "const", "shared"} and not (holder is not None and holder.is_known):
            for k in range(count):
                self._need_written(step, group, stretch, index + k * size, size, space, address, k * size)
        if _is_checked(space, holder):
            self.races.load(step, group, space, index, size * count)
        if space == "global" and self.memory.changed is not None and step in self.prepared.read_only:
            self._need_unchanged(step, group, self.memory.changed, index, address)

    def _need_unchanged(self, step: int, group: Group, changed: Array, index: Array, address: Array) -> None:
        """Note what is read through the read-only path after the launch wrote it: the cache there may hold the old."""
        wrong = changed[index]
        if wrong.any():
            at = int(np.argmax(wrong)) if wrong.ndim else 0
            reader = self.thread(group, at)
            fault = self._fault(FaultKind.GLOBAL_RACE, step, group, at, "global", address, "")
            where = f"byte {fault.offset:,} of {fault.array}" if fault.array is not None else "global memory"
            text = f"{reader} reads {where} through the read-only cache, after the kernel has written it"
            count = int(np.count_nonzero(wrong)) if wrong.ndim else group.size
            self.prepared.note(replace(fault, text=text, count=count))

    def _store(self, step: int, group: Group, space: str, address: Array, size: int, values: Sequence[Array]) -> None:
        total = size * len(values)
        if space == "generic":
            parts = self._parts(group, address)
            if len(parts) > 1:
                for inner, places, there, own in parts:
                    self._store(step, inner, there, own, size, [taken(value, places) for value in values])
                return
            _, _, space, address = parts[0]
        located = self._locate(step, group, space, address, total)
        self._count(step, group, space, address, located[1], total)
        self._put(step, group, space, address, size, values, located)

    def put(self, step: int, group: Group, space: str, address: Array, size: int, values: Sequence[Array]) -> None:
        """What `store` does in one space, checked and not counted."""
        located = self._locate(step, group, space, address, size * len(values))
        self._put(step, group, space, address, size, values, located)

    def _put(
        self,
        step: int,
        group: Group,
        space: str,
        address: Array,
        size: int,
        values: Sequence[Array],
        located: _Located,
    ) -> None:
        total = size * len(values)
        stretch, index, holder = located
        if holder is not None and holder.is_constant:
            text = f"to {holder.name}, which is constant"
            raise KernelFaultError(self._fault(FaultKind.OUT_OF_BOUNDS, step, group, 0, space, address, text))
        if holder is not None:
            holder.is_tracked = True
        is_checked = _is_checked(space, holder)
        stored = Stored(stretch, index, size, values) if is_checked else None
        if stored is not None:
            self.races.store(step, group, space, index, total, stored)
        for k, value in enumerate(values):
            place = index + k * size if k else index
            stretch.store(place, size, value if index.ndim or not value.ndim else value[-1])
            if stored is not None and (value.ndim or not index.ndim):
                lost = np.broadcast_to(stretch.load(place, size) != value, group.size)
                if lost.any():
                    self.races.clash(step, group, space, place, lost, stored)
            if space != "local" and not (holder is not None and holder.is_known):
                stretch.mark(place, size, READY)
        if space == "global":
            self.memory.note_written(index, total)
        elif space == "shared" and self.warpgroups is not None:
            self.warpgroups.note_store(step, group, index, total)

    def _atomic(
        self,
        step: int,
        group: Group,
        space: str,
        address: Array,
        kind: str,
        operation: str,
        operands: Sequence[Array],
    ) -> Array:
        size = int(kind[1:])
        if space == "generic":
            parts = self._parts(group, address)
            if len(parts) > 1:
                found = atomics.zeros(kind, group.size)
                for inner, places, there, own in parts:
                    inner_operands = [taken(operand, places) for operand in operands]
                    found[places] = self._atomic(step, inner, there, own, kind, operation, inner_operands)
                return found
            _, _, space, address = parts[0]
        stretch, index, holder = self._locate(step, group, space, address, size)
        if not (holder is not None and holder.is_known):
            self._need_written(step, group, stretch, index, size, space, address, 0)
        if holder is not None:
            holder.is_tracked = True
        if _is_checked(space, holder):
            self.races.atomic(step, group, space, index, size)
        if space == "global":
            self.memory.note_written(index, size)
        self._count(step, group, space, address, index, size)
        if index.ndim == 0:
            index = np.full(group.size, index)
        # Of sums of floats alone, which any order changes by no more than rounding.
        shuffled = self.prepared.atomic_order if kind[0] == "f" or operation.startswith("add_") else None
        order = shuffled.permutation(group.size) if shuffled is not None else None
        return atomics.apply(stretch, index, kind, operation, operands, order)

    def _parts(self, group: Group, address: Array) -> list[tuple[Group, Array, str, Array]]:
        """A group by the spaces that its generic addresses lie in: lanes, their places in the group, space, address."""
        everywhere = np.arange(group.size)
        windows = (("shared", SHARED_WINDOW), ("local", LOCAL_WINDOW))
        low, high = int(address.min()), int(address.max())
        if low >= GLOBAL_WINDOW:
            return [(group, everywhere, "global", address)]
        for space, window in windows:
            if window <= low and high < window + WINDOW_BYTES:
                return [(group, everywhere, space, address - np.uint64(window))]
        if address.ndim == 0:
            return [(group, everywhere, "global", address)]
        parts: list[tuple[Group, Array, str, Array]] = []
        rest: Array = np.ones(group.size, dtype=bool)
        for space, window in windows:
            inside = (address >= np.uint64(window)) & (address < np.uint64(window + WINDOW_BYTES))
            if inside.any():
                inner, places = group.where(inside)
                parts.append((inner, places, space, address[places] - np.uint64(window)))
                rest &= ~inside
        if rest.any():
            inner, places = group.where(rest)
            parts.append((inner, places, "global", address[places]))
        return parts

    def _locate(self, step: int, group: Group, space: str, address: Array, size: int) -> _Located:
        """The bytes of a space, the place in them for each lane, and the array that holds all of them, if one does.

        Raises KernelFaultError for an address that is misaligned or belongs to nothing.
        """
        place: Array = address.astype(np.int64)
        if place.ndim:
            low, high = int(place.min()), int(place.max())
            bits = int(np.bitwise_or.reduce(place)) if size > 1 else 0
        else:
            low = high = bits = int(place)
        if bits & (size - 1):
            at = int(np.argmax(place & (size - 1) != 0)) if place.ndim else 0
            text = f"{size} bytes at an address that is not a multiple of {size}"
            raise KernelFaultError(self._fault(FaultKind.MISALIGNED, step, group, at, space, address, text))
        if space == "shared":
            return self.shared, self._in_shared(step, group, address, place, low, high, size), None
        if space == "local":
            if low < 0 or high + size > self.local_stride:
                at = int(np.argmax((place < 0) | (place + size > self.local_stride))) if place.ndim else 0
                text = f"outside the thread's {self.program.local_bytes:,} bytes of local memory"
                raise KernelFaultError(self._fault(FaultKind.OUT_OF_BOUNDS, step, group, at, space, address, text))
            return self.local, place + group.lanes * self.local_stride, None
        place = place - GLOBAL_WINDOW
        holder = self.memory.holder(low - GLOBAL_WINDOW)
        if holder is not None and high - GLOBAL_WINDOW + size <= holder.end:
            return self.memory, place, holder
        self._need_allocated(step, group, space, address, place, size)
        return self.memory, place, None

    def _in_shared(
        self, step: int, group: Group, address: Array, place: Array, low: int, high: int, size: int
    ) -> Array:
        """Where in the shared memory of the batch `place` of the lanes' blocks, or of others of their clusters, lies;
        `low` and `high` are the lowest and the highest place. Raises KernelFaultError for one outside of it."""
        block = group.block
        if self.clusters is not None and high >= BLOCK_WINDOW:
            block = self.clusters.block_of(group, place)
            self._need_block(step, group, block, place, address)
            place = place % BLOCK_WINDOW
            low, high = int(place.min()), int(place.max())
        if low < 0 or high + size > self.prepared.shared_bytes:
            at = int(np.argmax((place < 0) | (place + size > self.prepared.shared_bytes))) if place.ndim else 0
            text = f"outside the block's {self.prepared.shared_bytes:,} bytes of shared memory"
            raise KernelFaultError(self._fault(FaultKind.OUT_OF_BOUNDS, step, group, at, "shared", address, text))
        return place + block * self.shared_stride if self.layout.blocks > 1 else place

    def _need_allocated(self, step: int, group: Group, space: str, address: Array, place: Array, size: int) -> None:
        """Raises KernelFaultError for a place in global memory that belongs to no array."""
        inside = (place >= 0) & (place + size <= self.memory.size)
        bad = ~inside
        bad |= self.memory.lacks(np.where(inside, place, 0), min(size, 8), ALLOCATED)
        if size == 16:
            bad |= self.memory.lacks(np.where(inside, place + 8, 0), 8, ALLOCATED)
        if bad.any():
            at = int(np.argmax(bad)) if place.ndim else 0
            where = int(place[at] if place.ndim else place)
            text, holder = self._nearest(where)
            count = int(np.count_nonzero(bad)) if place.ndim else group.size
            fault = self._fault(FaultKind.OUT_OF_BOUNDS, step, group, at, space, address, text, count)
            if holder is not None:
                fault = replace(fault, array=holder.name, offset=where - holder.start)
            raise KernelFaultError(fault)

    def shared_index(self, step: int, group: Group, space: str, address: Array, size: int) -> Array:
        """Where in the shared memory of the batch the addresses lie, which may be generic ones."""
        if space == "generic":
            address = address - np.uint64(SHARED_WINDOW)
        return self._locate(step, group, "shared", address, size)[1]

    def _need_block(self, step: int, group: Group, block: Array, place: Array, address: Array) -> None:
        """Raises KernelFaultError for an address of shared memory of a block that its cluster does not have."""
        assert self.clusters is not None
        span = self.clusters.blocks
        stray = (block // span != group.block // span) | (place >> 32 != 0)
        if stray.any():
            text = f"in the shared memory of a block that the cluster of {span} does not have"
            at = int(np.argmax(stray))
            raise KernelFaultError(self._fault(FaultKind.OUT_OF_BOUNDS, step, group, at, "shared", address, text))

    def _need_written(
        self,
        step: int,
        group: Group,
        stretch: Stretch,
        index: Array,
        size: int,
        space: str,
        address: Array,
        past: int,
    ) -> None:
        """Note elements at `index`, which lie `past` bytes behind each lane's address, that were not all written."""
        lacking = stretch.lacks(index, size, READY)
        if lacking.any():
            at = int(np.argmax(lacking)) if lacking.ndim else 0
            count = int(np.count_nonzero(lacking)) if lacking.ndim else group.size
            fault = self._fault(FaultKind.UNINITIALISED_READ, step, group, at, space, address, "", count, past)
            self.prepared.note(fault)

    def count(self, step: int, group: Group, space: str, address: Array, size: int) -> None:
        """Count an access of one space as it is made by `load` and `store`."""
        self._count(step, group, space, address, self._locate(step, group, space, address, size)[1], size)

    def _count(self, step: int, group: Group, space: str, address: Array, index: Array, size: int) -> None:
        if self.prepared.awaited is not None:
            first = int(address[0] if address.ndim else address)
            self.prepared.awaited[step] = (self.thread(group, 0), space, first)
        if not self.prepared.counts_traffic:
            return
        if step in self.program.merged:
            one = self.program.merged[step]
            if one is None:
                return
            step, size = one.at, one.width
            address, index = (_start(place, one) for place in (address, index))
        if space == "shared":
            self.tallies.move(step, "shared", group, size, traffic.wavefronts(group, address.astype(np.int64), size))
        elif space == "local":
            self.tallies.move(step, "local", group, size, self._local_sectors(group, address.astype(np.int64), size))
        else:
            self.tallies.move(step, space, group, size, traffic.sectors(group, index, size))
            if self.prepared.reach is not None and space == "global":
                self._note_reach(self.prepared.reach, step, group, index)

    def _note_reach(self, reach: Reach, step: int, group: Group, index: Array) -> None:
        opcode = self.program.steps[step].opcode
        if opcode in {"atom", "red"}:
            reach.atomic(group, index)
        elif opcode == "st":
            reach.store(index)
        else:
            reach.load(self.first_block, group, index)

    def _local_sectors(self, group: Group, address: Array, size: int) -> tuple[Array, Array]:
        """Word k of a thread's local memory lies beside word k of its warp's other threads, so that lanes that use
        one offset use one row of 128 bytes (CUDA C++ Programming Guide, "Local Memory")."""
        moved: Array = np.zeros(group.warps, dtype=np.int64)
        for word in range(max(1, size // 4)):
            row = ((address >> 2) + word) * (4 * WARP) + group.lane * 4
            moved = moved + traffic.sectors(group, row, min(size, 4))[0]
        ideal = -(-group.active * size // 32)
        return moved, np.minimum(moved, ideal)

    # Words for people

    def _fault(
        self,
        kind: FaultKind,
        step: int,
        group: Group,
        at: int,
        space: str,
        address: Array,
        text: str,
        count: int = 1,
        past: int = 0,
    ) -> FoundFault:
        """A fault of the lane at a place in the group, `past` bytes behind its address."""
        own = int(address[at] if address.ndim else address) + past
        array, offset = None, None
        if space == "shared":
            array, offset = self.prepared.shared_place(own % BLOCK_WINDOW)
        elif space != "local":
            array, offset = self.memory.place(own - GLOBAL_WINDOW)
        return FoundFault(kind, step, text, self.thread(group, at), own, count, space=space, array=array, offset=offset)

    def _nearest(self, place: int) -> tuple[str, Allocation | None]:
        """What a place in global memory lies beside: `4 bytes past the end of y (4,000 bytes)`, and that."""
        holder = self.memory.holder(place)
        if place + GLOBAL_WINDOW == 0 or holder is None or place > self.memory.size:
            first = self.memory.allocations[0] if self.memory.allocations else None
            if first is not None and 0 <= first.start - place <= 1 << 20:
                return f"{first.start - place:,} bytes before {first.name} ({first.size:,} bytes)", first
            return "at an address that belongs to no array", None
        after = self.memory.holder(holder.end + 8192)
        past = place - holder.end
        if after is not None and after is not holder and after.start - place < past:
            return f"{after.start - place:,} bytes before {after.name} ({after.size:,} bytes)", after
        how = "just past the end" if past == 0 else f"{past:,} bytes past the end" if past > 0 else "across the end"
        return f"{how} of {holder.name} ({holder.size:,} bytes)", holder

    def thread(self, group: Group, place: int) -> Thread:
        """The thread at a place in a group."""
        return self.thread_at(int(group.lanes[place]))

    def thread_at(self, lane: int) -> Thread:
        """The thread that a lane of the batch is."""
        return thread_of(self.first_block * self.layout.threads + lane, self.prepared.grid, self.prepared.block)


def _start(place: Array, merged: Merged) -> Array:
    """Where a merged access begins whose first member is at a place: at a multiple of its width."""
    start: Array = (place.astype(np.int64) - merged.before) & -merged.width
    return start


def _is_checked(space: str, holder: Allocation | None) -> bool:
    """Whether races are looked for: not in what one thread sees alone, nor in an array that nothing has written."""
    return space == "shared" or (space == "global" and (holder is None or holder.is_tracked))


def _chosen(group: Group, mask: Array | None) -> tuple[Group, Array | None]:
    """The lanes for which a mask holds, and their places in the group; None for the places where all are."""
    if mask is None or (mask.ndim == 0 and mask):
        return group, None
    return group.where(np.broadcast_to(mask, group.size))
