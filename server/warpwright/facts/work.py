"""What one launch of a kernel has the machine do, added up by the part of the machine that does it. Plain data."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Work:
    """Totals over all warps of a launch of `blocks` blocks of `threads` threads.

    `issued` are machine instructions of warps, estimated from the PTX; `double` and `special` are those among them
    that the units for double precision and for special functions do. `shared_wavefronts` are passes of shared memory.
    Of global and local memory: `requests`, the 32-byte sectors that they ask the L1 cache for (`loaded_sectors`, and
    `stored_sectors`, those of atomics among them), `block_sectors`, which counts a sector that a block loads once for
    that block, and `touched_sectors`, once for the launch; of the `load_requests`, `fresh_requests` are for a sector
    that their block had not loaded before. `atomics` are lanes' atomic operations on global memory, `hottest` those of
    them on the one word that has most. `waits` and `shared_waits` are how often a warp has to wait
    for loads of global and of shared memory, loads that wait together counted once; `barriers` how often one comes to
    a barrier.
    """

    blocks: int
    threads: int
    issued: float
    double: float = 0.0
    special: float = 0.0
    shared_wavefronts: int = 0
    requests: int = 0
    loaded_sectors: int = 0
    stored_sectors: int = 0
    block_sectors: int = 0
    load_requests: int = 0
    fresh_requests: int = 0
    touched_sectors: int = 0
    atomics: int = 0
    hottest: int = 0
    waits: int = 0
    shared_waits: int = 0
    barriers: int = 0

    @property
    def warps(self) -> int:
        return self.blocks * -(-self.threads // 32)
