"""textDocument/didOpen"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lsprotocol import types

from warpwright.cuda.extension.near import is_of_others
from warpwright.lsp.background_compile import document_opened
from warpwright.lsp.project_problems import show_project_problems
from warpwright.lsp.publish_diagnostics import document_changed

if TYPE_CHECKING:
    from warpwright.lsp.documents import Document
    from warpwright.lsp.server import Server


def register(server: Server) -> None:
    server.feature(types.TEXT_DOCUMENT_DID_OPEN)(did_open)


def did_open(ls: Server, params: types.DidOpenTextDocumentParams) -> None:
    item = params.text_document
    open_document(ls, item.uri, item.version, item.text)


def open_document(ls: Server, uri: str, version: int, text: str) -> None:
    document = ls.documents.open(uri, version, text)
    document_changed(ls, document)
    document_opened(ls, document)
    _get_model_ready(ls, document)
    ls.workspace_changes.note(of_all=False)
    show_project_problems(ls)


def _get_model_ready(ls: Server, document: Document) -> None:
    """Who opens a CUDA file in an editor that shows ghost text is likely to ask for some."""
    editor, settings = ls.client_capabilities.text_document, ls.documents.settings_of(document)
    if is_of_others(document.path):
        return
    if editor is not None and editor.inline_completion is not None and settings.ghost_text:
        ls.in_background(_model_ready(ls, document, settings.model))


async def _model_ready(ls: Server, document: Document, model: str) -> None:
    """Not before the document's first findings, which a person waits for."""
    await ls.documents.analysed(document)
    ls.ghost_text.get_ready(model)
