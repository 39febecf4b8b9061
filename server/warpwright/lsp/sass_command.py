"""workspace/executeCommand: Show the machine code of a kernel beside its source.

The argument is that of the other kernel commands (`kernel_command`), with "format": "html" for a page in a browser,
or "markdown" for a document in the editor. The result is {"status": "shown" | "cancelled" | "failed", "message",
"page": the page's path or null, "text": the document's path or null}.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from lsprotocol import types

from warpwright.editor.actions import SHOW_SASS
from warpwright.lsp.documents import uri_of
from warpwright.lsp.kernel_command import asked_for, job_on_kernel, or_failed
from warpwright.lsp.progress import StoppedError

if TYPE_CHECKING:
    from warpwright.lsp.server import Server

Json = dict[str, Any]
_MARGIN_SECONDS = 60.0  # beside nvcc's two runs: the process's start, the disassembly of a large file, the pages


def register(server: Server) -> None:
    server.command(SHOW_SASS)(or_failed(server, partial(show_sass, server), _result))


async def show_sass(ls: Server, params: types.ExecuteCommandParams) -> Json:
    """Compile and disassemble a document in a process of its own, and open what came of one kernel of it."""
    document, kernel = await asked_for(ls, params)
    seconds = 2 * ls.documents.settings_of(document).compile_seconds + _MARGIN_SECONDS
    title = f"Disassembling {kernel}"
    try:
        answer = await job_on_kernel(ls, params, document, "sass", title, seconds, kernel=kernel)
    except StoppedError:
        return _result("cancelled", f"{title} was stopped.")
    argument = params.arguments[0] if params.arguments else None
    as_text = isinstance(argument, Mapping) and argument.get("format") == "markdown"
    shown = answer["text"] if as_text else answer["page"]
    instead = f"The machine code of {kernel} is in {answer['text']}, as a page in {answer['page']}."
    await ls.show(types.ShowDocumentParams(uri=uri_of(shown), external=not as_text), instead)
    return _result("shown", answer["summary"], answer["page"], answer["text"])


def _result(status: str, message: str, page: str | None = None, text: str | None = None) -> Json:
    return {"status": status, "message": message, "page": page, "text": text}
