"""workspace/executeCommand: Verify a kernel as it stands in the buffer.

The argument is that of the other kernel commands (`kernel_command`). The result is {"status": "verified" | "refuted" |
"cancelled" | "failed", "message", "report": the page's path or null, "outcome": what the job answered, or null}.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any

from lsprotocol import types

from warpwright.editor.actions import VERIFY
from warpwright.editor.verify_report import is_refuted, verified_page, verified_sentence
from warpwright.lsp.kernel_command import asked_for, job_on_kernel, or_failed, written_report
from warpwright.lsp.progress import StoppedError

if TYPE_CHECKING:
    from pathlib import Path

    from warpwright.lsp.server import Server

Json = dict[str, Any]
_COMPARISONS = 2


def register(server: Server) -> None:
    server.command(VERIFY)(or_failed(server, partial(verify_command, server), _result))


async def verify_command(ls: Server, params: types.ExecuteCommandParams) -> Json:
    """Run a kernel against its torch reference and its committed version, in a process of its own; say the verdict."""
    document, kernel = await asked_for(ls, params)
    seconds = _COMPARISONS * ls.documents.settings_of(document).verify_seconds
    title = f"Verifying {kernel}"
    try:
        answer = await job_on_kernel(ls, params, document, "verify", title, seconds, kernel=kernel)
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
