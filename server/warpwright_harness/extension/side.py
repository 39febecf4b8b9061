"""A side's process as the judge sees it: started, asked, watched, killed."""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from warpwright_harness.extension.arena import Memory
from warpwright_harness.extension.channel import Channel, ChannelError

START_SECONDS = 90.0
STEP_SECONDS = 15.0


class SideError(Exception):
    """A side did what it must not, failed, or went away. The message is one sentence's tail about it."""

    def __init__(self, message: str, *, timed_out: bool = False) -> None:
        super().__init__(message)
        self.timed_out = timed_out


class RaisedError(SideError):
    """The extension raised an error, as an extension may: its process lives on."""


class Side:
    """One extension, in a process of its own, which ends with the judge's."""

    def __init__(
        self,
        described: Mapping[str, Any],
        *,
        patience: float = STEP_SECONDS,
        under: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """Start it, from a thread that lives as long as it should. It has `patience` seconds for an answer; `under` is
        a tool's command line that is to start it, with what `environment` adds."""
        self._patience = patience
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 (closed by end)
        with theirs:
            self._process = subprocess.Popen(
                [*under, sys.executable, "-m", "warpwright_harness.extension", "--channel", str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=self._log,
                stderr=self._log,
                pass_fds=(theirs.fileno(),),
                env={**os.environ, **(environment or {})},
                start_new_session=True,
            )
        self._channel = Channel(ours)
        self.memory: Memory | None = None
        self._load: Mapping[str, Any] | None = {"ask": "load", **described, "tied": not under}

    def load(self, seconds: float = START_SECONDS) -> None:
        """Load its extension, once. Raises SideError, after which the side is spent."""
        if self._load is None:
            return
        question, self._load = self._load, None
        try:
            self.ask(question, seconds)
        except SideError:
            self.end()
            raise

    def ask(self, question: Mapping[str, Any], seconds: float | None = None, descriptor: int | None = None) -> Any:
        """The answer, as the side claims it. Raises SideError; after any but RaisedError the side is spent."""
        number = secrets.token_hex(8)
        try:
            self._channel.send({**question, "number": number}, descriptor)
            answer = self._channel.receive(seconds or self._patience)
        except ChannelError as error:
            raise SideError(self._ending(error), timed_out=error.timed_out) from None
        if answer.pop("number", None) != number:
            raise SideError("it wrote to the harness's channel")
        if "failed" not in answer:
            return answer
        text = str(answer["failed"])
        if "CUDA error" in text or "AcceleratorError" in text:
            raise SideError(f"it fails with {text}")
        raise RaisedError(f"it raises {text}")

    def share(self, memory: Memory) -> None:
        """Give the side's process another memory to put results into. Raises SideError."""
        self.memory = None
        described = {k: v for k, v in memory.described.items() if k != "descriptor"}
        self.ask({"ask": "memory", "memory": described}, descriptor=memory.described.get("descriptor"))
        self.memory = memory

    def threads(self) -> int:
        """How many threads the process has, as the kernel counts them; 0 where that is not told."""
        try:
            return sum(1 for _ in Path(f"/proc/{self._process.pid}/task").iterdir())
        except OSError:
            return 0

    def _ending(self, error: ChannelError) -> str:
        if error.timed_out or error.forged or str(error) != "its process ended":
            return str(error)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(5)
        status = self._process.returncode
        if status is None:
            return "it closed the harness's channel"
        if status < 0:
            with contextlib.suppress(ValueError):
                return f"its process ended with the signal {signal.Signals(-status).name}{self._last_words()}"
        return f"its process ended with exit status {status}{self._last_words()}"

    def _last_words(self) -> str:
        self._log.seek(max(0, self._log.seek(0, os.SEEK_END) - 2000))
        lines = [line.strip() for line in self._log.read().decode(errors="replace").splitlines() if line.strip()]
        text = "".join(c for c in lines[-1] if c.isprintable())[:160] if lines else ""
        return f" (its last words: {text})" if text else ""

    def leave(self, seconds: float) -> None:
        """Let the process end by itself, for at most so long; `end` is still to be called."""
        self._channel.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(seconds)

    def end(self) -> None:
        """Kill the process and all that it started. May be called twice."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.kill()  # in a sandbox it has no group of its own: what it started ends with the harness
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(30)
        self._channel.close()
        self._log.close()
        self.memory = None
