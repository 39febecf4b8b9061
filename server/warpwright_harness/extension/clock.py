"""A side's own clock: the driver's events on a GPU, the host's monotonic clock without one.

The functions are looked up before any extension is loaded, and the judge holds every time against its own clock.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable
from typing import Any

import torch


class Clock:
    """Times what is enqueued between `start` and `stop`, on the stream that is current when the clock is made."""

    def __init__(self, device: str) -> None:
        self._now = time.perf_counter_ns
        self._marks: list[tuple[Any, Any]] = []
        self._open: Any = None
        self._driver = _Driver() if device == "cuda" else None
        self._sleep: Callable[[int], None] | None = torch.cuda._sleep if device == "cuda" else None

    def spin(self, cycles: int) -> None:
        if self._sleep is not None:
            self._sleep(cycles)

    def start(self) -> None:
        self._open = self._driver.mark() if self._driver else self._now()

    def stop(self) -> None:
        self._marks.append((self._open, self._driver.mark() if self._driver else self._now()))

    def synchronize(self) -> None:
        """Wait for everything on the device. Raises RuntimeError for what a kernel did."""
        if self._driver:
            self._driver.synchronize()

    def take(self) -> list[float]:
        """Microseconds of each stretch since the last call, after `synchronize`."""
        marks, self._marks = self._marks, []
        if self._driver:
            return [self._driver.microseconds(*mark) for mark in marks]
        return [(end - start) / 1000.0 for start, end in marks]


class _Driver:
    """CUDA's driver functions, found once. Source: the CUDA Driver API reference manual, "Event Management"."""

    def __init__(self) -> None:
        library = ctypes.CDLL("libcuda.so.1")
        self._create, self._record = library.cuEventCreate, library.cuEventRecord
        self._elapsed, self._destroy = library.cuEventElapsedTime, library.cuEventDestroy_v2
        self._synchronize, self._name = library.cuCtxSynchronize, library.cuGetErrorName
        self._byref = ctypes.byref
        self._stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)

    def mark(self) -> ctypes.c_void_p:
        event = ctypes.c_void_p()
        self._check(self._create(self._byref(event), ctypes.c_uint(0)))
        self._check(self._record(event, self._stream))
        return event

    def microseconds(self, start: ctypes.c_void_p, end: ctypes.c_void_p) -> float:
        took = ctypes.c_float()
        self._check(self._elapsed(self._byref(took), start, end))
        self._destroy(start)
        self._destroy(end)
        return float(took.value) * 1000.0

    def synchronize(self) -> None:
        self._check(self._synchronize())

    def _check(self, code: int) -> None:
        if code:
            name = ctypes.c_char_p()
            self._name(code, self._byref(name))
            raise RuntimeError(f"CUDA error: {(name.value or str(code).encode()).decode()}")
