"""What stands behind a wasteful access, and the settings that take hints and lenses away."""

from __future__ import annotations

from pathlib import Path

from lsprotocol import types
from support.editor import VSCODE, Editor, start_editor
from support.kernels import CLEAN, CONFLICT


def test_a_wasteful_access_says_what_it_costs_and_others_say_nothing(any_editor: Editor) -> None:
    (line, label), *others = any_editor.open("a.cu", CONFLICT).hints()
    assert line.endswith("= tile[x][y];")
    assert label == "32 wavefronts/request (ideal 1)"
    assert others == []
    assert any_editor.open("b.cu", CLEAN).hints() == []


def test_what_is_assumed_is_said_to_be(vscode: Editor) -> None:
    kernel = "__global__ void k(float *out, const float *in) { out[threadIdx.x] = in[32 * threadIdx.x]; }\n"
    ((_, label),) = vscode.open("a.cu", kernel).hints()
    assert label == "32 sectors/request (ideal 4), assumed"


def test_several_of_one_line_are_named_behind_it_and_small_costs_are_left_out(vscode: Editor) -> None:
    both = "out[2 * threadIdx.x] = in[32 * threadIdx.x + 1] + b[threadIdx.x + 1];  // é"
    launch = "void f(float *a) { k<<<1, 32>>>(a, a, a); }\n"
    kernel = f"__global__ void k(float *out, const float *in, float *b) {{\n  {both}\n}}\n{launch}"
    ((line, label),) = vscode.open("a.cu", kernel).hints()
    assert line.endswith("// é")
    assert label == "out: 8 sectors/request (ideal 4); in: 32 sectors/request (ideal 4); b: 5 sectors/request (ideal 4)"
    assert vscode.open("b.cu", kernel.replace("+ 1", "").replace("2 *", "").replace("32 *", "")).hints() == []


def test_only_of_the_range_that_is_shown(vscode: Editor) -> None:
    page = vscode.open("a.cu", CONFLICT)
    first_lines = types.Range(types.Position(0, 0), types.Position(2, 0))
    assert vscode.request("textDocument/inlayHint", types.InlayHintParams(page.identifier, first_lines)) == ()


def test_hints_and_lenses_are_switched_off_and_on_by_settings(tmp_path: Path) -> None:
    with start_editor(VSCODE, tmp_path, options={"inlayHints": False, "codeLens": False}) as editor:
        page = editor.open("a.cu", CONFLICT)
        assert (page.hints(), page.lenses()) == ([], [])
        editor.set_settings({"inlayHints": True})
        editor.wait(page.hints, "hints")
        assert page.lenses()


def test_only_of_lines_that_are_hot(tmp_path: Path) -> None:
    """Inside of the loop alone."""
    kernel = (
        "__global__ void k(float *out, const float *in, int n) {\n"
        "  float sum = in[32 * threadIdx.x];\n"
        "  for (int i = 0; i < 4096; ++i)\n"
        "    sum += out[32 * threadIdx.x + i * 4096];\n"
        "  out[threadIdx.x] = sum;\n}\n"
        "void f(float *a, const float *b) { k<<<64, 256>>>(a, b, 1); }\n"
    )
    with start_editor(VSCODE, tmp_path) as editor:
        page = editor.open("a.cu", kernel)
        assert len(page.hints()) == 2
        editor.set_settings({"inlayHints": "hot"})
        editor.wait(lambda: len(page.hints()) == 1, "hints")
        ((line, _),) = page.hints()
        assert line.startswith("    sum +=")
