"""textDocument/didChange"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from lsprotocol import types

from warpwright.editor.text import Encoding, Text
from warpwright.lsp.background_compile import document_edited
from warpwright.lsp.convert import position
from warpwright.lsp.publish_diagnostics import document_changed

if TYPE_CHECKING:
    from collections.abc import Iterable

    from warpwright.lsp.documents import Document
    from warpwright.lsp.server import Server

log = logging.getLogger(__name__)


def register(server: Server) -> None:
    server.feature(types.TEXT_DOCUMENT_DID_CHANGE)(did_change)


def did_change(ls: Server, params: types.DidChangeTextDocumentParams) -> None:
    document = ls.documents.get(params.text_document.uri)
    if document is None:
        log.warning("a change to %s, which is not open, was ignored", params.text_document.uri)
        return
    set_text(ls, document, params.text_document.version, changed(document.text, params.content_changes, ls.encoding))


def set_text(ls: Server, document: Document, version: int, text: Text) -> None:
    ls.ghost_text.stop()
    ls.documents.set_text(document, version, text)
    document_changed(ls, document)
    document_edited(ls, document)


def changed(text: Text, changes: Iterable[types.TextDocumentContentChangeEvent], encoding: Encoding) -> Text:
    """The text after changes that each apply to the result of the one before."""
    for change in changes:
        if isinstance(change, types.TextDocumentContentChangePartial):
            start, end = position(change.range.start), position(change.range.end)
            text = text.changed(start, end, change.text, encoding)
        else:
            text = Text.of(change.text)
    return text
