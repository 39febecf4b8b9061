"""textDocument/didClose"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lsprotocol import types

from warpwright.lsp.background_compile import includes_changed, stop
from warpwright.lsp.publish_diagnostics import file_changed, is_pushed

if TYPE_CHECKING:
    from warpwright.lsp.server import Server


def register(server: Server) -> None:
    server.feature(types.TEXT_DOCUMENT_DID_CLOSE)(did_close)


def did_close(ls: Server, params: types.DidCloseTextDocumentParams) -> None:
    close_document(ls, params.text_document.uri)


def close_document(ls: Server, uri: str) -> None:
    """What was shown goes; whoever includes the document sees what is on disk from here on."""
    document = ls.documents.close(uri)
    if document is None:
        return
    if is_pushed(ls):
        ls.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri=document.uri, diagnostics=[]))
    stop(document)
    ls.workspace_changes.note(of_all=False)
    file_changed(ls, document.path)
    includes_changed(ls, ls.documents.includers(document.path))
