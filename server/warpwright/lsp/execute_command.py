"""workspace/executeCommand: Optimize, Reduce memory and Fix on a kernel, and opening their last report.

A command's argument is that of `kernel_command`. Its result is {"status": "applied" | "nothing" | "not-applied" |
"cancelled" | "failed", "message", "report": path or null, "outcome": what `warpwright optimize --format json` prints,
or null}.
"""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lsprotocol import types
from pygls.exceptions import JsonRpcException

from warpwright.editor.actions import GOALS
from warpwright.editor.report import outcome_report, outcome_summary
from warpwright.lsp.documents import uri_of
from warpwright.lsp.edits import TextChangedError, workspace_edit
from warpwright.lsp.kernel_command import asked_for, job_on_kernel, or_failed, written_report
from warpwright.lsp.progress import StoppedError

if TYPE_CHECKING:
    from warpwright.lsp.documents import Document
    from warpwright.lsp.server import Server

SHOW_REPORT = "warpwright.showReport"
_TITLES = {"speed": "Optimizing {}", "memory": "Reducing memory of {}", "fix": "Fixing {}"}
_APPLY_SECONDS = 60.0
_MARGIN_SECONDS = 30.0  # past its own budget, for what the search does outside it: reading, one last verification

Json = dict[str, Any]


def register(server: Server) -> None:
    for command, goal in GOALS.items():
        server.command(command)(or_failed(server, partial(search_command, server, goal), _result))
    server.command(SHOW_REPORT)(_shows_report(server))


def _shows_report(server: Server) -> Any:
    async def run(params: types.ExecuteCommandParams) -> None:
        await show_report(server)

    return run


async def search_command(ls: Server, goal: str, params: types.ExecuteCommandParams) -> Json:
    """Search for a better kernel in a process of its own; apply the best that was verified if the text still stands."""
    document, kernel = await asked_for(ls, params)
    seconds = ls.documents.settings.optimize_seconds + _MARGIN_SECONDS
    title = _TITLES[goal].format(kernel)
    try:
        answer = await job_on_kernel(ls, params, document, "optimize", title, seconds, kernel=kernel, goal=goal)
    except StoppedError:
        return _result("cancelled", f"{title} was stopped; nothing was changed.")
    return await _delivered(ls, document, answer)


async def show_report(ls: Server) -> None:
    """Open the last report where the client can show a document; else say where it is."""
    report = ls.last_report
    if report is None:
        ls.message("There is no report yet: run Optimize, Reduce memory, Fix or Verify on a kernel first.")
        return
    shown = types.ShowDocumentParams(uri=uri_of(str(report)), take_focus=True)
    await ls.show(shown, f"The report is in {report}.")


async def _delivered(ls: Server, document: Document, answer: Json) -> Json:
    outcome = answer["outcome"]
    page = outcome_report(outcome, document.path)
    report = ls.last_report = await asyncio.to_thread(
        written_report, page, document.path, outcome["kernel"], outcome["goal"]
    )
    summary = outcome_summary(outcome, answer["badge"])
    where = f" Report: {report}" if report is not None else ""
    if not answer["edits"]:
        ls.message(f"{summary}.{where}")
        return _result("nothing", summary, report, outcome)
    refusal = await _apply(ls, answer["edits"], summary)
    if refusal:
        ls.message(f"Not applied: {refusal} {summary}.{where}", types.MessageType.Warning)
        return _result("not-applied", refusal, report, outcome)
    ls.message(f"{summary}.{where}")
    return _result("applied", summary, report, outcome)


async def _apply(ls: Server, edits: Json, label: str) -> str:
    """Why the edit was not applied; "" where it was."""
    try:
        edit = workspace_edit(ls, edits)
        asked = types.ApplyWorkspaceEditParams(edit=edit, label=label)
        applied = await asyncio.wait_for(ls.workspace_apply_edit_async(asked), _APPLY_SECONDS)
    except TextChangedError as error:
        return str(error)
    except TimeoutError:
        return "The editor did not answer."
    except JsonRpcException as error:
        return f"The editor refused the edit: {error}."
    return "" if applied.applied else f"The editor refused the edit: {applied.failure_reason or 'it gave no reason'}."


def _result(status: str, message: str, report: Path | None = None, outcome: Json | None = None) -> Json:
    return {"status": status, "message": message, "report": str(report) if report else None, "outcome": outcome}
