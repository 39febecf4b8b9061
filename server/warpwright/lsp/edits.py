"""A worker's edits on their way to the client: for the text that they were made for, or moved to the present one."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zlib import crc32

from lsprotocol import types
from pygls.exceptions import JsonRpcException

from warpwright.editor.rebase import Edits, rebased
from warpwright.editor.text import Text
from warpwright.lsp.convert import to_edits
from warpwright.syntax.edits import TextEdit, apply_edits
from warpwright.syntax.encoding import encoded, invalid_utf8_offset, shown_bytes
from warpwright.syntax.source import SourceError, read_source

if TYPE_CHECKING:
    from warpwright.lsp.server import Server

APPLY_SECONDS = 60.0
_ANNOTATION = "warpwright"


class TextChangedError(Exception):
    """The text is no longer one that the edits hold for; the message is one sentence for the user."""


async def workspace_edit(
    ls: Server,
    answer: Mapping[str, Any],
    given: Mapping[str, str],
    annotation: types.ChangeAnnotation | None = None,
) -> types.WorkspaceEdit:
    """A job's edits as one change of the workspace, with versions where the client knows `documentChanges`.

    `given` is what was open when the job was asked, by path. Raises TextChangedError as `moved_edits` does.
    """
    files = [
        (each.uri, each.version, to_edits(each.text, each.edits, ls.encoding))
        for each in await moved_edits(ls, answer, given)
    ]
    return edit_of_files(ls, files, annotation)


@dataclass(frozen=True, slots=True)
class FileEdits:
    """Edits of the present text of one file; `version` is None where it is not open."""

    uri: str
    version: int | None
    text: Text
    edits: Sequence[TextEdit]


async def moved_edits(ls: Server, answer: Mapping[str, Any], given: Mapping[str, str]) -> list[FileEdits]:
    """A job's edits file by file. Where the user has edited something since that does not matter to the kernel they are
    moved. Raises TextChangedError where they cannot be, and for a file that is not open and not UTF-8: an editor would
    write it otherwise."""
    before = {path: _given(path, given, crc) for path, crc in answer["read"].items()}
    edits = {path: [TextEdit(*edit) for edit in made] for path, made in answer["edits"].items()}
    while True:
        documents = {path: ls.documents.at_path(path) for path in before}
        texts = {path: document.text for path, document in documents.items() if document is not None}
        moved = await ls.documents.in_thread(lambda: _moved(answer["kernels"], before, texts, edits))  # noqa: B023
        if all(document is None or document.text is texts[path] for path, document in documents.items()):
            break
    files: list[FileEdits] = []
    for path, made in moved.items():
        document = documents[path]
        text = document.text if document is not None else _on_disk(path)
        version = document.version if document is not None else None
        if document is None and made and invalid_utf8_offset(text.data) is not None:
            raise TextChangedError(
                f"{Path(path).name} is not UTF-8 and not open: open it in its encoding, then try again."
            )
        files.append(FileEdits(ls.uri_of(path), version, text, made))
    return files


async def changed_files(ls: Server, answer: Mapping[str, Any], given: Mapping[str, str]) -> list[dict[str, str]]:
    """What each file would be with a job's edits: {"uri", "text"}. Raises TextChangedError as `moved_edits` does."""
    files = await moved_edits(ls, answer, given)
    texts = (shown_bytes(apply_edits(each.text.data, each.edits)) for each in files)
    return [{"uri": each.uri, "text": text} for each, text in zip(files, texts, strict=True)]


async def why_not_applied(ls: Server, edit: types.WorkspaceEdit, label: str, seconds: float, unsaid: str = "") -> str:
    """Ask the client to apply an edit: "" where it did, else why it did not; `unsaid` where it does not say."""
    asked = types.ApplyWorkspaceEditParams(edit=edit, label=label)
    try:
        applied = await asyncio.wait_for(ls.workspace_apply_edit_async(asked), seconds)
    except TimeoutError:
        return "The editor did not answer."
    except JsonRpcException as error:
        return f"The editor refused the edit: {error}."
    if applied.applied:
        return ""
    if unsaid and not applied.failure_reason:
        return unsaid
    return f"The editor refused the edit: {applied.failure_reason or 'it gave no reason'}."


def annotation_of(answer: Mapping[str, Any], *, needs_confirmation: bool) -> types.ChangeAnnotation:
    """What the client says of the change: its title with the badge, and the explanation. One that `needs_confirmation`
    is shown as a diff first, where the client can."""
    return types.ChangeAnnotation(
        label=f"{answer['title']} [{answer['badge']}]",
        needs_confirmation=needs_confirmation,
        description=answer["explanation"],
    )


def edit_of_files(
    ls: Server,
    files: Sequence[tuple[str, int | None, list[types.TextEdit]]],
    annotation: types.ChangeAnnotation | None = None,
) -> types.WorkspaceEdit:
    """Edits as (address, version, edits) in the form that the client knows; `annotation` is left out where it does not
    know them."""
    workspace = ls.client_capabilities.workspace
    known = workspace.workspace_edit if workspace else None
    if known is None or not known.document_changes:
        return types.WorkspaceEdit(changes={uri: edits for uri, _, edits in files})
    if known.change_annotation_support is None:
        annotation = None
    return types.WorkspaceEdit(
        document_changes=[
            types.TextDocumentEdit(
                types.OptionalVersionedTextDocumentIdentifier(uri=uri, version=version),
                [types.AnnotatedTextEdit(_ANNOTATION, e.range, e.new_text) for e in edits] if annotation else [*edits],
            )
            for uri, version, edits in files
        ],
        change_annotations={_ANNOTATION: annotation} if annotation else None,
    )


def _given(path: str, given: Mapping[str, str], crc: int) -> bytes:
    """What the job read of a file; one that was not open it read from disk, where nobody keeps the older text."""
    if path in given:
        return encoded(given[path])
    data = _on_disk(path).data
    if crc32(data) != crc:
        raise TextChangedError(f"{path} has changed meanwhile: run it again.")
    return data


def _moved(kernels: Sequence[str], before: Mapping[str, bytes], open_now: Mapping[str, Text], edits: Edits) -> Edits:
    """Where it is allowed for every kernel the edits are moved; to where does not depend on the kernel."""
    now = {path: open_now[path].data if path in open_now else _on_disk(path).data for path in before}
    moved = edits
    for kernel in kernels:
        answer = rebased(kernel, before, now, edits)
        if isinstance(answer, str):
            raise TextChangedError(answer)
        moved = answer
    return moved


def _on_disk(path: str) -> Text:
    try:
        return Text.of_bytes(read_source(path).data)
    except SourceError:
        raise TextChangedError(f"{path} can no longer be read: run it again.") from None
