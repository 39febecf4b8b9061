"""workspace/executeCommand: Wire a kernel into PyTorch.

The argument is that of the other kernel commands (`kernel_command`). The result is {"status": "written" | "cancelled" |
"failed", "message", "folder": where the package lies, or null}.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from lsprotocol import types

from warpwright.editor.actions import WIRE
from warpwright.lsp.documents import uri_of
from warpwright.lsp.kernel_command import asked_for, job_on_kernel, or_failed
from warpwright.lsp.progress import StoppedError

if TYPE_CHECKING:
    from warpwright.lsp.server import Server

Json = dict[str, Any]
SECONDS = 900.0
"""nvcc once for each type, and once over torch's headers."""


def register(server: Server) -> None:
    server.command(WIRE)(or_failed(server, partial(wire, server), _result))


async def wire(ls: Server, params: types.ExecuteCommandParams) -> Json:
    """Write the package in a process of its own, and open its Python module."""
    document, kernel = await asked_for(ls, params)
    title = f"Wiring {kernel} into PyTorch"
    try:
        answer = await job_on_kernel(ls, params, document, "wire", title, SECONDS, kernel=kernel)
    except StoppedError:
        return _result("cancelled", f"{title} was stopped.")
    ls.message(answer["summary"])
    await ls.show(types.ShowDocumentParams(uri=uri_of(answer["text"]), external=False), f"It is in {answer['folder']}.")
    return _result("written", answer["summary"], answer["folder"])


def _result(status: str, message: str, folder: str | None = None) -> Json:
    return {"status": status, "message": message, "folder": folder}
