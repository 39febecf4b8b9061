"""Symbols, and the ways between a kernel and its launches."""

from __future__ import annotations

from lsprotocol import types
from support.editor import Editor

TEXT = """\
__global__ void fill(float *x) { x[threadIdx.x] = 0.0f; }
void run(float *x) {
  fill<<<1, 64>>>(x);
  fill<<<1, 128>>>(x);
}
"""
KERNEL, LAUNCH, OTHER = types.Position(0, 17), types.Position(2, 3), types.Position(1, 6)


def test_symbols_are_kernels_and_launches(any_editor: Editor) -> None:
    page = any_editor.open("a.cu", TEXT)
    found = any_editor.request("textDocument/documentSymbol", types.DocumentSymbolParams(page.identifier))
    assert [(each.name, each.range.start.line) for each in found] == [
        ("fill", 0), ("fill<<<...>>>", 2), ("fill<<<...>>>", 3),
    ]  # fmt: skip
    assert [each.detail for each in found] == ["block 64, 128", "grid 1, block 64", "grid 1, block 128"]


def test_from_a_launch_to_its_kernel_and_back(any_editor: Editor) -> None:
    page = any_editor.open("a.cu", TEXT)
    (there,) = any_editor.request("textDocument/definition", types.DefinitionParams(page.identifier, LAUNCH))
    assert (there.range.start.line, there.range.start.character) == (0, 16)
    context = types.ReferenceContext(include_declaration=False)
    back = any_editor.request("textDocument/references", types.ReferenceParams(context, page.identifier, KERNEL))
    assert [each.range.start.line for each in back] == [2, 3]
    assert not any_editor.request("textDocument/definition", types.DefinitionParams(page.identifier, OTHER))


def test_call_hierarchy(vscode: Editor) -> None:
    page = vscode.open("a.cu", TEXT)
    asked = types.CallHierarchyPrepareParams(page.identifier, KERNEL)
    (item,) = vscode.request("textDocument/prepareCallHierarchy", asked)
    calls = vscode.request("callHierarchy/incomingCalls", types.CallHierarchyIncomingCallsParams(item))
    assert [call.from_ranges[0].start.line for call in calls] == [2, 3]
