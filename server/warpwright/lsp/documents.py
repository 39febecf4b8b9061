"""The open documents and their analyses.

Analysis runs in threads (`turns`): tens of milliseconds of Python, during which the loop goes on answering
(`server.py` shortens the interpreter's switch interval for that). A document that changes while it is analysed is
analysed once more when that is done, not once for every key; where that takes long, at once.
"""

from __future__ import annotations

import asyncio
import gc
import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any, TypeVar

from pygls.uris import from_fs_path, to_fs_path

from warpwright.editor.analysis import Analysis, analyse, skipped, unreadable
from warpwright.editor.build import Build
from warpwright.editor.includers import includer_of
from warpwright.editor.includes import open_first
from warpwright.editor.settings import Settings, settings_json
from warpwright.editor.stoppable import TookTooLongError
from warpwright.editor.text import Text, edit_between
from warpwright.facts.cache import KernelCache
from warpwright.lsp.folders import Folders
from warpwright.lsp.turns import OvertakenError, Turns
from warpwright.rules.registry import all_rules
from warpwright.syntax.encoding import decoded
from warpwright.syntax.nodes import forget_nodes
from warpwright.syntax.source import Source
from warpwright.toolchain.remarks import Remark, carried

log = logging.getLogger(__name__)
T = TypeVar("T")


@dataclass(slots=True)
class Document:
    """One open document. `revision` grows with everything that makes its analysis stale: a change, other settings.

    `opening` tells this document from one that was open at the same address before. `remarks` are what the compiler
    said last, at its place in the present text; `build` is what it made last, of a text that may be an older one.
    """

    uri: str
    path: str
    version: int
    text: Text
    opening: int
    revision: int = 0
    is_open: bool = True
    analysis: Analysis | None = None
    analysed_revision: int = -1
    task: asyncio.Task[None] | None = field(default=None, repr=False)
    remarks: tuple[Remark, ...] = ()
    build: Build | None = field(default=None, repr=False)
    compilation: asyncio.Future[object] | None = field(default=None, repr=False)

    @property
    def is_current(self) -> bool:
        return self.analysis is not None and self.analysed_revision == self.revision


