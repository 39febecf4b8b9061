"""workspace/executeCommand: Profile a kernel with the emulator, and open the page of its results.

The argument is that of the other kernel commands (`kernel_command`). The result is {"status": "profiled" | "shown" |
"cancelled" | "failed", "message", "report": the page's path or null}.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any

from lsprotocol import types

from warpwright.editor.actions import PROFILE, SHOW_RESULTS
from warpwright.lsp.documents import uri_of
from warpwright.lsp.kernel_command import asked_for, job_on_kernel, or_failed
from warpwright.lsp.progress import StoppedError
from warpwright.lsp.publish_diagnostics import refresh
from warpwright.lsp.work import WorkError

if TYPE_CHECKING:
    from warpwright.lsp.server import Server

Json = dict[str, Any]


def register(server: Server) -> None:
    server.command(PROFILE)(or_failed(server, partial(profile_command, server), _result))
    server.command(SHOW_RESULTS)(or_failed(server, partial(show_results, server), _result))


async def profile_command(ls: Server, params: types.ExecuteCommandParams) -> Json:
    """Run a kernel in the emulator; its numbers then stand in hovers, lenses and findings, while the text does."""
    document, kernel = await asked_for(ls, params)
    seconds = ls.documents.settings_of(document).optimize_seconds
    title = f"Profiling {kernel}"
    try:
        answer = await job_on_kernel(ls, params, document, "profile", title, seconds, kernel=kernel)
    except StoppedError:
        return _result("cancelled", f"{title} was stopped.")
    refresh(ls, ls.documents.mark_all())
    kind = types.MessageType.Warning if answer["faults"] else types.MessageType.Info
    ls.message(f"{kernel}: {answer['summary']}.", kind)
    return _result("profiled", answer["summary"], answer["page"])


async def show_results(ls: Server, params: types.ExecuteCommandParams) -> Json:
    """Open a kernel's profile over its source and its verified candidates, plotted; where the client cannot, say where
    they are."""
    from warpwright.editor.results.page_file import written_page

    document, name = await asked_for(ls, params)
    analysis = await ls.documents.analysed(document)
    profile = next((profile for profile in analysis.profiles if profile.kernel == name), None)
    kernel = analysis.program.kernel(name)
    file = kernel.source.path if kernel is not None else document.path
    page = await asyncio.to_thread(written_page, name, file, profile, analysis.program)
    if page is None:
        raise WorkError("The page of results cannot be written to the cache; set WARPWRIGHT_CACHE_DIR.")
    where = f"The results of {name} are in {page}."
    await ls.show(types.ShowDocumentParams(uri=uri_of(str(page)), external=True), where)
    return _result("shown", where, str(page))


def _result(status: str, message: str, report: str | None = None) -> Json:
    return {"status": status, "message": message, "report": report}
