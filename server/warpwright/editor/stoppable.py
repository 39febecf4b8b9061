"""Work in a thread of its own that can be stopped from outside: an exception is raised in it wherever it stands.

Analysis is pure Python and changes nothing but caches, which an exception leaves whole. Work that stands in a call of
C, such as a read from a file system that does not answer, sees the exception when that returns, and is left alone until
then: the thread keeps no process from ending.
"""

from __future__ import annotations

import contextlib
import ctypes
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Generic, TypeVar

T = TypeVar("T")

_AGAIN_SECONDS = 0.05
_STOPPING_SECONDS = 1.0


class TookTooLongError(Exception):
    """Work was stopped because it was not done in time; the message says so as the end of a sentence."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"it took longer than {seconds:g} seconds and was stopped")


class _Stop(SystemExit):
    """Raised in a thread that is to end. Not an Exception, so that what guards itself against those does not keep it;
    of one that comes when the work has just ended nothing is printed."""


class Stoppable(Generic[T]):
    """One piece of work, started at once. `result` is done when the work is; never where the work was stopped."""

    def __init__(self, work: Callable[[], T], name: str) -> None:
        self.result: Future[T] = Future()
        self._work = work
        self._thread = threading.Thread(target=self._run, daemon=True, name=name)
        self._thread.start()

    @property
    def has_ended(self) -> bool:
        return not self._thread.is_alive()

    def stop(self) -> None:
        """Ask the work to end. What it does in a destructor or a callback of C may swallow that, so ask again."""
        if self._thread.ident is not None and not self.result.done() and not self.has_ended:
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(self._thread.ident), ctypes.py_object(_Stop))

    def _run(self) -> None:
        with contextlib.suppress(_Stop):
            try:
                result = self._work()
            except Exception as error:
                self.result.set_exception(error)
            else:
                self.result.set_result(result)


def done_within(seconds: float, work: Callable[[], T]) -> T:
    """The result of work that is stopped after `seconds`. Raises TookTooLongError, and what the work raises.

    >>> done_within(10, lambda: 6 * 7)
    42
    >>> def endless():
    ...     while True:
    ...         pass
    >>> done_within(0.01, endless)
    Traceback (most recent call last):
    ...
    warpwright.editor.stoppable.TookTooLongError: it took longer than 0.01 seconds and was stopped
    """
    running = Stoppable(work, "limited")
    with contextlib.suppress(TimeoutError):
        return running.result.result(seconds)
    until = time.monotonic() + _STOPPING_SECONDS
    while not running.has_ended and time.monotonic() < until:
        running.stop()
        time.sleep(_AGAIN_SECONDS)
    raise TookTooLongError(seconds)
