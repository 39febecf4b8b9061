"""The stopwatch of the benchmarks of written formulas."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import torch

LONG = 0.5
"""Seconds: a call that takes longer is timed three times."""

FLUSHES = 3
"""Passes over 256 MiB before a call. One empties the cache; the others keep the GPU busy while Python launches."""


class Timer:
    """Medians of CUDA events, the cache flushed by reading before each call; of fewer calls where one takes long."""

    def __init__(self, calls: int) -> None:
        self.calls = calls
        self.flush = torch.ones(64 << 20, device="cuda")

    def __call__(self, call: Callable[[], object]) -> float:
        begun = time.monotonic()
        call()
        torch.cuda.synchronize()
        is_long = time.monotonic() - begun > LONG
        for _ in range(0 if is_long else 2):
            call()
        pairs = []
        for _ in range(3 if is_long else self.calls):
            for _ in range(FLUSHES):
                self.flush.sum()
            begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            begin.record()
            call()
            end.record()
            pairs.append((begin, end))
        torch.cuda.synchronize()
        return statistics.median(begin.elapsed_time(end) * 1e3 for begin, end in pairs)
