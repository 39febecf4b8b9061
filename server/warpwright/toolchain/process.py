"""Run a compiler under limits.

A compiler is fed text that a model or a half-awake human wrote, so it gets a process group of its own, a deadline, and
limits on memory, processor time and output; the whole group dies with the deadline, a cancel, or the process that
started it, however that ended.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from warpwright.progress import CancelledError, IsCancelled

POLL_SECONDS = 0.02
LOG = "compiler-output.txt"


@dataclass(frozen=True, slots=True)
class Finished:
    """How a command ended. `stopped` is empty, or one sentence's tail such as "did not finish in 60 seconds"."""

    returncode: int
    output: str
    stopped: str
    timed_out: bool


def run_limited(
    command: Sequence[str],
    *,
    directory: Path,
    environment: Mapping[str, str],
    timeout: float,
    output_bytes: int,
    memory_bytes: int | None,
    is_cancelled: IsCancelled,
) -> Finished:
    """Run `command` in `directory`; its stdout and stderr together come back as text, at most `output_bytes` of it,
    and stay in LOG. `memory_bytes` is None for what uses a GPU, which maps more memory than there is.

    Raises CancelledError within a poll of `is_cancelled` turning true, and OSError where the command cannot be started.
    Nothing of the command is left running on any way out.
    """
    log = directory / LOG
    started = time.monotonic()
    with log.open("wb") as sink, _lifeline() as alive:
        process = subprocess.Popen(
            _limited(command, timeout, memory_bytes),
            cwd=directory,
            env=dict(environment),
            stdin=alive,
            stdout=sink,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        stopped, timed_out = "", False
        try:
            while process.poll() is None:
                if is_cancelled():
                    raise CancelledError
                if time.monotonic() - started > timeout:
                    stopped, timed_out = f"did not finish in {timeout:g} seconds and was stopped", True
                    break
                if log.stat().st_size > output_bytes:
                    stopped = f"printed more than {output_bytes:,} bytes and was stopped"
                    break
                try:
                    process.wait(POLL_SECONDS)
                except subprocess.TimeoutExpired:
                    continue
        finally:
            _kill_group(process)
    with log.open("rb") as source:
        output = source.read(output_bytes).decode("utf-8", errors="replace")
    return Finished(process.returncode, output, stopped, timed_out)


@contextmanager
def _lifeline() -> Iterator[int]:
    """The end to read of a pipe on which nothing is written, and which ends with this process at the latest."""
    mine, ours = os.pipe()
    try:
        yield mine
    finally:
        os.close(mine)
        os.close(ours)


def _limited(command: Sequence[str], timeout: float, memory_bytes: int | None) -> list[str]:
    """The command behind `ulimit` (address space in KiB, processor seconds, no core file) where there is a shell.

    The shell's input is a lifeline: a companion in the command's group waits for its end, and then kills the group.
    """
    if sys.platform == "win32":
        return list(command)
    companion = "exec 3<&0 </dev/null; (cat <&3 >/dev/null 2>&1; kill -s KILL 0) & exec 3<&-; "
    memory = "" if memory_bytes is None else f"ulimit -v {memory_bytes // 1024}; "
    limits = f"ulimit -c 0; {memory}ulimit -t {int(timeout) + 5}; "
    return ["/bin/sh", "-c", companion + limits + 'exec "$0" "$@"', *command]


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    """End the command and whatever it started; a group that is gone already is fine."""
    if sys.platform == "win32":
        process.kill()
    else:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            process.kill()
    process.wait()
