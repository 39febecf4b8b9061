"""Ending a process with all that it started, on every system."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys


def end_group(pid: int) -> None:
    """Kill a process that leads a group, and the group; on Windows, which has none, it and its descendants.

    One that has ended is left.
    """
    if sys.platform == "win32":
        subprocess.run(windows_command(pid), capture_output=True, check=False)
    else:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, signal.SIGKILL)


def windows_command(pid: int) -> list[str]:
    """
    >>> windows_command(4711)
    ['taskkill', '/PID', '4711', '/T', '/F']
    """
    return ["taskkill", "/PID", str(pid), "/T", "/F"]
