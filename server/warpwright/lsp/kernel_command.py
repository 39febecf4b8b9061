"""What the commands on a kernel share: the argument that names it, the job in a process of its own, the file written.

The argument is {"uri", and "kernel" (its name), "position" or "range" (a selection)}; without these, the document's
only kernel.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lsprotocol import types

from warpwright.editor.actions import kernel_for, kernels_in, no_kernel
from warpwright.editor.report_file import report_name, written_text
from warpwright.editor.text import Position
from warpwright.lsp.edits import TextChangedError
from warpwright.lsp.progress import with_progress
from warpwright.lsp.work import WorkError
from warpwright.progress import Progress

if TYPE_CHECKING:
    from warpwright.editor.analysis import Analysis
    from warpwright.lsp.documents import Document
    from warpwright.lsp.server import Server

Json = dict[str, Any]
Command = Callable[[types.ExecuteCommandParams], Awaitable[Json]]


def or_failed(server: Server, command: Command, result: Callable[[str, str], Json]) -> Command:
    """The command, of which a failure is a message for the user and the result "failed"."""

    async def run(params: types.ExecuteCommandParams) -> Json:
        try:
            return await command(params)
        except (WorkError, TextChangedError) as error:
            server.message(str(error), types.MessageType.Warning)
            return result("failed", str(error))

    return run


def argument_of(params: types.ExecuteCommandParams) -> Mapping[str, Any]:
    """The command's argument. Raises WorkError."""
    argument = params.arguments[0] if params.arguments else None
    if not isinstance(argument, Mapping):
        raise WorkError('The command takes one argument: {"uri": ..., "kernel": ...}.')
    return argument


def document_of(ls: Server, argument: Mapping[str, Any]) -> Document:
    """The open document that an argument names. Raises WorkError."""
    document = ls.documents.get(str(argument.get("uri")))
    if document is None:
        raise WorkError(f"{argument.get('uri')} is not open.")
    return document


async def analysed(ls: Server, document: Document) -> Analysis:
    """The analysis of a document's newest text. Raises WorkError where nothing is said of it."""
    analysis = await ls.documents.analysed(document)
    if analysis.skipped:
        raise WorkError(f"The document was not analysed: {analysis.skipped}.")
    return analysis


async def asked_for(ls: Server, params: types.ExecuteCommandParams) -> tuple[Document, str]:
    """The open document and the kernel that a command's argument names. Raises WorkError."""
    argument = argument_of(params)
    document = document_of(ls, argument)
    analysis = await analysed(ls, document)
    selection = selected(ls, document, argument)
    offset = offset_of(ls, document, argument.get("position"))
    if selection is not None:
        touched = kernels_in(analysis, *selection)
        if len(touched) > 1:
            names = " and ".join(kernel.name for kernel in touched)
            raise WorkError(f"The selection spans {names}: select within one kernel.")
        offset = touched[0].span.start if touched else selection[0]
    name = argument.get("kernel")
    kernel = kernel_for(analysis, str(name) if name is not None else None, offset)
    if kernel is None:
        raise WorkError(no_kernel(analysis, str(name) if name is not None else None))
    return document, kernel.name


def selected(ls: Server, document: Document, argument: Mapping[str, Any]) -> tuple[int, int] | None:
    """The bytes of the present text that an argument's `range` covers; None where it has none, or an empty one."""
    place = argument.get("range")
    if not isinstance(place, Mapping):
        return None
    start, end = (offset_of(ls, document, place.get(side)) for side in ("start", "end"))
    return (start, end) if start is not None and end is not None and start < end else None


def offset_of(ls: Server, document: Document, place: object) -> int | None:
    """The byte of the present text at a position of the protocol; None where it is none."""
    if isinstance(place, Mapping) and isinstance(place.get("line"), int) and isinstance(place.get("character"), int):
        return document.text.offset(Position(place["line"], place["character"]), ls.encoding)
    return None


async def job_on_kernel(
    ls: Server,
    params: types.ExecuteCommandParams,
    document: Document,
    job: str,
    title: str,
    seconds: float,
    **asked: str,
) -> Json:
    """What a job of `editor.jobs` answers on an open document, under the client's progress.

    Raises WorkError, and StoppedError where the user stopped it.
    """
    return await job_on_text(ls, params, {**ls.documents.request(document), **asked}, job, title, seconds)


async def job_on_text(
    ls: Server, params: types.ExecuteCommandParams, request: Json, job: str, title: str, seconds: float
) -> Json:
    """The same on a text that was open when the request was made."""

    async def work(progress: Progress) -> Json:
        answer: Json = await ls.commands.run(job, request, progress, seconds)
        return answer

    return await with_progress(ls, title, params.work_done_token, work)


def written_report(page: str, path: str, kernel: str, what: str) -> Path | None:
    """The report as a file in the user's cache: one for each kernel and what was done, the last one written."""
    return written_text(report_name(path, kernel, f"{what}.md"), page)
