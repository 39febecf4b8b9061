"""What the programs share: `program.py` runs the slow version, `program.py --time` prints seconds of it and of the
cured one. Of those that start side by side, one at a time is measured: they lock the file WARPWRIGHT_ONE_AT_A_TIME."""

from __future__ import annotations

import fcntl
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
from torch.profiler import record_function

WARM_UP = 3
ROUNDS = 5


def run(slow: Callable[[int], object], cured: Callable[[int], object] | None, steps: int) -> None:
    """Each version is a function of the number of steps. What is traced has a warm-up before it, as a user's epochs
    have."""
    torch.set_num_threads(1)  # what others do on the machine matters less
    versions = [slow, *([cured] if "--time" in sys.argv and cured is not None else [])]
    for version in versions:
        version(WARM_UP)
    with _alone():
        for version in versions:
            version(WARM_UP)
        _finish()
        if "--time" in sys.argv:
            rounds = [[_seconds(version, steps) for version in versions] for _ in range(ROUNDS)]
            print(*(statistics.median(column) for column in zip(*rounds, strict=True)))
            return
        with record_function("ProfilerStep#0"):
            slow(steps)
            _finish()


@contextmanager
def _alone() -> Iterator[None]:
    lock = os.environ.get("WARPWRIGHT_ONE_AT_A_TIME")
    if lock is None:
        yield
        return
    with Path(lock).open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _seconds(version: Callable[[int], object], steps: int) -> float:
    start = time.perf_counter()
    version(steps)
    _finish()
    return time.perf_counter() - start


def _finish() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()
