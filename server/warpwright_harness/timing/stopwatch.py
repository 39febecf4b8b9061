"""How long the GPU takes for one launch, in microseconds, to compare with Nsight Compute's gpu__time_duration.

Two CUDA events around a launch read more than the kernel takes: recording them costs. That cost is measured and taken
out: a pair of events around one empty kernel, less what each further empty kernel behind it adds. What is left agrees
with Nsight Compute's durations (`benchmarks/results/gpu_timing.json`), while each launch is still timed by itself, with
cold or warm caches and on its own values. Timestamps of the profiling interface (CUPTI) do not agree with it: they are
below for short kernels and, where memory is busy, several percent above.

The clocks and the driver's functions are taken when this module is imported, before any candidate is loaded.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median
from typing import Any

import torch

from warpwright_harness.device import CudaFaultError, synchronize

SPIN_CYCLES = 100_000
SPIN_US = 50.0
"""A kernel that spins so long goes ahead of what is timed, so that the GPU never waits for Python."""

_EMPTY_LAUNCHES = 9
_host_clock = time.perf_counter
_spin: Callable[[int], None] = torch.cuda._sleep
_Event: Any = torch.cuda.Event


class Stopwatch:
    """Times work on the current stream. `overhead_us` is what two events add to a launch between them, `floor_us` what
    an empty kernel takes; `host_floor_us` is what the host's clock shows for one, launch and wait."""

    def __init__(self) -> None:
        one = self._empty(1)
        several = self._empty(_EMPTY_LAUNCHES)
        self.floor_us = (several - one) / (_EMPTY_LAUNCHES - 1)
        self.overhead_us = max(0.0, one - self.floor_us)
        self.host_floor_us = median(self.on_host(_start_empty)[0] for _ in range(9))
        self._junk = torch.ones(2 * l2_bytes() // 4, dtype=torch.float32, device="cuda")
        self._sum = torch.zeros((), dtype=torch.float32, device="cuda")

    def _empty(self, launches: int) -> float:
        def work() -> None:
            for _ in range(launches):
                _start_empty()

        return median(_between_events(work, 2 * SPIN_CYCLES)() for _ in range(21))

    def start_cold(self, work: Callable[[], object], spin: int = SPIN_CYCLES) -> Callable[[], float]:
        """Empty the second-level cache, then time what `work` enqueues; the answer waits for it and gives the time.

        The cache is emptied by reading twice its size, so that no line has to be written back while the time runs.
        `spin` cycles must outlast the enqueueing.
        """
        _spin(spin)
        torch.sum(self._junk, dim=0, out=self._sum)
        return self._started(work, 0)

    def start_warm(self, work: Callable[[], object]) -> Callable[[], float]:
        """Time what `work` enqueues with the caches as they are."""
        return self._started(work, SPIN_CYCLES)

    def _started(self, work: Callable[[], object], spin: int) -> Callable[[], float]:
        read = _between_events(work, spin)
        return lambda: max(read() - self.overhead_us, 0.001)

    def on_host(self, work: Callable[[], object]) -> tuple[float, float]:
        """The same launch by the host's clock, with an idle device before it and everything on the device done after
        it, and by events: (host, events), both in microseconds. Raises CudaFaultError."""
        synchronize()
        started = _host_clock()
        read = _between_events(work, 0)
        synchronize()
        took = (_host_clock() - started) * 1e6
        return took, read()


def l2_bytes() -> int:
    return int(torch.cuda.get_device_properties(0).L2_cache_size)


def _start_empty() -> None:
    _spin(0)


def _between_events(work: Callable[[], object], spin: int) -> Callable[[], float]:
    start, end = _Event(enable_timing=True), _Event(enable_timing=True)
    if spin:
        _spin(spin)
    start.record()
    work()
    end.record()

    def read() -> float:
        try:
            end.synchronize()
            return float(start.elapsed_time(end)) * 1000.0
        except RuntimeError as error:
            synchronize()  # names the fault
            raise CudaFaultError("CUDA_ERROR", str(error)) from None

    return read
