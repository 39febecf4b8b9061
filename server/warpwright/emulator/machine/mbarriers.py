"""Barriers that lie in shared memory (PTX ISA, "mbarrier"): what `cuda::barrier` and `cuda::pipeline` are made of.

A thread that asks whether a phase has ended waits until it has. Where nothing else can go on it is told that it has
not, as after the time that the hardware waits at most. Where that has changed nothing when all wait again, they wait
for ever.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from warpwright.emulator.flow import Goto
from warpwright.emulator.machine.faults import FoundFault, KernelFaultError
from warpwright.emulator.machine.group import Array, Group, taken
from warpwright.facts.profile import FaultKind

if TYPE_CHECKING:
    from warpwright.emulator.machine.batch import Batch

_ALL_DROPPED = 1 << 30
"""The arrivals that a barrier still expects whose threads have all left it."""

_INVALID = -1
"""The place of a barrier that has been made invalid."""


@dataclass(frozen=True, slots=True)
class Asking:
    """Lanes that wait for phases to end, each of the barrier with the number in `barrier`: the phase that a lane's
    arrival was of, or its parity."""

    step: int
    group: Group
    barrier: Array
    phase: Array
    is_parity: bool
    then: Goto


class Mbarriers:
    """The barriers in the shared memory of a batch. Of each: its place, the arrivals of a phase, arrivals and bytes
    that the present one still lacks, how many phases have ended, and what its threads know (see `order`)."""

    def __init__(self, batch: Batch) -> None:
        self.batch = batch
        self.number_at: dict[int, int] = {}
        self.place: Array = np.zeros(0, dtype=np.int64)
        self.expected: Array = np.zeros(0, dtype=np.int64)
        self.pending: Array = np.zeros(0, dtype=np.int64)
        self.bytes: Array = np.zeros(0, dtype=np.int64)
        self.phase: Array = np.zeros(0, dtype=np.int64)
        self.floor: Array = np.zeros(0, dtype=np.uint64)
        self.waiting: list[Asking] = []
        self.changes = 0
        self._given_up_at: tuple[int, ...] | None = None

    # What translated code asks for

    def start(self, step: int, group: Group, space: str, address: Array, count: Array, mask: Array | None) -> None:
        """`mbarrier.init`."""
        inner, place, count = self._chosen(step, group, space, address, count, mask)
        for where, wanted in zip(place.tolist(), np.broadcast_to(count, inner.size).tolist(), strict=True):
            number = self.number_at.setdefault(where, len(self.number_at))
            if number == len(self.place):
                for name in ("place", "expected", "pending", "bytes", "phase", "floor"):
                    old = getattr(self, name)
                    setattr(self, name, np.append(old, old.dtype.type(0)))
            self.place[number] = where
            self.expected[number] = self.pending[number] = wanted
            self.bytes[number] = self.phase[number] = self.floor[number] = 0
            self.changes += 1

    def end(self, step: int, group: Group, space: str, address: Array, mask: Array | None) -> None:
        """`mbarrier.inval`."""
        inner, place, _ = self._chosen(step, group, space, address, np.uint32(0), mask)
        number = self._numbers(step, inner, place)
        self.expected[number] = self.pending[number] = _ALL_DROPPED
        self.place[number] = _INVALID

    def arrive(
        self,
        step: int,
        group: Group,
        space: str,
        address: Array,
        count: Array,
        more_bytes: Array,
        leaves: bool,
        mask: Array | None,
    ) -> Array:
        """Count lanes as come, `count` times each, and tell each the phase of its arrival. A phase that lacks nothing
        ends. Those that leave are not expected in the next ones."""
        inner, place, count = self._chosen(step, group, space, address, count, mask)
        found: Array = np.zeros(group.size, dtype=np.uint64)
        if not inner.size:
            return found
        number = self._numbers(step, inner, place)
        count = np.broadcast_to(count, inner.size).astype(np.int64)
        places = np.arange(group.size) if mask is None else np.broadcast_to(mask, group.size).nonzero()[0]
        found[places] = self._phase_of_each(number, count)
        order = self.batch.races.order
        np.maximum.at(self.floor, number, np.broadcast_to(inner.pick(order.floor), inner.size))
        order.fence(inner)
        extra = np.broadcast_to(more_bytes, group.size)[places].astype(np.int64)
        np.add.at(self.bytes, number, extra)
        np.subtract.at(self.pending, number, count)
        if leaves:
            np.subtract.at(self.expected, number, count)
        self.changes += 1
        self._end_phases()
        return found

    def expect(
        self, step: int, group: Group, space: str, address: Array, more_bytes: Array, sign: int, mask: Array | None
    ) -> None:
        """`mbarrier.expect_tx`, and with a negative sign `mbarrier.complete_tx`."""
        inner, place, more_bytes = self._chosen(step, group, space, address, more_bytes, mask)
        number = self._numbers(step, inner, place)
        np.add.at(self.bytes, number, sign * np.broadcast_to(more_bytes, inner.size).astype(np.int64))
        self.changes += 1
        self._end_phases()

    # What lanes wait for

    def ask(self, step: int, group: Group, space: str, address: Array, phase: Array, is_parity: bool, to: Goto) -> None:
        """`mbarrier.try_wait` and `mbarrier.test_wait`."""
        _, place, _ = self._chosen(step, group, space, address, np.uint32(0), None)
        number = self._numbers(step, group, place)
        phase = np.broadcast_to(phase, group.size).astype(np.int64)
        self.waiting.append(Asking(step, group, number, phase, is_parity, to))
        self._release()

    def give_up(self) -> bool:
        """Tell those that wait that no phase has ended; False where nothing has changed since the last time."""
        self.batch.watch()
        now = self.batch.changes(with_time=False)
        if not self.waiting or now == self._given_up_at:
            return False
        self._given_up_at = now
        waiting, self.waiting = self.waiting, []
        for entry in waiting:
            self._answer(entry.step, entry.group, False)
            self.batch.send(entry.then, entry.group)
        return True

    def finish(self) -> None:
        """At the end of the batch. Raises KernelFaultError where lanes still wait."""
        for entry in self.waiting:
            number = int(entry.barrier[0])
            needed, thread = int(self.expected[number]), self.batch.thread(entry.group, 0)
            name, offset = self.batch.prepared.shared_place(self._in_block(int(self.place[number])))
            text = f"{needed - int(self.pending[number]):,} of {needed:,} arrivals have been made at this barrier"
            text += ", and the others are never made"
            if int(self.pending[number]) <= 0:
                text = f"{int(self.bytes[number]):,} bytes that this barrier waits for never arrive"
            count = sum(each.group.size for each in self.waiting)
            fault = FoundFault(
                FaultKind.DEADLOCK, entry.step, text, thread, count=count, space="shared", array=name, offset=offset
            )
            raise KernelFaultError(fault)

    def step_of(self, lane: int) -> int | None:
        """The instruction at which a lane waits."""
        return next((entry.step for entry in self.waiting if lane in entry.group.lanes), None)

    def _chosen(
        self, step: int, group: Group, space: str, address: Array, value: Array, mask: Array | None
    ) -> tuple[Group, Array, Array]:
        """The lanes that a mask leaves, where in the batch's shared memory the barrier of each lies, their values."""
        if mask is not None:
            group, places = group.where(np.broadcast_to(mask, group.size))
            address, value = taken(address, places), taken(value, places)
        if not group.size:
            return group, np.zeros(0, dtype=np.int64), value
        return group, np.broadcast_to(self.batch.shared_index(step, group, space, address, 8), group.size), value

    def _numbers(self, step: int, group: Group, place: Array) -> Array:
        """The numbers of the barriers at some places. Raises KernelFaultError where there is none."""
        found, which = np.unique(place, return_inverse=True)
        numbers = np.array([self._number_at(int(where)) for where in found], dtype=np.int64)
        if (numbers < 0).any():
            at = int(np.argmax(numbers[which] < 0))
            own = self._in_block(int(place[at]))
            array, offset = self.batch.prepared.shared_place(own)
            kind, thread = FaultKind.UNINITIALISED_READ, self.batch.thread(group, at)
            raise KernelFaultError(FoundFault(kind, step, "", thread, own, space="shared", array=array, offset=offset))
        return numbers[which]

    def _number_at(self, place: int) -> int:
        """-1 where no barrier is."""
        number = self.number_at.get(place, -1)
        return number if number >= 0 and self.place[number] != _INVALID else -1

    def _in_block(self, place: int) -> int:
        return place % self.batch.shared_stride

    def _phase_of_each(self, number: Array, count: Array) -> Array:
        """The phase that each arrival is of, in the order of lanes: more than a phase lacks begin the next one."""
        before: Array = np.zeros(len(number), dtype=np.int64)
        for each in np.unique(number):
            here = number == each
            before[here] = np.cumsum(count[here]) - count[here]
        lacking, whole = self.pending[number], np.maximum(self.expected[number], 1)
        later = np.where(before < lacking, 0, (before - lacking) // whole + 1)
        return (self.phase[number] + later).astype(np.uint64)

    def _end_phases(self) -> None:
        before = self.phase.copy()
        while (done := (self.pending <= 0) & (self.bytes == 0)).any():
            self.phase[done] += 1
            self.pending[done] += np.where(self.expected[done] > 0, self.expected[done], _ALL_DROPPED)
        if (self.phase != before).any():
            self._release()

    def _release(self) -> None:
        """Let those go on whose phases have ended."""
        asking, self.waiting = self.waiting, []
        for entry in asking:
            ended = self.phase[entry.barrier]
            free = (ended & 1) != (entry.phase & 1) if entry.is_parity else ended > entry.phase
            if not free.all():
                staying, places = entry.group.where(~free)
                left = Asking(
                    entry.step, staying, entry.barrier[places], entry.phase[places], entry.is_parity, entry.then
                )
                self.waiting.append(left)
            if free.any():
                going, places = entry.group.where(free)
                self.batch.races.order.learn(going, self.floor[entry.barrier[places]])
                self._answer(entry.step, going, True)
                self.batch.send(entry.then, going)

    def _answer(self, step: int, group: Group, has_ended: bool) -> None:
        """Write the result of the instruction at which lanes waited."""
        name = self.batch.program.steps[step].operands[0].name  # type: ignore[union-attr]
        if name == "_":
            return
        number = self.batch.program.numbers[name]
        registers, value = self.batch.registers, np.bool_(has_ended)
        registers[number] = value if group.at is None else group.put(registers[number], value)
