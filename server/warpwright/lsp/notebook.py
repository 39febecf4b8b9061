"""notebookDocument/didOpen, didChange and didClose: a cell that holds CUDA is a document, as long as it does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lsprotocol import types

from warpwright.editor.cells import cuda_of_cell
from warpwright.editor.text import Text
from warpwright.lsp.did_change import changed, set_text
from warpwright.lsp.did_close import close_document
from warpwright.lsp.did_open import open_document
from warpwright.syntax.encoding import decoded

if TYPE_CHECKING:
    from collections.abc import Iterable

    from warpwright.lsp.server import Server

SYNC = types.NotebookDocumentSyncOptions(
    notebook_selector=[
        types.NotebookDocumentFilterWithNotebook(
            notebook=types.NotebookDocumentFilterNotebookType(notebook_type="jupyter-notebook"),
            cells=[types.NotebookCellLanguage(language=language) for language in ("python", "cuda-cpp", "cuda", "cpp")],
        )
    ]
)


def register(server: Server) -> None:
    server.feature(types.NOTEBOOK_DOCUMENT_DID_OPEN)(did_open)
    server.feature(types.NOTEBOOK_DOCUMENT_DID_CHANGE)(did_change)
    server.feature(types.NOTEBOOK_DOCUMENT_DID_CLOSE)(did_close)


def did_open(ls: Server, params: types.DidOpenNotebookDocumentParams) -> None:
    _open(ls, params.cell_text_documents)


def did_change(ls: Server, params: types.DidChangeNotebookDocumentParams) -> None:
    cells = params.change.cells
    if cells is None:
        return
    if cells.structure is not None:
        _close(ls, cells.structure.did_close or ())
        _open(ls, cells.structure.did_open or ())
    for each in cells.text_content or ():
        if each.document.uri in ls.cells:
            text = changed(ls.cells[each.document.uri], each.changes, ls.encoding)
            _set(ls, each.document.uri, each.document.version, text)


def did_close(ls: Server, params: types.DidCloseNotebookDocumentParams) -> None:
    _close(ls, params.cell_text_documents)


def _open(ls: Server, cells: Iterable[types.TextDocumentItem]) -> None:
    for cell in cells:
        _set(ls, cell.uri, cell.version, Text.of(cell.text))


def _close(ls: Server, cells: Iterable[types.TextDocumentIdentifier]) -> None:
    for cell in cells:
        ls.cells.pop(cell.uri, None)
        close_document(ls, cell.uri)


def _set(ls: Server, uri: str, version: int, cell: Text) -> None:
    """The cell's text as it is now; whether it holds CUDA may have changed with it."""
    ls.cells[uri] = cell
    cuda = cuda_of_cell(cell.data)
    document = ls.documents.get(uri)
    if cuda is None:
        close_document(ls, uri)
    elif document is None:
        open_document(ls, uri, version, decoded(cuda))
    else:
        set_text(ls, document, version, Text.of_bytes(cuda))
