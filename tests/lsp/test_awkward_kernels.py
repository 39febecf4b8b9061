"""Kernels that a search can do little or nothing about: one sentence each, through the real server."""

from __future__ import annotations

from itertools import count
from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types
from support.editor import Editor, Page
from support.kernels import CLEAN, CONFLICT, SEARCHED

NUMBERS = count(1)
GENERIC = (
    SEARCHED.replace("float", "T")
    .replace("run(const T* in, T*", "run(const float* in, float*")
    .replace("__global__", "template <typename T>\n__global__")
)
SECOND = """\
void again(const TYPE* in, TYPE* out, int n) {
    transpose<<<dim3(n / 32, n / 32), dim3(32, 32)>>>(in, out, n);
}
"""
MACRO = "transpose is made by the macro {}: only a kernel whose `__global__` is written out is changed."


def propose(page: Page, **argument: object) -> Any:
    params = types.ExecuteCommandParams("warpwright.propose", [{"uri": page.uri, **argument}])
    return page.editor.start_request("workspace/executeCommand", params, f"awkward-{next(NUMBERS)}").result(240)


@pytest.mark.parametrize(
    ("text", "macro"),
    [
        ("#define GPU __global__\n" + CONFLICT.replace("__global__", "GPU"), "GPU"),
        (
            "#define KERNEL(name) \\\n  extern \"C\" __global__ void name\n"
            + CONFLICT.replace("__global__ void transpose(", "KERNEL(transpose)("),
            "KERNEL",
        ),
        ("#define MAKE(name) __global__ void name(float *a) { *a = 1; }\nMAKE(other)\nMAKE(transpose)\n", "MAKE"),
    ],
)  # fmt: skip
def test_a_kernel_behind_a_macro(vscode: Editor, text: str, macro: str) -> None:
    page = vscode.open("a.cu", text)
    result = propose(page, kernel="transpose")
    assert (result["status"], result["message"]) == ("failed", MACRO.format(macro))
    nowhere = propose(page, position={"line": 2, "character": 0})
    assert nowhere["message"] == f"Put the cursor on a kernel first; one that the macro {macro} makes is not changed."


@pytest.mark.nvcc
def test_a_template_of_which_one_type_is_launched_is_run_as_it(vscode: Editor) -> None:
    result = propose(vscode.open("a.cu", GENERIC), range=selection(GENERIC))
    assert result["status"] == "offered"
    assert result["offer"]["badge"].startswith("correct (")


@pytest.mark.slow
@pytest.mark.nvcc
def test_a_template_that_is_launched_with_two_types_is_run_with_both(vscode: Editor) -> None:
    page = vscode.open("a.cu", GENERIC + SECOND.replace("TYPE", "double"))
    result = propose(page, range=selection(GENERIC))
    assert result["status"] == "offered"
    best = result["outcome"]["candidates"][result["outcome"]["best"]]["report"]
    assert (len(best["launches"]), best["uncovered"]) == (2, [])


@pytest.mark.nvcc
def test_a_kernel_with_launches_of_other_shapes_keeps_them_all(vscode: Editor) -> None:
    more = SECOND.replace("TYPE", "float").replace("dim3(n / 32, n / 32)", "dim3(n / 32, 1)")
    result = propose(vscode.open("a.cu", SEARCHED + more), range=selection(SEARCHED))
    assert result["status"] == "offered"
    assert "<<<" not in "".join(line for line in result["offer"]["diff"].splitlines() if line[:1] in "+-")


@pytest.mark.nvcc
def test_a_rewrite_that_does_not_compile_is_told_with_the_compilers_words(vscode: Editor) -> None:
    """Here `__restrict__` is no word of the language any more, which no rewrite can know."""
    page = vscode.open("a.cu", "#define __restrict__ 1\n" + CLEAN)
    result = propose(page, kernel="transpose")
    assert (result["status"], result["message"]) == ("nothing", "transpose: The only candidate did not compile.")
    assert "nvcc found" in Path(result["report"]).read_text()


def selection(text: str) -> dict[str, Any]:
    """The line in which the finding is, so that only its cures are tried."""
    line = next(number for number, words in enumerate(text.splitlines()) if "= tile[x][y]" in words)
    return {"start": {"line": line, "character": 4}, "end": {"line": line + 1, "character": 0}}
