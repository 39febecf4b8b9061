"""Lanes that wait for other threads without a barrier of their block: for lanes of their warp that the mask of a
`shfl.sync` or `bar.warp.sync` names, or for memory to change (see `emulator.spins`).

They are held back until nothing else can run, so that the threads that they wait for come to run, wherever those stand.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from warpwright.emulator.flow import is_meeting
from warpwright.emulator.machine import warp
from warpwright.emulator.machine.faults import FoundFault, KernelFaultError
from warpwright.emulator.machine.group import Array, Group
from warpwright.emulator.ptx.model import Immediate, Instruction, Register
from warpwright.facts.profile import FaultKind

if TYPE_CHECKING:
    from warpwright.emulator.machine.batch import Batch

TRIES = 16
"""How often lanes go round a loop that none of them leaves before others run."""
TURNS_BEFORE_LOOK = 128
"""How often they go round any other loop before it is looked whether a turn of it changes anything."""

State = tuple[Array, list[Array]]
"""Lanes, and what their registers hold."""


@dataclass(slots=True)
class _Turns:
    """How a loop goes: the lanes that last came round, how often in a row none had left, whether that was too often;
    after how many turns it is looked at, and what was seen one turn ago, with what had changed where that counts."""

    lanes: int = 0
    same: int = 0
    is_slow: bool = False
    look_at: int = TURNS_BEFORE_LOOK
    seen: tuple[State, tuple[int, ...] | None] | None = None


@dataclass(slots=True)
class Held:
    """The held lanes of a batch, by the block at which they wait."""

    batch: Batch
    meeting: dict[int, Group] = field(default_factory=lambda: {})
    spinning: dict[int, Group] = field(default_factory=lambda: {})
    _turns: dict[int, _Turns] = field(default_factory=lambda: {})

    # Lanes of a warp that meet

    def gather(self, number: int, group: Group) -> Group:
        """The lanes that may run a block which begins with a meeting: those whose whole warp's members are here."""
        instruction = self._meeting_of(number)
        if instruction is None or (group.is_whole and number not in self.meeting):
            return group
        if number in self.meeting:
            group = self.batch.joined([self.meeting.pop(number), group])
        return self._admit(number, instruction, group, None)

    def _meeting_of(self, number: int) -> Instruction | None:
        body = self.batch.program.blocks[number].body
        found = body[0] if body else None
        return found if found is not None and is_meeting(found) and found.guard is None else None

    def _admit(self, number: int, instruction: Instruction, group: Group, elsewhere: Array | None) -> Group:
        """Hold the lanes that must wait and give the others. `elsewhere` has, for each warp, the bits of the lanes that
        stand at any `bar.warp.sync`."""
        waits = self._absent(instruction, group, elsewhere) != 0
        if not waits.any():
            return group
        self.meeting[number] = group.where(waits)[0]
        return group.where(~waits)[0]

    def _absent(self, instruction: Instruction, group: Group, elsewhere: Array | None) -> Array:
        """For each lane the bits of the lanes that its mask names and that have neither come nor ended."""
        here = warp.present(group)
        if elsewhere is not None and instruction.opcode in {"bar", "barrier"}:
            here = here | elsewhere[group.warp]
        absent: Array = self._members(instruction, group) & self.batch.barriers.alive_bits[group.warp] & ~here
        return absent

    def _members(self, instruction: Instruction, group: Group) -> Array:
        operand = instruction.operands[-1]
        if isinstance(operand, Immediate):
            return np.uint32(int(operand.value) & 0xFFFFFFFF)
        assert isinstance(operand, Register)
        return group.pick(self.batch.registers[self.batch.program.numbers[operand.name]])

    def take_met(self) -> list[tuple[int, Group]]:
        """Held lanes that may go on now: lanes that they waited for have ended, or wait at another `bar.warp.sync`."""
        elsewhere: Array = np.zeros(self.batch.layout.warps, dtype=np.uint32)
        instructions = {number: self._meeting_of(number) for number in self.meeting}
        for number, group in self.meeting.items():
            instruction = instructions[number]
            if instruction is not None and instruction.opcode in {"bar", "barrier"}:
                np.bitwise_or.at(elsewhere, group.warp, np.uint32(1) << group.lane.astype(np.uint32))
        ready: list[tuple[int, Group]] = []
        for number, group in list(self.meeting.items()):
            instruction = instructions[number]
            assert instruction is not None
            del self.meeting[number]
            admitted = self._admit(number, instruction, group, elsewhere)
            if admitted.size:
                ready.append((number, admitted))
        return ready

    def take_stranded(self) -> tuple[int, Group]:
        """Lanes that wait for lanes which never come. A `bar.warp.sync` ends the run, others go on and are noted."""
        number = min(self.meeting)
        group = self.meeting.pop(number)
        instruction = self._meeting_of(number)
        assert instruction is not None
        absent = self._absent(instruction, group, None)
        first = int(np.argmax(absent != 0))
        lane = int(absent[first]) & -int(absent[first])
        missing = int(group.lanes[first]) - int(group.lane[first]) + lane.bit_length() - 1
        members = np.broadcast_to(self._members(instruction, group), group.size)
        is_barrier = instruction.opcode in {"bar", "barrier"}
        what = "__syncwarp" if is_barrier else instruction.opcode
        other = self.batch.thread_at(missing)
        text = f"{self.batch.thread(group, first)} waits at a {what} for {other}, which the mask "
        text += f"{int(members[first]):#010x} names and which never arrives"
        fault = FoundFault(
            FaultKind.DEADLOCK if is_barrier else FaultKind.BARRIER_NOT_REACHED,
            self.batch.program.block_steps[number][0],
            text,
            self.batch.thread(group, first),
            count=int(np.count_nonzero(absent)),
            other_step=self._step_of(missing),
            other_thread=other,
        )
        if is_barrier:
            raise KernelFaultError(fault)
        self.batch.prepared.note(fault)
        return number, group

    def _step_of(self, lane: int) -> int | None:
        """The instruction at which a lane waits."""
        for number, group in self.meeting.items():
            if lane in group.lanes:
                return self.batch.program.block_steps[number][0]
        for barriers in (self.batch.barriers, self.batch.mbarriers, self.batch.clusters):
            step = barriers.step_of(lane) if barriers is not None else None
            if step is not None:
                return step
        return None

    # Lanes that wait for memory

    def is_spinning(self, number: int, rank: float, group: Group) -> bool:
        """Hold lanes that have come round the loop that begins at this block, if that leads nowhere."""
        if rank == number:
            return False
        turns = self._turns.setdefault(number, _Turns())
        left = group.size < turns.lanes
        turns.lanes = group.size
        if left:
            turns.same = TRIES - 1 if turns.is_slow else 0
            return False
        turns.same += 1
        if turns.is_slow or number in self.batch.program.spins:
            leads_nowhere = turns.same >= TRIES
        else:
            leads_nowhere = turns.same >= turns.look_at and self._changes_nothing(turns, group)
        if not leads_nowhere:
            return False
        turns.is_slow = True
        held = self.spinning.get(number)
        self.spinning[number] = group if held is None else self.batch.joined([held, group])
        return True

    def _changes_nothing(self, turns: _Turns, group: Group) -> bool:
        """Whether a turn of a loop that does not wait for memory left everything as it was: it never ends.

        One turn is looked at for registers, and, where that leaves them, another one for memory too; then none for as
        many turns as there have been."""
        state = self._state_of(group)
        if turns.seen is None:
            turns.seen = state, None
            return False
        before, changes = turns.seen
        if _same(before, state) and changes is None:
            self.batch.watch()
            turns.seen = state, self.batch.changes()
            return False
        turns.seen = None
        turns.look_at = 2 * turns.same
        return changes == self.batch.changes() and _same(before, state)

    def take_spinning(self) -> dict[int, Group]:
        taken, self.spinning = self.spinning, {}
        return taken

    # For whoever asks whether anything goes on

    def state(self) -> dict[int, State]:
        """The held lanes of each loop, and their registers."""
        return {number: self._state_of(group) for number, group in self.spinning.items()}

    def is_in(self, state: dict[int, State]) -> bool:
        now = self.state()
        return now.keys() == state.keys() and all(_same(state[number], each) for number, each in now.items())

    def meetings(self) -> list[tuple[int, Group]]:
        """The instructions at which lanes wait for lanes of their warp."""
        return [(self.batch.program.block_steps[number][0], group) for number, group in self.meeting.items()]

    def _state_of(self, group: Group) -> State:
        return group.lanes, [np.array(group.pick(register)) for register in self.batch.registers]


def _same(one: State, other: State) -> bool:
    """Whether these are the same lanes with the same bits in their registers; one bit pattern that all share may be
    stored once."""
    if not np.array_equal(one[0], other[0]):
        return False
    pairs = zip(one[1], other[1], strict=True)
    return all(bool((_bits(a) == _bits(b)).all()) for a, b in pairs)


def _bits(register: Array) -> Array:
    return register.view(f"u{register.itemsize}") if register.dtype.kind == "f" else register
