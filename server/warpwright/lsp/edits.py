"""A worker's edits on their way to the client: for the very text that they were made for, or not at all."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from zlib import crc32

from lsprotocol import types

from warpwright.editor.text import Text
from warpwright.lsp.convert import to_edits
from warpwright.syntax.edits import TextEdit
from warpwright.syntax.source import SourceError, read_source

if TYPE_CHECKING:
    from warpwright.lsp.documents import Document
    from warpwright.lsp.server import Server


class TextChangedError(Exception):
    """The text is no longer the one that the edits were made for; the message names the file."""


def workspace_edit(ls: Server, answer: Mapping[str, Mapping[str, Any]]) -> types.WorkspaceEdit:
    """A worker's edits as one change of the workspace, with versions where the client knows `documentChanges`.

    Raises TextChangedError where a text has changed since.
    """
    files: list[tuple[str, int | None, list[types.TextEdit]]] = []
    for path, made in answer.items():
        document = ls.documents.at_path(path)
        text = _text(path, document)
        if text is None or crc32(text.data) != made["crc32"]:
            raise TextChangedError(f"{path} has changed meanwhile.")
        edits = to_edits(text, [TextEdit(*edit) for edit in made["edits"]], ls.encoding)
        files.append((ls.uri_of(path), document.version if document is not None else None, edits))
    return edit_of_files(ls, files)


def edit_of_files(ls: Server, files: list[tuple[str, int | None, list[types.TextEdit]]]) -> types.WorkspaceEdit:
    """Edits as (address, version, edits) in the form that the client knows."""
    workspace = ls.client_capabilities.workspace
    if not (workspace and workspace.workspace_edit and workspace.workspace_edit.document_changes):
        return types.WorkspaceEdit(changes={uri: edits for uri, _, edits in files})
    return types.WorkspaceEdit(
        document_changes=[
            types.TextDocumentEdit(types.OptionalVersionedTextDocumentIdentifier(uri=uri, version=version), [*edits])
            for uri, version, edits in files
        ]
    )


def _text(path: str, document: Document | None) -> Text | None:
    if document is not None:
        return document.text
    try:
        return Text.of_bytes(read_source(path).data)
    except SourceError:
        return None
