"""Optimize, Reduce memory and Fix on a kernel: progress, cancel, a versioned edit, a report."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types
from support.editor import VSCODE, Editor, Page, start_editor
from support.kernels import CLEAN, SEARCHED
from support.untaught import untaught_model

FIXED = SEARCHED.replace("tile[32][32]", "tile[32][32 + 1]")


@pytest.fixture(scope="module")
def editor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Editor]:
    """A server that finds no model: what it does without one is all but the plan."""
    folder = tmp_path_factory.mktemp("workspace")
    own_cache = {"WARPWRIGHT_CACHE_DIR": str(folder / "cache")}
    with start_editor(
        VSCODE, folder, options={"plan": "model", "model": "/no/such/model.gguf"}, environment=own_cache
    ) as started:
        yield started
        assert not [line for line in started.log if "Traceback" in line], started.log


def start(page: Page, command: str, token: str, **argument: object) -> Future[Any]:
    params = types.ExecuteCommandParams(command, [{"uri": page.uri, **argument}], work_done_token=token)
    page.editor.client.progress_reports[token] = []
    return page.editor.start_request("workspace/executeCommand", params, f"request-{token}")


def run(page: Page, command: str, token: str, **argument: object) -> Any:
    return start(page, command, token, **argument).result(240)


def reports(editor: Editor, token: str) -> list[Any]:
    return list(editor.client.progress_reports[token])


@pytest.mark.nvcc
def test_optimize_ends_in_a_versioned_edit_and_a_report(editor: Editor) -> None:
    page = editor.open("a.cu", SEARCHED)
    result = run(page, "warpwright.optimize", "t1", kernel="transpose", preview=True)
    assert result["status"] == "applied", result
    (change,) = editor.applied[-1].edit.document_changes or ()
    assert isinstance(change, types.TextDocumentEdit)
    assert change.text_document.version == 1
    (edit,) = change.edits
    assert isinstance(edit, types.AnnotatedTextEdit)
    annotation = (editor.applied[-1].edit.change_annotations or {})[edit.annotation_id]
    assert annotation.label.startswith("transpose: pad-shared-array [correct")
    assert annotation.needs_confirmation, "an editor that can show it as a diff does so first"
    assert "one bank" in (annotation.description or "") or "banks" in (annotation.description or "")
    assert page.text == FIXED
    assert page.diagnostics() == []
    outcome = result["outcome"]
    assert outcome["candidates"][outcome["best"]]["rewrites"] == ["pad-shared-array"]
    assert outcome["plan"] is None
    assert "/no/such/model.gguf" in outcome["plan_missing"]
    report = Path(result["report"]).read_text()
    assert "# Optimize `transpose`" in report
    assert "+    __shared__ float tile[32][32 + 1];" in report
    assert any("transpose: pad-shared-array" in message and result["report"] in message for message in editor.messages)
    seen = reports(editor, "t1")
    assert isinstance(seen[0], types.WorkDoneProgressBegin)
    assert seen[0].cancellable
    assert isinstance(seen[-1], types.WorkDoneProgressEnd)
    shares = [report.percentage for report in seen[1:-1]]
    assert shares == sorted(shares)


@pytest.mark.nvcc
def test_the_report_can_be_opened(editor: Editor) -> None:
    page = editor.open("a.cu", CLEAN)
    result = run(page, "warpwright.reduceMemory", "t2", position={"line": 2, "character": 4})
    assert result["status"] == "nothing"
    assert page.text == CLEAN
    editor.request("workspace/executeCommand", types.ExecuteCommandParams("warpwright.showReport", []))
    assert editor.client.shown_documents[-1].uri == Path(result["report"]).as_uri()


@pytest.mark.nvcc
def test_a_kernel_that_was_edited_meanwhile_is_left_alone(editor: Editor) -> None:
    page = editor.open("a.cu", f"// {time.time_ns()}\n" + SEARCHED)
    request = start(page, "warpwright.optimize", "t3", kernel="transpose")
    editor.wait(lambda: reports(editor, "t3"), "progress")
    page.replace("__syncthreads();", "__syncthreads(); // twice\n    __syncthreads();")
    text, applied = page.text, len(editor.applied)
    result = request.result(240)
    assert result["status"] == "not-applied"
    assert result["message"] == "transpose, or code that it depends on, was edited meanwhile: run it again."
    assert Path(result["report"]).exists()
    assert (page.text, len(editor.applied)) == (text, applied)
    assert any("Not applied" in message for message in editor.messages)


@pytest.mark.slow
@pytest.mark.nvcc
def test_edits_that_are_nothing_to_the_kernel_stay_and_what_was_found_goes_beside_them(editor: Editor) -> None:
    page = editor.open("a.cu", SEARCHED)
    request = start(page, "warpwright.optimize", "t3b", kernel="transpose")
    editor.wait(lambda: reports(editor, "t3b"), "progress")
    page.replace("größe", "breite 😀")
    page.set(page.text + "\nstatic int unfinished(int x) {\n  return x +\n")
    mine = page.text
    result = request.result(240)
    assert result["status"] == "applied", result
    (change,) = editor.applied[-1].edit.document_changes or ()
    assert isinstance(change, types.TextDocumentEdit)
    assert change.text_document.version == 3
    assert page.text == mine.replace("tile[32][32]", "tile[32][32 + 1]")


@pytest.mark.nvcc
def test_the_users_stop_ends_it(editor: Editor) -> None:
    page = editor.open("a.cu", f"#include <regex>\n// {time.time_ns()}\n" + SEARCHED)
    request = start(page, "warpwright.optimize", "t4", kernel="transpose")
    editor.wait(lambda: len(reports(editor, "t4")) > 1, "progress")
    editor.notify("window/workDoneProgress/cancel", types.WorkDoneProgressCancelParams(token="t4"))
    assert request.result(20)["status"] == "cancelled"
    assert isinstance(reports(editor, "t4")[-1], types.WorkDoneProgressEnd)
    assert "tile[32][32]" in page.text


def test_a_stop_that_comes_before_its_work_began_counts(editor: Editor) -> None:
    page = editor.open("a.cu", f"// {time.time_ns()}\n" + SEARCHED)
    request = start(page, "warpwright.optimize", "t4b", kernel="transpose")
    editor.notify("window/workDoneProgress/cancel", types.WorkDoneProgressCancelParams(token="t4b"))
    assert request.result(20)["status"] == "cancelled"
    assert "tile[32][32]" in page.text


@pytest.mark.nvcc
def test_a_cancelled_request_ends_it_and_the_next_one_works(editor: Editor) -> None:
    page = editor.open("a.cu", f"#include <regex>\n// {time.time_ns()}\n" + SEARCHED)
    request = start(page, "warpwright.optimize", "t5", kernel="transpose")
    editor.wait(lambda: reports(editor, "t5"), "progress")
    editor.notify("$/cancelRequest", types.CancelParams(id="request-t5"))
    with pytest.raises(Exception, match="cancel"):
        request.result(20)
    again = editor.open("b.cu", SEARCHED)
    assert run(again, "warpwright.optimize", "t6", kernel="transpose")["status"] == "applied"


@pytest.mark.nvcc
def test_it_takes_no_longer_than_it_may(editor: Editor) -> None:
    page = editor.open("a.cu", SEARCHED)
    editor.set_settings({"plan": "model", "model": "/no/such/model.gguf", "optimizeSeconds": 0.001})
    result = run(page, "warpwright.optimize", "t7", kernel="transpose")
    assert result["status"] in ("nothing", "applied")
    editor.set_settings({"model": "/no/such/model.gguf"})


@pytest.mark.parametrize(
    ("argument", "says"),
    [
        ({"kernel": "nonsense"}, "no kernel nonsense"),
        ({"position": {"line": 11, "character": 0}}, "cursor on a kernel"),
        ({"uri": "file:///nowhere.cu"}, "not open"),
    ],
)
def test_what_cannot_be_done_is_said(editor: Editor, argument: dict[str, object], says: str) -> None:
    page = editor.open("a.cu", SEARCHED)
    result = run(page, "warpwright.optimize", "t8", **argument)
    assert result["status"] == "failed"
    assert says in result["message"]
    assert says in editor.messages[-1]


@pytest.mark.slow
@pytest.mark.nvcc
@pytest.mark.llm
def test_the_models_words_are_in_the_report(tmp_path: Path) -> None:
    with start_editor(VSCODE, tmp_path, environment=untaught_model()) as editor:
        editor.set_settings({"plan": "model"})
        page = editor.open("a.cu", SEARCHED)
        result = run(page, "warpwright.optimize", "t9")
        assert result["status"] == "applied", result
        plan = result["outcome"]["plan"]
        assert plan is not None, result["outcome"]["plan_missing"]
        assert "The model's own words" in Path(result["report"]).read_text()
        assert plan["raw"].strip().splitlines()[0] in Path(result["report"]).read_text()
        assert page.text == FIXED or "tile[y][x ^ y]" in page.text, "padded, or swizzled as the model may prefer"
