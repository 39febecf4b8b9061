"""Kernels of which the signature alone is written."""

from __future__ import annotations

from pathlib import Path

import pytest
from warpwright.editor.ghost_request import ghost_request
from warpwright.editor.open_kernel import open_kernel, sizes_in
from warpwright.formulas.resolve import formula_of
from warpwright.syntax.source import Source
from warpwright.writer.body import NoBodyError, body

COMMENT = "// relu of x\n"
HEAD = "__global__ void f(const float* x, float* y, int n) {"


def found(before: str, after: str = "") -> object:
    return open_kernel(Source("a.cu", (before + after).encode()), len(before.encode()))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (COMMENT + HEAD, ""),
        (COMMENT + HEAD, "}\n"),
        (COMMENT + HEAD + "\n    ", "\n}\n\nint other;\n"),
        ("int before;\n\n/* relu\n * of x */\n" + HEAD + "\n", ""),
        (COMMENT + 'extern "C" ' + HEAD, ""),
        ("// größer\n" + COMMENT + HEAD, ""),
        (COMMENT + "template <typename T>\n" + HEAD.replace("float", "T"), ""),
    ],
)
def test_a_body_begins_behind_the_brace(before: str, after: str) -> None:
    assert found(before, after) is not None


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (HEAD, ""),
        (COMMENT + HEAD, "\n    y[0] = 1;\n}\n"),
        (COMMENT + HEAD + "\n    if (n) {", ""),
        (COMMENT + HEAD.replace("__global__ ", ""), ""),
        (COMMENT + "template <typename T, int N>\n" + HEAD, ""),
        (COMMENT + HEAD[:-1] + ";", ""),
        (COMMENT + "\n\n" + HEAD, ""),
    ],
)
def test_elsewhere_no_body_begins(before: str, after: str) -> None:
    assert found(before, after) is None


def test_a_formula_that_the_signature_does_not_fit_is_not_asked_for() -> None:
    text = ("// y[i] = x[i] + z[i]\n" + HEAD).encode()
    assert ghost_request(Source("a.cu", text), len(text)) is None


@pytest.mark.parametrize(
    ("text", "given", "sizes"),
    [
        ("y[i] = x[i]", "const float* x, float* y, int n", {"I": "n"}),
        ("y[r] = sum[c] x[r, c]", "const float* x, float* y, int rows, int cols", {"R": "rows", "C": "cols"}),
        ("C[i, j] = sum[k] A[i, k] * B[k, j]", "int M, int N, int K", {"I": "M", "J": "N", "K": "K"}),
        ("C[i, j] = sum[k] A[i, k] * B[k, j]", "int a, int b, int c", None),
        ("y[r, c] = s[r] * x[r, c]", "int rows, int cols", {"R": "rows", "C": "cols"}),
        ("y[r, j] = x[r, ids[j]]", "int R, int C, int J", {"R": "R", "J": "J", "x_size1": "C"}),
        ("y[t, d] = x[ids[t], d]", "int T, int D", {"T": "T", "D": "D"}),
        ("y[r, c] = s[c] * x[c, r]", "int rows, int cols", None),
        ("C[i, j] = sum[k] A[i, k] * B[k, j]", "int n", None),
        ("y[r] = sum[c] x[r, c]", "int rows, long long cols", None),
        ("y[i] = x[i]", "unsigned n", None),
        ("y[i] = x[i]", "", None),
    ],
)
def test_sizes_are_parameters_where_it_is_certain(text: str, given: str, sizes: dict[str, str] | None) -> None:
    assert sizes_in(formula_of(text), given) == sizes


@pytest.mark.parametrize("text", ["y = sum[i] x[i]", "h: i32[64], h[bin[i]] = sum[i] 1"])
def test_what_takes_several_launches_has_no_body(text: str) -> None:
    with pytest.raises(NoBodyError):
        body(formula_of(text), "__global__ void f()", "f", ["x", "y", "h", "bin"], {}, "int")


def test_a_loop_is_not_called_as_a_parameter_is() -> None:
    sizes = {"I": "m", "J": "n", "K": "k"}
    formula = formula_of("c[i, j] = sum[k] a[i, k] * b[k, j]")
    _, lines = body(formula, "__global__ void f()", "f", ["a", "b", "c", "m", "n", "k"], sizes, "int")
    assert "    for (int p = 0; p < k; ++p) {" in lines


@pytest.mark.parametrize(
    ("text", "first"),
    [
        (
            "y[i] = x[i - 1; clamp]",
            "    const auto clamped = [](int i, int n) { return i < 0 ? 0 : i < n ? i : n - 1; };",
        ),
        ("x: f16, y: f16, y[i] = x[i] * sigmoid(3 * x[i])", "    const auto fast_sigmoid = [](float x) -> float {"),
    ],
)
def test_helpers_stand_in_the_body(text: str, first: str) -> None:
    _, lines = body(formula_of(text), "__global__ void f()", "f", ["x", "y", "n"], {"I": "n"}, "int")
    assert lines[0] == first
    assert not any("<int>(" in line for line in lines)


def test_a_python_function_that_a_comment_names_is_read_and_not_run(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text("1 / 0\ndef step(x):\n    h = x * 2\n    return F.silu(h)\n", encoding="utf-8")
    for words in ("model.py:step", "kernel: same as `step` in model.py", "what model.py::step computes"):
        text = f"// {words}\n".encode()
        wanted = ghost_request(Source(str(tmp_path / "a.cu"), text), len(text))
        assert wanted is not None
        assert [each.formula.text for each in wanted.readings] == ["y[i] = silu(x[i] * 2)"]
    for words in ("model.py:none", "other.py:step", "the step in model.py is slow", "../model.py:step"):
        text = f"// {words}\n".encode()
        assert ghost_request(Source(str(tmp_path / "a.cu"), text), len(text)) is None


def test_the_types_of_a_host_function_below_are_those_of_the_kernels() -> None:
    text = b"// row-wise softmax of x\n\n"
    below = b"cudaError_t softmax(const __half* x, __half* out, int rows, int cols, cudaStream_t stream) {\n}\n"
    wanted = ghost_request(Source("a.cu", text + below), len(text) - 1)
    assert wanted is not None
    assert wanted.readings[0].formula.text.startswith("x: f16, out[r, c] = ")


def test_types_of_the_file_are_what_they_stand_for() -> None:
    text = f"using real = __half;\n#define REAL real\n{COMMENT}{HEAD.replace('float', 'REAL')}".encode()
    wanted = ghost_request(Source("a.cu", text), len(text))
    assert wanted is not None
    assert [each.formula.text for each in wanted.readings] == ["x: f16, y[i] = relu(x[i])"]
    assert wanted.kernel is not None and wanted.kernel.given == "const __half* x, __half* y, int n"
