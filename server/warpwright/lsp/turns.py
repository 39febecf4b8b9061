"""Analyses in threads: one after the other, but none waits for another that takes long.

Of analyses that take tens of milliseconds two at once would only be slower. One that takes longer than a moment goes on
beside the next ones. One that takes longer than anybody waits for is stopped.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any, TypeVar

from warpwright.editor.stoppable import Stoppable, TookTooLongError

log = logging.getLogger(__name__)
T = TypeVar("T")

MOMENT_SECONDS = 0.3
"""For which the next one waits."""
MOST_SECONDS = 20.0
"""After which one is stopped: several times what the largest honest file takes while all processors are busy."""
PATIENCE_SECONDS = 2.0
"""After which one is stopped whose answer nobody wants any more, as its text was edited."""
MOST_AT_ONCE = 4
_LOOK_SECONDS = 0.1
_STOPPING_SECONDS = 1.0


class OvertakenError(Exception):
    """Work was stopped because nobody wants its answer any more."""


class Turns:
    """Who analyses now, and who goes on beside. Used from the loop's thread alone."""

    def __init__(self) -> None:
        self._turn = asyncio.Lock()
        self._room = asyncio.Semaphore(MOST_AT_ONCE)
        self._running: set[Stoppable[Any]] = set()

    async def run(self, work: Callable[[], T], is_wanted: Callable[[], bool] = lambda: True) -> T:
        """What the work gives. Cancelling the coroutine stops the work.

        Raises what the work raises, TookTooLongError, and OvertakenError.
        """
        async with self._room:
            running: Stoppable[T] | None = None
            try:
                async with self._turn:
                    running = self._started(work)
                    result = asyncio.wrap_future(running.result)
                    await asyncio.wait({result}, timeout=MOMENT_SECONDS)
                left = MOST_SECONDS - MOMENT_SECONDS
                while left > 0 and not result.done() and (is_wanted() or MOST_SECONDS - left < PATIENCE_SECONDS):
                    await asyncio.wait({result}, timeout=_LOOK_SECONDS)
                    left -= _LOOK_SECONDS
                if result.done():
                    return result.result()
                await _stopped(running)
                raise TookTooLongError(MOST_SECONDS) if left <= 0 else OvertakenError
            finally:
                if running is not None:
                    running.stop()
                    self._running.discard(running)

    def stop(self) -> None:
        """Ask all that runs to end; nobody waits for it."""
        for each in self._running:
            each.stop()

    def _started(self, work: Callable[[], T]) -> Stoppable[T]:
        running = Stoppable(work, "analysis")
        self._running.add(running)
        return running


async def _stopped(running: Stoppable[T]) -> None:
    """Wait until the work has ended; one that does not is left behind."""
    until = asyncio.get_running_loop().time() + _STOPPING_SECONDS
    while not running.has_ended:
        if asyncio.get_running_loop().time() > until:
            log.warning("an analysis does not end when it is told to")
            return
        running.stop()
        await asyncio.sleep(_LOOK_SECONDS)
