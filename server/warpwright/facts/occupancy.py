"""How many blocks of a kernel fit on one multiprocessor at once."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields

WARP = 32
REGISTERS_PER_SM = 65536
MAX_THREADS_PER_BLOCK = 1024
SUBPARTITIONS = 4
REGISTER_GRANULE = 256
"""Registers that a warp is given at a time: 8 for each of its threads."""
MAX_REGISTERS = 256
"""Per thread; one is the zero register."""


SHARED_KIB = (0, 8, 16, 32, 64, 100, 132, 164, 196)
"""Sizes of shared memory up to an architecture's most; compute capability 7.5 has 32 and 64 alone."""


@dataclass(frozen=True, slots=True)
class Architecture:
    """Per-multiprocessor limits of a compute capability; bytes, threads, blocks.

    `shared_sizes` are those that the driver can set aside of the L1 cache as shared memory, in bytes.
    """

    shared_bytes: int
    threads: int
    blocks: int
    shared_bytes_per_block: int
    shared_granule: int
    reserved_shared_bytes: int
    barriers_limit: int | None
    shared_sizes: tuple[int, ...]


def _architecture(
    shared_kib: int, threads: int, blocks: int, generation: int, barriers: int | None = None
) -> Architecture:
    ampere = generation >= 8
    per_block = (shared_kib - 1 if ampere else shared_kib) * 1024
    sizes = (32, 64) if shared_kib == 64 else tuple(kib for kib in SHARED_KIB if kib < shared_kib)
    return Architecture(
        shared_bytes=shared_kib * 1024,
        threads=threads,
        blocks=blocks,
        shared_bytes_per_block=per_block,
        shared_granule=128 if ampere else 256,
        reserved_shared_bytes=1024 if ampere else 0,
        barriers_limit=barriers,
        shared_sizes=tuple(kib * 1024 for kib in dict.fromkeys((*sizes, shared_kib))),
    )


ARCHITECTURES = {
    70: _architecture(96, 2048, 32, 7),
    72: _architecture(96, 2048, 32, 7),
    75: _architecture(64, 1024, 16, 7),
    80: _architecture(164, 2048, 32, 8),
    86: _architecture(100, 1536, 16, 8),
    87: _architecture(164, 1536, 16, 8),
    88: _architecture(100, 1536, 16, 8),
    89: _architecture(100, 1536, 24, 8),
    90: _architecture(228, 2048, 32, 9, 64),
    100: _architecture(228, 2048, 32, 10, 64),
    101: _architecture(228, 1536, 24, 10, 24),
    103: _architecture(228, 2048, 32, 10, 64),
    110: _architecture(228, 1536, 24, 11, 24),
    120: _architecture(100, 1536, 24, 12, 24),
    121: _architecture(100, 1536, 24, 12, 24),
}


@dataclass(frozen=True, slots=True)
class BlockLimits:
    """How many blocks of a kernel a multiprocessor has room for by each of its resources; None where it sets no limit.

    These are what Nsight Compute calls "Block Limit Warps", "Block Limit Registers" and so on.
    """

    warps: int
    registers: int | None
    shared_memory: int | None
    blocks: int
    barriers: int | None

    def named(self) -> dict[str, int]:
        """Each limit that there is, by the name that people read."""
        return {f.name.replace("_", " "): n for f in fields(self) if (n := getattr(self, f.name)) is not None}


@dataclass(frozen=True, slots=True)
class Occupancy:
    """Resident `blocks` and `warps` per multiprocessor, and warps as a `fraction` of the most it can hold.

    `limiter` names what runs out first: "warps", "registers", "shared memory", "blocks" or "barriers"; the first of
    these where several do.
    """

    blocks: int
    warps: int
    fraction: float
    limiter: str
    limits: BlockLimits

    @property
    def limiters(self) -> tuple[str, ...]:
        """All that run out together, `limiter` first."""
        return tuple(name for name, blocks in self.limits.named().items() if blocks == self.blocks)


