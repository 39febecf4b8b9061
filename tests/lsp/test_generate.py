"""A kernel from the comment at the cursor: drafted, compiled, offered like everything else."""

from __future__ import annotations

from typing import Any

from lsprotocol import types
from support.editor import Editor, Page

TEXT = "#include <cstdio>\n\n// kernel: add two vectors a and b into c\nint main() { return 0; }\n"


def generate(page: Page, words: str) -> Any:
    where = page.range(words).start
    argument = {"uri": page.uri, "position": {"line": where.line, "character": where.character}}
    return page.editor.request(
        "workspace/executeCommand", types.ExecuteCommandParams("warpwright.generate", [argument]), 180
    )


def test_where_no_comment_stands_it_says_what_to_do(vscode: Editor) -> None:
    result = generate(vscode.open("b.cu", TEXT), "return 0")
    assert (result["status"], result["message"]) == (
        "failed",
        "Put the cursor on a comment outside functions that says what the kernel shall do.",
    )


def test_without_a_model_it_says_what_is_missing(vscode: Editor) -> None:
    vscode.set_settings({"compile": "off", "model": "/no/such/model.gguf"})
    result = generate(vscode.open("c.cu", TEXT), "two vectors")
    assert result["status"] == "failed"
    assert "/no/such/model.gguf" in result["message"]
