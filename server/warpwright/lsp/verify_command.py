"""workspace/executeCommand: Verify a kernel as it stands in the buffer.

The argument is that of the other kernel commands (`execute_command`). The result is {"status": "verified" | "refuted" |
"cancelled" | "failed", "message", "report": the page's path or null, "outcome": what the job answered, or null}.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from lsprotocol import types

from warpwright.editor.actions import VERIFY
from warpwright.editor.settings import settings_json
from warpwright.editor.verify_report import is_refuted, verified_page, verified_sentence
from warpwright.lsp.execute_command import asked_for, written_report
from warpwright.lsp.progress import StoppedError, with_progress
from warpwright.lsp.work import WorkError
from warpwright.progress import Progress

if TYPE_CHECKING:
    from pathlib import Path

    from warpwright.lsp.server import Server

Json = dict[str, Any]
_COMPARISONS = 2


def register(server: Server) -> None:
    async def run(params: types.ExecuteCommandParams) -> Json:
        try:
            return await verify_command(server, params)
        except WorkError as error:
            server.message(str(error), types.MessageType.Warning)
            return _result("failed", str(error))

    server.command(VERIFY)(run)


async def verify_command(ls: Server, params: types.ExecuteCommandParams) -> Json:
    """Run a kernel against its torch reference and its committed version, in a process of its own; say the verdict."""
    document, kernel = await asked_for(ls, params)
    settings = ls.documents.settings
    request = {**ls.documents.request(document), "settings": settings_json(settings), "kernel": kernel}

    async def verified(progress: Progress) -> Json:
        answer: Json = await ls.commands.run("verify", request, progress, _COMPARISONS * settings.verify_seconds)
        return answer

    title = f"Verifying {kernel}"
    try:
        answer = await with_progress(ls, title, params.work_done_token, verified)
    except StoppedError:
        return _result("cancelled", f"{title} was stopped.")
    page = verified_page(answer, document.path)
    report = ls.last_report = await asyncio.to_thread(written_report, page, document.path, kernel, "verify")
    sentence = verified_sentence(answer)
    where = f" Report: {report}" if report is not None else ""
    refuted = is_refuted(answer)
    ls.message(f"{sentence}.{where}", types.MessageType.Warning if refuted else types.MessageType.Info)
    return _result("refuted" if refuted else "verified", sentence, report, answer)


def _result(status: str, message: str, report: Path | None = None, outcome: Json | None = None) -> Json:
    return {"status": status, "message": message, "report": str(report) if report else None, "outcome": outcome}
