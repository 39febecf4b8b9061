"""A drafted kernel, run in the emulator as its text says that it is launched: does it do anything wrong?"""

from __future__ import annotations

import time

from warpwright.emulator.profiling import Wanted, emulated_profile
from warpwright.facts.analyze import analyze
from warpwright.facts.model import Assumptions
from warpwright.missing import Missing
from warpwright.progress import IsCancelled, Progress
from warpwright.syntax.source import Source


def fault_in(
    source: Source, kernel: str, arch: str, seconds: float, progress: Progress, is_cancelled: IsCancelled
) -> str:
    """What a kernel does wrong at the sizes that are chosen for it or at others that no block divides, or why it cannot
    be run, as a clause; "" where it runs without a fault. Raises CancelledError."""
    deadline = time.monotonic() + seconds
    program, assume = analyze(source), Assumptions(arch=arch)
    sizes: dict[str, int] = {}
    for _ in range(2):
        left = deadline - time.monotonic()
        if left <= 0:
            return "it was not run, as the time was up"
        found = emulated_profile(program, Wanted(kernel, sizes, assume, seconds=left), progress, is_cancelled)
        if isinstance(found, Missing):
            return f"it cannot be run: {found.reason.rstrip('.')}"
        if found.faults:
            return f"it does wrong in a run: {found.faults[0].message.rstrip('.')}"
        sizes = {name: uneven(size) for name, size in found.launch.shape.items()}
        if sizes == dict(found.launch.shape):
            break
    return ""


def uneven(size: int) -> int:
    """Another size near half of one, which no even number divides.

    >>> uneven(4096), uneven(1), uneven(2)
    (2049, 1, 1)
    """
    return max(size // 2, 1) // 2 * 2 + 1 if size > 2 else 1
