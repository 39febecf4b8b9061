"""A child process that is asked one call after the other, each with a deadline: what hangs, dies or takes all memory
costs that call alone."""

from __future__ import annotations

import multiprocessing
import resource
from collections.abc import Callable
from multiprocessing.connection import Connection
from types import TracebackType
from typing import Any, Self

MEMORY = 4 << 30
START_SECONDS = 120.0


class WorkerError(Exception):
    """The call gave nothing; the message is one sentence."""


class Worker:
    """A context manager: leaving it ends the child. Functions and arguments must be such that pickle takes them."""

    def __init__(self, prepare: Callable[[], object]) -> None:
        self._prepare = prepare
        self._process: multiprocessing.process.BaseProcess | None = None
        self._pipe: Connection | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.join()
        if self._pipe is not None:
            self._pipe.close()
        self._process = self._pipe = None

    def call(self, function: Callable[..., Any], *arguments: Any, seconds: float) -> Any:
        """What the function gives in the child. Raises WorkerError with what happened."""
        pipe = self._started()
        try:
            pipe.send((function, arguments))
            if not pipe.poll(seconds):
                self.close()
                raise WorkerError(f"took more than {seconds:g} seconds")
            worked, result = pipe.recv()
        except (EOFError, OSError):
            self.close()
            raise WorkerError("the process that ran it died") from None
        if not worked:
            raise WorkerError(result)
        return result

    def _started(self) -> Connection:
        if self._pipe is not None:
            return self._pipe
        context = multiprocessing.get_context("spawn")
        self._pipe, other = context.Pipe()
        self._process = context.Process(target=_serve, args=(other, self._prepare), daemon=True)
        self._process.start()
        other.close()
        if not self._pipe.poll(START_SECONDS):
            self.close()
            raise WorkerError(f"the process that runs it did not start within {START_SECONDS:g} seconds")
        self._pipe.recv()
        return self._pipe


def _serve(pipe: Connection, prepare: Callable[[], object]) -> None:
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    prepare()
    pipe.send(None)
    while True:
        try:
            function, arguments = pipe.recv()
        except (EOFError, KeyboardInterrupt):
            return
        try:
            answer = True, function(*arguments)
        except MemoryError:
            answer = False, f"takes more than {MEMORY >> 30} GiB of memory"
        except RecursionError:
            answer = False, "is nested too deep"
        except Exception as error:
            answer = False, f"{type(error).__name__}: {str(error).strip() or 'no message'}"
        try:
            pipe.send(answer)
        except OSError:  # whoever asked is gone
            return
