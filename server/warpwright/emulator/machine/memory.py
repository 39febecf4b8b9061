"""Bytes that a kernel sees, and what is known of each: whether it belongs to an array, and whether it was written.

Global memory is one stretch of bytes with all arrays in it, far enough apart that a stray access meets none. A batch
has one stretch for the shared memory of its blocks and one for the local memory of its lanes. In generic addresses
each space has a window of its own (PTX ISA, "Generic Addressing").
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from typing import Any

import numpy as np

from warpwright.emulator.machine.group import Array

GLOBAL_WINDOW = 1 << 44
SHARED_WINDOW = 1 << 40
LOCAL_WINDOW = 1 << 41
WINDOW_BYTES = 1 << 32
BLOCK_WINDOW = 1 << 24
"""Of the window of shared memory the first so many bytes are a block's own; behind them lies that of each block of its
cluster, by its rank."""
ALIGNMENT = 256
GAP = 4096
"""Bytes between two arrays that belong to none."""

ALLOCATED, WRITTEN = 1, 2
READY = ALLOCATED | WRITTEN

_PIECE = 1 << 16

UNSIGNED: dict[int, Any] = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}


@dataclass(slots=True)
class Allocation:
    """One array in global memory: `start` is its place in the stretch. `is_known` says that every byte was written."""

    name: str
    start: int
    size: int
    is_constant: bool = False
    is_known: bool = False
    is_tracked: bool = False

    @property
    def end(self) -> int:
        return self.start + self.size

    @property
    def address(self) -> int:
        return GLOBAL_WINDOW + self.start


class Stretch:
    """Bytes with a state each; `view(8)` sees them as 8-byte words."""

    def __init__(self, size: int, state: int) -> None:
        padded = -(-max(size, 1) // 16) * 16
        self.size = padded
        self.data: Array = np.zeros(padded, dtype=np.uint8)
        self.state: Array = np.full(padded, state, dtype=np.uint8) if state else np.zeros(padded, dtype=np.uint8)
        self._data_views = {n: self.data.view(t) for n, t in UNSIGNED.items()}
        self._state_views = {n: self.state.view(t) for n, t in UNSIGNED.items()}
        self.is_watched = False
        self.changes = 0
        """How many stores changed something since it is watched."""

    def load(self, index: Array, size: int) -> Array:
        """Words of `size` bytes at byte places that are multiples of it."""
        return self._data_views[size].take(index >> _SHIFT[size])

    def store(self, index: Array, size: int, values: Array) -> None:
        """Of lanes that name one place the last wins."""
        if self.is_watched:
            self.changes += bool((self.load(index, size) != values).any())
        self._data_views[size][index >> _SHIFT[size]] = values[-1] if values.ndim > index.ndim else values

    def lacks(self, index: Array, size: int, bits: int) -> Array:
        """For each place, whether a byte of the word there lacks a state."""
        wanted = UNSIGNED[size](int.from_bytes(bytes([bits]) * size, "little"))
        lacking: Array = self._state_views[size].take(index >> _SHIFT[size]) & wanted != wanted
        return lacking

    def mark(self, index: Array, size: int, bits: int) -> None:
        """Give all bytes of the words a state."""
        self._state_views[size][index >> _SHIFT[size]] = UNSIGNED[size](int.from_bytes(bytes([bits]) * size, "little"))


_SHIFT = {1: 0, 2: 1, 4: 2, 8: 3}


class GlobalMemory(Stretch):
    """The arrays of one launch. Allocate all, then `freeze`, then fill. Where `track_writes` was called, `changed` has
    for each byte whether the launch wrote it."""

    changed: Array | None = None

    def __init__(self) -> None:
        self.allocations: list[Allocation] = []
        self._end = GAP

    def allocate(self, name: str, size: int, *, is_constant: bool = False, is_tracked: bool = False) -> Allocation:
        allocation = Allocation(name, self._end, size, is_constant, False, is_tracked)
        self.allocations.append(allocation)
        self._end += -(-size // ALIGNMENT) * ALIGNMENT + GAP
        return allocation

    def freeze(self) -> None:
        """Make the bytes. Raises MemoryError."""
        super().__init__(self._end, 0)
        self._starts = [a.start for a in self.allocations]
        for allocation in self.allocations:
            self.state[allocation.start : allocation.end] = ALLOCATED

    def track_writes(self) -> None:
        self.changed = np.zeros(self.size, dtype=bool)

    def note_written(self, index: Array, size: int) -> None:
        """Bytes at these places were written by the launch."""
        if self.changed is not None:
            for byte in range(size):
                self.changed[index + byte] = True

    def fill(self, allocation: Allocation, content: Any) -> None:
        """Put bytes in an array; it counts as written as far as they go."""
        self.data[allocation.start : allocation.start + len(content)] = content
        self.state[allocation.start : allocation.start + len(content)] = READY
        allocation.is_known = len(content) == allocation.size

    def leave(self, allocation: Allocation, content: Any) -> None:
        """Put bytes in an array that nothing has written, as memory holds what was there before."""
        self.data[allocation.start : allocation.start + len(content)] = content

    def holder(self, place: int) -> Allocation | None:
        """The array at or before a place."""
        found = bisect_right(self._starts, place) - 1
        return self.allocations[found] if found >= 0 else None

    def place(self, place: int) -> tuple[str | None, int | None]:
        """The array that a place belongs to and the bytes from its start; None for none."""
        holder = self.holder(place)
        if holder is None or place >= holder.end:
            return None, None
        return holder.name, place - holder.start

    def is_written(self, allocation: Allocation) -> bool:
        """Whether any byte of an array was written; one of no bytes counts as written."""
        places = range(allocation.start, allocation.end, _PIECE)  # most are written at their start
        pieces = (self.state[place : min(place + _PIECE, allocation.end)] for place in places)
        return not allocation.size or any(bool((piece & WRITTEN).any()) for piece in pieces)
