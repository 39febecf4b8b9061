"""Work-done progress: what the user sees of a job, and the button that stops it."""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, TypeVar

from lsprotocol import types
from pygls.exceptions import JsonRpcException

from warpwright.progress import Progress, silent

if TYPE_CHECKING:
    from warpwright.lsp.server import Server

log = logging.getLogger(__name__)
T = TypeVar("T")

_ANSWER_SECONDS = 5.0


class StoppedError(Exception):
    """The user stopped the work through its progress."""


async def with_progress(
    ls: Server, title: str, token: types.ProgressToken | None, work: Callable[[Progress], Coroutine[None, None, T]]
) -> T:
    """Do work under the client's progress token, or under one of ours where it has none and can show it.

    Cancelling the coroutine, which is what `$/cancelRequest` does, cancels the work; so does the user through
    `window/workDoneProgress/cancel`, for which StoppedError is raised.
    """
    token = token if token is not None else await _created(ls)
    if token is None:
        return await work(silent)
    progress = ls.work_done_progress
    progress.begin(token, types.WorkDoneProgressBegin(title=title, cancellable=True, percentage=0))
    task = asyncio.ensure_future(work(_reporter(ls, token)))
    loop = asyncio.get_running_loop()
    stopped = progress.tokens[token]
    stopped.add_done_callback(lambda _: loop.call_soon(task.cancel))
    try:
        return await task
    except asyncio.CancelledError:
        if stopped.cancelled():
            raise StoppedError from None
        raise
    finally:
        progress.end(token, types.WorkDoneProgressEnd())
        progress.tokens.pop(token, None)


def _reporter(ls: Server, token: types.ProgressToken) -> Progress:
    """A percentage never goes back, as the protocol asks."""
    shown = 0

    def report(message: str, share: float | None) -> None:
        nonlocal shown
        if share is not None:
            shown = max(shown, min(100, round(100 * share)))
        ls.work_done_progress.report(token, types.WorkDoneProgressReport(message=message, percentage=shown))

    return report


async def _created(ls: Server) -> str | None:
    window = ls.client_capabilities.window
    if not (window and window.work_done_progress):
        return None
    token = str(uuid.uuid4())
    try:
        await asyncio.wait_for(ls.work_done_progress.create_async(token), _ANSWER_SECONDS)
    except (TimeoutError, JsonRpcException) as error:
        log.info("the client shows no progress: %s", error)
        return None
    return token
