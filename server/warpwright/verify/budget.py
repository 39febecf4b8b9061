"""How much the emulator may run for one comparison."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Budget:
    """Lane-steps (`emulator.launch`): of one launch of the original, of all runs together, and of one launch of the
    candidate at least, which may take `emulated.comparison.CANDIDATE_FACTOR` times the original's. Some seconds.
    `alone` is for one launch of the original where no smaller one shows anything: a size that the text fixes."""

    launch: int = 20_000_000
    together: int = 500_000_000
    least_candidate: int = 4_000_000
    alone: int = 64_000_000


BUDGET = Budget()

MOST_BYTES = 64 << 20
"""Of all arrays of a launch that is run whole."""
