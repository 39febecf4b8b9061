"""Run a compiler under limits.

A compiler is fed text that a model or a half-awake human wrote, so it gets a process group of its own, a deadline,
limits on memory, processor time, files and output, and, where it is not a profiler, no more rights than it needs (see
`sandbox.confine`); the whole group dies with the deadline, a cancel, or the process that started it.
"""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from warpwright.progress import CancelledError, IsCancelled
from warpwright.sandbox.confine import Confined, Policy
from warpwright.syntax.encoding import shown_bytes

POLL_SECONDS = 0.02
LOG = "compiler-output.txt"
MOST_FILE_BYTES = 1 << 30
ONLY_LIMITS = Policy(confined=False)
_KILLED = re.compile(r"died due to signal 9\b|^\w[\w+-]*: fatal error: Killed signal terminated|^Killed$", re.MULTILINE)
"""What nvcc, a compiler for the host and a shell say of a pass of theirs that was killed."""


@dataclass(frozen=True, slots=True)
class Finished:
    """How a command ended. `stopped` is empty, or one sentence's tail such as "did not finish in 60 seconds".

    `in_force` says what it was kept from, in words.
    """

    returncode: int
    output: str
    stopped: str
    timed_out: bool
    in_force: tuple[str, ...] = ()

    @property
    def was_killed(self) -> bool:
        """Whether someone else, such as the system where memory runs out, killed it or what it started."""
        by_signal = sys.platform != "win32" and self.returncode in (-signal.SIGKILL, 128 + signal.SIGKILL)
        return not self.stopped and self.returncode != 0 and (by_signal or bool(_KILLED.search(self.output)))


def run_limited(
    command: Sequence[str],
    *,
    directory: Path,
    environment: Mapping[str, str],
    timeout: float,
    output_bytes: int,
    memory_bytes: int | None,
    is_cancelled: IsCancelled,
    policy: Policy = ONLY_LIMITS,
) -> Finished:
    """Run `command` in `directory`, and once more where it was killed.

    Its stdout and stderr together come back as text, at most `output_bytes` of it, and stay in LOG. `memory_bytes` is
    None for what uses a GPU, which maps more memory than there is. The command may write to `directory`, and to what
    `policy` says; its limits are added to these.

    Raises CancelledError within a poll of `is_cancelled` turning true, and OSError where the command cannot be started.
    Nothing of the command is left running on any way out.
    """
    limits = {"CORE": 0, "CPU": int(timeout) + 5, "FSIZE": MOST_FILE_BYTES}
    if memory_bytes is not None:
        limits["AS"] = memory_bytes
    kept = replace(policy, limits={**limits, **policy.limits}, writes=(*policy.writes, str(directory.absolute())))
    finished = _run(command, kept, directory, environment, timeout, output_bytes, is_cancelled)
    if finished.was_killed:
        finished = _run(command, kept, directory, environment, timeout, output_bytes, is_cancelled)
    return finished


def _run(
    command: Sequence[str],
    policy: Policy,
    directory: Path,
    environment: Mapping[str, str],
    timeout: float,
    output_bytes: int,
    is_cancelled: IsCancelled,
) -> Finished:
    log = directory / LOG
    started = time.monotonic()
    stopped, timed_out = "", False
    with log.open("wb") as sink:
        running = Confined(command, policy, environment=environment, directory=directory, output=sink)
        try:
            in_force = running.in_force()
            while running.process.poll() is None:
                if is_cancelled():
                    raise CancelledError
                if time.monotonic() - started > timeout:
                    stopped, timed_out = f"did not finish in {timeout:g} seconds and was stopped", True
                    break
                if log.stat().st_size > output_bytes:
                    stopped = f"printed more than {output_bytes:,} bytes and was stopped"
                    break
                try:
                    running.process.wait(POLL_SECONDS)
                except subprocess.TimeoutExpired:
                    continue
        finally:
            running.kill()
    with log.open("rb") as source:
        output = shown_bytes(source.read(output_bytes))
    return Finished(running.process.returncode, output, stopped, timed_out, in_force)
