"""textDocument/didOpen"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lsprotocol import types

from warpwright.lsp.background_compile import document_opened
from warpwright.lsp.project_problems import show_project_problems
from warpwright.lsp.publish_diagnostics import document_changed

if TYPE_CHECKING:
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
    ls.workspace_changes.note(of_all=False)
    show_project_problems(ls)
