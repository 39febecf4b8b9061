"""textDocument/inlineCompletion: ghost text below a comment that asks for a kernel, in words or as a formula.

What was shown before for the same comment is shown again at once, and what is left of it while the user types it.
Else one request is under way at a time: a newer one, an edit, a cancel and the time limit each stop it. The kernel is
written, compiled and compared with its formula in a process of its own; nothing else waits for it. What takes longer
than a moment shows progress. While nothing is asked for, the other sizes of what was shown are tried, its alternatives
are written, and the kernel for the next comment of the file, as it is once what was shown is accepted.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from lsprotocol import types

from warpwright.cuda.extension.near import is_of_others
from warpwright.lsp.convert import position
from warpwright.lsp.guard import guarded
from warpwright.lsp.progress import StoppedError, with_progress
from warpwright.lsp.shown_text import ShownText
from warpwright.lsp.work import OnProgress, Worker, WorkError
from warpwright.missing import Missing
from warpwright.progress import Progress, silent

if TYPE_CHECKING:
    from warpwright.editor.ghost_request import GhostRequest
    from warpwright.lsp.server import Server
    from warpwright.syntax.source import Source

log = logging.getLogger(__name__)

MOST_LEFT = 16
"""Jobs that are left for when nothing is asked for."""
HINT_SECONDS = 0.4
"""Before progress is shown."""
MOST_REST_SECONDS = 120.0
QUIET_SECONDS = 1.0
"""Without a request, before the sizes that are left are tried."""
PAUSE_SECONDS = 0.05
"""Without a newer request or an edit, before work begins that nobody asked for; what is kept is shown at once."""


def register(server: Server) -> None:
    server.feature(types.TEXT_DOCUMENT_INLINE_COMPLETION, types.InlineCompletionOptions())(inline_completion)


class GhostText:
    """The process that writes kernels, and the request that is under way."""

    def __init__(self) -> None:
        self.shown = ShownText()
        self._worker = Worker()
        self._job: asyncio.Task[Any] | None = None
        self._missing: set[str] = set()
        self._left: deque[tuple[str, str, Mapping[str, object]]] = deque(maxlen=MOST_LEFT)
        self._rest: asyncio.Task[None] | None = None

    async def texts(
        self, key: str, request: Mapping[str, object], pause: float, progress: OnProgress
    ) -> tuple[str, ...]:
        """The kernels for a request of the job "ghost", none where none may be shown; nothing begins before a
        `pause`, in which a newer request or an edit may come. What is shown is kept under `key` and how many were asked
        for, and what is left is done afterwards, as soon as nothing else is asked for."""
        self.stop()
        if self._rest is not None:
            self._rest.cancel()
        job = self._job = asyncio.ensure_future(self._written(request, pause, progress))
        try:
            await asyncio.wait({job})
        finally:
            job.cancel()
            if self._job is job:  # else a newer request sees to the rest
                self._rest = asyncio.ensure_future(self._do_rest())
        if job.cancelled():
            return ()
        if (error := job.exception()) is not None:
            log.info("no kernel is shown: %s", error)
            return ()
        answer = job.result()
        if (missing := answer["missing"]) and missing not in self._missing:
            self._missing.add(missing)
            log.warning("no kernel is written from these words: %s", missing)
        texts = tuple(map(str, answer["texts"]))
        if texts:
            self.shown.keep(kept_as(key, request), texts)
            self._left.append(("ghostRest", kept_as(key, request), {"left": answer["left"]}))
            if answer["others"]:
                self._left.append(("ghost", key, {**request, "most": _most_readings()}))
        return texts

    def follow(self, text: str, request: Mapping[str, object]) -> None:
        """Have the kernel written that is asked for next in a file, once nothing else is asked for, as it is wanted
        when `text` is accepted."""
        others = [each for each in self._left if each[0] != "ghostNext" or each[2]["path"] != request["path"]]
        self._left.clear()
        self._left.extend([*others, ("ghostNext", "", {**request, "shown": text})])
        if self._job is None or self._job.done():
            if self._rest is not None:
                self._rest.cancel()
            self._rest = asyncio.ensure_future(self._do_rest())

    def keep_next(self, answer: Mapping[str, Any], request: Mapping[str, object]) -> None:
        key = kept_as(key_of(answer["key"], request), {"most": 1})
        self.shown.keep(key, tuple(map(str, answer["texts"])))
        self._left.append(("ghostRest", key, {"left": answer["left"]}))

    async def _do_rest(self) -> None:
        """Try the sizes that are left of what was shown, write its alternatives and what is asked for next."""
        await asyncio.sleep(QUIET_SECONDS)
        while self._left:
            job, key, request = self._left[0]
            try:
                answer = await self._worker.run(job, request, silent, MOST_REST_SECONDS)
            except WorkError as error:
                log.info("what was left of ghost text was not done: %s", error)
            else:
                if job == "ghost" and answer["texts"]:
                    self.shown.keep(kept_as(key, request), tuple(map(str, answer["texts"])))
                elif job == "ghostNext" and answer["texts"]:
                    self.keep_next(answer, request)
                elif job == "ghostRest" and answer["wrong"]:
                    log.error("a kernel that was shown is wrong at a size that was left: %s", answer["wrong"])
                    self.shown.forget(key)
            self._left.popleft()

    async def _written(self, request: Mapping[str, object], pause: float, progress: OnProgress) -> Any:
        await asyncio.sleep(pause)
        seconds = request["seconds"]
        assert isinstance(seconds, int | float)
        return await self._worker.run("ghost", request, progress, seconds)

    def get_ready(self, model: str) -> None:
        """Have the process load the model in a moment, if nothing else is asked of it first."""
        if self._job is None and self._rest is None:
            self._rest = asyncio.ensure_future(self._loaded(model))

    async def _loaded(self, model: str) -> None:
        await asyncio.sleep(QUIET_SECONDS)
        if await asyncio.to_thread(_lacks, model):
            return
        try:
            await self._worker.run("ghostReady", {"model": model}, silent, MOST_REST_SECONDS)
        except WorkError as error:
            log.info("the model was not loaded: %s", error)

    def stop(self) -> None:
        """End the request that is under way: what it would write is no longer wanted."""
        if self._job is not None:
            self._job.cancel()

    async def close(self) -> None:
        self.stop()
        if self._rest is not None:
            self._rest.cancel()
        await self._worker.close()


def _lacks(model: str) -> bool:
    """Whether a model is not there. Loads what reads a request, too, so that the first one does not wait for it."""
    from warpwright.assist.opening import named_model
    from warpwright.editor import ghost_request  # noqa: F401

    return isinstance(named_model(model or None), Missing)


@guarded(lambda: None)
async def inline_completion(ls: Server, params: types.InlineCompletionParams) -> types.InlineCompletionList | None:
    """Unasked, the likeliest kernel; who asks for more, as VS Code does to cycle through them, gets all."""
    document = ls.documents.get(params.text_document.uri)
    if document is None or is_of_others(document.path):
        return None
    if not (settings := ls.documents.settings_of(document)).ghost_text:
        return None
    version, data = document.version, document.text.data
    offset = document.text.offset(position(params.position), ls.encoding)
    shown = ls.ghost_text.shown
    if rest := shown.typed_through(document.path, data, offset):
        return _items(rest, params)
    analysis = await ls.documents.analysed(document)
    if document.version != version or analysis.skipped:
        return None
    is_asked = params.context.trigger_kind == types.InlineCompletionTriggerKind.Invoked
    wanted = await ls.documents.in_thread(lambda: _wanted(analysis.source, offset, is_asked))
    if wanted is None or document.version != version:
        return None
    most = _most_readings() if is_asked else 1
    asked = {"at": offset, "most": most, "is_meant": is_asked, "seconds": settings.ghost_text_seconds}
    request = {**ls.documents.request(document), **asked}
    key = key_of(wanted.key(analysis.source, offset), request)
    texts = shown.find(kept_as(key, request))
    if not texts:
        said = _Said()
        hint = asyncio.ensure_future(_hint(ls, params.work_done_token, said))
        try:
            texts = await ls.ghost_text.texts(key, request, 0 if is_asked else PAUSE_SECONDS, said)
        finally:
            hint.cancel()
    if not texts or document.version != version:
        return None
    shown.show(document.path, data, offset, texts)
    ls.ghost_text.follow(texts[0], request)
    return _items(texts, params)


def _most_readings() -> int:
    from warpwright.assist.readings import MOST_READINGS

    return MOST_READINGS


def _wanted(source: Source, offset: int, is_asked: bool) -> GhostRequest | None:
    from warpwright.editor.ghost_request import ghost_request  # not before the first findings of an opened file

    return ghost_request(source, offset, is_asked)


class _Said:
    """What the process that writes says of its progress, for whoever shows it."""

    def __init__(self) -> None:
        self.show: OnProgress = silent

    def __call__(self, text: str, share: float | None) -> None:
        self.show(text, share)


async def _hint(ls: Server, token: types.ProgressToken | None, said: _Said) -> None:
    """Progress for a kernel that is not there in a moment, until it is cancelled; who stops it, stops the writing."""

    async def shown(progress: Progress) -> None:
        said.show = progress
        await asyncio.Event().wait()

    await asyncio.sleep(HINT_SECONDS)
    try:
        await with_progress(ls, "Writing a kernel", token, shown)
    except StoppedError:
        ls.ghost_text.stop()


def key_of(wanted: str, request: Mapping[str, object]) -> str:
    """What the texts for a request depend on: what is `wanted`, and the settings."""
    return repr((wanted, request["settings"]))


def kept_as(key: str, request: Mapping[str, object]) -> str:
    """The key of what is shown for a request: which one, and how many were asked for."""
    return f"{request['most']} {key}"


def _items(texts: Iterable[str], params: types.InlineCompletionParams) -> types.InlineCompletionList:
    at = types.Range(start=params.position, end=params.position)
    return types.InlineCompletionList([types.InlineCompletionItem(insert_text=text, range=at) for text in texts])
