"""Verify on a kernel: the buffer against what was committed, with progress, cancel and a page; or what to do first."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types
from support.editor import VSCODE, Editor, Page, start_editor

pytestmark = pytest.mark.nvcc

SCALE = """\
__global__ void scale(const float *in, float *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    out[i] = 2.0f * in[i];
}
void run(const float *in, float *out, int n) { scale<<<(n + 255) / 256, 256>>>(in, out, n); }
"""


@pytest.fixture(scope="module")
def editor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Editor]:
    folder = tmp_path_factory.mktemp("workspace")
    environment = {"WARPWRIGHT_CACHE_DIR": str(folder / "cache")}
    with start_editor(VSCODE, folder, options={"compile": "off", "arch": "sm_80"}, environment=environment) as started:
        yield started
        assert not [line for line in started.log if "Traceback" in line], started.log


def committed(page: Page) -> None:
    """Commit the page's file as it lies on disk."""
    folder = Path(page.uri.removeprefix("file://")).parent
    who = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@b"}
    for command in (["init", "-q"], ["add", "."], ["commit", "-qm", "a version that works"]):
        subprocess.run(["git", "-C", str(folder), *command], check=True, env={**os.environ, **who})


def verify(page: Page, token: str = "") -> Any:
    params = types.ExecuteCommandParams("warpwright.verify", [{"uri": page.uri, "kernel": "scale"}])
    if token:
        params.work_done_token = token
        page.editor.client.progress_reports[token] = []
    return page.editor.request("workspace/executeCommand", params, 120)


def test_the_buffer_is_compared_with_what_was_committed(editor: Editor) -> None:
    page = editor.open("a.cu", SCALE)
    committed(page)
    page.replace("2.0f * in[i]", "in[i] + in[i]")
    result = verify(page, "v1")
    assert result["status"] == "verified", result
    assert result["message"].startswith("scale against its last committed version: correct")
    (check,) = result["outcome"]["checks"]
    assert check["report"]["levels"][:2] == ["parsed", "compiled"]
    if check["report"]["backend"] == "emulator":  # a GPU runs nothing but its own
        assert check["report"]["compile"]["arch"] == "sm_80", "that of the settings"
    text = Path(result["report"]).read_text(encoding="utf-8")
    assert "against its last committed version" in text
    assert "registers" in text
    assert any(result["message"] in message for message in editor.messages)
    seen = editor.client.progress_reports["v1"]
    assert isinstance(seen[0], types.WorkDoneProgressBegin)
    assert isinstance(seen[-1], types.WorkDoneProgressEnd)


def test_a_wrong_kernel_is_refuted(editor: Editor) -> None:
    page = editor.open("b.cu", SCALE)
    committed(page)
    page.replace("2.0f * in[i]", "3.0f * in[i]")
    result = verify(page)
    assert result["status"] == "refuted", result
    assert "wrong" in result["message"]


@pytest.mark.parametrize("is_committed", [False, True])
def test_without_anything_to_compare_with_it_says_what_to_do(editor: Editor, is_committed: bool) -> None:
    page = editor.open("c.cu", SCALE)
    if is_committed:
        committed(page)
    result = verify(page)
    assert result["status"] == "failed"
    assert result["message"].startswith("There is nothing to verify scale against: It has no torch reference.")
    assert ("c.cu is as it was committed" in result["message"]) == is_committed
    assert "sample.toml" in result["message"]
    assert editor.messages[-1] == result["message"]


def test_a_document_in_no_file_says_what_to_do(editor: Editor) -> None:
    result = verify(editor.open("", SCALE, uri="untitled:Untitled-1"))
    assert result["status"] == "failed"
    assert "is in no folder" in result["message"]


@pytest.mark.slow
def test_text_that_does_not_compile_is_refuted_with_the_line(editor: Editor) -> None:
    page = editor.open("d.cu", SCALE)
    committed(page)
    page.replace("in[i];", "missing;")
    result = verify(page)
    assert result["status"] == "refuted"
    assert 'identifier "missing" is undefined' in Path(result["report"]).read_text(encoding="utf-8")


def test_the_users_stop_ends_it(editor: Editor) -> None:
    page = editor.open("e.cu", "#include <regex>\n" + SCALE)
    committed(page)
    page.replace("2.0f * in[i]", "in[i] + in[i]")
    params = types.ExecuteCommandParams("warpwright.verify", [{"uri": page.uri}], work_done_token="v2")
    editor.client.progress_reports["v2"] = []
    request = editor.start_request("workspace/executeCommand", params, "request-v2")
    editor.wait(lambda: len(editor.client.progress_reports["v2"]) > 1, "progress")
    editor.notify("window/workDoneProgress/cancel", types.WorkDoneProgressCancelParams(token="v2"))
    assert request.result(20)["status"] == "cancelled"
