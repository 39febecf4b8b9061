"""Profiling a kernel from an editor: the command, the line above the kernel, and what an edit does to its numbers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types
from support.editor import VSCODE, Editor, Page, start_editor

GATHER = """\
// warpwright: array at[n] in index(n)
// warpwright: array in[n] in
// warpwright: array out[n] out
__global__ void gather(float *out, const float *in, const int *at, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int j = at[i];
    out[i] = in[j];
}
void launch(float *out, const float *in, const int *at, int n) {
    gather<<<(n + 255) / 256, 256>>>(out, in, at, n);
    if (cudaGetLastError() != cudaSuccess) return;
}
"""


@pytest.fixture(scope="module")
def editor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Editor]:
    folder = tmp_path_factory.mktemp("workspace")
    own_cache = {"WARPWRIGHT_CACHE_DIR": str(folder / "cache")}
    with start_editor(VSCODE, folder, environment=own_cache) as started:
        yield started
        assert not [line for line in started.log if "Traceback" in line], started.log


def run(page: Page, command: str, **argument: object) -> Any:
    params = types.ExecuteCommandParams(command, [{"uri": page.uri, **argument}])
    return page.editor.request("workspace/executeCommand", params, 120)


def test_a_kernel_has_a_lens_that_profiles_it(editor: Editor) -> None:
    page = editor.open("a.cu", GATHER)
    lens = page.lenses()[2]
    assert page.words(lens.range) == "gather"
    assert lens.command is not None
    assert (lens.command.title, lens.command.command) == ("Profile (emulated)", "warpwright.profile")
    assert lens.command.arguments == ({"uri": page.uri, "kernel": "gather"},)
    assert editor.open("b.cu", "int x;\n").titles() == []


@pytest.mark.nvcc
def test_its_numbers_stand_until_the_text_changes(editor: Editor) -> None:
    page = editor.open("c.cu", GATHER)
    before = [d.code for d in page.diagnostics()]
    assert "uncoalesced-access" not in before
    result = run(page, "warpwright.profile", kernel="gather")
    assert result["status"] == "profiled", result
    assert result["message"].endswith("(emulated)")
    assert "<table" in Path(result["report"]).read_text(encoding="utf-8")
    shown = page.titles()[4]
    assert re.match(r"sectors \d+\.\dx ideal \(emulated\)", shown)
    whole = page.hover_text("gather(float")
    assert re.search(r"\*\*The whole run, emulated\*\* \(grid \d+, block 256, n = [\d,]+, ", whole)
    assert "4 bytes a lane" in page.hover_text("at[i]") and ", emulated," in page.hover_text("at[i]")
    page.replace("int j = at[i];", "int j = at[i] ;")
    assert not any("ideal (emulated)" in title for title in page.titles())
    assert "emulated" not in page.hover_text("at[i]")
    assert [d.code for d in page.diagnostics()] == before
    page.replace("int j = at[i] ;", "int j = at[i];")
    assert page.titles()[4] == shown


@pytest.mark.nvcc
def test_the_page_can_be_opened(editor: Editor) -> None:
    page = editor.open("d.cu", GATHER.replace("gather", "fetch"))
    shown = Path(run(page, "warpwright.showResults", kernel="fetch")["report"])
    assert "There is no profile of this kernel" in shown.read_text(encoding="utf-8")
    result = run(page, "warpwright.profile", kernel="fetch")
    assert run(page, "warpwright.showResults", kernel="fetch")["status"] == "shown"
    asked = editor.client.shown_documents[-1]
    assert (asked.uri, asked.external) == (Path(result["report"]).as_uri(), True)
    assert "There is no profile of this kernel" not in shown.read_text(encoding="utf-8")


@pytest.mark.nvcc
def test_what_cannot_be_run_is_one_sentence(editor: Editor) -> None:
    page = editor.open("e.cu", "__global__ void k(float** a) { a[0][threadIdx.x] = 0; }\n")
    result = run(page, "warpwright.profile", kernel="k")
    assert result["status"] == "failed"
    assert result["message"].startswith("How to run k is not known")
    assert result["message"] in editor.messages
