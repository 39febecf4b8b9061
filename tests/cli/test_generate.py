"""`warpwright generate`: what the model wrote is shown only as what it is."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from support.command import run_command
from support.untaught import untaught_model


@pytest.mark.slow
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
@pytest.mark.nvcc
def test_the_taught_model_reads_what_no_rule_does(tmp_path: Path) -> None:
    words = (
        "subtract the mean of its row from each element of x[rows][cols] and write the largest absolute value per row"
    )
    ran = run_command("generate", words, cwd=tmp_path, env={"WARPWRIGHT_DATA_DIR": str(tmp_path)}, seconds=300)
    assert ran.status == 0, ran.stderr
    assert ran.stdout.startswith("// draft, read as: ")
    assert "correct (emulator)" in ran.stderr


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


@pytest.mark.slow
@pytest.mark.nvcc
def test_what_is_left_open_gives_several_candidates(tmp_path: Path) -> None:
    ran = run_command("generate", "torch.relu(x)", "--shape", "I=100", "--format", "json", cwd=tmp_path)
    assert (ran.status, ran.json["best"], ran.json["reference"]) == (0, 0, "y[i] = relu(x[i])")
    ran = run_command("generate", "softmax of x", "--format", "json", cwd=tmp_path)
    assert [each["report"]["status"] for each in ran.json["candidates"]] == ["correct", "correct"]
    assert ran.json["candidates"][0]["formula"] != ran.json["candidates"][1]["formula"]


@pytest.mark.nvcc
def test_limits_in_words_that_do_not_hold_are_named_with_their_numbers(tmp_path: Path) -> None:
    words = "relu of x[n], n = 1000, in 7.9 kB on an RTX 4090"
    ran = run_command("generate", words, "--format", "json", cwd=tmp_path)
    assert (ran.status, ran.json["best"]) == (1, None)
    (candidate,) = ran.json["candidates"]
    memory, shared = candidate["limits"]
    assert (memory["holds"], memory["bytes"], memory["most_bytes"]) == (False, 8000, 7900)
    assert ran.json["reason"] == "8,000 bytes of device memory at N = 1000 (x 4,000, y 4,000) do not fit in 7,900"
    assert (shared["holds"], shared["bytes"], shared["most_bytes"]) == (True, 0, 99 * 1024)


def test_limits_that_cannot_be_judged(tmp_path: Path) -> None:
    for arguments, said in (
        (("relu of x", "--max-memory", "1GB"), "add --shape I=1024"),
        (("relu of x on an A100", "--arch", "sm_90"), "The words ask for sm_80"),
        (("relu of x", "--reference", "model.py:step"), "beside it only limits"),
    ):
        ran = run_command("generate", *arguments, cwd=tmp_path)
        assert (ran.status, said in ran.stderr) == (2, True), ran.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("relu of x", "--shape", "R=3"), "no size 'R'"),
        (("relu of x[R]", "--shape", "R=3", "--shape", "R=5"), "--shape names R twice, as 3 and as 5."),
        (("relu of x[R]", "--shape", f"R={'9' * 5000}"), "--shape takes a name and a number"),
        (("relu of x[R]", "--max-memory", f"{'9' * 5000}GB"), "--max-memory takes bytes"),
        (("relu of x", "--seconds", "nan"), "'nan' is not a number"),
        (("--reference", "none.py:f"), "none.py is not a file"),
        (("--reference", "step.py:"), "as in model.py:step"),
    ],
)
def test_what_cannot_be_asked_for(tmp_path: Path, arguments: tuple[str, ...], said: str) -> None:
    (tmp_path / "step.py").write_text("def step(x):\n    return x.relu()\n", encoding="utf-8")
    ran = run_command("generate", *arguments, cwd=tmp_path)
    assert (ran.status, ran.stdout, said in ran.stderr) == (2, "", True), ran.stderr


@pytest.mark.nvcc
def test_an_architecture_that_nvcc_has_not_says_nothing_against_the_kernel(tmp_path: Path) -> None:
    ran = run_command("generate", "relu of x", "--arch", "sm_999", cwd=tmp_path)
    assert (ran.status, ran.stdout) == (2, "")
    assert "Unsupported gpu architecture" in ran.stderr
    assert "does not compile" not in ran.stderr


@pytest.mark.llm
@pytest.mark.nvcc
def test_it_stops_when_its_time_is_over_and_shows_nothing_of_what_a_model_wrote(tmp_path: Path) -> None:
    words = "3d convolution of x[n][c][d][h][w] with w[k][c][r][s][t], then layernorm over channels"
    start = time.monotonic()
    ran = run_command("generate", words, "--seconds", "3", cwd=tmp_path, env={"WARPWRIGHT_DATA_DIR": str(tmp_path)})
    assert time.monotonic() - start < 20
    assert (ran.status, ran.stdout) == (1, "")
    assert "or as a formula such as y[i] = 2 * x[i]" in ran.stderr
    assert "__global__" not in ran.stderr


@pytest.mark.nvcc
@pytest.mark.upskill
def test_a_function_without_elements_or_end(tmp_path: Path) -> None:
    text = "def step(x):\n    return x.relu()\ndef ever(x):\n    while True: pass\n"
    (tmp_path / "step.py").write_text(text, encoding="utf-8")
    ran = run_command("generate", "--reference", "step.py:step", "--input", "f32[0]", cwd=tmp_path, seconds=120)
    assert (ran.status, "i has 0 elements" in ran.stderr) == (2, True), ran.stderr
    command = ("generate", "--reference", "step.py:ever", "--input", "f32[4]", "--seconds", "4")
    ran = run_command(*command, cwd=tmp_path, seconds=120)
    assert (ran.status, "was not exported in 4 seconds" in ran.stderr) == (2, True), ran.stderr


@pytest.mark.nvcc
@pytest.mark.upskill
def test_a_function_of_torch_is_written_and_checked(tmp_path: Path) -> None:
    (tmp_path / "step.py").write_text("def step(x, y):\n    return (x * y).relu()\n", encoding="utf-8")
    command = ("generate", "--reference", "step.py:step", "--input", "f32[33,17]", "--input", "f32[33,17]")
    ran = run_command(*command, cwd=tmp_path, seconds=120)
    assert ran.status == 0, ran.stderr
    assert "cudaError_t step(" in ran.stdout


@pytest.mark.nvcc
@pytest.mark.upskill
@pytest.mark.slow
def test_a_function_of_several_parts_is_written_for_its_sizes_and_compared_at_smaller_ones(tmp_path: Path) -> None:
    text = """
import torch
def two(x, v, w):
    return torch.softmax(torch.softmax(x @ v, -1) @ w, -1)
"""
    (tmp_path / "two.py").write_text(text, encoding="utf-8")
    inputs = [each for one in ("f16[1024,512]", "f16[512,512]", "f16[512,512]") for each in ("--input", one)]
    command = ("generate", "--reference", "two.py:two", *inputs, "under 6 MB on an A100, tensor cores")
    ran = run_command(*command, "--format", "json", cwd=tmp_path, seconds=240)
    assert ran.status == 0, ran.stderr
    (candidate,) = ran.json["candidates"]
    parts = candidate["parts"]
    assert len({each["function"] for each in parts}) < len(parts)
    assert {each["report"]["status"] for each in parts} == {"correct"}
    assert parts[0]["sizes"] == {"x_size0": 1024, "x_size1": 512}
    memory, shared, cores = candidate["limits"]
    assert memory["bytes"] == 2 * (4 * 1024 * 512 + 2 * 512 * 512)
    assert shared["holds"]
    assert cores["with_tensor_cores"] == 2
    assert candidate["code"].startswith("// two, in this order")
