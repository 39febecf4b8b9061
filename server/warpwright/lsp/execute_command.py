"""workspace/executeCommand: Optimize, Reduce memory and Fix on a kernel, and opening their last report.

A command's argument is {"uri", and "kernel" (its name) or "position"}; without either, the document's only kernel. Its
result is {"status": "applied" | "nothing" | "not-applied" | "cancelled" | "failed", "message", "report": path or null,
"outcome": what `warpwright optimize --format json` prints, or null}.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lsprotocol import types
from pygls.exceptions import JsonRpcException

from warpwright.directories import cache_dir
from warpwright.editor.actions import GOALS, kernel_for
from warpwright.editor.report import outcome_report, outcome_summary
from warpwright.editor.settings import settings_json
from warpwright.editor.text import Position
from warpwright.lsp.documents import uri_of
from warpwright.lsp.edits import TextChangedError, workspace_edit
from warpwright.lsp.progress import StoppedError, with_progress
from warpwright.lsp.work import WorkError
from warpwright.progress import Progress

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
        server.command(command)(_on_kernel(server, goal))
    server.command(SHOW_REPORT)(_shows_report(server))


def _on_kernel(server: Server, goal: str) -> Any:
    async def run(params: types.ExecuteCommandParams) -> Json:
        try:
            return await kernel_command(server, goal, params)
        except (WorkError, TextChangedError) as error:
            server.message(str(error), types.MessageType.Warning)
            return _result("failed", str(error))

    return run


def _shows_report(server: Server) -> Any:
    async def run(params: types.ExecuteCommandParams) -> None:
        await show_report(server)

    return run


async def kernel_command(ls: Server, goal: str, params: types.ExecuteCommandParams) -> Json:
    """Search for a better kernel in a process of its own; apply the best that was verified if the text still stands."""
    document, kernel = await asked_for(ls, params)
    settings = ls.documents.settings
    request = {**ls.documents.request(document), "settings": settings_json(settings), "kernel": kernel, "goal": goal}
    seconds = settings.optimize_seconds + _MARGIN_SECONDS

    async def searched(progress: Progress) -> Json:
        answer: Json = await ls.commands.run("optimize", request, progress, seconds)
        return answer

    title = _TITLES[goal].format(kernel)
    try:
        answer = await with_progress(ls, title, params.work_done_token, searched)
    except StoppedError:
        return _result("cancelled", f"{title} was stopped; nothing was changed.")
    return await _delivered(ls, document, answer)


async def show_report(ls: Server) -> None:
    """Open the last report where the client can show a document; else say where it is."""
    report = ls.last_report
    if report is None:
        ls.message("There is no report yet: run Optimize, Reduce memory, Fix or Verify on a kernel first.")
        return
    window = ls.client_capabilities.window
    if window and window.show_document and window.show_document.support:
        await ls.window_show_document_async(types.ShowDocumentParams(uri=uri_of(str(report)), take_focus=True))
    else:
        ls.message(f"The report is in {report}.")


async def asked_for(ls: Server, params: types.ExecuteCommandParams) -> tuple[Document, str]:
    """The open document and the kernel that a command's argument names. Raises WorkError."""
    argument = params.arguments[0] if params.arguments else None
    if not isinstance(argument, Mapping):
        raise WorkError('The command takes one argument: {"uri": ..., "kernel": ...}.')
    document = ls.documents.get(str(argument.get("uri")))
    if document is None:
        raise WorkError(f"{argument.get('uri')} is not open.")
    analysis = await ls.documents.analysed(document)
    if analysis.skipped:
        raise WorkError(f"The document was not analysed: {analysis.skipped}.")
    offset = None
    place = argument.get("position")
    if isinstance(place, Mapping) and isinstance(place.get("line"), int) and isinstance(place.get("character"), int):
        offset = document.text.offset(Position(place["line"], place["character"]), ls.encoding)
    name = argument.get("kernel")
    kernel = kernel_for(analysis, str(name) if name is not None else None, offset)
    if kernel is None:
        raise WorkError(f"There is no kernel {name} here." if name else "Put the cursor on a kernel first.")
    return document, kernel.name


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


def written_report(page: str, path: str, kernel: str, what: str) -> Path | None:
    """The report as a file in the user's cache: one for each kernel and what was done, the last one written."""
    name = re.sub(r"\W+", "-", f"{Path(path).stem}-{kernel}-{what}")
    target = cache_dir() / "reports" / f"{name}.md"
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(page, encoding="utf-8")
    except OSError:
        return None
    return target


def _result(status: str, message: str, report: Path | None = None, outcome: Json | None = None) -> Json:
    return {"status": status, "message": message, "report": str(report) if report else None, "outcome": outcome}
