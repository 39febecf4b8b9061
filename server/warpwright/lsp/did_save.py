"""textDocument/didSave: the compiler's moment, also for the documents that include what was saved."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lsprotocol import types

from warpwright.lsp.background_compile import document_saved
from warpwright.lsp.project_problems import show_project_problems

if TYPE_CHECKING:
    from warpwright.lsp.server import Server


def register(server: Server) -> None:
    server.feature(types.TEXT_DOCUMENT_DID_SAVE, types.SaveOptions(include_text=False))(did_save)


def did_save(ls: Server, params: types.DidSaveTextDocumentParams) -> None:
    document = ls.documents.get(params.text_document.uri)
    if document is not None:
        document_saved(ls, document)
        ls.workspace_changes.note(of_all=not document.path.endswith(".cu"))
        show_project_problems(ls)
