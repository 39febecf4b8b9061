"""nvcc in the background: after a pause in typing or a save, of the newest text, in a process of its own.

A document has one compilation at most: an edit ends it. What comes of it are remarks (`toolchain.remarks`), which edits
carry along, and a build (`editor.build`), whose numbers are shown as long as the text is the one that was compiled.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from lsprotocol import types

from warpwright.editor.build import build_of, is_compiled
from warpwright.lsp.progress import StoppedError, with_progress
from warpwright.lsp.publish_diagnostics import refresh
from warpwright.lsp.ready import get_ready
from warpwright.lsp.work import WorkError
from warpwright.progress import Progress, silent
from warpwright.toolchain.remarks import Remark

if TYPE_CHECKING:
    from collections.abc import Iterable

    from warpwright.lsp.documents import Document
    from warpwright.lsp.server import Server

log = logging.getLogger(__name__)

PAUSE_SECONDS = 0.6
"""Without a key, after which a text is taken to be worth compiling."""
PROGRESS_SECONDS = 1.0
_MARGIN_SECONDS = 15.0  # for what is not nvcc: the process's start, hashing, a cancel

Json = dict[str, Any]


def document_opened(ls: Server, document: Document) -> None:
    _start(ls, document, PAUSE_SECONDS)


def document_edited(ls: Server, document: Document) -> None:
    """The present compilation is of an older text; the next one waits for a pause, or for the save."""
    if ls.documents.settings_of(document).compile == "onPause":
        _start(ls, document, PAUSE_SECONDS)
    else:
        stop(document)
    includes_changed(ls, ls.documents.includers(document.path))


def document_saved(ls: Server, document: Document) -> None:
    _start(ls, document, 0.0)
    includes_changed(ls, ls.documents.includers(document.path), 0.0)


def includes_changed(ls: Server, documents: Iterable[Document], pause: float = PAUSE_SECONDS) -> None:
    """What these documents include, or the flags that they are compiled with, changed."""
    for document in documents:
        if document.build is not None:
            document.build = replace(document.build, is_stale=True)
        _start(ls, document, pause)


def stop(document: Document) -> None:
    if document.compilation is not None:
        document.compilation.cancel()
        document.compilation = None


def _start(ls: Server, document: Document, pause: float) -> None:
    stop(document)
    if ls.documents.settings_of(document).compile == "off":
        document.remarks, document.build = (), None
    elif is_compiled(document.path):
        document.compilation = ls.in_background(_compile(ls, document, pause))


async def _compile(ls: Server, document: Document, pause: float) -> None:
    """Compile the text that is newest after a pause. Cancelled when it is no longer the newest."""
    await asyncio.sleep(pause)
    analysis = await ls.documents.analysed(document)
    if analysis.skipped:
        return
    text = document.text.data
    request = ls.documents.request(document)
    try:
        answer = await _answer(ls, document, request)
    except StoppedError:
        return
    except WorkError as error:
        _tell_once(ls, f"nvcc does not run in the background: {error}")
        return
    _take(ls, document, text, answer)
    if answer["status"] == "compiled":
        get_ready(ls, analysis)
        await _add_lines(ls, document, request)


async def _add_lines(ls: Server, document: Document, request: Json) -> None:
    """Let the build know what each line became. What hinders it is said where somebody asks for the machine code."""
    from warpwright.toolchain.machine_lines import read_lines

    seconds = ls.documents.settings_of(document).compile_seconds + _MARGIN_SECONDS
    try:
        answer = await ls.compiles.run("lines", request, silent, seconds)
    except WorkError as error:
        log.info("no machine code of %s: %s", document.path, error)
        return
    lines = await asyncio.to_thread(read_lines, answer["lines"])
    if document.build is not None:
        document.build = replace(document.build, lines=lines)


def _take(ls: Server, document: Document, text: bytes, answer: Json) -> None:
    """Show what the compiler said of `text`, which is the document's own: an edit would have ended this."""
    status = answer["status"]
    for sentence in answer["refused"]:
        _tell_once(ls, sentence, types.MessageType.Info)
    if status == "missing":
        _tell_once(ls, f"{answer['reason']} Until then what a compiler says is not shown.", types.MessageType.Info)
        return
    if status == "failed":
        _tell_once(ls, f"nvcc does not run in the background: {answer['reason']}")
    document.remarks = tuple(map(Remark.from_json, answer["remarks"]))
    if status == "compiled":
        document.build = build_of(answer, text)
    document.revision += 1
    refresh(ls, [document])


async def _answer(ls: Server, document: Document, request: Json) -> Json:
    """The compiler's process's answer; the user sees that it is under way once it takes its time."""
    settings = ls.documents.settings_of(document)
    seconds = settings.compile_seconds * max(1, len(settings.architectures)) + _MARGIN_SECONDS
    report: list[Progress] = [silent]

    def tell(message: str, share: float | None) -> None:
        report[0](message, share)

    job = asyncio.ensure_future(ls.compiles.run("compile", request, tell, seconds))
    job.add_done_callback(lambda done: done.cancelled() or done.exception())  # nobody may be waiting any more
    try:
        await asyncio.wait({job}, timeout=PROGRESS_SECONDS)
        if job.done():
            answer: Json = job.result()
            return answer

        async def shown(progress: Progress) -> Json:
            report[0] = progress
            answer: Json = await job
            return answer

        return await with_progress(ls, f"Compiling {PurePath(document.path).name}", None, shown)
    finally:
        job.cancel()


def _tell_once(ls: Server, sentence: str, kind: types.MessageType = types.MessageType.Warning) -> None:
    """What keeps one document from being compiled keeps others too, and comes again with every pause."""
    log.info("%s", sentence)
    if sentence not in ls.told:
        ls.told.add(sentence)
        ls.message(sentence, kind)
