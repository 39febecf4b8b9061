"""One lock for the GPU: checks share it, timing has it alone, so that nothing else runs while a clock does.

Every process that launches work on the GPU takes it, on one file of the machine; checks take it anew for each shape, so
that a timing need not wait for all of them. Two files make it fair: whoever wants it waits at the gate, and one that
waits for the others to leave keeps the gate shut, so a stream of checks cannot keep a timing out.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

POLL_SECONDS = 0.002
SAY_SECONDS = 0.5


@contextmanager
def gpu_shared(path: str, waiting: Callable[[], None]) -> Iterator[None]:
    """Hold the GPU together with others who share it; `waiting` is called each half second until it is free."""
    with _locked(path, False, waiting):
        yield


@contextmanager
def gpu_alone(path: str, waiting: Callable[[], None]) -> Iterator[None]:
    """Hold the GPU while nobody else does; `waiting` is called each half second until it is free.

    Must not be taken inside `gpu_shared` by the same process: it would wait for itself.
    """
    with _locked(path, True, waiting):
        yield


@contextmanager
def _locked(path: str, alone: bool, waiting: Callable[[], None]) -> Iterator[None]:
    how = fcntl.LOCK_EX if alone else fcntl.LOCK_SH
    gate, held = _opened(f"{path}.gate"), _opened(path)
    try:
        _take(gate, how, waiting)
        _take(held, how, waiting)
        os.close(gate)
        gate = -1
        yield
    finally:
        for handle in (gate, held):
            if handle >= 0:
                os.close(handle)


def _opened(path: str) -> int:
    """A descriptor to lock. Another user's file is opened as it is: to lock a file, reading it is enough."""
    try:
        return os.open(path, os.O_RDONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except PermissionError:
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC)


def _take(handle: int, how: int, waiting: Callable[[], None]) -> None:
    said = time.monotonic()
    while True:
        try:
            fcntl.flock(handle, how | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() - said > SAY_SECONDS:
                waiting()
                said = time.monotonic()
            time.sleep(POLL_SECONDS)
        else:
            return
