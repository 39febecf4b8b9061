"""Which limit of the GPU a run of a kernel comes to first: issuing its instructions, or moving its bytes.

The instruction roofline (Ding and Williams, "An Instruction Roofline Model for GPUs", 2019): a kernel executes some
warp instructions for each byte that it asks memory for; a GPU issues some while it moves one. Bytes that a cache
answers count as moved, so that a kernel that is said to wait for memory may wait for less.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from warpwright.facts.machines import machine_of
from warpwright.facts.model import SECTOR_BYTES
from warpwright.facts.profile import Profile

_SCHEDULERS = 4  # of a multiprocessor, each of which issues one instruction of a warp a cycle
_HALF = 15
_CELLS_PER_DOUBLING = 3


@dataclass(frozen=True, slots=True)
class Roofline:
    """Warp instructions for each byte: those of the run, and those at which the GPU's two limits are met at once."""

    gpu: str
    intensity: float
    ridge: float

    @property
    def is_memory_bound(self) -> bool:
        return self.intensity < self.ridge

    @property
    def slack(self) -> float:
        """The share of the other limit that is used where the first is reached."""
        return min(self.intensity / self.ridge, self.ridge / self.intensity)


def roofline_of(profile: Profile, arch: str) -> Roofline | None:
    """None of a run that executed or moved nothing.

    The machine is that of the architecture, whoever ran it: an emulator counts for any.
    """
    machine = machine_of(arch)
    instructions = sum(line.instructions for line in profile.lines)
    moved = sum(line.sectors or 0 for line in profile.lines) * SECTOR_BYTES
    if not instructions or not moved:
        return None
    ridge = machine.multiprocessors * _SCHEDULERS * machine.clock / machine.dram
    return Roofline(machine.name, instructions / moved, ridge)


def roofline_text(roofline: Roofline) -> str:
    """As Markdown: a sentence, and the run on a line between the two limits; a cell is a third of a doubling.

    >>> print(roofline_text(Roofline("H200", 0.05, 0.2)))
    - bound by memory (H200): 0.05 warp instructions/byte, ridge point 0.2; at full bandwidth 25% of issue slots used
    <BLANKLINE>
    ```text
    memory ---------o-----+--------------- issue
    ```
    """
    near, full = ("memory", "bandwidth") if roofline.is_memory_bound else ("instruction issue", "issue rate")
    far = "issue slots" if roofline.is_memory_bound else "memory bandwidth"
    said = (
        f"- bound by {near} ({roofline.gpu}): {roofline.intensity:.2g} warp instructions/byte, ridge point "
        f"{roofline.ridge:.2g}; at full {full} {roofline.slack:.0%} of {far} used"
    )
    at = round(_CELLS_PER_DOUBLING * math.log2(roofline.intensity / roofline.ridge))
    cells = ["-"] * (2 * _HALF + 1)
    cells[_HALF] = "+"
    cells[_HALF + max(-_HALF, min(_HALF, at))] = "o"
    return f"{said}\n\n```text\nmemory {''.join(cells)} issue\n```"
