"""Which processes run, seen from outside: what is under test keeps its own from telling."""

from __future__ import annotations

import os
import time
from pathlib import Path


def running(mark: str, parent: int | None = None) -> list[int]:
    """The processes with `mark` in their command line, of one parent where it is named; this one and what is dead left
    out."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            line = (entry / "cmdline").read_bytes()
            state, started_by = (entry / "stat").read_text().rpartition(")")[2].split()[:2]
        except OSError:
            continue
        if mark.encode() in line and state != "Z" and parent in (None, int(started_by)):
            found.append(int(entry.name))
    return found


def come(mark: str, seconds: float = 60.0) -> bool:
    """Whether a process with `mark` in its command line runs, or soon will: a new one has its parent's at first."""
    until = time.monotonic() + seconds
    while not running(mark):
        if time.monotonic() > until:
            return False
        time.sleep(0.05)
    return True


def gone(mark: str, seconds: float = 60.0, parent: int | None = None) -> bool:
    """Whether no process with `mark` in its command line is left, or soon will be."""
    until = time.monotonic() + seconds
    while running(mark, parent):
        if time.monotonic() > until:
            return False
        time.sleep(0.05)
    return True
