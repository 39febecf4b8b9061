"""`warpwright generate`: what the model wrote is shown only as what it is."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.command import run_command
from support.untaught import untaught_model


@pytest.mark.llm
@pytest.mark.nvcc
def test_a_draft_and_its_report(tmp_path: Path) -> None:
    """The untuned model may fail to write a kernel; then it must say so, and offer nothing."""
    command = ("generate", "swap every other pair of floats", "--seconds", "240", "--format", "json")
    ran = run_command(*command, cwd=tmp_path, env=untaught_model(), seconds=300)
    answer = ran.json
    assert answer["raw"]
    if ran.status == 0:
        (candidate,) = answer["candidates"]
        assert "__global__" in candidate["code"]
        assert candidate["report"]["levels"] == ["parsed", "compiled"]
        assert (answer["best"], answer["reason"]) == (0, "")
    else:
        assert ran.status == 1
        assert answer["best"] is None
        assert answer["reason"] or answer["candidates"][0]["report"]["status"] == "does-not-compile"


@pytest.mark.llm
def test_without_a_taught_model_it_says_so_at_once(tmp_path: Path) -> None:
    ran = run_command("generate", "the eigenvalues of x", cwd=tmp_path, env={"WARPWRIGHT_DATA_DIR": str(tmp_path)})
    assert ran.status == 2
    assert ran.stdout == ""
    assert "No taught model is installed" in ran.stderr


def test_an_empty_description(tmp_path: Path) -> None:
    ran = run_command("generate", "  ", cwd=tmp_path)
    assert ran.status == 2
    assert "say in words" in ran.stderr


def test_a_model_that_is_not_there(tmp_path: Path) -> None:
    ran = run_command("generate", "the eigenvalues of x", "--model", "/nowhere/model.gguf", cwd=tmp_path)
    assert ran.status == 2
    assert "/nowhere/model.gguf" in ran.stderr


@pytest.mark.nvcc
def test_words_that_are_understood_need_no_model(tmp_path: Path) -> None:
    ran = run_command("generate", "row sums of x, then relu", "--model", "/nowhere/model.gguf", cwd=tmp_path)
    assert ran.status == 0, ran.stderr
    assert ran.stdout.startswith("// read as: y[r] = relu(sum[c] x[r, c])  # f32, row-major, any R and C\n")
    assert 'extern "C" cudaError_t sum_relu(' in ran.stdout
    assert "correct (emulator)" in ran.stderr


@pytest.mark.nvcc
def test_what_is_left_open_gives_several_candidates(tmp_path: Path) -> None:
    ran = run_command("generate", "torch.relu(x)", "--shape", "I=100", "--format", "json", cwd=tmp_path)
    assert (ran.status, ran.json["best"], ran.json["reference"]) == (0, 0, "y[i] = relu(x[i])")
    ran = run_command("generate", "softmax of x", "--format", "json", cwd=tmp_path)
    assert [each["report"]["status"] for each in ran.json["candidates"]] == ["correct", "correct"]
    assert ran.json["candidates"][0]["formula"] != ran.json["candidates"][1]["formula"]


@pytest.mark.nvcc
def test_limits_in_words_hold_or_are_named_with_their_numbers(tmp_path: Path) -> None:
    words = "half matmul of a[M][K] and b[K][N], M = 64, K = 96, N = 128, on an RTX 4090 with tensor cores"
    ran = run_command("generate", f"{words}, in 40 kB", "--format", "json", cwd=tmp_path)
    assert (ran.status, ran.json["best"]) == (1, None)
    (candidate,) = ran.json["candidates"]
    memory, shared, cores = candidate["limits"]
    total = 2 * (64 * 96 + 96 * 128 + 64 * 128)
    assert (memory["holds"], memory["bytes"], memory["most_bytes"]) == (False, total, 40_000)
    assert "53,248 bytes of device memory" in ran.json["reason"]
    assert (shared["holds"], shared["most_bytes"]) == (True, 99 * 1024)
    assert shared["bytes"] > 0
    assert cores["holds"]
    assert cores["text"].endswith("on sm_89 (matmul_kernel)")
    ran = run_command("generate", words, "--max-memory", "53248", cwd=tmp_path)
    assert ran.status == 0, ran.stderr
    assert "fit in 53,248" in ran.stderr


def test_limits_that_cannot_be_judged(tmp_path: Path) -> None:
    for arguments, said in (
        (("relu of x", "--max-memory", "1GB"), "add --shape I=1024"),
        (("relu of x on an A100", "--arch", "sm_90"), "The words ask for sm_80"),
        (("relu of x", "--reference", "model.py:step"), "beside it only limits"),
    ):
        ran = run_command("generate", *arguments, cwd=tmp_path)
        assert (ran.status, said in ran.stderr) == (2, True), ran.stderr


def test_a_reference_that_is_no_file(tmp_path: Path) -> None:
    ran = run_command("generate", "--reference", "none.py:f", cwd=tmp_path)
    assert ran.status == 2
    assert "model.py:step" in ran.stderr


def test_a_shape_that_the_formula_has_not(tmp_path: Path) -> None:
    ran = run_command("generate", "relu of x", "--shape", "R=3", cwd=tmp_path)
    assert ran.status == 2
    assert "no size 'R'" in ran.stderr


@pytest.mark.nvcc
@pytest.mark.upskill
def test_a_function_of_torch_is_written_and_checked(tmp_path: Path) -> None:
    (tmp_path / "step.py").write_text("def step(x, y):\n    return (x * y).relu()\n", encoding="utf-8")
    command = ("generate", "--reference", "step.py:step", "--input", "f32[33,17]", "--input", "f32[33,17]")
    ran = run_command(*command, cwd=tmp_path, seconds=120)
    assert ran.status == 0, ran.stderr
    assert "cudaError_t step(" in ran.stdout
