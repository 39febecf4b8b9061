"""textDocument/inlineCompletion: ghost text after a comment that asks for a kernel, or that is a formula.

One request is under way at a time: a newer one, an edit, a cancel and the time limit each stop it. A formula's kernel
is written, compiled and compared with the formula in a process of its own; for words a thread waits for the model's
process. Nothing else waits for either.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any

from lsprotocol import types

from warpwright.assist.comment_request import requested_kernel
from warpwright.editor.formula_comment import formula_above
from warpwright.editor.ghost import GhostWriter
from warpwright.lsp.convert import position
from warpwright.lsp.guard import guarded
from warpwright.lsp.work import Worker

if TYPE_CHECKING:
    from warpwright.lsp.server import Server

log = logging.getLogger(__name__)


def register(server: Server) -> None:
    server.feature(types.TEXT_DOCUMENT_INLINE_COMPLETION, types.InlineCompletionOptions())(inline_completion)


class GhostText:
    """The process that writes formulas, the thread that waits for the model, and the request that is under way."""

    def __init__(self) -> None:
        self._formulas = Worker()
        self._job: asyncio.Task[Any] | None = None
        self._writer = GhostWriter()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="ghost")
        self._stop = threading.Event()

    async def write(self, description: str, model: str, seconds: float) -> str | None:
        """A kernel, or None where there is none in time or a newer request came."""
        self.stop()
        stop = self._stop = threading.Event()
        loop = asyncio.get_running_loop()
        work = partial(self._writer.write, description, model, seconds, stop.is_set)
        written = loop.run_in_executor(self._thread, work)
        try:
            async with asyncio.timeout(seconds):
                return await written
        except TimeoutError:
            return None
        finally:
            stop.set()

    async def of_formula(self, request: Mapping[str, object], seconds: float) -> str | None:
        """The kernel of the formula that a request of the job "ghost" names, or None where none may be shown."""
        self.stop()
        job = self._job = asyncio.ensure_future(
            self._formulas.run("ghost", request, lambda _text, _share: None, seconds)
        )
        try:
            await asyncio.wait({job})
        finally:
            job.cancel()
        if job.cancelled():
            return None
        if (error := job.exception()) is not None:
            log.info("a formula's kernel is not shown: %s", error)
            return None
        return str(job.result()["text"])

    def stop(self) -> None:
        """End the request that is under way: what it would write is no longer wanted."""
        self._stop.set()
        if self._job is not None:
            self._job.cancel()

    async def close(self) -> None:
        self.stop()
        await self._formulas.close()
        self._thread.submit(self._writer.close)
        self._thread.shutdown(wait=False)


@guarded(lambda: None)
async def inline_completion(ls: Server, params: types.InlineCompletionParams) -> types.InlineCompletionList | None:
    document = ls.documents.get(params.text_document.uri)
    if document is None or not (settings := ls.documents.settings_of(document)).ghost_text:
        return None
    version = document.version
    offset = document.text.offset(position(params.position), ls.encoding)
    analysis = await ls.documents.analysed(document)
    if document.version != version or analysis.skipped:
        return None
    wanted = await ls.documents.in_thread(lambda: formula_above(analysis.source, offset))
    if wanted is not None:
        request = {**ls.documents.request(document), "formula_at": offset}
        code = await ls.ghost_text.of_formula(request, settings.ghost_text_seconds)
        return _shown(code, params) if document.version == version else None
    description = await ls.documents.in_thread(lambda: requested_kernel(analysis.source, offset))
    if description is None:
        return None
    code = await ls.ghost_text.write(description, settings.model, settings.ghost_text_seconds)
    return _shown(code, params) if document.version == version else None


def _shown(code: str | None, params: types.InlineCompletionParams) -> types.InlineCompletionList | None:
    if code is None:
        return None
    at = types.Range(start=params.position, end=params.position)
    return types.InlineCompletionList(items=[types.InlineCompletionItem(insert_text=code, range=at)])
