"""workspace/diagnostic: findings of files that are not open, piece by piece, from a process of their own.

A client asks again as soon as it has its answer. The first answer lets the findings of an opened document come first;
from the second question on the answer waits for a change: of a file, the settings, the folders or what is open.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from zlib import crc32

from lsprotocol import types

from warpwright.editor.check_job import cuda_files
from warpwright.editor.diagnostics import SOURCE
from warpwright.editor.settings import settings_json
from warpwright.lsp.convert import SEVERITIES
from warpwright.lsp.documents import uri_of
from warpwright.lsp.progress import StoppedError, with_progress
from warpwright.lsp.work import WorkError
from warpwright.progress import Progress, silent
from warpwright.rules.base import Severity
from warpwright.syntax.encoding import encoded
from warpwright.syntax.stamp import stamp_of

if TYPE_CHECKING:
    from warpwright.lsp.folders import Folders
    from warpwright.lsp.server import Server

log = logging.getLogger(__name__)
Json = dict[str, Any]
Report = types.WorkspaceFullDocumentDiagnosticReport | types.WorkspaceUnchangedDocumentDiagnosticReport

FIRST_SECONDS = 2.0
"""After a start, in which the processors are left to the first findings of what a person opens."""
BATCH = 8
"""Files after which their findings are sent, and a cancel is seen."""
_BATCH_SECONDS = 300.0


@dataclass(slots=True)
class WorkspaceChanges:
    """Whether something changed since the last answer. `headers` counts changes that may concern any file."""

    happened: asyncio.Event = field(default_factory=asyncio.Event)
    headers: int = 0
    was_asked: bool = False

    def note(self, *, of_all: bool) -> None:
        self.headers += of_all
        self.happened.set()


@dataclass(frozen=True, slots=True)
class _File:
    """A file to look at; `result` changes with all that its findings depend on."""

    path: str
    settings: Json
    result: str


def register(server: Server) -> None:
    server.feature(types.WORKSPACE_DIAGNOSTIC)(workspace_diagnostic)


async def workspace_diagnostic(ls: Server, params: types.WorkspaceDiagnosticParams) -> types.WorkspaceDiagnosticReport:
    """All reports, or, for a client that takes them piece by piece, the last ones."""
    changes = ls.workspace_changes
    if changes.was_asked:
        await changes.happened.wait()
    else:
        with suppress(TimeoutError):
            async with asyncio.timeout(FIRST_SECONDS):
                await ls.documents.first_analysis.wait()
    changes.happened.clear()
    changes.was_asked = True
    try:
        return types.WorkspaceDiagnosticReport(await _reports(ls, params))
    except asyncio.CancelledError:
        changes.happened.set()  # the client has no answer yet
        raise
    except StoppedError:
        log.info("not all closed files were checked: it was stopped")
        return types.WorkspaceDiagnosticReport([])
    except WorkError as error:
        ls.message(f"Not all closed files were checked: {error}", types.MessageType.Warning)
        return types.WorkspaceDiagnosticReport([])


async def _reports(ls: Server, params: types.WorkspaceDiagnosticParams) -> list[Report]:
    """The reports that were not sent piece by piece."""
    opened = frozenset(document.path for document in ls.documents)
    listed = await asyncio.to_thread(_listed, ls.documents.folders, opened, ls.workspace_changes.headers)
    for sentence in listed.limits:
        if sentence not in ls.told:
            ls.told.add(sentence)
            ls.window_log_message(types.LogMessageParams(types.MessageType.Info, sentence))
    known = {each.uri: each.value for each in params.previous_result_ids}
    present = {uri_of(file.path): file for file in listed.files}
    fresh = [file for uri, file in present.items() if known.get(uri) != file.result]
    reports: list[Report] = [
        types.WorkspaceUnchangedDocumentDiagnosticReport(uri=uri, result_id=present[uri].result)
        if uri in present
        else types.WorkspaceFullDocumentDiagnosticReport(uri=uri, items=[])
        for uri, result in known.items()
        if uri not in present or present[uri].result == result
    ]

    async def work(progress: Progress) -> list[Report]:
        left = reports
        for start in range(0, len(fresh), BATCH):
            progress(f"{start} of {len(fresh)} files", start / len(fresh))
            left = [*left, *await _checked(ls, fresh[start : start + BATCH])]
            if params.partial_result_token is not None:
                part = types.WorkspaceDiagnosticReportPartialResult(items=left)
                ls.protocol.notify(types.PROGRESS, types.ProgressParams(params.partial_result_token, part))
                left = []
        return left

    return await with_progress(ls, "Looking at kernels", params.work_done_token, work) if fresh else reports


@dataclass(frozen=True, slots=True)
class _Listed:
    files: list[_File]
    limits: list[str]


def _listed(folders: Folders, opened: frozenset[str], headers: int) -> _Listed:
    """What is to be looked at: of what is open the client asks document by document. Reads the disk."""
    found: dict[str, _File] = {}
    limits: list[str] = []
    for folder in folders.settings:
        most = folders.settings_of(str(folder / "any.cu")).workspace_files
        paths, has_more = cuda_files(folder, most) if most else ([], False)
        if has_more:
            limits.append(f"{folder} has more files than are analysed unopened: the first {len(paths)} .cu files are.")
        for path in map(str, paths):
            if path not in opened and (stamp := stamp_of(path)):
                settings = settings_json(folders.settings_of(path))
                judged = crc32(encoded(repr(settings)))
                found[path] = _File(path, settings, f"{'.'.join(map(str, stamp))}.{judged}.{headers}")
    return _Listed(list(found.values()), limits)


async def _checked(ls: Server, files: Sequence[_File]) -> list[Report]:
    asked = [{"path": file.path, "settings": file.settings} for file in files]
    request = {"files": asked, "encoding": ls.encoding}
    answer = await ls.checks.run("check", request, silent, _BATCH_SECONDS)
    return [
        types.WorkspaceFullDocumentDiagnosticReport(
            uri=uri_of(file.path), items=[_diagnostic(each) for each in found], result_id=file.result
        )
        for file, found in zip(files, answer["files"], strict=True)
    ]


def _diagnostic(found: Json) -> types.Diagnostic:
    return types.Diagnostic(
        range=_range(found["place"]),
        severity=SEVERITIES[Severity(found["severity"])],
        code=found["rule"],
        code_description=types.CodeDescription(href=found["page"]),
        source=SOURCE,
        message=found["message"],
        related_information=[
            types.DiagnosticRelatedInformation(
                types.Location(uri_of(each["path"]), _range(each["place"])), each["message"]
            )
            for each in found["related"]
        ]
        or None,
        data=found["data"],
    )


def _range(place: Sequence[int]) -> types.Range:
    line, character, end_line, end_character = place
    return types.Range(types.Position(line, character), types.Position(end_line, end_character))
