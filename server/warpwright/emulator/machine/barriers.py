"""Barriers of a batch's blocks: who has come, and when all may go on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from warpwright.emulator.flow import Goto
from warpwright.emulator.machine.faults import FoundFault, KernelFaultError
from warpwright.emulator.machine.group import Array, Group, taken
from warpwright.facts.profile import FaultKind

if TYPE_CHECKING:
    from warpwright.emulator.machine.batch import Batch


@dataclass(frozen=True, slots=True)
class Waiting:
    """Lanes that wait at a barrier, and what each brings to a vote (`bar.red`)."""

    step: int
    group: Group
    then: Goto
    vote: Array | None


class Barriers:
    """The sixteen barriers of each block of a batch (PTX ISA, "bar, barrier")."""

    def __init__(self, batch: Batch) -> None:
        layout = batch.layout
        self.batch = batch
        self.alive: Array = np.full(layout.blocks, layout.threads, dtype=np.int64)
        self.alive_bits: Array = _bits(batch.everyone)
        self.arrived: dict[int, Array] = {}
        self.needed: dict[int, Array] = {}
        self.waiting: dict[int, list[Waiting]] = {}
        self.changes = 0
        """How often lanes came or ended."""

    def arrive(self, step: int, group: Group, numbers: Sequence[Array], vote: Array | None, then: Goto) -> None:
        """Lanes come to a barrier. `numbers` are its number and, where the text gives it, the count of threads."""
        barrier = self._one(numbers[0], step, group) if numbers else 0
        count = self._one(numbers[1], step, group) if len(numbers) > 1 else None
        plain = group.at is None and count is None and vote is None and not self.waiting.get(barrier)
        if plain and int(self.alive.min()) == self.batch.layout.threads:
            self.batch.races.order.meet([group], True)
            self.batch.send(then, group)
            return
        self._come(barrier, group, count)
        self.waiting.setdefault(barrier, []).append(Waiting(step, group, then, vote))
        self._release(barrier)

    def come(self, step: int, group: Group, numbers: Sequence[Array]) -> None:
        """Lanes arrive at a counted barrier and go on."""
        barrier = self._one(numbers[0], step, group)
        self._come(barrier, group, self._one(numbers[1], step, group))
        self._release(barrier)

    def exit(self, group: Group) -> None:
        """Lanes end. Those that wait no longer wait for them."""
        self.changes += 1
        self.alive -= np.bincount(group.block, minlength=self.batch.layout.blocks)
        self.alive_bits &= ~_bits(group)
        for barrier in [b for b, waiting in self.waiting.items() if waiting]:
            self._release(barrier)

    def finish(self) -> None:
        """At the end of the batch. Raises KernelFaultError where lanes still wait."""
        for barrier, waiting in self.waiting.items():
            for entry in waiting:
                block = int(entry.group.block[0])
                arrived = int(self.arrived[barrier][block])
                needed = int(self.needed[barrier][block] or self.alive[block])
                text = (
                    f"{arrived:,} of {needed:,} threads have arrived at barrier {barrier}, and the others never arrive"
                )
                thread = self.batch.thread(entry.group, 0)
                fault = FoundFault(FaultKind.DEADLOCK, entry.step, text, thread, count=entry.group.size)
                raise KernelFaultError(fault)

    def step_of(self, lane: int) -> int | None:
        """The barrier at which a lane waits."""
        return next((entry.step for entry in self.entries() if lane in entry.group.lanes), None)

    def entries(self) -> list[Waiting]:
        """Who waits."""
        return [entry for waiting in self.waiting.values() for entry in waiting]

    def _one(self, number: Array, step: int, group: Group) -> int:
        if number.ndim and (number != number[0]).any():
            text = "the barrier's number differs between the threads that arrive at it, which is not emulated"
            raise KernelFaultError(FoundFault(FaultKind.BARRIER_NOT_REACHED, step, text, self.batch.thread(group, 0)))
        return int(number[0] if number.ndim else number)

    def _come(self, barrier: int, group: Group, count: int | None) -> None:
        self.changes += 1
        blocks = self.batch.layout.blocks
        here = np.bincount(group.block, minlength=blocks)
        if barrier not in self.arrived:
            self.arrived[barrier] = np.zeros(blocks, dtype=np.int64)
            self.needed[barrier] = np.zeros(blocks, dtype=np.int64)
        self.arrived[barrier] += here
        if count is not None:
            self.needed[barrier][here > 0] = count

    def _release(self, barrier: int) -> None:
        arrived, needed = self.arrived[barrier], self.needed[barrier]
        wanted = np.where(needed > 0, needed, self.alive)
        done = (arrived > 0) & (arrived >= wanted)
        if not done.any():
            return
        self._judge(barrier, done & (needed == 0))
        arrived[done] = 0
        needed[done] = 0
        remaining: list[Waiting] = []
        released: list[Waiting] = []
        for entry in self.waiting.get(barrier, []):
            free = done[entry.group.block]
            if free.all():
                released.append(entry)
                continue
            if free.any():
                going, places = entry.group.where(free)
                released.append(Waiting(entry.step, going, entry.then, _at(entry.vote, places)))
                staying, places = entry.group.where(~free)
                remaining.append(Waiting(entry.step, staying, entry.then, _at(entry.vote, places)))
            else:
                remaining.append(entry)
        self.waiting[barrier] = remaining
        groups = [entry.group for entry in released]
        self.batch.races.order.meet(groups, sum(g.size for g in groups) == int(self.alive.sum()))
        self._vote(released)
        for entry in released:
            self.batch.send(entry.then, entry.group)

    def _judge(self, barrier: int, done: Array) -> None:
        """Note blocks whose barrier opens although threads of theirs have ended or came to another barrier."""
        ended = done & (self.alive < self.batch.layout.threads)
        steps = {w.step for w in self.waiting.get(barrier, []) if done[w.group.block].any()}
        for entry in self.waiting.get(barrier, []):
            there = ended[entry.group.block]
            if there.any():
                place = int(np.argmax(there))
                gone = int(self.batch.layout.threads - self.alive[entry.group.block[place]])
                text = f"{gone:,} of the block's {self.batch.layout.threads:,} threads ended before this barrier"
                thread = self.batch.thread(entry.group, place)
                self.batch.prepared.note(FoundFault(FaultKind.BARRIER_NOT_REACHED, entry.step, text, thread))
        if len(steps) > 1:
            first, second = sorted(steps)[:2]
            entry = next(w for w in self.waiting[barrier] if w.step == first)
            text = "threads of one block wait at different barriers"
            thread = self.batch.thread(entry.group, 0)
            self.batch.prepared.note(FoundFault(FaultKind.BARRIER_NOT_REACHED, first, text, thread, other_step=second))

    def _vote(self, released: list[Waiting]) -> None:
        """Give the threads of each block what `bar.red` makes of their predicates."""
        voting = [w for w in released if w.vote is not None]
        if not voting:
            return
        blocks = self.batch.layout.blocks
        yes: Array = np.zeros(blocks, dtype=np.int64)
        came: Array = np.zeros(blocks, dtype=np.int64)
        for entry in voting:
            votes = np.broadcast_to(entry.vote, entry.group.size)
            yes += np.bincount(entry.group.block, weights=votes, minlength=blocks).astype(np.int64)
            came += np.bincount(entry.group.block, minlength=blocks)
        for entry in voting:
            instruction = self.batch.program.steps[entry.step]
            number = self.batch.program.numbers[instruction.operands[0].name]  # type: ignore[union-attr]
            kind = next(m for m in instruction.modifiers if m in {"popc", "and", "or"})
            result = {"popc": yes.astype(np.uint32), "and": yes == came, "or": yes > 0}[kind][entry.group.block]
            registers = self.batch.registers
            registers[number] = result if entry.group.at is None else entry.group.put(registers[number], result)


def _at(values: Array | None, places: Array) -> Array | None:
    return None if values is None else taken(values, places)


def _bits(group: Group) -> Array:
    """For each warp of the batch the lanes that are in a group, as bits."""
    bits: Array = np.zeros(group.layout.warps, dtype=np.uint32)
    if group.size:
        lanes = np.uint32(1) << group.lane.astype(np.uint32)
        bits[group.warp[group.starts]] = np.bitwise_or.reduceat(lanes, group.starts)
    return bits
