"""What is offered at a place, before anything is verified."""

from __future__ import annotations

from lsprotocol import types
from support.editor import Editor
from support.kernels import CONFLICT


def test_a_finding_offers_its_fix_its_silencing_and_the_kernels_commands(any_editor: Editor) -> None:
    page = any_editor.open("a.cu", CONFLICT)
    fix, other, suppress, *commands = page.actions(page.range("tile[x][y]"))
    assert fix.title == "Pad the rows of tile by 1 element"
    assert (fix.kind, fix.is_preferred, fix.edit) == (types.CodeActionKind.QuickFix, True, None)
    assert [d.code for d in fix.diagnostics or ()] == ["bank-conflict"]
    assert other.title == "Permute the elements in the rows of tile"
    assert (other.kind, other.is_preferred) == (types.CodeActionKind.QuickFix, False)
    assert suppress.title == "Suppress bank-conflict on this line"
    assert [command.title for command in commands] == [
        "Optimize kernel transpose",
        "Reduce memory of kernel transpose",
        "Fix kernel transpose",
        "Verify kernel transpose",
        "Profile kernel transpose (emulated)",
        "Show SASS of kernel transpose",
    ]


def test_elsewhere_in_the_kernel_only_its_commands_and_outside_nothing(vscode: Editor) -> None:
    page = vscode.open("a.cu", CONFLICT)
    assert page.actions(page.range("__syncthreads"))[0].title == "Optimize kernel transpose"
    assert page.actions(page.range("if (cuda")) == []


def test_only_the_kinds_that_were_asked_for(vscode: Editor) -> None:
    page = vscode.open("a.cu", CONFLICT)
    where = page.range("tile[x][y]")
    assert {a.title.split()[0] for a in page.actions(where, ["quickfix"])} == {"Pad", "Permute", "Suppress"}
    commands = {"Optimize", "Reduce", "Fix", "Verify", "Profile", "Show"}
    assert {a.title.split()[0] for a in page.actions(where, ["refactor"])} == commands
    assert page.actions(where, ["source.organizeImports"]) == []


def test_silencing_silences(any_editor: Editor) -> None:
    page = any_editor.open("a.cu", CONFLICT)
    suppress = page.actions(page.range("tile[x][y]"))[2]
    assert suppress.edit is not None
    (change,) = suppress.edit.document_changes or ()
    assert isinstance(change, types.TextDocumentEdit)
    assert change.text_document == types.OptionalVersionedTextDocumentIdentifier(uri=page.uri, version=1)
    page.apply(change.edits)
    assert page.text.splitlines()[4] == "    // warpwright: ignore[bank-conflict]"
    assert page.diagnostics() == []
