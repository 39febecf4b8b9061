"""A model in a file, as this process sees it: one child that completes text.

The child is started by the first request and again after a crash, for the request that was under way, too; a request
never takes this process down. One
request runs at a time; others wait for their turn, and may be cancelled while they wait.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import IO, Any

from warpwright.assist.engine import Completion, CompletionRequest, Engine, EngineError
from warpwright.assist.weights import ModelFile
from warpwright.progress import IsCancelled, never_cancelled
from warpwright.syntax.encoding import encoded, shown_bytes

log = logging.getLogger(__name__)

POLL_SECONDS = 0.05
START_SECONDS = 120.0
_CHILD_ENVIRONMENT = {
    "GGML_NO_BACKTRACE": "1",
    # Threads of OpenMP that wait for each other sleep, with gcc's after some turns: as fast as spinning where nothing
    # else runs, and as fast as one thread beside two busy processes.
    "OMP_WAIT_POLICY": "passive",
    "GOMP_SPINCOUNT": "20000",
    "PYTHONIOENCODING": "utf-8",
}
GRACE_SECONDS = 5.0  # how long past its limit, or its cancellation, a request may take before the child is killed


class _DiedError(EngineError):
    """The child is dead."""


class _Child:
    """The child process, with a thread that reads its lines into a queue; None marks their end."""

    def __init__(self, model: Path, adapter: Path | None) -> None:
        # By its path and with -P: neither the file's own folder nor the user's is on sys.path.
        command = [sys.executable, "-P", str(Path(__file__).with_name("child.py")), str(model)]
        self.errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115  # lives as long as the child
        self.process = subprocess.Popen(
            command + ([str(adapter)] if adapter else []),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
            env=_CHILD_ENVIRONMENT | os.environ,
        )
        self.ready = False
        self.lines: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as stdout:
            for line in stdout:
                self.lines.put(line)
        self.lines.put(None)

    def send(self, message: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(encoded(json.dumps(message)) + b"\n")
            self.process.stdin.flush()
        except (OSError, ValueError):  # ValueError: closed by end()
            raise self._death() from None

    def receive(self) -> dict[str, Any] | None:
        """The next message, or None if none came for a moment. Raises EngineError if the child is dead."""
        try:
            line = self.lines.get(timeout=POLL_SECONDS)
        except queue.Empty:
            return None
        if line is None:
            raise self._death()
        message: dict[str, Any] = json.loads(line)
        return message

    def _death(self) -> _DiedError:
        try:
            code = self.process.wait(timeout=GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            code = self.process.wait()
        how = signal.Signals(-code).name if code < 0 else f"exit status {code}"
        if not self.errors.closed:
            self.errors.seek(0)
            log.debug("the model's process wrote: %s", shown_bytes(self.errors.read()[-2000:]))
        self.end()
        return _DiedError(f"The model's process ended unexpectedly ({how}); the next request starts it again.")

    def end(self) -> None:
        """Kill the process, which has nothing to lose, and wait for it."""
        self.process.kill()
        self.process.wait()
        self.errors.close()
        assert self.process.stdin is not None
        with contextlib.suppress(OSError):  # what was written and not read is lost with it
            self.process.stdin.close()


class ChildEngine(Engine):
    """A model in a child process."""

    def __init__(self, model: ModelFile, adapter: Path | None = None) -> None:
        self.model: ModelFile = model
        self.adapter = adapter
        self._turn = threading.Lock()
        self._child: _Child | None = None
        self._last_id = 0

    @property
    def pid(self) -> int | None:
        """The child's process id; None while there is none."""
        child = self._child
        return child.process.pid if child is not None and child.process.poll() is None else None

    def close(self) -> None:
        """End the child, and with it a request that is being answered."""
        child, self._child = self._child, None
        if child is not None:
            child.end()

    def complete(
        self,
        request: CompletionRequest,
        is_cancelled: IsCancelled = never_cancelled,
        is_enough: Callable[[str], bool] | None = None,
    ) -> Completion:
        """A child that dies is started once more for the same request, with the time that is left of it; EngineError is
        raised where it dies of it."""
        while not self._turn.acquire(timeout=POLL_SECONDS):
            if is_cancelled():
                return Completion("", "cancelled")
        try:
            child = self._started(is_cancelled)
            if child is None:
                return Completion("", "cancelled")
            began = time.monotonic()
            try:
                return self._answered(child, request, is_cancelled, is_enough)
            except _DiedError as death:
                left = request.seconds - (time.monotonic() - began)
                if left <= 0 or is_cancelled():
                    raise
                log.info("%s It is started for the request that was under way.", death)
            child = self._started(is_cancelled)
            again = replace(request, seconds=left)
            return self._answered(child, again, is_cancelled, is_enough) if child else Completion("", "cancelled")
        finally:
            self._turn.release()

    def _started(self, is_cancelled: IsCancelled) -> _Child | None:
        """A child that has loaded the model; None if `is_cancelled` said so first (it goes on loading)."""
        child = self._child
        if child is None or child.process.poll() is not None:
            self.close()
            child = self._child = _Child(self.model.path, self.adapter)
        limit = time.monotonic() + START_SECONDS
        while not child.ready:
            if is_cancelled():
                return None
            if time.monotonic() > limit:
                child.end()
                raise EngineError(f"The model {self.model.path} was not loaded within {START_SECONDS:.0f} seconds.")
            message = child.receive()
            if message and "failed" in message:
                child.end()
                raise EngineError(message["failed"])
            child.ready = message is not None
        return child

    def _answered(
        self,
        child: _Child,
        request: CompletionRequest,
        is_cancelled: IsCancelled,
        is_enough: Callable[[str], bool] | None,
    ) -> Completion:
        self._last_id += 1
        child.send({"id": self._last_id, **asdict(request)})
        limit = time.monotonic() + request.seconds + GRACE_SECONDS
        text, ended = "", ""
        while True:
            if not ended and is_cancelled():
                ended = "cancelled"
                child.send({"cancel": self._last_id})
                limit = time.monotonic() + GRACE_SECONDS
            if time.monotonic() > limit:
                child.end()
                if ended:
                    return Completion(text, ended)
                raise EngineError(f"The model gave no answer within {request.seconds:.0f} seconds and was stopped.")
            message = child.receive()
            if message is None or message["id"] != self._last_id:
                continue
            if "error" in message:
                raise EngineError(message["error"])
            if "done" in message:
                done = Completion(**message["done"])
                return replace(done, text=text, stop=ended) if ended else done
            if ended:
                continue
            text += message["text"]
            if is_enough and is_enough(text):
                ended = "enough"
                child.send({"cancel": self._last_id})
                limit = time.monotonic() + GRACE_SECONDS
