"""`warpwright wire`."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.command import run_command
from warpwright.cli.main import run

COPY = """\
// y[i] = 2 * x[i]
__global__ void twice(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = 2 * x[i];
}
"""


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["missing.cu:twice"], "no such file"),
        (["twice.cu:thrice"], "no kernel 'thrice'; it has: twice"),
        (["twice.cu:twice", "--name", "2x"], "'2x' cannot be the name of a package"),
        (["twice.cu:twice", "--types", "f23"], "'f23' is not an element type"),
        (["twice.cu:twice", "--formula", "y[i] ="], "The formula cannot be read"),
        (["twice.cu:twice", "--types", "f64"], "twice is not a template over its element type"),
    ],
)
def test_what_cannot_be_wired_is_one_sentence(
    arguments: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "twice.cu").write_text(COPY, encoding="utf-8")
    assert run(["wire", *arguments]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.nvcc
def test_the_formula_is_that_of_the_comment(tmp_path: Path) -> None:
    (tmp_path / "twice.cu").write_text(COPY, encoding="utf-8")
    ran = run_command("wire", "twice.cu", cwd=tmp_path, env={"WARPWRIGHT_GPU_PYTHON": "/nowhere"})
    assert ran.status == 0, ran.stderr
    assert "comparisons with the formula hold" in ran.stderr
    assert "call_backward(gradients[0])" in (tmp_path / "twice/twice/csrc/twice_autograd.cpp").read_text(
        encoding="utf-8"
    )