def occupancy(
    arch: str, registers: int, shared_bytes: int, threads: int, barriers: int = 0, carveout: int = 100
) -> Occupancy:
    """Theoretical occupancy of a kernel of `registers` per thread and `shared_bytes` (static and dynamic) per block of
    `threads`. `carveout` is the share of the L1 cache's memory that the host lets be shared memory, in percent; where
    it says nothing, the driver may take all.

    Source: NVIDIA's occupancy calculator, `cuda_occupancy.h` in the toolkit (registers are given to warps in units of
    256 within each of 4 sub-partitions; shared memory in units of 256 bytes before compute capability 8.0 and of 128
    from then on, with 1 KiB per block reserved by the driver; barriers count from 9.0 on), and the table "Technical
    Specifications per Compute Capability" of the CUDA Programming Guide. Raises ValueError for an architecture outside
    sm_70 to sm_121 and for a block of no threads.

    >>> [occupancy("sm_90", registers, 0, 256).fraction for registers in (32, 66, 128)]
    [1.0, 0.375, 0.25]
    >>> occupancy("sm_90", 66, 0, 256).limits
    BlockLimits(warps=8, registers=3, shared_memory=228, blocks=32, barriers=None)
    >>> occupancy("sm_80", 32, 48 * 1024, 128).limiter
    'shared memory'
    >>> occupancy("sm_86", 32, 0, 32).fraction, occupancy("sm_90", 64, 0, 32).limiters
    (0.3333333333333333, ('registers', 'blocks'))
    >>> [occupancy("sm_90", 32, 6144, 256, carveout=share).limits.shared_memory for share in (100, 50, 0)]
    [32, 18, 1]
    """
    limits = ARCHITECTURES[architecture_number(arch)]
    if threads < 1:
        raise ValueError(f"a block of {threads} threads cannot be launched")
    warps = -(-threads // WARP)
    fits = BlockLimits(
        warps=limits.threads // WARP // warps if threads <= MAX_THREADS_PER_BLOCK else 0,
        registers=_blocks_by_registers(registers, warps),
        shared_memory=_blocks_by_shared_memory(limits, shared_bytes, carveout),
        blocks=limits.blocks,
        barriers=limits.barriers_limit // barriers if barriers and limits.barriers_limit is not None else None,
    )
    named = fits.named()
    limiter = min(named, key=lambda name: named[name])
    blocks = named[limiter]
    return Occupancy(blocks, blocks * warps, blocks * warps * WARP / limits.threads, limiter, fits)


def architecture_number(arch: str) -> int:
    """90 for "sm_90", "sm_90a" or "compute_90". Raises ValueError for what is no known architecture.

    >>> architecture_number("sm_120f")
    120
    """
    match = re.fullmatch(r"(?:sm|compute)_(\d+)[af]?", arch)
    if not match or int(match[1]) not in ARCHITECTURES:
        raise ValueError(f"{arch} is not an architecture from sm_70 to sm_121")
    return int(match[1])


def _blocks_by_registers(registers: int, warps: int) -> int | None:
    if registers <= 0:
        return None
    per_warp = _round_up(registers * WARP, REGISTER_GRANULE)
    if registers > MAX_REGISTERS or per_warp * _round_up(warps, SUBPARTITIONS) > REGISTERS_PER_SM:
        return 0  # the launch itself is refused
    return REGISTERS_PER_SM // SUBPARTITIONS // per_warp * SUBPARTITIONS // warps


def _blocks_by_shared_memory(limits: Architecture, shared_bytes: int, carveout: int) -> int | None:
    if shared_bytes > limits.shared_bytes_per_block:
        return 0
    allocated = _round_up(shared_bytes + limits.reserved_shared_bytes, limits.shared_granule)
    wanted = max(allocated, carveout * limits.shared_bytes // 100)  # one block has room whatever is preferred
    size = next(size for size in limits.shared_sizes if size >= wanted)
    return size // allocated if allocated else None


def _round_up(value: int, unit: int) -> int:
    return -(-value // unit) * unit
