"""Ghost text: a kernel after a comment that asks for one; without a model nothing, said once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types
from support.editor import VSCODE, Page, start_editor
from support.kernels import CONFLICT
from support.untaught import untaught_model
from warpwright.syntax.source import Source

REQUEST = "#include <cuda_runtime.h>\n\n// kernel: add two vectors of floats\n"


def params(page: Page, index: int | None = None) -> types.InlineCompletionParams:
    at = page.position(len(page.text) if index is None else index)
    context = types.InlineCompletionContext(types.InlineCompletionTriggerKind.Automatic)
    return types.InlineCompletionParams(context=context, text_document=page.identifier, position=at)


def ghost(page: Page, index: int | None = None) -> Any:
    return page.editor.request("textDocument/inlineCompletion", params(page, index))


def test_without_a_model_nothing_comes_and_the_log_says_so_once(tmp_path: Path) -> None:
    with start_editor(VSCODE, tmp_path, options={"model": "/no/such/model.gguf"}) as editor:
        page = editor.open("a.cu", REQUEST)
        assert ghost(page) is None
        assert ghost(page) is None
        assert len(editor.log) == 1
        assert "/no/such/model.gguf" in editor.log[0]
        assert editor.messages == []


def test_nothing_is_written_where_nothing_is_asked_for(tmp_path: Path) -> None:
    """No model is looked for either: one that does not exist goes unnoticed."""
    with start_editor(VSCODE, tmp_path, options={"model": "/no/such/model.gguf"}) as editor:
        page = editor.open("a.cu", "// the kernel below is slow\n\n" + CONFLICT)
        for index in range(0, len(page.text), 20):
            assert ghost(page, index) is None
        editor.set_settings({"ghostText": False, "model": "/no/such/model.gguf"})
        page = editor.open("b.cu", REQUEST)
        assert ghost(page) is None
        assert editor.log == []


@pytest.mark.llm
def test_without_a_taught_model_nothing_comes_and_the_log_says_so_once(tmp_path: Path) -> None:
    with start_editor(VSCODE, tmp_path, environment={"WARPWRIGHT_DATA_DIR": str(tmp_path)}) as editor:
        page = editor.open("a.cu", REQUEST)
        assert ghost(page) is None
        assert ghost(page) is None
        assert len(editor.log) == 1
        assert "No taught model is installed" in editor.log[0]


@pytest.mark.llm
def test_the_model_writes_a_kernel_that_parses(tmp_path: Path) -> None:
    """The request is one of the prompt's own examples, because the untuned model does little more than repeat them."""
    with start_editor(VSCODE, tmp_path, options={"ghostTextSeconds": 120}, environment=untaught_model()) as editor:
        page = editor.open("a.cu", "// kernel: copy a matrix of floats\n")
        answer = page.editor.request("textDocument/inlineCompletion", params(page), 120)
        assert answer is not None
        (item,) = answer.items
        assert "__global__" in item.insert_text
        assert not Source("k.cu", item.insert_text.encode()).root.has_error
        at = page.position(len(page.text))
        assert item.range == types.Range(at, at)


@pytest.mark.llm
def test_a_newer_request_an_edit_and_the_time_limit_each_end_one(tmp_path: Path) -> None:
    with start_editor(VSCODE, tmp_path, options={"ghostTextSeconds": 0.01}, environment=untaught_model()) as editor:
        page = editor.open("a.cu", REQUEST)
        assert ghost(page) is None
        editor.set_settings({"ghostTextSeconds": 120})
        first = editor.start_request("textDocument/inlineCompletion", params(page), "first")
        second = editor.start_request("textDocument/inlineCompletion", params(page), "second")
        assert first.result(60) is None
        page.replace("two vectors", "three vectors")
        assert second.result(120) is None
        third = editor.start_request("textDocument/inlineCompletion", params(page), "third")
        assert page.hover("three") is None  # answered behind the third, which has begun
        editor.notify("$/cancelRequest", types.CancelParams(id="third"))
        with pytest.raises(Exception, match="cancel"):
            third.result(30)
        assert not [line for line in editor.log if "Traceback" in line]
