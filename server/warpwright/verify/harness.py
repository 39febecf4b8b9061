"""The harness's process: started, fed, watched and killed.

One warm process is kept for the next verification; it is never kept after a CUDA error, a time-out or a cancel.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import IO, Any

import warpwright
from warpwright.missing import Missing
from warpwright.progress import CancelledError, IsCancelled

START_SECONDS = 120.0
STEP_SECONDS = 20.0
TOTAL_SECONDS = 400.0
_ADVICE = "Install what runs kernels on a GPU with `pip install 'warpwright[gpu]'`."
_PASSED_ON = ("PATH", "HOME", "LANG", "LD_LIBRARY_PATH", "TMPDIR", "PYTHONPATH", "VIRTUAL_ENV")
_PASSED_ON_PREFIXES = ("CUDA_", "NVIDIA_", "TORCH_")

Event = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Gpu:
    """The GPU that kernels are run on: its name, architecture ("sm_90"), and the software as the harness reports it."""

    name: str
    arch: str
    details: Mapping[str, Any]


class HarnessEndedError(Exception):
    """The harness's process went away, or did not answer in time; `timed_out` tells which."""

    def __init__(self, message: str, timed_out: bool) -> None:
        super().__init__(message)
        self.timed_out = timed_out


def harness_python() -> str:
    """The Python that has torch: this one, or WARPWRIGHT_GPU_PYTHON."""
    return os.environ.get("WARPWRIGHT_GPU_PYTHON") or sys.executable


def find_gpu(is_cancelled: IsCancelled) -> Gpu | Missing:
    """The GPU to run on, asked of the harness's own Python once; Missing at once where there is no NVIDIA driver."""
    if sys.platform == "win32":
        return Missing("gpu", "Kernels are not run on Windows.", "Use WSL 2, where they are.")
    if not _has_driver():
        return Missing("gpu", "There is no GPU here (no NVIDIA driver).", "Run it on a machine with an NVIDIA GPU.")
    if is_cancelled():
        raise CancelledError
    return _probed(harness_python())


@lru_cache(maxsize=4)
def _has_driver() -> bool:
    import ctypes

    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    return True


@lru_cache(maxsize=4)
def _probed(python: str) -> Gpu | Missing:
    command = [python, "-m", "warpwright_harness", "--probe"]
    try:
        answer = subprocess.run(
            command, capture_output=True, env=harness_environment(), timeout=START_SECONDS, check=False, text=True
        )
        details = json.loads(answer.stdout.strip().splitlines()[-1])
    except subprocess.TimeoutExpired:
        return Missing("gpu", f"{python} did not say within {START_SECONDS:g} seconds which GPU there is.", _ADVICE)
    except (OSError, ValueError, IndexError):
        return Missing("gpu", f"{python} cannot say which GPU there is.", _ADVICE)
    if "missing" in details:
        return Missing("gpu", details["missing"], _ADVICE)
    return Gpu(details["name"], details["arch"], details)


def harness_environment() -> dict[str, str]:
    """What the harness gets of the environment: where its programs are, and no secret of the user's."""
    chosen = {n: v for n, v in os.environ.items() if n in _PASSED_ON or n.startswith(_PASSED_ON_PREFIXES)}
    server = str(Path(warpwright.__file__).parent.parent)
    chosen["PYTHONPATH"] = os.pathsep.join(p for p in (server, chosen.get("PYTHONPATH", "")) if p)
    chosen["PYTHONDONTWRITEBYTECODE"] = "1"
    return chosen


class Harness:
    """One child process that runs requests; in a process group of its own, so that all of it can be killed."""

    def __init__(self) -> None:
        read_end, write_end = os.pipe()
        self._log: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 (closed by kill)
        try:
            self._process = subprocess.Popen(
                [harness_python(), "-m", "warpwright_harness", "--results", str(write_end)],
                stdin=subprocess.PIPE,
                stdout=self._log,
                stderr=self._log,
                env=harness_environment(),
                pass_fds=(write_end,),
                start_new_session=True,
            )
        except OSError:
            os.close(read_end)
            raise
        finally:
            os.close(write_end)
        self._results = read_end
        self._buffer = b""
        self._selector = selectors.DefaultSelector()
        self._selector.register(read_end, selectors.EVENT_READ)
        self.greeted = False

    def send(self, request: Mapping[str, Any]) -> None:
        """Raises HarnessEndedError."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            self._process.stdin.flush()
        except OSError:
            raise HarnessEndedError("the harness ended before it was asked", False) from None

    def next_event(self, seconds: float, is_cancelled: IsCancelled) -> Event:
        """The next event. Raises HarnessEndedError after `seconds` without one, and CancelledError."""
        deadline = time.monotonic() + seconds
        while b"\n" not in self._buffer:
            if is_cancelled():
                raise CancelledError
            left = deadline - time.monotonic()
            if left <= 0:
                raise HarnessEndedError(f"nothing happened for {seconds:g} seconds", True)
            if self._selector.select(min(left, 0.1)):
                chunk = os.read(self._results, 1 << 16)
                if not chunk:
                    raise HarnessEndedError(f"the harness ended unexpectedly{self._last_words()}", False)
                self._buffer += chunk
        line, _, self._buffer = self._buffer.partition(b"\n")
        try:
            event: Event = json.loads(line)
        except ValueError:
            raise HarnessEndedError("the harness wrote what is no event", False) from None
        return event

    def _last_words(self) -> str:
        self._log.seek(0)
        lines = [line for line in self._log.read().decode(errors="replace").splitlines() if line.strip()]
        return f" ({lines[-1].strip()[:200]})" if lines else ""

    def kill(self) -> None:
        """End the process and all that it started. May be called twice."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=30)
        with contextlib.suppress(KeyError, ValueError):
            self._selector.unregister(self._results)
            self._selector.close()
            os.close(self._results)
        if self._process.stdin is not None:
            with contextlib.suppress(OSError):
                self._process.stdin.close()
        self._log.close()

    @property
    def alive(self) -> bool:
        return self._process.poll() is None


_lock = threading.Lock()
_idle: list[Harness] = []


def run_request(request: Mapping[str, Any], is_cancelled: IsCancelled) -> Iterator[Event]:
    """The events of one request, up to its last ("done", "refused", "fault" or "error").

    Raises HarnessEndedError where the process hangs or dies, CancelledError, OSError where it cannot be started. The
    process survives only a request that it finished.
    """
    with _lock:
        harness = _idle.pop() if _idle else None
    if harness is not None and not harness.alive:
        harness.kill()
        harness = None
    harness = harness or Harness()
    finished = False
    try:
        started = time.monotonic()
        harness.send(request)
        while True:
            if time.monotonic() - started > TOTAL_SECONDS:
                raise HarnessEndedError(f"it took more than {TOTAL_SECONDS:g} seconds", True)
            event = harness.next_event(STEP_SECONDS if harness.greeted else START_SECONDS, is_cancelled)
            harness.greeted = True
            if event["event"] in ("done", "refused"):
                finished = True
                yield event
                return
            yield event
            if event["event"] in ("fault", "error"):
                return
    finally:
        if finished:
            with _lock:
                _idle.append(harness)
        else:
            harness.kill()


@atexit.register
def close_idle() -> None:
    """End the warm process; the next verification starts a new one."""
    with _lock:
        while _idle:
            _idle.pop().kill()
