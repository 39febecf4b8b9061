"""What GPUs can do at most, one for each generation: what predictions and rooflines are made with."""

from __future__ import annotations

from dataclasses import dataclass

from warpwright.facts.occupancy import architecture_number


@dataclass(frozen=True, slots=True)
class Machine:
    """A GPU of an architecture: multiprocessors, their clock in GHz, bandwidths in GB/s, the L2 cache in MB, the L1
    cache and shared memory of a multiprocessor in KB, lanes a clock and multiprocessor of double precision.

    Source: NVIDIA's data sheets and architecture white papers; L2 bandwidths as measured by microbenchmarks.
    """

    name: str
    multiprocessors: int
    clock: float
    dram: float
    l2: float
    l2_megabytes: float
    l1_kilobytes: int
    double_lanes: int


MACHINES = {
    70: Machine("V100", 80, 1.53, 900, 2150, 6, 128, 32),
    75: Machine("T4", 40, 1.59, 320, 1270, 4, 96, 2),
    80: Machine("A100", 108, 1.41, 1555, 4400, 40, 192, 32),
    86: Machine("RTX 3090", 82, 1.70, 936, 2600, 6, 128, 2),
    89: Machine("RTX 4090", 128, 2.52, 1008, 5000, 72, 128, 2),
    90: Machine("H200", 132, 1.76, 4800, 6500, 50, 256, 64),
    100: Machine("B200", 148, 1.85, 8000, 10000, 126, 256, 64),
    120: Machine("RTX 5090", 170, 2.41, 1792, 6500, 96, 128, 2),
}
"""One for each generation; an architecture between two is taken for the lower one."""


def machine_of(arch: str) -> Machine:
    """The GPU that stands for an architecture.

    >>> machine_of("sm_90").name, machine_of("sm_87").name
    ('H200', 'RTX 3090')
    """
    number = architecture_number(arch)
    return MACHINES[max((n for n in MACHINES if n <= number), default=min(MACHINES))]
