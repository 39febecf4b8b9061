"""`warpwright formula`: a kernel on stdout, what was found of it on stderr, one sentence where nothing is written."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.command import run_command

SOFTMAX = "y[r, c] = exp(x[r, c] - m[r]) / s[r] where m[r] = max[c] x[r, c], s[r] = sum[c] exp(x[r, c] - m[r])"


@pytest.mark.nvcc
def test_what_is_written_is_correct(tmp_path: Path) -> None:
    ran = run_command("formula", SOFTMAX, cwd=tmp_path)
    assert ran.status == 0, ran.stderr
    assert 'extern "C" cudaError_t y(' in ran.stdout
    assert "correct (emulator)" in ran.stderr


@pytest.mark.nvcc
def test_json_holds_the_code_and_its_report(tmp_path: Path) -> None:
    ran = run_command("formula", "y[i] = table[ids[i]]", "--name", "look_up", "--format", "json", cwd=tmp_path)
    assert ran.status == 0, ran.stderr
    assert ran.json["name"] == "look_up"
    assert ran.json["report"]["status"] == "correct"
    assert len(ran.json["report"]["cases"]) > 5
    assert ran.json["promises"] == ["ids[i] lies in 0 to table_size - 1, as an index of table."]


@pytest.mark.nvcc
def test_a_given_size_is_tried(tmp_path: Path) -> None:
    ran = run_command("formula", "y[i] = 2 * x[i]", "--size", "I=777", "--format", "json", cwd=tmp_path)
    assert {"I": 777} in [case["shape"] for case in ran.json["report"]["cases"]]


@pytest.mark.nvcc
def test_sizes_that_are_too_large_are_cut_down_and_said(tmp_path: Path) -> None:
    ran = run_command("formula", "y[r] = sum[c] x[r, c]", "--size", "R=100000", "--size", "C=4096", cwd=tmp_path)
    assert ran.status == 0, ran.stderr
    assert "not covered: 1 size" in ran.stderr


@pytest.mark.nvcc
def test_the_best_schedule_of_a_search_is_written(tmp_path: Path) -> None:
    ran = run_command("formula", "y[i] = gelu(x[i])", "--size", "I=100000", "--search", "5", cwd=tmp_path)
    assert ran.status == 0, ran.stderr
    assert "Schedules at I = 100000" in ran.stderr
    assert "pointwise" in ran.stderr
    assert "correct (emulator)" in ran.stderr


def test_a_file_is_read_and_another_written(tmp_path: Path) -> None:
    (tmp_path / "scale.formula").write_text("# twice\ny[i] = 2 * x[i]\n")
    ran = run_command("formula", "scale.formula", "--no-check", "--output", "scale.cu", cwd=tmp_path)
    assert (ran.status, ran.stdout) == (0, "")
    assert "y_pack.at[j] = 2.0f * x_pack.at[j];" in (tmp_path / "scale.cu").read_text()


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["y[i] = x[i] +"], "error: A value is expected, not the end.\ny[i] = x[i] +\n             ^\n"),
        (["nothing"], "error: 'nothing' is neither a formula, which has an =, nor a file\n"),
        (["y[i] = x[i]", "--size", "N=3"], "error: The formula has no size 'N': it has I.\n"),
        (["y[i] = x[i]", "--size", "I"], "error: --size takes a name and a number, as in I=1000, not 'I'\n"),
        (["y[i] = x[i]", "--size", "I=²"], "error: --size takes a name and a number, as in I=1000, not 'I=²'\n"),
        (
            ["y[i] = x[i]", "--size", "I=9223372036854775808"],
            "error: --size takes a name and a number, as in I=1000, not 'I=9223372036854775808'\n",
        ),
        (["y[i] = x[i]", "--schedule", "rows:lanes=8,lanes=4"], "error: lanes of rows is given twice\n"),
        (["y[i] = x[i]", "--schedule", "rows"], "error: That schedule does not fit the formula. Nothing is reduced.\n"),
        (
            ["y[i] = x[i]", "--schedule", "pointwise:depth=2"],
            "error: pointwise has no 'depth': it has threads, vector, packs\n",
        ),
        (
            ["y[i] = x[i]", "--search", "5"],
            "error: A schedule is searched for at given sizes: say --size I=1024.\n",
        ),
        (["y[i] = x[i]", "--name", "a b"], "error: 'a b' cannot be the name of a function in CUDA\n"),
        (["y[i] = x[i]", "--name", "int"], "error: 'int' cannot be the name of a function in CUDA\n"),
        (
            ["h: f8e4m3[H]\nh[b[i]] += w[i]"],
            "error: h is of f8e4m3, for which a GPU has no atomic operation: take f32, f64, i32 or i64.\n",
        ),
    ],
)
def test_what_cannot_be_written_is_one_sentence(tmp_path: Path, arguments: list[str], said: str) -> None:
    ran = run_command("formula", *arguments, cwd=tmp_path)
    assert (ran.status, ran.stdout, ran.stderr) == (2, "", said)


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    "options",
    [
        ["--types", "f32,bf16"],
        ["--input", "f32[3]"],
        ["--format", "json", "--as", "header"],
        ["--schedule", "rows", "--plain"],
    ],
)
def test_options_that_do_not_go_together_are_refused(tmp_path: Path, options: list[str]) -> None:
    ran = run_command("formula", "y[i] = x[i]", *options, cwd=tmp_path)
    assert (ran.status, ran.stdout) == (2, "")
    assert "Usage:" in ran.stderr


def test_the_explanation_names_each_launch(tmp_path: Path) -> None:
    ran = run_command("formula", "y[i] = 2 * x[i]", "--plain", "--explain", "--no-check", cwd=tmp_path)
    assert "always: y_kernel, (I + 255) / 256 blocks of 256 threads" in ran.stderr


MODULE = """
import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(24, 8))

    def forward(self, x):
        return torch.sort(torch.relu(x @ self.weight.t())).values

