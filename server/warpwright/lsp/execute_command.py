"""workspace/executeCommand: Optimize, Reduce memory and Fix on a kernel, Fix all of a document, Generate a kernel from
a comment; with or without applying what was found.

A command's argument is that of `kernel_command`, of which a `range` asks for changes of the selected text alone; with
`wish`, words such as "use less memory", the search goes on from the last offer, or the one whose number is `offer`;
with `"preview": true` a client that knows change annotations shows what was found before it applies it.
"warpwright.fixAll" takes {"uri", and "rule" for one rule's findings alone}, "warpwright.generate" {"uri", "position"}.

"warpwright.propose" has a `goal` beside, one for each of these five, and changes nothing: "warpwright.apply" {"offer",
and "candidate" for another one than the best} does, and "warpwright.preview" with the same argument says what the files
would be: its result has "files": [{"uri", "text"}] beside. The result of each is {"status": "applied" | "offered" |
"nothing" | "not-applied" | "cancelled" | "failed", "message", "report": path or null, "outcome": what `warpwright
optimize --format json` prints, or null, "offer": see `Offer.to_json`, or null}.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lsprotocol import types

from warpwright.editor.actions import APPLY, FIX_ALL, GENERATE, GOALS, PREVIEW, PROPOSE, SHOW_REPORT
from warpwright.editor.report import outcome_report
from warpwright.lsp.document_request import DOCUMENT_TITLES, document_request
from warpwright.lsp.documents import uri_of
from warpwright.lsp.edits import (
    APPLY_SECONDS,
    TextChangedError,
    annotation_of,
    changed_files,
    why_not_applied,
    workspace_edit,
)
from warpwright.lsp.kernel_command import argument_of, asked_for, job_on_text, or_failed, selected, written_report
from warpwright.lsp.offers import Offer
from warpwright.lsp.progress import StoppedError
from warpwright.lsp.work import WorkError

if TYPE_CHECKING:
    from warpwright.lsp.documents import Document
    from warpwright.lsp.server import Server

_TITLES = {"speed": "Optimizing {}", "memory": "Reducing memory of {}", "fix": "Fixing {}"}
_GONE = "There is no such offer any more: run it again."
_LONGEST_WISH = 400  # characters
_PREVIEW_SECONDS = 900.0  # a person reads a diff
_MARGIN_SECONDS = 30.0  # past its own budget, for what the search does outside it: reading, one last verification

Json = dict[str, Any]


def register(server: Server) -> None:
    for command, goal in {**GOALS, FIX_ALL: "fixAll", GENERATE: "generate"}.items():
        server.command(command)(or_failed(server, partial(search_command, server, goal), _result))
    server.command(PROPOSE)(or_failed(server, partial(propose_command, server), _result))
    server.command(PREVIEW)(or_failed(server, partial(preview_command, server), _result))
    server.command(APPLY)(or_failed(server, partial(apply_command, server), _result))
    server.command(SHOW_REPORT)(_shows_report(server))


def _shows_report(server: Server) -> Any:
    async def run(params: types.ExecuteCommandParams) -> None:
        await show_report(server)

    return run


async def search_command(ls: Server, goal: str, params: types.ExecuteCommandParams) -> Json:
    """Search for a better kernel; apply the best that was verified, where a `preview` is asked for after the client has
    shown it."""
    found = await _searched(ls, goal, params)
    needs_confirmation = argument_of(params).get("preview") is True
    return await _applied(ls, found, needs_confirmation=needs_confirmation) if isinstance(found, Offer) else found


async def propose_command(ls: Server, params: types.ExecuteCommandParams) -> Json:
    """Search for a better kernel and change nothing."""
    goal = argument_of(params).get("goal", "speed")
    if goal not in (*_TITLES, *DOCUMENT_TITLES):
        raise WorkError('The goal must be "speed", "memory", "fix", "fixAll" or "generate".')
    found = await _searched(ls, goal, params)
    if not isinstance(found, Offer):
        return found
    return _result("offered", _summary(found), found.report, found)


async def apply_command(ls: Server, params: types.ExecuteCommandParams) -> Json:
    """Apply an offer as one change that one undo takes back."""
    return await _applied(ls, _offer_of(ls, params), needs_confirmation=False)


async def preview_command(ls: Server, params: types.ExecuteCommandParams) -> Json:
    """What an offer would make of the files as they are now. Raises WorkError, and TextChangedError where it no longer
    holds."""
    offer = _offer_of(ls, params)
    files = await changed_files(ls, offer.choice, offer.given)
    return {**_result("offered", _summary(offer), offer.report, offer), "files": files}


def _offer_of(ls: Server, params: types.ExecuteCommandParams) -> Offer:
    argument = argument_of(params)
    offer = ls.offers.find(argument.get("offer"), argument.get("candidate"))
    if offer is None:
        raise WorkError(_GONE)
    return offer


async def show_report(ls: Server) -> None:
    """Open the last report where the client can show a document; else say where it is."""
    report = ls.last_report
    if report is None:
        ls.message("There is no report yet: run Optimize, Reduce memory, Fix or Verify on a kernel first.")
        return
    shown = types.ShowDocumentParams(uri=uri_of(str(report)), take_focus=True)
    await ls.show(shown, f"The report is in {report}.")


async def _searched(ls: Server, goal: str, params: types.ExecuteCommandParams) -> Offer | Json:
    """What was found, or the result where there is nothing to offer. Raises WorkError."""
    if goal in DOCUMENT_TITLES:
        document, request = await document_request(ls, goal, params)
        return await _found(ls, params, document, request, goal, DOCUMENT_TITLES[goal])
    argument = argument_of(params)
    document, kernel = await asked_for(ls, params)
    request = {**ls.documents.request(document), "kernel": kernel, "goal": goal}
    words = argument.get("wish")
    if words is not None and (not isinstance(words, str) or not 0 < len(words.strip()) <= _LONGEST_WISH):
        raise WorkError(f"A wish is a text of at most {_LONGEST_WISH} characters.")
    if selection := selected(ls, document, argument):
        request["selection"] = selection
    if words is not None:
        request["wish"] = [words]
        offer = await _to_continue(ls, argument, document.uri, kernel)
        if offer is not None:
            if "selection" in request and offer.given[document.path] != request["text"]:
                raise WorkError("The text has changed since the offer: leave the selection out, or run Optimize again.")
            request |= {"text": offer.given[document.path], "open": offer.given, "goal": offer.goal}
            request |= {"wish": [*offer.wish, words], "start": {"outcome": offer.answer["outcome"], **offer.choice}}
    return await _found(ls, params, document, request, "optimize", _TITLES[request["goal"]].format(kernel))


async def _found(
    ls: Server, params: types.ExecuteCommandParams, document: Document, request: Json, job: str, title: str
) -> Offer | Json:
    """What a job finds, as an offer, with its report. Raises WorkError."""
    seconds = ls.documents.settings_of(document).optimize_seconds + _MARGIN_SECONDS
    try:
        answer = await job_on_text(ls, params, request, job, title, seconds)
    except StoppedError:
        return _result("cancelled", f"{title} was stopped; nothing was changed.")
    outcome = answer["outcome"]
    page = outcome_report(outcome, document.path)
    report = await asyncio.to_thread(written_report, page, document.path, outcome["kernel"], outcome["goal"])
    ls.last_report = report
    if answer["choices"]:
        return ls.offers.keep(document.uri, request["open"], answer, request.get("wish", []), report)
    summary = f"{outcome['kernel']}: {outcome['reason']}"
    ls.message(f"{summary}{_where(report)}")
    return _result("nothing", summary, report, outcome=outcome)


async def _to_continue(ls: Server, argument: Mapping[str, Any], uri: str, kernel: str) -> Offer | None:
    """The offer that an argument names, or the last one for the kernel if it still holds. Raises WorkError."""
    offer = ls.offers.find(argument["offer"]) if "offer" in argument else ls.offers.last(uri, kernel)
    if offer is None and "offer" in argument:
        raise WorkError(_GONE)
    try:
        if offer is not None:
            await workspace_edit(ls, offer.choice, offer.given)
    except TextChangedError as error:
        if "offer" in argument:
            raise WorkError(str(error)) from None
        return None
    return offer


async def _applied(ls: Server, offer: Offer, *, needs_confirmation: bool) -> Json:
    summary, where = _summary(offer), _where(offer.report)
    refusal = await _apply(ls, offer, needs_confirmation=needs_confirmation)
    if refusal:
        ls.message(f"Not applied: {refusal} {summary}.{where}", types.MessageType.Warning)
        return _result("not-applied", refusal, offer.report, offer)
    ls.offers.forget(offer.uri, offer.kernel)
    ls.message(f"{summary}.{where}")
    return _result("applied", summary, offer.report, offer)


async def _apply(ls: Server, offer: Offer, *, needs_confirmation: bool) -> str:
    """Why the edit was not applied; "" where it was."""
    annotation = annotation_of(offer.choice, needs_confirmation=needs_confirmation)
    try:
        edit = await workspace_edit(ls, offer.choice, offer.given, annotation)
    except TextChangedError as error:
        return str(error)
    seconds = _PREVIEW_SECONDS if needs_confirmation and edit.change_annotations else APPLY_SECONDS
    unsaid = "It was not confirmed." if needs_confirmation else ""
    return await why_not_applied(ls, edit, annotation.label, seconds, unsaid)


def _summary(offer: Offer) -> str:
    choice = offer.choice
    return f"{choice['title']} ({choice['badge']})"


def _where(report: Path | None) -> str:
    return f" Report: {report}" if report is not None else ""


def _result(
    status: str,
    message: str,
    report: Path | None = None,
    offer: Offer | None = None,
    outcome: Mapping[str, Any] | None = None,
) -> Json:
    return {
        "status": status,
        "message": message,
        "report": str(report) if report else None,
        "outcome": offer.answer["outcome"] if offer is not None else outcome,
        "offer": offer.to_json() if offer is not None else None,
    }
