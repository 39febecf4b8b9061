"""A formula in a comment is offered to be written as CUDA, and is written below the comment."""

from __future__ import annotations

import pytest
from lsprotocol import types
from support.editor import Editor, Page

TEXT = """\
#include <cmath>

// The rows of x, each divided by its sum:
// y[r, c] = x[r, c] / sum[c] x[r, c]

// Nothing to write: a = b is no formula of ours.
int main() { return 0; }
"""


def offered(page: Page, words: str) -> list[str]:
    at = page.range(words).start
    return [each.title for each in page.actions(types.Range(at, at)) if "formula" in each.title]


def test_a_comment_with_a_formula_offers_to_write_it(vscode: Editor) -> None:
    page = vscode.open("a.cu", TEXT)
    assert offered(page, "r, c] = x") == ["Write the formula of y as CUDA"]
    assert offered(page, "rows of x") == ["Write the formula of y as CUDA"]
    assert offered(page, "#include") == []
    assert offered(page, "int main") == []


@pytest.mark.nvcc
def test_the_kernel_stands_below_the_comment(vscode: Editor) -> None:
    page = vscode.open("b.cu", TEXT)
    argument = {"uri": page.uri, "position": {"line": 3, "character": 6}}
    result = vscode.request(
        "workspace/executeCommand", types.ExecuteCommandParams("warpwright.generate", [argument]), 180
    )
    assert result["status"] == "applied", result
    text = page.text
    assert text.index("sum[c] x[r, c]\n") < text.index("cudaError_t y(") < text.index("// Nothing to write")
    assert text.count("#include <cmath>") == 1
