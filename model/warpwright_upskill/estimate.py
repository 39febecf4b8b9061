"""How much faster a rewrite can make a kernel, from the transactions that were counted.

A kernel that only moves data takes, per multiprocessor, at least

    max(sectors x 32 bytes / (bandwidth / multiprocessors / clock), wavefronts x 1 cycle)

because DRAM is shared by all multiprocessors and shared memory serves one wavefront a cycle (CUDA C++ Best Practices
Guide, "Shared Memory and Memory Banks"). The ratio of the bounds before and after is the estimate: it says nothing of
latency, caches, divergence or arithmetic, so it is a guess to rank by, and is named "bound" wherever it is written.
"""

from __future__ import annotations

from warpwright.facts.model import SECTOR_BYTES, Kernel, Space

from warpwright_upskill.words import transactions

# NVIDIA H200 SXM data sheet: 4.8 TB/s; 132 multiprocessors, boost clock 1.98 GHz.
BYTES_PER_CYCLE = 4.8e12 / 132 / 1.98e9


def bound_cycles(sectors: float, wavefronts: float) -> float:
    """Least cycles of one multiprocessor for that many transactions.

    >>> round(bound_cycles(sectors=8, wavefronts=33.0), 1), round(bound_cycles(sectors=8, wavefronts=2), 1)
    (33.0, 13.9)
    """
    return max(sectors * SECTOR_BYTES / BYTES_PER_CYCLE, wavefronts)


def bound_speedup(before: Kernel, after: Kernel) -> float | None:
    """The estimate, at least 1; None where a count is unknown or nothing was counted."""
    cycles: list[float] = []
    for kernel in (before, after):
        sectors, wavefronts = transactions(kernel, Space.GLOBAL), transactions(kernel, Space.SHARED)
        if sectors is None or wavefronts is None or sectors + wavefronts == 0:
            return None
        cycles.append(bound_cycles(sectors, wavefronts))
    return max(1.0, cycles[0] / cycles[1])
