"""Which lanes of a batch run an instruction together.

A batch is some blocks of the grid, all their threads numbered block by block: lane 0 is thread 0 of the first block.
Warps do not span blocks, so where a block is not a multiple of 32 threads its last warp is short.
"""

from __future__ import annotations

from functools import cached_property, lru_cache
from typing import Any

import numpy as np

Array = Any
"""A NumPy array or a NumPy scalar; numpy has no types for both in one."""

WARP = 32


class Layout:
    """How a batch's lanes lie: `blocks` blocks of `threads` threads each. Its arrays are never changed."""

    def __init__(self, blocks: int, threads: int) -> None:
        self.blocks = blocks
        self.threads = threads
        self.lanes = blocks * threads
        self.warps_per_block = -(-threads // WARP)
        self.warps = blocks * self.warps_per_block
        self.is_whole = threads % WARP == 0

    @cached_property
    def everyone(self) -> Group:
        """All lanes."""
        return Group(self, None)

    @cached_property
    def every(self) -> Array:
        return np.arange(self.lanes, dtype=np.int64)

    @cached_property
    def block_of(self) -> Array:
        return self.every // self.threads

    @cached_property
    def thread_of(self) -> Array:
        return self.every % self.threads

    @cached_property
    def lane_of(self) -> Array:
        return self.thread_of % WARP

    @cached_property
    def warp_of(self) -> Array:
        return self.every >> 5 if self.is_whole else self.block_of * self.warps_per_block + self.thread_of // WARP


@lru_cache(maxsize=8)
def layout_of(blocks: int, threads: int) -> Layout:
    """The layout of so many blocks: batches of one size share it, and what is known of all their lanes."""
    return Layout(blocks, threads)


class Group:
    """Lanes of a batch, ascending. `at` holds their numbers; None means all lanes of the batch."""

    def __init__(self, layout: Layout, at: Array | None) -> None:
        self.layout = layout
        self.at = at if at is None or len(at) < layout.lanes else None
        self.size: int = layout.lanes if self.at is None else len(self.at)

    def pick(self, values: Array) -> Array:
        """These lanes' values of an array over the whole batch; a value that all lanes share stays one."""
        return values if self.at is None or values.ndim == 0 else values.take(self.at, axis=0)

    def put(self, old: Array, value: Array) -> Array:
        """An array over the whole batch in which these lanes have `value`. `old` is changed where it is an array."""
        if old.ndim == 0:
            if value.ndim == 0 and value == old:
                return old
            old = np.full(self.layout.lanes, old)
        old[self.at] = value
        return old

    def where(self, mask: Array) -> tuple[Group, Array]:
        """The lanes of this group for which `mask` holds, and their positions in the group."""
        places = mask.nonzero()[0]
        return Group(self.layout, places if self.at is None else self.at.take(places)), places

    @cached_property
    def lanes(self) -> Array:
        return self.layout.every if self.at is None else self.at

    @cached_property
    def block(self) -> Array:
        return self.pick(self.layout.block_of)

    @cached_property
    def lane(self) -> Array:
        return self.pick(self.layout.lane_of)

    @cached_property
    def warp(self) -> Array:
        return self.pick(self.layout.warp_of)

    @cached_property
    def starts(self) -> Array:
        """The position in the group of each warp's first lane."""
        if self.at is None and self.layout.is_whole:
            return self.layout.every[::WARP]
        changed: Array = np.empty(self.size, dtype=bool)
        changed[:1] = True
        np.not_equal(self.warp[1:], self.warp[:-1], out=changed[1:])
        return changed.nonzero()[0]

    @property
    def warps(self) -> int:
        return len(self.starts)

    @cached_property
    def is_whole(self) -> bool:
        """Whether each warp is here with all its 32 lanes, so that values can be reshaped to (warps, 32)."""
        return self.layout.is_whole and self.size == self.warps * WARP

    @cached_property
    def active(self) -> Array:
        """Lanes of each warp."""
        return np.diff(self.starts, append=self.size)

    @cached_property
    def order(self) -> Array:
        """The number, from 0, of each lane's warp among the warps of this group."""
        return np.repeat(np.arange(self.warps, dtype=np.int64), self.active)


def taken(values: Array, places: Array | None) -> Array:
    """The elements of `values` at some places, None for all; a value that all lanes share stays one."""
    return values if places is None or values.ndim == 0 else values.take(places)
