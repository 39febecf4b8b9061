"""workspace/executeCommand: Profile a kernel with the emulator, and open the page of its last profile.

The argument is that of the other kernel commands (`kernel_command`). The result is {"status": "profiled" |
"cancelled" | "failed", "message", "report": the page's path or null}.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any

from lsprotocol import types

from warpwright.editor.actions import PROFILE, SHOW_PROFILE
from warpwright.lsp.documents import uri_of
from warpwright.lsp.kernel_command import asked_for, job_on_kernel, or_failed
from warpwright.lsp.progress import StoppedError
from warpwright.lsp.publish_diagnostics import refresh
from warpwright.lsp.work import WorkError

if TYPE_CHECKING:
    from warpwright.lsp.server import Server

Json = dict[str, Any]


def register(server: Server) -> None:
    async def show(params: types.ExecuteCommandParams) -> None:
        try:
            await show_profile(server, params)
        except WorkError as error:
            server.message(str(error), types.MessageType.Warning)

    server.command(PROFILE)(or_failed(server, partial(profile_command, server), _result))
    server.command(SHOW_PROFILE)(show)


async def profile_command(ls: Server, params: types.ExecuteCommandParams) -> Json:
    """Run a kernel in the emulator; its numbers then stand in hovers, lenses and findings, while the text does."""
    document, kernel = await asked_for(ls, params)
    seconds = ls.documents.settings.optimize_seconds
    title = f"Profiling {kernel}"
    try:
        answer = await job_on_kernel(ls, params, document, "profile", title, seconds, kernel=kernel)
    except StoppedError:
        return _result("cancelled", f"{title} was stopped.")
    refresh(ls, ls.documents.mark_all())
    ls.refresh_marks()
    kind = types.MessageType.Warning if answer["faults"] else types.MessageType.Info
    ls.message(f"{kernel}: {answer['summary']}.", kind)
    return _result("profiled", answer["summary"], answer["page"])


async def show_profile(ls: Server, params: types.ExecuteCommandParams) -> None:
    """Open the annotated source of a kernel's profile in a browser, where the client can; else say where it is."""
    from warpwright.editor.profile.page_file import written_page

    document, kernel = await asked_for(ls, params)
    analysis = await ls.documents.analysed(document)
    profile = next((profile for profile in analysis.profiles if profile.kernel == kernel), None)
    if profile is None:
        raise WorkError(f"There is no profile of {kernel} as its text is now: run Profile first.")
    page = await asyncio.to_thread(written_page, profile, analysis.program)
    if page is None:
        raise WorkError("The profile's page cannot be written to the cache; set WARPWRIGHT_CACHE_DIR.")
    await ls.show(types.ShowDocumentParams(uri=uri_of(str(page)), external=True), f"The profile is in {page}.")


def _result(status: str, message: str, report: str | None = None) -> Json:
    return {"status": status, "message": message, "report": report}
