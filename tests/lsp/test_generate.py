"""A kernel from the comment at the cursor: drafted, compiled, offered like everything else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types
from support.editor import VSCODE, Editor, Page, start_editor

TEXT = "#include <cstdio>\n\n// kernel: the eigenvalues of a and b\nint main() { return 0; }\n"


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
        "Put the cursor on a comment outside functions that says what the kernel should do.",
    )


def test_without_a_model_it_says_what_is_missing(tmp_path: Path) -> None:
    with start_editor(VSCODE, tmp_path, options={"compile": "off", "model": "/no/such/model.gguf"}) as editor:
        result = generate(editor.open("c.cu", TEXT), "eigenvalues")
    assert result["status"] == "failed"
    assert "/no/such/model.gguf" in result["message"]


@pytest.mark.nvcc
def test_words_that_are_understood_are_offered_and_written(vscode: Editor) -> None:
    page = vscode.open("d.cu", "#include <cstdio>\n\n// row sums of x, then relu\nint main() { return 0; }\n")
    at = page.range("row sums").start
    titles = [each.title for each in page.actions(types.Range(at, at))]
    assert "Generate kernel: y[r] = relu(sum[c] x[r, c])" in titles
    result = generate(page, "row sums")
    assert result["status"] == "applied", result
    assert page.text.index("then relu\n// read as: y[r] = ") < page.text.index("cudaError_t sum_relu(")
    assert page.text.index("cudaError_t sum_relu(") < page.text.index("int main")
