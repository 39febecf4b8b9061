"""What is offered at a place, before anything is verified."""

from __future__ import annotations

import ast
from typing import Any

from lsprotocol import types
from support.editor import Editor
from support.kernels import CLEAN, CONFLICT


def arguments_of(action: Any) -> Any:
    """The arguments of an action's command. The client's library takes such an action for a command whose name is the
    text of the command's object."""
    return ast.literal_eval(action.command)["arguments"]


def test_a_finding_offers_its_fix_its_silencing_and_the_kernels_commands(any_editor: Editor) -> None:
    page = any_editor.open("a.cu", CONFLICT)
    fix, other, suppress, explain, *commands = page.actions(page.range("tile[x][y]"))
    assert fix.title == "Pad the rows of tile by 1 element"
    assert (fix.kind, fix.is_preferred, fix.edit) == (types.CodeActionKind.QuickFix, True, None)
    assert [d.code for d in fix.diagnostics or ()] == ["bank-conflict"]
    assert other.title == "XOR-swizzle tile"
    assert (other.kind, other.is_preferred) == (types.CodeActionKind.QuickFix, False)
    assert suppress.title == "Suppress bank-conflict on this line"
    assert (explain.title, arguments_of(explain)) == ("Explain bank-conflict", [{"rule": "bank-conflict"}])
    assert [command.title for command in commands] == [
        "Optimize kernel transpose",
        "Reduce memory of kernel transpose",
        "Fix kernel transpose",
        "Verify kernel transpose",
        "Profile kernel transpose (emulated)",
        "Show SASS of kernel transpose",
        "Wire kernel transpose into PyTorch",
    ]


def test_elsewhere_in_the_kernel_only_its_commands_and_outside_nothing(vscode: Editor) -> None:
    page = vscode.open("a.cu", CONFLICT)
    where = page.range("__syncthreads").start
    optimize, *_ = page.actions(types.Range(where, where))
    assert optimize.title == "Optimize kernel transpose"
    assert arguments_of(optimize) == [{"uri": page.uri, "kernel": "transpose", "preview": True}]
    assert page.actions(page.range("if (cuda")) == []


def test_a_selection_in_a_kernel_goes_with_the_command_and_all_of_a_kernel_is_none(any_editor: Editor) -> None:
    page = any_editor.open("a.cu", CONFLICT)
    part, whole = page.range("out[(blockIdx.x"), page.range(CONFLICT[: CONFLICT.index("void run")])
    optimize = next(a for a in page.actions(part, ["refactor"]) if a.title.startswith("Optimize"))
    (argument,) = arguments_of(optimize)
    ends = {
        side: {"line": at.line, "character": at.character} for side, at in (("start", part.start), ("end", part.end))
    }
    assert argument == {"uri": page.uri, "kernel": "transpose", "preview": True, "range": ends}
    assert page.actions(whole, ["refactor"])[0].title == "Optimize kernel transpose"


def test_the_word_or_the_character_under_the_cursor_is_no_selection(any_editor: Editor) -> None:
    page = any_editor.open("a.cu", CONFLICT)
    for words in ("__syncthreads", "(blockIdx.y * 32 + y) * n"[:1]):
        assert page.actions(page.range(words), ["refactor"])[0].title == "Optimize kernel transpose"


def test_only_the_kinds_that_were_asked_for(vscode: Editor) -> None:
    page = vscode.open("a.cu", CONFLICT)
    where = page.range("tile[x][y]")
    assert {a.title.split()[0] for a in page.actions(where, ["quickfix"])} == {
        "Pad",
        "XOR-swizzle",
        "Suppress",
        "Explain",
    }
    commands = {"Optimize", "Reduce", "Fix", "Verify", "Profile", "Show", "Wire"}
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


TWO = CONFLICT + CONFLICT.replace("transpose", "second").replace("void run", "void again")


def test_of_several_findings_of_a_rule_all_can_be_fixed_at_once(any_editor: Editor) -> None:
    page = any_editor.open("a.cu", TWO)
    (of_all,) = (a for a in page.actions(page.range("tile[x][y]")) if a.title.startswith("Fix all"))
    assert of_all.title == "Fix all 2 findings of bank-conflict in this file"
    assert arguments_of(of_all) == [{"rule": "bank-conflict", "uri": page.uri, "preview": True}]


def test_the_action_on_the_whole_source_is_for_who_asks_for_it(vscode: Editor) -> None:
    page, clean = vscode.open("a.cu", CONFLICT), vscode.open("b.cu", CLEAN)
    where = page.range("int n")
    (action,) = page.actions(where, ["source.fixAll"])
    assert (action.kind, action.edit) == ("source.fixAll.warpwright", None)
    assert clean.actions(where, ["source.fixAll"]) == []
    assert not [a for a in page.actions(where) if a.title == action.title]


def test_a_cure_that_needs_no_proof_is_an_edit_at_once(any_editor: Editor) -> None:
    text = (
        "#include <torch/extension.h>\n__global__ void k(float *x, long n) { x[threadIdx.x] = n; }\n"
        "void run(float *x, long n) { k<<<n, 256>>>(x, n); }\n"
    )
    page = any_editor.open("stream.cu", text)
    action = next(a for a in page.actions(page.range("<<<n")) if a.title == "Launch on torch's current stream")
    assert (action.kind, action.is_preferred) == (types.CodeActionKind.QuickFix, True)
    assert action.edit is not None
    assert "at::cuda::getCurrentCUDAStream()" in str(action.edit)
