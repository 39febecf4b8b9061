"""textDocument/publishDiagnostics, for clients that do not pull; the others are told when to pull again."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from lsprotocol import types

from warpwright.editor.analysis import Analysis
from warpwright.editor.diagnostics import SOURCE, diagnostics
from warpwright.lsp.convert import Ranges, remark_diagnostic, to_diagnostic

if TYPE_CHECKING:
    from warpwright.lsp.documents import Document
    from warpwright.lsp.server import Server

# Long enough that the keys of one word share an analysis, short enough not to be felt.
DEBOUNCE_SECONDS = 0.03
REFRESH_SECONDS = 0.2


def is_pushed(ls: Server) -> bool:
    capabilities = ls.client_capabilities.text_document
    return capabilities is None or capabilities.diagnostic is None


def document_changed(ls: Server, document: Document) -> None:
    """A document was opened or edited: show what is true of it now, and of the open documents that include it."""
    if is_pushed(ls):
        ls.in_background(_publish_later(ls, document))
    file_changed(ls, document.path)


def file_changed(ls: Server, path: str) -> None:
    """A file changed, in an editor or on disk: its includers are analysed anew."""
    refresh(ls, ls.documents.mark_includers(path))


def refresh(ls: Server, documents: list[Document]) -> None:
    """The analyses of these documents became stale without a change to their text."""
    if not documents:
        return
    if is_pushed(ls):
        for document in documents:
            ls.in_background(_publish_later(ls, document))
    if not ls.refresh_is_due:
        ls.refresh_is_due = True
        ls.in_background(_refresh_later(ls))


def to_diagnostics(ls: Server, document: Document, analysis: Analysis) -> list[types.Diagnostic]:
    """The findings of an analysis of the document's present text, and what the compiler said of it."""
    if analysis.skipped:
        return [_skipped(analysis.skipped)] if document.is_open else []
    ranges = Ranges(ls.encoding)
    found = [to_diagnostic(diagnostic, ranges, ls.uri_of) for diagnostic in diagnostics(analysis)]
    return found + [remark_diagnostic(remark, document, ls.encoding, ls.uri_of) for remark in document.remarks]


def _skipped(reason: str) -> types.Diagnostic:
    """Says at the top of a document why nothing else is said of it."""
    top = types.Range(types.Position(0, 0), types.Position(1, 0))
    severity = types.DiagnosticSeverity.Information
    return types.Diagnostic(range=top, severity=severity, source=SOURCE, message=f"This is not analysed: {reason}.")


async def _publish_later(ls: Server, document: Document) -> None:
    """Publish for the text that is newest after a pause; a change within the pause publishes in this one's stead."""
    revision = document.revision
    await asyncio.sleep(DEBOUNCE_SECONDS)
    if document.revision != revision or not document.is_open:
        return
    analysis = await ls.documents.analysed(document)
    if document.revision == revision and document.is_open:
        ls.text_document_publish_diagnostics(
            types.PublishDiagnosticsParams(
                uri=document.uri, version=document.version, diagnostics=to_diagnostics(ls, document, analysis)
            )
        )


async def _refresh_later(ls: Server) -> None:
    """A client that is told to ask again asks for every document that it shows, so one call stands for many keys."""
    await asyncio.sleep(REFRESH_SECONDS)
    ls.refresh_is_due = False
    workspace = ls.client_capabilities.workspace
    if workspace is None:
        return
    if workspace.diagnostics and workspace.diagnostics.refresh_support and not is_pushed(ls):
        ls.workspace_diagnostic_refresh(None)
    if workspace.code_lens and workspace.code_lens.refresh_support:
        ls.workspace_code_lens_refresh(None)
    if workspace.inlay_hint and workspace.inlay_hint.refresh_support:
        ls.workspace_inlay_hint_refresh(None)
