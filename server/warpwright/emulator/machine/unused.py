"""Stores to shared memory whose values no thread reads.

A store is known by the number of its access (see `order`), and what is read by the stamps that the last writes of its
cells have left.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from warpwright.emulator.machine.effects import spaces_of
from warpwright.emulator.machine.faults import FoundFault
from warpwright.emulator.machine.group import Array
from warpwright.emulator.machine.order import MOST_ACCESSES, access_number
from warpwright.emulator.ptx.model import Instruction

_LOADS = {"ld", "ldmatrix", "wgmma"}


class UnusedStores:
    """Of a launch whose accesses are those `accesses` of its `steps`, in the order of their numbers."""

    def __init__(self, steps: Sequence[Instruction], accesses: Sequence[int]) -> None:
        self.steps = steps
        self.accesses = accesses
        self.unread: dict[int, FoundFault] = {}
        self.was_read: Array = np.zeros(MOST_ACCESSES + 1, dtype=bool)
        self.loads: set[int] = set()
        """The steps of loads that the launch has come to."""

    def is_new(self, number: int) -> bool:
        """Whether a store with that number has not been made before; the last number is that of several accesses."""
        return not self.was_read[number] and number not in self.unread and number != MOST_ACCESSES

    def note_read(self, stamps: Array, own: Array | None = None) -> None:
        """Whose values are read, or written over by another instruction than `own`: theirs are no unused results."""
        if not self.unread:
            return
        numbers = access_number(stamps[stamps != 0])
        if own is not None:
            numbers = numbers[numbers != access_number(own)]
        self.was_read[numbers] = True
        for number in [n for n in self.unread if self.was_read[n]]:
            del self.unread[number]

    def faults(self) -> list[FoundFault]:
        """Stores of which no value was read, where that holds of all stores of the source line: the compiler unrolls
        loops, and what one copy stores may be read where another's is not. None where a load was never come to, which
        other inputs may come to."""
        steps = self.steps
        loads = {n for n in self.accesses if steps[n].opcode in _LOADS and "shared" in spaces_of(steps[n])}
        if not loads <= self.loads:
            return []
        read = {_line(steps[step]) for number, step in enumerate(self.accesses) if self.was_read[number]}
        return [fault for fault in self.unread.values() if _line(steps[fault.step]) not in read]


def _line(instruction: Instruction) -> tuple[str, int] | int:
    """The source line of an instruction, or, where it has none, its row in the PTX."""
    place = instruction.place
    return instruction.row if place is None else (place.file, place.line)
