"""Which sectors of global memory a launch touches, and which of its words have most atomic operations."""

from __future__ import annotations

import numpy as np

from warpwright.emulator.machine.group import Array, Group

SECTOR_BITS = 5
_SLOTS = 1 << 24
_MIX = np.int64(0x9E3779B97F4A7C15 - (1 << 64))


class Reach:
    """Sees the accesses of one launch. `size` is the bytes of its global memory.

    Which sectors a block has loaded before is remembered in a table of bits that sectors share by chance: where a
    launch loads many millions, some count as loaded that are not.
    """

    def __init__(self, size: int) -> None:
        self._sectors = (size >> SECTOR_BITS) + 1
        self._touched: Array = np.zeros(self._sectors, dtype=bool)
        self._loaded: Array = np.zeros(_SLOTS, dtype=bool)
        self._words: Array | None = None
        self.block_sectors = 0
        """Sectors that were loaded, each counted once for each block that loads it."""
        self.fresh_requests = 0
        """Requests to load of which a sector had not been loaded by the block before."""

    def load(self, first_block: int, group: Group, places: Array) -> None:
        """Lanes load what lies at these bytes; one place stands for all lanes."""
        sectors = places >> SECTOR_BITS
        self._touched[sectors] = True
        keys = (first_block + group.block) * self._sectors + np.broadcast_to(sectors, group.size)
        slots = (keys * _MIX) >> 40 & (_SLOTS - 1)
        is_fresh = ~self._loaded[slots]
        if not is_fresh.any():
            return
        self.fresh_requests += int(np.count_nonzero(np.logical_or.reduceat(is_fresh, group.starts)))
        fresh = np.unique(slots[is_fresh])
        self._loaded[fresh] = True
        self.block_sectors += len(fresh)

    def store(self, places: Array) -> None:
        self._touched[places >> SECTOR_BITS] = True

    def atomic(self, group: Group, places: Array) -> None:
        """Each lane does an atomic operation on the word at its byte; one place stands for all lanes."""
        self.store(places)
        if self._words is None:
            self._words = np.zeros(self._sectors << 3, dtype=np.int64)
        words, counts = np.unique(np.broadcast_to(places >> 2, group.size), return_counts=True)
        self._words[words] += counts

    @property
    def touched_sectors(self) -> int:
        return int(np.count_nonzero(self._touched))

    @property
    def hottest(self) -> int:
        """The most atomic operations on one word."""
        return int(self._words.max()) if self._words is not None else 0
