"""workspace/executeCommand: Show the machine code of a kernel beside its source.

The argument is that of the other kernel commands (`execute_command`), with "format": "html" for a page in a browser,
or "markdown" for a document in the editor. The result is {"status": "shown" | "cancelled" | "failed", "message",
"page": the page's path or null, "text": the document's path or null}.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from lsprotocol import types

from warpwright.editor.actions import SHOW_SASS
from warpwright.editor.settings import settings_json
from warpwright.lsp.documents import uri_of
from warpwright.lsp.execute_command import asked_for
from warpwright.lsp.progress import StoppedError, with_progress
from warpwright.lsp.work import WorkError
from warpwright.progress import Progress

if TYPE_CHECKING:
    from warpwright.lsp.server import Server

Json = dict[str, Any]
_MARGIN_SECONDS = 60.0  # beside nvcc's two runs: the process's start, the disassembly of a large file, the pages


def register(server: Server) -> None:
    async def run(params: types.ExecuteCommandParams) -> Json:
        try:
            return await show_sass(server, params)
        except WorkError as error:
            server.message(str(error), types.MessageType.Warning)
            return _result("failed", str(error))

    server.command(SHOW_SASS)(run)


async def show_sass(ls: Server, params: types.ExecuteCommandParams) -> Json:
    """Compile and disassemble a document in a process of its own, and open what came of one kernel of it."""
    document, kernel = await asked_for(ls, params)
    settings = ls.documents.settings
    request = {**ls.documents.request(document), "settings": settings_json(settings), "kernel": kernel}

    async def made(progress: Progress) -> Json:
        answer: Json = await ls.commands.run("sass", request, progress, 2 * settings.compile_seconds + _MARGIN_SECONDS)
        return answer

    try:
        answer = await with_progress(ls, f"Disassembling {kernel}", params.work_done_token, made)
    except StoppedError:
        return _result("cancelled", f"Disassembling {kernel} was stopped.")
    argument = params.arguments[0] if params.arguments else None
    as_text = isinstance(argument, Mapping) and argument.get("format") == "markdown"
    shown = answer["text"] if as_text else answer["page"]
    window = ls.client_capabilities.window
    if window and window.show_document and window.show_document.support:
        await ls.window_show_document_async(types.ShowDocumentParams(uri=uri_of(shown), external=not as_text))
    else:
        ls.message(f"The machine code of {kernel} is in {answer['text']}, as a page in {answer['page']}.")
    return _result("shown", answer["summary"], answer["page"], answer["text"])


def _result(status: str, message: str, page: str | None = None, text: str | None = None) -> Json:
    return {"status": status, "message": message, "page": page, "text": text}
