"""The machine code of a line in a hover, once nvcc has run behind the editor, and of a kernel beside its source."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types
from support.editor import VSCODE, Editor, Page, start_editor

pytestmark = pytest.mark.sass

TEXT = """\
#include "../inlined.cuh"
__global__ void scaled(const double *in, double *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = twice(in[i]);
}
"""
HEADER = """\
__device__ inline double twice(double x) {
    return x * 2.5 + 1.0;
}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("workspace")
    (folder / "inlined.cuh").write_text(HEADER)
    return folder


@pytest.fixture(scope="module")
def editor(folder: Path) -> Iterator[Editor]:
    with start_editor(VSCODE, folder, environment={"WARPWRIGHT_CACHE_DIR": str(folder / "cache")}) as started:
        yield started
        assert not [line for line in started.log if "Traceback" in line], started.log


def hovered(page: Page, words: str) -> str:
    answer = page.hover(words)
    if answer is None:
        return ""
    assert isinstance(answer.contents, types.MarkupContent)
    return answer.contents.value


def machine_code(page: Page, words: str) -> str:
    """The hover once it has the machine code."""
    found: str = page.editor.wait(
        lambda: text if "Machine code" in (text := hovered(page, words)) else "", f"the machine code of {words}"
    )
    return found


@pytest.mark.slow
def test_a_line_shows_what_it_became_while_the_text_is_the_compiled_one(editor: Editor) -> None:
    page = editor.open("k.cu", TEXT)
    text = machine_code(page, "out[i] = twice")
    assert "Global store" in text
    assert "1 global load: 8 bytes a lane" in text
    assert "in double precision: DFMA" in text
    assert "of functions inlined here" in text
    page.replace("out[i] = twice", "out[i]  = twice")
    assert "Machine code" not in hovered(page, "out[i]  = twice")
    assert "DFMA" in machine_code(page, "out[i]  = twice")


@pytest.mark.slow
def test_a_line_of_a_header_shows_what_it_became_in_the_file_that_includes_it(editor: Editor, folder: Path) -> None:
    machine_code(editor.open("other.cu", TEXT), "out[i]")
    header = editor.open("inlined.cuh", HEADER, (folder / "inlined.cuh").as_uri())
    assert "DFMA" in machine_code(header, "x * 2.5")


def test_a_line_without_other_facts_has_its_machine_code_too(editor: Editor) -> None:
    page = editor.open("plain.cu", TEXT)
    assert "S2R" in machine_code(page, "int i") or "S2UR" in machine_code(page, "int i")


def show(page: Page, **argument: object) -> Any:
    params = types.ExecuteCommandParams("warpwright.showSass", [{"uri": page.uri, **argument}])
    return page.editor.request("workspace/executeCommand", params, 120)


def test_a_kernel_is_shown_in_a_browser_or_as_a_document(editor: Editor) -> None:
    page = editor.open("shown.cu", TEXT)
    result = show(page, kernel="scaled")
    assert result["status"] == "shown", result
    assert result["message"].startswith("scaled on sm_90: ")
    assert "LDG.E.64" in Path(result["page"]).read_text(encoding="utf-8")
    asked = editor.client.shown_documents[-1]
    assert (asked.uri, asked.external) == (Path(result["page"]).as_uri(), True)
    show(page, kernel="scaled", format="markdown")
    asked = editor.client.shown_documents[-1]
    assert (asked.uri, asked.external) == (Path(result["text"]).as_uri(), False)
    assert Path(result["text"]).read_text(encoding="utf-8").startswith("# `scaled`, sm_90\n")


def test_what_cannot_be_shown_is_one_sentence(editor: Editor) -> None:
    page = editor.open("broken.cu", TEXT.replace("twice(", "thrice("))
    result = show(page, kernel="scaled")
    assert result["status"] == "failed"
    assert "thrice" in result["message"]
    assert result["message"] in editor.messages
    template = editor.open("template.cu", "template <int N> __global__ void k(int *a) { a[0] = N; }\n")
    assert "nvcc made no instance of k" in show(template, kernel="k")["message"]