class Documents:
    """What is open. Used from the loop's thread alone; only `_analysed` runs in others."""

    def __init__(self) -> None:
        self.folders = Folders()
        self.first_analysis = asyncio.Event()
        self._open: dict[str, Document] = {}
        self._turns = Turns()
        self._kernels = KernelCache()
        self._openings = 0
        self._told_skipped: set[str] = set()

    def __iter__(self) -> Iterator[Document]:
        return iter(tuple(self._open.values()))

    def get(self, uri: str) -> Document | None:
        return self._open.get(uri)

    def at_path(self, path: str) -> Document | None:
        return next((document for document in self if document.path == path), None)

    def open(self, uri: str, version: int, text: str) -> Document:
        self.close(uri)
        self._openings += 1
        document = Document(uri, path_of(uri), version, Text.of(text), self._openings)
        self._open[uri] = document
        return document

    def close(self, uri: str) -> Document | None:
        document = self._open.pop(uri, None)
        if document is not None:
            document.is_open = False
        return document

    def set_text(self, document: Document, version: int, text: Text) -> None:
        if document.remarks:
            document.remarks = carried(document.remarks, edit_between(document.text.data, text.data))
        document.version = version
        document.text = text
        document.revision += 1

    def set_folders(self, folders: Folders) -> bool:
        """Whether they differ from those before; if so every analysis is stale."""
        if folders == self.folders:
            return False
        self.folders = folders
        self.mark_all()
        return True

    def settings_of(self, document: Document) -> Settings:
        """The settings that hold for a document now."""
        return self.folders.settings_of(document.path)

    def mark_all(self) -> list[Document]:
        """Every document's analysis is stale from here on."""
        for document in self:
            document.revision += 1
        return list(self)

    def mark_includers(self, path: str) -> list[Document]:
        """The documents that include a file which has changed; their analyses are stale from here on."""
        includers = self.includers(path)
        for document in includers:
            document.revision += 1
        return includers

    def includers(self, path: str) -> list[Document]:
        """The documents that were seen to include a file."""
        return [d for d in self if d.path != path and d.analysis is not None and path in d.analysis.program.sources]

    def request(self, document: Document) -> dict[str, Any]:
        """A document, its settings and what else is open, for a process that has to see what the user sees."""
        seen = [d for d in self if d is document or not unreadable(d.text.data)]
        opened = {d.path: decoded(d.text.data) for d in seen}
        settings = settings_json(self.settings_of(document))
        return {"path": document.path, "text": opened[document.path], "open": opened, "settings": settings}

    async def analysed(self, document: Document) -> Analysis:
        """The analysis of the newest text of a document, made where it is missing; of a closed one the last."""
        while not document.is_current:
            if not document.is_open:
                return document.analysis or skipped(Source(document.path, document.text.data), "it was closed")
            if document.task is None:
                document.task = asyncio.ensure_future(self._analyse(document))
            await asyncio.shield(document.task)
        assert document.analysis is not None
        return document.analysis

    async def get_ready(self) -> None:
        """Load what the first analysis needs while there is nothing to analyse yet."""
        await self._turns.run(_prepare)

    async def in_thread(self, function: Callable[[], T]) -> T:
        """Run something that reads an analysis and takes more than a moment, such as proposing rewrites.

        Raises what it raises, and TookTooLongError.
        """
        return await self._turns.run(function)

    def shut_down(self) -> None:
        self._turns.stop()

    async def _analyse(self, document: Document) -> None:
        revision = document.revision
        before = document.analysis.source if document.analysis is not None else None
        data = document.text.data
        others = {other.path: _known_source(other) for other in self if other is not document}
        try:
            settings = self.settings_of(document)
            work = partial(_analysed, document.path, data, before, others, settings, self._kernels, document.build)
            analysis = await self._turns.run(work, lambda: document.is_open and document.revision == revision)
        except OvertakenError:
            return
        except TookTooLongError as error:
            log.warning("%s is not analysed: %s", document.path, error)
            analysis = skipped(Source(document.path, data), str(error))
        except Exception:
            log.exception("%s could not be analysed", document.path)
            analysis = skipped(Source(document.path, data), "its analysis failed")
        finally:
            document.task = None
        document.analysis = analysis
        document.analysed_revision = revision
        self.first_analysis.set()
        if unreadable(data) and document.uri not in self._told_skipped:
            self._told_skipped.add(document.uri)
            log.warning("%s is not analysed: %s", document.path, analysis.skipped)


_GARBAGE = (50_000, 5, 4)
"""An analysis makes some 100,000 objects that hold others, and few of them in circles: to look for garbage every 700,
as is usual, takes a seventh of its time."""


@cache
def _prepare() -> None:
    """Load what the first analysis needs, and leave it out of garbage collection: it is never garbage, and to look
    through all of it takes longer than an analysis."""
    all_rules()
    gc.freeze()
    gc.set_threshold(*_GARBAGE)
    gc.enable()


def path_of(uri: str) -> str:
    """The path of a document; the address itself for one that is in no file, such as `untitled:Untitled-1`."""
    try:
        return to_fs_path(uri) or uri
    except ValueError:
        return uri


def uri_of(path: str) -> str:
    return from_fs_path(path) or path


def _known_source(document: Document) -> Source:
    """The parsed text of another open document, or the text alone: whoever includes it parses it then."""
    if document.is_current and document.analysis is not None:
        return document.analysis.source
    return Source(document.path, document.text.data)


def _analysed(
    path: str,
    data: bytes,
    before: Source | None,
    others: Mapping[str, Source],
    settings: Settings,
    kernels: KernelCache,
    build: Build | None,
) -> Analysis:
    """Parse what changed since `before`, and follow the kernels for which something changed. In a thread of its own."""
    _prepare()
    forget_nodes()  # of the version before
    source = Source(path, data)
    if before is not None and not unreadable(data) and not unreadable(before.data):
        edit = edit_between(before.data, data)
        source = before if edit is None else before.edited([edit])
    include = open_first({**others, path: source})
    return analyse(source, include, settings, kernels, build, includer_of(source, others), others)
