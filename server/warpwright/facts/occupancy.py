"""How many blocks of a kernel fit on one multiprocessor at once."""

from __future__ import annotations

import re
from dataclasses import dataclass

WARP = 32
REGISTERS_PER_SM = 65536
MAX_THREADS_PER_BLOCK = 1024
SUBPARTITIONS = 4
REGISTER_GRANULE = 256


@dataclass(frozen=True, slots=True)
class Architecture:
    """Per-multiprocessor limits of a compute capability; bytes, threads, blocks."""

    shared_bytes: int
    threads: int
    blocks: int
    shared_bytes_per_block: int
    shared_granule: int
    reserved_shared_bytes: int
    barriers_limit: int | None


def _architecture(
    shared_kib: int, threads: int, blocks: int, generation: int, barriers: int | None = None
) -> Architecture:
    ampere = generation >= 8
    per_block = (shared_kib - 1 if ampere else shared_kib) * 1024
    return Architecture(
        shared_kib * 1024, threads, blocks, per_block, 128 if ampere else 256, 1024 if ampere else 0, barriers
    )


ARCHITECTURES = {
    70: _architecture(96, 2048, 32, 7),
    72: _architecture(96, 2048, 32, 7),
    75: _architecture(64, 1024, 16, 7),
    80: _architecture(164, 2048, 32, 8),
    86: _architecture(100, 1536, 16, 8),
    87: _architecture(164, 1536, 16, 8),
    89: _architecture(100, 1536, 24, 8),
    90: _architecture(228, 2048, 32, 9, 64),
    100: _architecture(228, 2048, 32, 10, 64),
    103: _architecture(228, 2048, 32, 10, 64),
    110: _architecture(228, 1536, 24, 11, 24),
    120: _architecture(100, 1536, 24, 12, 24),
    121: _architecture(100, 1536, 24, 12, 24),
}


@dataclass(frozen=True, slots=True)
class Occupancy:
    """Resident `blocks` and `warps` per multiprocessor, and warps as a `fraction` of the most it can hold.

    `limiter` names what runs out first: "warps", "registers", "shared memory", "blocks" or "barriers".
    """

    blocks: int
    warps: int
    fraction: float
    limiter: str


def occupancy(arch: str, registers: int, shared_bytes: int, threads: int, barriers: int = 0) -> Occupancy:
    """Theoretical occupancy of a kernel of `registers` per thread and `shared_bytes` (static and dynamic) per block of
    `threads`, where the whole of the shared memory's carve-out is given to it.

    Source: NVIDIA's occupancy calculator, `cuda_occupancy.h` in the toolkit (registers are given to warps in units of
    256 within each of 4 sub-partitions; shared memory in units of 256 bytes before compute capability 8.0 and of 128
    from then on, with 1 KiB per block reserved by the driver), and the table "Technical Specifications per Compute
    Capability" of the CUDA Programming Guide. Raises ValueError for an architecture outside sm_70 to sm_121 and for a
    block of no threads.

    >>> occupancy("sm_90", 32, 0, 256)
    Occupancy(blocks=8, warps=64, fraction=1.0, limiter='warps')
    >>> occupancy("sm_90", 128, 0, 256)
    Occupancy(blocks=2, warps=16, fraction=0.25, limiter='registers')
    >>> occupancy("sm_80", 32, 48 * 1024, 128)
    Occupancy(blocks=3, warps=12, fraction=0.1875, limiter='shared memory')
    >>> occupancy("sm_86", 32, 0, 32)
    Occupancy(blocks=16, warps=16, fraction=0.3333333333333333, limiter='blocks')
    """
    limits = ARCHITECTURES[architecture_number(arch)]
    if threads < 1:
        raise ValueError(f"a block of {threads} threads cannot be launched")
    warps = -(-threads // WARP)
    fits = {
        "warps": limits.threads // WARP // warps if threads <= MAX_THREADS_PER_BLOCK else 0,
        "registers": _blocks_by_registers(registers, warps),
        "shared memory": _blocks_by_shared_memory(limits, shared_bytes),
        "blocks": limits.blocks,
    }
    if barriers and limits.barriers_limit is not None:
        fits["barriers"] = limits.barriers_limit // barriers
    limiter = min(fits, key=lambda name: fits[name])
    blocks = fits[limiter]
    return Occupancy(blocks, blocks * warps, blocks * warps * WARP / limits.threads, limiter)


def architecture_number(arch: str) -> int:
    """90 for "sm_90", "sm_90a" or "compute_90". Raises ValueError for what is no known architecture.

    >>> architecture_number("sm_120f")
    120
    """
    match = re.fullmatch(r"(?:sm|compute)_(\d+)[af]?", arch)
    if not match or int(match[1]) not in ARCHITECTURES:
        raise ValueError(f"{arch} is not an architecture from sm_70 to sm_121")
    return int(match[1])


def _blocks_by_registers(registers: int, warps: int) -> int:
    if registers <= 0:
        return REGISTERS_PER_SM
    per_warp = _round_up(registers * WARP, REGISTER_GRANULE)
    if registers > 256 or per_warp * _round_up(warps, SUBPARTITIONS) > REGISTERS_PER_SM:
        return 0  # the launch itself is refused
    return REGISTERS_PER_SM // SUBPARTITIONS // per_warp * SUBPARTITIONS // warps


def _blocks_by_shared_memory(limits: Architecture, shared_bytes: int) -> int:
    if shared_bytes > limits.shared_bytes_per_block:
        return 0
    allocated = _round_up(shared_bytes + limits.reserved_shared_bytes, limits.shared_granule)
    return limits.shared_bytes // allocated if allocated else REGISTERS_PER_SM


def _round_up(value: int, unit: int) -> int:
    return -(-value // unit) * unit
