"""The values of a race: what is there, and what a lane is about to store."""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from warpwright.emulator.machine.group import Array, taken
from warpwright.emulator.machine.memory import Stretch
from warpwright.emulator.ptx.model import Instruction

_NUMBER = re.compile(r"([fsu])(8|16|32|64)")
_FLOATS = {2: "<e", 4: "<f", 8: "<d"}


@dataclass(frozen=True, slots=True)
class Stored:
    """What lanes are about to store: `values` one behind the other at `index`, each of `size` bytes."""

    stretch: Stretch
    index: Array
    size: int
    values: Sequence[Array]

    def changes(self, places: Array) -> Array:
        """Which of some places in the group change what is there."""
        changed: Array = np.zeros(len(places), dtype=bool)
        own = taken(self.index, places)
        for k, value in enumerate(self.values):
            changed |= self.stretch.load(own + k * self.size, self.size) != taken(value, places)
        return changed

    def bits(self, place: int, byte: int) -> int:
        """What the lane at a place in the group stores there."""
        start = int(self.index[place] if self.index.ndim else self.index)
        value = self.values[max(0, byte - start) // self.size]
        return int(value[place] if value.ndim else value)


def values_at(
    instruction: Instruction, stretch: Stretch, byte: int, stored: Stored | None, place: int
) -> tuple[str, ...]:
    """What is there, and what an instruction's lane stores; empty where the instruction does not say of what type."""
    kind = next((_NUMBER.fullmatch(each) for each in reversed(instruction.modifiers)), None)
    if kind is None:
        return ()
    size = int(kind[2]) // 8
    there = int(stretch.load(np.array([byte // size * size]), size)[0])
    bits = (there,) if stored is None or stored.size != size else (there, stored.bits(place, byte))
    return tuple(_number(each, kind[1], size) for each in bits)


def _number(bits: int, kind: str, size: int) -> str:
    """Bits as a number; PTX loads and stores signed integers as unsigned ones.

    >>> _number(0x40200000, "f", 4), _number(7, "u", 4), _number(0xFFFFFFFF, "u", 4)
    ('2.5', '7', '-1')
    """
    data = bits.to_bytes(size, "little")
    if kind == "f":
        return f"{struct.unpack(_FLOATS[size], data)[0]:.7g}"
    return str(int.from_bytes(data, "little", signed=size >= 4))
