"""How long a launch should take, from what it has the machine do: the model that orders candidates without a GPU.

A launch takes as long as the part of the machine that is busy longest: the schedulers, the units for double precision
and special functions, shared memory, the L1 and L2 caches, DRAM, atomic operations, or, with few warps, their waiting.
The parts overlap, though not wholly, so they are joined by a norm (of fourth powers) that lies between the largest and
the sum. Only the quotient of two predictions is shown: what both sides lack cancels out.

The model follows "roofline" reasoning (Williams, Waterman, Patterson 2009) with Little's law for the waiting warps.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from warpwright.facts.machines import Machine
from warpwright.facts.work import Work

WARP = 32
LAUNCH_MICROSECONDS = 2.0
"""From the start of an empty kernel to its end."""

_NORM = 4
_ISSUE_CYCLES = 4.5
"""Between two dependent instructions of a warp."""
_GLOBAL_CYCLES, _L1_CYCLES, _SHARED_CYCLES, _BARRIER_CYCLES = 560.0, 35.0, 30.0, 30.0
_L1_BYTES_PER_CYCLE, _SECTOR_BYTES = 64.0, 32


@dataclass(frozen=True, slots=True)
class Launched:
    """One side: the work of a launch that was counted, the blocks of the launch that is predicted, and how many of them
    a multiprocessor holds at once. `array_bytes` are of all arrays at the predicted launch."""

    work: Work
    blocks: int
    resident_blocks: int
    shared_bytes: int
    array_bytes: int


def microseconds(launched: Launched, machine: Machine) -> float:
    """The predicted time of one launch with warm caches of what fits in L2."""
    return LAUNCH_MICROSECONDS + math.pow(sum(part**_NORM for part in parts(launched, machine).values()), 1 / _NORM)


def parts(launched: Launched, machine: Machine) -> dict[str, float]:
    """The microseconds for which each part of the machine is busy."""
    work = launched.work
    scale = launched.blocks / work.blocks
    at_work = min(machine.multiprocessors, launched.blocks)
    mhz = machine.clock * 1e3

    def busy(cycles: float) -> float:
        """Cycles of one multiprocessor, all blocks' together."""
        return scale * cycles / at_work / mhz

    resident = max(1, min(launched.resident_blocks, -(-launched.blocks // machine.multiprocessors)))
    l2_sectors = _past_l1(work, launched, machine, resident)
    l2_rate = machine.l2 * 1e3 * min(1.0, at_work / machine.multiprocessors * 1.5)
    waves = -(-launched.blocks // (resident * at_work))
    warps = work.warps
    missed = min(1.0, work.fresh_requests / work.load_requests) if work.load_requests else 0.0
    chain = (
        work.issued * _ISSUE_CYCLES
        + work.waits * (_L1_CYCLES + missed * (_GLOBAL_CYCLES - _L1_CYCLES))
        + work.shared_waits * _SHARED_CYCLES
        + work.shared_wavefronts
        + work.barriers * _BARRIER_CYCLES
    ) / warps
    touched = min(work.touched_sectors * _SECTOR_BYTES * scale, launched.array_bytes)
    fits_l2 = touched < machine.l2_megabytes * 1e6 * 0.7
    return {
        "issue": busy(work.issued / 4),
        "double": busy(work.double * WARP / machine.double_lanes),
        "special": busy(work.special * WARP / 16),
        "shared": busy(work.shared_wavefronts),
        "L1": busy(
            max((work.loaded_sectors + work.stored_sectors) * _SECTOR_BYTES / _L1_BYTES_PER_CYCLE, work.requests)
        ),
        "L2": scale * (l2_sectors + work.stored_sectors) * _SECTOR_BYTES / l2_rate,
        "DRAM": 0.0 if fits_l2 else touched / (machine.dram * 1e3 * 0.9),
        "atomics": scale * max(work.hottest / mhz, work.atomics / (mhz * machine.multiprocessors / 2)),
        "waiting": waves * chain / mhz,
    }


def _past_l1(work: Work, launched: Launched, machine: Machine, resident: int) -> float:
    """Sectors that loads ask the L2 cache for: those that a block needs, where what the resident blocks need fits the
    L1 cache beside their shared memory; the more of the repeated ones, the less of it fits."""
    room = machine.l1_kilobytes * 1024 - resident * launched.shared_bytes
    needed = work.block_sectors / work.blocks * _SECTOR_BYTES * resident
    kept = min(1.0, max(0.0, room) / needed) if needed else 1.0
    repeated = max(0, work.loaded_sectors - work.block_sectors)
    return work.block_sectors + repeated * (1 - kept) * 0.5
