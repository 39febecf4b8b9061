"""One process that runs what may hang, crash or lie: started, asked, watched and killed."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any

from warpwright.progress import CancelledError, IsCancelled
from warpwright.sandbox.confine import Confined, Policy
from warpwright.syntax.encoding import encoded, shown_bytes

Event = dict[str, Any]

LAST = frozenset({"done", "refused", "fault", "error"})
"""The kinds of events that end a request. After the first two the process is fit for the next one."""

_POLL_SECONDS = 0.1
_LONGEST_PATIENCE = 180.0
_LOG_BYTES = 8 << 20


@dataclass(frozen=True, slots=True)
class Kind:
    """How a child is started and how long it may take.

    `name` is what people are told of it, such as "the harness". `command` gets `--results FD` added. `start_seconds`
    are for its first event, `step_seconds` for each further one, `total_seconds` for a whole request.
    """

    name: str
    command: tuple[str, ...]
    environment: Mapping[str, str]
    policy: Policy
    start_seconds: float = 120.0
    step_seconds: float = 20.0
    total_seconds: float = 400.0


class ChildEndedError(Exception):
    """The process went away, or did not answer in time: `timed_out`.

    `exit_status` is the status with which it ended by itself, negative for a signal, None where it was killed for its
    silence.
    """

    def __init__(self, message: str, *, timed_out: bool = False, exit_status: int | None = None) -> None:
        super().__init__(message)
        self.timed_out = timed_out
        self.exit_status = exit_status


class Child:
    """A process that answers requests (JSON lines on its stdin) with events (JSON lines on a pipe of its own).

    It has a process group and a folder of its own, keeps to `kind.policy`, and goes, with all that it started, when
    `kill` is called or this process ends. What it and its libraries print goes to a log. `knows` are the topics that it
    was asked about (see `Pool.run`).
    """

    def __init__(self, kind: Kind) -> None:
        """Start it; it is not waited for. Raises OSError."""
        self.kind = kind
        self.greeting: Event | None = None
        self.idle_since = time.monotonic()
        self.knows: set[str] = set()
        self._buffer = b""
        self._folder = Path(tempfile.mkdtemp(prefix="warpwright-"))
        self._log: IO[bytes] = (self._folder / "log").open("w+b")
        self._results, write_end = os.pipe()
        own = str(self._folder)
        policy = replace(
            kind.policy,
            limits={"CORE": 0, **kind.policy.limits},
            writes=(*kind.policy.writes, own),
        )
        read_requests, requests = os.pipe()
        try:
            self._confined = Confined(
                (*kind.command, "--results", str(write_end)),
                policy,
                environment={**kind.environment, "TMPDIR": own},
                stdin=read_requests,
                output=self._log,
                pass_fds=(write_end,),
            )
        except OSError:
            os.close(self._results)
            os.close(requests)
            self._log.close()
            shutil.rmtree(self._folder, ignore_errors=True)
            raise
        finally:
            os.close(write_end)
            os.close(read_requests)
        self._requests = requests
        os.set_blocking(requests, False)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._results, selectors.EVENT_READ)

    @property
    def pid(self) -> int:
        return self._confined.process.pid

    @property
    def alive(self) -> bool:
        return self._confined.process.poll() is None

    def greet(self, is_cancelled: IsCancelled) -> Event:
        """Its first event, with what it is kept from as "sandbox"; waited for only once.

        Raises ChildEndedError, CancelledError, and OSError where it could not be started.
        """
        if self.greeting is None:
            in_force = self._confined.in_force()
            event = self.next_event(self.kind.start_seconds, is_cancelled)
            self.greeting = {**event, "sandbox": list(in_force)}
        return self.greeting

    def send(self, request: Mapping[str, Any], is_cancelled: IsCancelled) -> None:
        """Raises ChildEndedError where it does not take the request, and CancelledError."""
        left = memoryview(encoded(json.dumps(request)) + b"\n")
        deadline = time.monotonic() + self.kind.step_seconds
        with selectors.DefaultSelector() as selector:
            selector.register(self._requests, selectors.EVENT_WRITE)
            while left:
                if is_cancelled():
                    raise CancelledError
                if time.monotonic() > deadline:
                    raise ChildEndedError(f"{self.kind.name} did not take the request", timed_out=True)
                if selector.select(_POLL_SECONDS):
                    try:
                        left = left[os.write(self._requests, left) :]
                    except BrokenPipeError:
                        raise self._ended() from None

    def next_event(self, seconds: float, is_cancelled: IsCancelled) -> Event:
        """The next event. Raises ChildEndedError after `seconds` without one, and CancelledError."""
        deadline = time.monotonic() + seconds
        if is_cancelled():
            raise CancelledError
        while b"\n" not in self._buffer:
            if is_cancelled():
                raise CancelledError
            left = deadline - time.monotonic()
            if left <= 0:
                raise ChildEndedError(f"nothing happened for {seconds:g} seconds", timed_out=True)
            if self._log_is_full():
                raise ChildEndedError(f"{self.kind.name} printed more than {_LOG_BYTES:,} bytes and was stopped")
            if self._selector.select(min(left, _POLL_SECONDS)):
                chunk = os.read(self._results, 1 << 16)
                if not chunk:
                    raise self._ended()
                self._buffer += chunk
        line, _, self._buffer = self._buffer.partition(b"\n")
        try:
            event = json.loads(line)
        except ValueError:
            event = None
        if not isinstance(event, dict) or not isinstance(event.get("event"), str):
            raise ChildEndedError(f"{self.kind.name} wrote something that is not an event")
        return event

    def patience_after(self, event: Event) -> float:
        """How long the next event may take: an event that announces long work says so in "seconds"."""
        asked = event.get("seconds") if event["event"] == "begin" else None
        if isinstance(asked, int | float):
            return min(max(float(asked), self.kind.step_seconds), _LONGEST_PATIENCE)
        return self.kind.step_seconds

    def kill(self) -> None:
        """End the process and all that it started, and remove its folder. May be called twice."""
        self._confined.kill()
        if self._log.closed:
            return
        self._selector.close()
        os.close(self._results)
        os.close(self._requests)
        self._log.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def printed(self) -> str:
        """What it and its libraries printed so far."""
        self._log.seek(0)
        return shown_bytes(self._log.read())

    def _log_is_full(self) -> bool:
        return os.fstat(self._log.fileno()).st_size > _LOG_BYTES

    def _ended(self) -> ChildEndedError:
        """Why there is nobody at the other end, in a sentence."""
        try:
            status = self._confined.process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            return ChildEndedError(f"{self.kind.name} closed its results and went on")
        if status == -signal.SIGKILL:
            how = "was killed by the system, which does that where memory runs out"
        elif status < 0:
            how = f"crashed ({signal.Signals(-status).name})"
        else:
            how = f"ended unexpectedly with exit status {status}"
        return ChildEndedError(f"{self.kind.name} {how}{self._last_words()}", exit_status=status)

    def _last_words(self) -> str:
        self._log.seek(max(0, os.fstat(self._log.fileno()).st_size - (1 << 16)))
        lines = [line for line in shown_bytes(self._log.read()).splitlines() if line.strip()]
        return f" ({lines[-1].strip()[:200]})" if lines else ""


def environment_of(names: tuple[str, ...], prefixes: tuple[str, ...], server: Path) -> dict[str, str]:
    """What a child gets of the environment: the named variables, and how to import what lies in `server`, and nothing
    of the working directory, which may be that of a project that nobody trusts."""
    chosen = {n: v for n, v in os.environ.items() if n in names or n.startswith(prefixes)}
    given = [each for each in os.environ.get("PYTHONPATH", "").split(os.pathsep) if Path(each).is_absolute()]
    chosen["PYTHONPATH"] = os.pathsep.join((str(server), *given))
    chosen["PYTHONSAFEPATH"] = "1"
    chosen["PYTHONDONTWRITEBYTECODE"] = "1"
    return chosen


def physical_memory() -> int | None:
    """The machine's memory in bytes, None where that is not known."""
    with contextlib.suppress(ValueError, OSError, AttributeError):
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return None


def data_limit() -> dict[str, int]:
    """Leave a quarter of the machine's memory to others; what is only reserved, as CUDA does, does not count."""
    memory = physical_memory()
    return {"DATA": memory * 3 // 4} if memory and sys.platform == "linux" else {}
