"""textDocument/diagnostic: diagnostics for clients that pull."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lsprotocol import types

from warpwright.editor.diagnostics import SOURCE
from warpwright.lsp.guard import guarded
from warpwright.lsp.publish_diagnostics import to_diagnostics

if TYPE_CHECKING:
    from warpwright.lsp.server import Server

_OPTIONS = types.DiagnosticOptions(inter_file_dependencies=True, workspace_diagnostics=True, identifier=SOURCE)


def register(server: Server) -> None:
    server.feature(types.TEXT_DOCUMENT_DIAGNOSTIC, _OPTIONS)(diagnostic)


def _none() -> types.DocumentDiagnosticReport:
    return types.RelatedFullDocumentDiagnosticReport(items=[])


@guarded(_none)
async def diagnostic(ls: Server, params: types.DocumentDiagnosticParams) -> types.DocumentDiagnosticReport:
    """The newest text's findings, or that they are those of `previousResultId`."""
    document = ls.documents.get(params.text_document.uri)
    if document is None:
        return _none()
    analysis = await ls.documents.analysed(document)
    result_id = f"{document.opening}.{document.analysed_revision}"
    if params.previous_result_id == result_id:
        return types.RelatedUnchangedDocumentDiagnosticReport(result_id=result_id)
    return types.RelatedFullDocumentDiagnosticReport(items=to_diagnostics(ls, document, analysis), result_id=result_id)