def get_inputs():
    return [torch.randn(5, 8)]

def scaled(x):
    return x * 2
"""


@pytest.mark.nvcc
def test_a_module_of_pytorch_is_written_part_by_part(tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text(MODULE)
    ran = run_command("formula", "--torch", "net.py::Net", "--format", "json", cwd=tmp_path)
    assert ran.status == 0, ran.stderr
    assert [each["report"]["status"] for each in ran.json["formulas"]] == ["correct"]
    assert "relu(" in ran.json["formulas"][0]["formula"]
    assert ran.json["notes"] == ["sort stays torch's: it has no formula."]


def test_a_function_takes_examples_from_the_command_line(tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text(MODULE)
    ran = run_command(
        "formula", "--torch", "net.py::scaled", "--input", "f32[6,7]", "--no-check", "--as", "header", cwd=tmp_path
    )
    assert ran.status == 0, ran.stderr
    assert ran.stdout.startswith("#ifndef ")


@pytest.mark.sampled(5)
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--torch", "net.py::nothing"], "Nothing is called nothing in net.py."),
        (["--torch", "net.py"], "--torch takes a file and a name in it, as in model.py::Net, not 'net.py'"),
        (
            ["--torch", "other.py::Net"],
            "--torch takes a file and a name in it, as in model.py::Net, not 'other.py::Net'",
        ),
        ([], "give a FORMULA, or --torch FILE::NAME"),
        (["y[i] = x[i]", "--as", "extension"], "--as extension writes three files: name a folder with --output"),
    ],
)
def test_what_cannot_be_exported_is_one_sentence(tmp_path: Path, arguments: list[str], said: str) -> None:
    (tmp_path / "net.py").write_text(MODULE)
    ran = run_command("formula", *arguments, cwd=tmp_path)
    assert ran.status == 2
    assert said in ran.stderr


def test_a_package_has_its_backward_and_its_tests(tmp_path: Path) -> None:
    arguments = ["--as", "package", "--output", "made", "--no-check", "--name", "scale"]
    ran = run_command("formula", "y[r] = sum[c] x[r, c] * w[c]", *arguments, cwd=tmp_path)
    assert ran.status == 0, ran.stderr
    assert "The package itself was not built" in ran.stderr
    autograd = (tmp_path / "made" / "scale" / "csrc" / "scale_autograd.cpp").read_text(encoding="utf-8")
    assert "scale_backward" in autograd
    assert (tmp_path / "made" / "tests" / "test_scale.py").is_file()
    ran = run_command("formula", "y[r] = prod[c] x[r, c]", *arguments, cwd=tmp_path)
    assert "There is no backward: The derivative of prod is not written." in ran.stderr


def test_an_extension_is_three_files_with_a_kernel_for_each_type(tmp_path: Path) -> None:
    arguments = ["--as", "extension", "--types", "f32,bf16", "--output", "scale", "--no-check", "--name", "scale"]
    ran = run_command("formula", "y[i] = 2 * x[i]", *arguments, cwd=tmp_path)
    assert ran.status == 0, ran.stderr
    assert sorted(each.name for each in (tmp_path / "scale").iterdir()) == [
        "scale.cu",
        "scale.py",
        "scale_operator.cpp",
    ]
    assert "cudaError_t scale_bf16(" in (tmp_path / "scale" / "scale.cu").read_text()
