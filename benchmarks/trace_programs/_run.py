"""What the programs share: `program.py` runs the slow version, `program.py --time slow` or `cured` prints seconds of
it."""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable

import torch
from torch.profiler import record_function

WARM_UP = 3
ROUNDS = 5


def run(slow: Callable[[int], object], cured: Callable[[int], object] | None, steps: int) -> None:
    """Each version is a function of the number of steps. What is traced has a warm-up before it, as a user's epochs
    have."""
    torch.set_num_threads(1)  # what others do on the machine matters less
    arguments = sys.argv[1:]
    version = cured if arguments == ["--time", "cured"] and cured is not None else slow
    version(WARM_UP)
    _finish()
    if arguments[:1] == ["--time"]:
        print(statistics.median(_seconds(version, steps) for _ in range(ROUNDS)))
        return
    with record_function("ProfilerStep#0"):
        version(steps)
        _finish()


def _seconds(version: Callable[[int], object], steps: int) -> float:
    start = time.perf_counter()
    version(steps)
    _finish()
    return time.perf_counter() - start


def _finish() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()
