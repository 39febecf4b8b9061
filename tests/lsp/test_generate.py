"""A kernel from the comment at the cursor: drafted, compiled, offered like everything else."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from lsprotocol import types
from support.editor import VSCODE, Editor, Page, start_editor

TEXT = "#include <cstdio>\n\n// kernel: add two vectors a and b into c\nint main() { return 0; }\n"


@pytest.fixture(scope="module")
def editor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Editor]:
    with start_editor(VSCODE, tmp_path_factory.mktemp("workspace"), options={"compile": "off"}) as started:
        yield started
        assert not [line for line in started.log if "Traceback" in line], started.log


def generate(page: Page, words: str) -> Any:
    where = page.range(words).start
    argument = {"uri": page.uri, "position": {"line": where.line, "character": where.character}}
    return page.editor.request(
        "workspace/executeCommand", types.ExecuteCommandParams("warpwright.generate", [argument]), 180
    )


def test_where_no_comment_stands_it_says_what_to_do(editor: Editor) -> None:
    result = generate(editor.open("b.cu", TEXT), "return 0")
    assert (result["status"], result["message"]) == (
        "failed",
        "Put the cursor on a comment outside functions that says what the kernel shall do.",
    )


def test_without_a_model_it_says_what_is_missing(editor: Editor) -> None:
    editor.set_settings({"compile": "off", "model": "/no/such/model.gguf"})
    result = generate(editor.open("c.cu", TEXT), "two vectors")
    assert result["status"] == "failed"
    assert "/no/such/model.gguf" in result["message"]
