"""How many threads the model computes with: as many as there are processors that nothing else uses.

ggml's threads wait for each other hundreds of times a token, and without OpenMP they spin while they wait. Where
another program holds the processor that one of them needs, the others burn theirs: two threads beside two busy
processes are forty times slower than one.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path

MOST = 8
_LOOKS = 5
_PAUSE_SECONDS = 0.001
_WHOLE = 0.9  # threads that spin take all of their time, unless others take it


def processors() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def running() -> int:
    """How many threads of the machine run or wait for a processor, the asking one included; 1 where nothing tells."""
    try:
        return int(Path("/proc/loadavg").read_text(encoding="ascii").split()[3].partition("/")[0])
    except (OSError, ValueError, IndexError):
        return 1


class Threads:
    """The number for the next computation, `count`."""

    def __init__(self, available: int, running: Callable[[], int] = running) -> None:
        self.available = available
        self.running = running
        self.count = 1

    def look(self) -> None:
        """Before a request: what is free. One look could meet what runs for a moment."""
        looks = []
        for _ in range(_LOOKS):
            looks.append(self.running() - 1)
            time.sleep(_PAUSE_SECONDS)
        self.count = max(1, min(MOST, self.available - int(statistics.median(looks))))

    def learn(self, seconds: float, worked: float) -> None:
        """After a computation that took `seconds`, in which all threads together worked for `worked`."""
        if worked < _WHOLE * self.count * seconds:
            self.count = max(1, min(self.count - 1, int(worked / seconds)))
