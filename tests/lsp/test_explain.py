"""Explaining a rule from an editor: its page is shown without a network."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lsprotocol import types
from pygls.uris import to_fs_path
from support.editor import Editor
from support.kernels import CONFLICT


def explain(editor: Editor, **argument: object) -> Any:
    params = types.ExecuteCommandParams("warpwright.explainRule", [argument])
    return editor.request("workspace/executeCommand", params)


def test_the_rule_of_the_finding_at_the_cursor_or_else_of_its_line(vscode: Editor) -> None:
    page = vscode.open("a.cu", CONFLICT)
    for words in ("tile[x][y]", "out[(blockIdx.x"):
        where = page.range(words).start
        position = {"line": where.line, "character": where.character}
        result = explain(vscode, uri=page.uri, position=position)
        assert result["status"] == "shown"
        shown = Path(to_fs_path(vscode.client.shown_documents[-1].uri) or "")
        assert shown == Path(result["page"])
        assert shown.read_text(encoding="utf-8").startswith("# bank-conflict\n\n*rule of the group memory")


def test_a_rewrite_by_its_name(vscode: Editor) -> None:
    result = explain(vscode, rule="Pad_Shared_Array")
    assert Path(result["page"]).name == "pad-shared-array.md"


def test_where_nothing_is_found_it_says_so(vscode: Editor) -> None:
    page = vscode.open("a.cu", CONFLICT)
    nowhere = explain(vscode, uri=page.uri, position={"line": 0, "character": 0})
    assert (nowhere["status"], nowhere["message"]) == ("failed", "No finding at the cursor.")
    assert explain(vscode, rule="beauty")["message"] == "There is no rule or rewrite 'beauty'."
