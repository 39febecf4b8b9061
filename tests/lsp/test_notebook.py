"""Cells of a notebook that hold CUDA are documents, from the edit that makes them so to the one that ends it."""

from __future__ import annotations

from lsprotocol import types
from support.editor import Editor, Page
from support.kernels import CONFLICT

NOTEBOOK = "file:///home/me/nb.ipynb"


def cell(editor: Editor, name: str, text: str) -> Page:
    page = Page(editor, f"vscode-notebook-cell:/home/me/nb.ipynb#{name}", text)
    editor.pages[page.uri] = page
    return page


def item(page: Page) -> types.TextDocumentItem:
    return types.TextDocumentItem(uri=page.uri, language_id="python", version=page.version, text=page.text)


def open_notebook(editor: Editor, *cells: Page) -> None:
    listed = [types.NotebookCell(kind=types.NotebookCellKind.Code, document=each.uri) for each in cells]
    notebook = types.NotebookDocument(uri=NOTEBOOK, notebook_type="jupyter-notebook", version=1, cells=listed)
    params = types.DidOpenNotebookDocumentParams(notebook, [item(each) for each in cells])
    editor.notify("notebookDocument/didOpen", params)


def change(editor: Editor, cells: types.NotebookDocumentCellChanges) -> None:
    identifier = types.VersionedNotebookDocumentIdentifier(version=2, uri=NOTEBOOK)
    params = types.DidChangeNotebookDocumentParams(identifier, types.NotebookDocumentChangeEvent(cells=cells))
    editor.notify("notebookDocument/didChange", params)


def edit(page: Page, old: str, new: str) -> None:
    where, at = page.range(old), page.text.index(old)
    page.text = page.text[:at] + new + page.text[at + len(old) :]
    page.version += 1
    changes = [types.TextDocumentContentChangePartial(range=where, text=new)]
    document = types.VersionedTextDocumentIdentifier(version=page.version, uri=page.uri)
    content = [types.NotebookDocumentCellContentChanges(document, changes)]
    change(page.editor, types.NotebookDocumentCellChanges(text_content=content))


def test_a_cell_with_cuda_is_a_document(vscode: Editor, neovim: Editor) -> None:
    for editor in (vscode, neovim):
        cuda = cell(editor, "one", f"%%cu\n{CONFLICT}")
        written = cell(editor, "two", f"%%writefile kernel.cu\n{CONFLICT}")
        python = cell(editor, "three", f"%%writefile kernel.py\n{CONFLICT}")
        open_notebook(editor, cuda, written, python)
        for page in (cuda, written):
            (diagnostic,) = page.diagnostics()
            assert page.words(diagnostic.range) == "tile[x][y]"
        assert python.diagnostics() == []
        assert "32 wavefronts" in cuda.hover_text("tile[x][y]")
        edit(cuda, "größe 😀", "é")
        edit(cuda, "[32][32]", "[32][33]")
        assert cuda.diagnostics() == []

        edit(written, "%%writefile kernel.cu", "%%time")
        assert written.diagnostics() == []
        edit(written, "%%time", "%%cuda")
        (diagnostic,) = written.diagnostics()
        assert written.words(diagnostic.range) == "tile[x][y]"

        gone = types.NotebookCellArrayChange(start=1, delete_count=1)
        structure = types.NotebookDocumentCellChangeStructure(array=gone, did_close=[written.identifier])
        change(editor, types.NotebookDocumentCellChanges(structure=structure))
        assert written.hover("tile[x][y]") is None
        left = [cuda.identifier, python.identifier]
        params = types.DidCloseNotebookDocumentParams(types.NotebookDocumentIdentifier(NOTEBOOK), left)
        editor.notify("notebookDocument/didClose", params)
        assert cuda.hover("tile[x][y]") is None
