"""textDocument/inlineCompletion: ghost text after a comment that asks for a kernel.

One request is under way at a time: a newer one, a cancel and the time limit each stop it. It waits in a thread for the
model's process, so nothing else waits for it.
"""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING

from lsprotocol import types

from warpwright.assist.comment_request import requested_kernel
from warpwright.editor.ghost import GhostWriter
from warpwright.lsp.convert import position
from warpwright.lsp.guard import guarded

if TYPE_CHECKING:
    from warpwright.lsp.server import Server


def register(server: Server) -> None:
    server.feature(types.TEXT_DOCUMENT_INLINE_COMPLETION, types.InlineCompletionOptions())(inline_completion)


class GhostText:
    """The thread that waits for the model, and the request that it waits for."""

    def __init__(self) -> None:
        self._writer = GhostWriter()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="ghost")
        self._stop = threading.Event()

    async def write(self, description: str, model: str, seconds: float) -> str | None:
        """A kernel, or None where there is none in time or a newer request came."""
        self._stop.set()
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

    def stop(self) -> None:
        """End the request that is under way: what it would write is no longer wanted."""
        self._stop.set()

    def close(self) -> None:
        self.stop()
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
    description = await ls.documents.in_thread(lambda: requested_kernel(analysis.source, offset))
    if description is None:
        return None
    code = await ls.ghost_text.write(description, settings.model, settings.ghost_text_seconds)
    if code is None or document.version != version:
        return None
    at = types.Range(start=params.position, end=params.position)
    return types.InlineCompletionList(items=[types.InlineCompletionItem(insert_text=code, range=at)])
