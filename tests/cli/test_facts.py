"""`warpwright facts`: the contract's JSON, the text for people, and what it does with bad input."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli.kernels import CLEAN, CONFLICT
from support.command import run_command


def test_json(tmp_path: Path) -> None:
    (tmp_path / "a.cu").write_text(CONFLICT, encoding="utf-8")
    (tmp_path / "b.cu").write_text(CLEAN, encoding="utf-8")
    ran = run_command("facts", "a.cu", "b.cu", "--format", "json", cwd=tmp_path)
    assert (ran.status, ran.stderr) == (0, "")
    assert ran.json["version"] == 1
    transpose, scale = ran.json["kernels"]
    assert (transpose["name"], transpose["file"], transpose["line"]) == ("transpose", "a.cu", 1)
    assert transpose["launches"][0]["block"] == [32, 32, 1]
    assert transpose["shared_bytes"] == 4096
    column = next(
        access for access in transpose["accesses"] if access["expression"] == "tile[threadIdx.x][threadIdx.y]"
    )
    assert (column["line"], column["space"], column["kind"], column["bytes"]) == (5, "shared", "load", 4)
    assert (column["wavefronts_per_request"], column["ideal_wavefronts_per_request"]) == (32, 1)
    assert [branch["condition"] for branch in scale["branches"]] == ["i < n"]


def test_text_marks_the_source(tmp_path: Path) -> None:
    (tmp_path / "a.cu").write_text(CONFLICT, encoding="utf-8")
    ran = run_command("facts", "a.cu", cwd=tmp_path)
    assert ran.status == 0
    assert all(line in ran.stdout for line in CONFLICT.splitlines())
    assert "32 wavefronts (ideal 1)" in ran.stdout


def test_one_bad_file_does_not_hide_the_others(tmp_path: Path) -> None:
    (tmp_path / "a.cu").write_text(CLEAN, encoding="utf-8")
    ran = run_command("facts", "none.cu", "a.cu", "--format", "json", cwd=tmp_path)
    assert ran.status == 2
    assert [kernel["name"] for kernel in ran.json["kernels"]] == ["scale"]
    assert ran.stderr == "error: none.cu: no such file\n"


def test_no_kernel(tmp_path: Path) -> None:
    (tmp_path / "a.cu").write_text("int x;\n", encoding="utf-8")
    ran = run_command("facts", "a.cu", "--format", "json", cwd=tmp_path)
    assert (ran.status, ran.json) == (0, {"version": 1, "kernels": []})
    assert "no kernel" in ran.stderr


SEVERAL = """\
__global__ void k(float* a, const int* at) {
    float own[64]; own[at[0] & 63] = a[threadIdx.x * 2]; a[threadIdx.x * 2 + threadIdx.y] += own[at[1] & 63];
}
__global__ void other(float* a) { a[threadIdx.x] = 0; }
void f(float* a, int* b) { k<<<1, 256>>>(a, b); k<<<1, dim3(4, 64)>>>(a, b); other<<<1, 32>>>(a); }
"""


def test_one_kernel_alone(tmp_path: Path) -> None:
    (tmp_path / "a.cu").write_text(SEVERAL, encoding="utf-8")
    ran = run_command("facts", "a.cu", "--kernel", "other", cwd=tmp_path)
    assert ran.stdout.splitlines()[0] == "4 | __global__ void other(float* a) { a[threadIdx.x] = 0; }"
    assert "void f" not in ran.stdout
    missing = run_command("facts", "a.cu", "--kernel", "none", cwd=tmp_path)
    assert (missing.status, missing.stderr) == (2, "error: a.cu: no kernel 'none' in this file\n")


def test_launches_that_cost_differently_are_told_apart(tmp_path: Path) -> None:
    (tmp_path / "a.cu").write_text(SEVERAL, encoding="utf-8")
    ran = run_command("facts", "a.cu", cwd=tmp_path)
    notes = [line for line in ran.stdout.splitlines() if "global load" in line]
    assert all(any(f"block {block} (a.cu:5)]" in note for note in notes) for block in ("256", "4 x 64"))
    assert "local store of 4 bytes" in ran.stdout


def test_notes_are_wrapped_to_the_terminal(tmp_path: Path) -> None:
    (tmp_path / "a.cu").write_text(SEVERAL, encoding="utf-8")
    ran = run_command("facts", "a.cu", cwd=tmp_path, env={"COLUMNS": "100"})
    notes = [line for line in ran.stdout.splitlines() if line.startswith("  |")]
    assert notes
    assert max(map(len, notes)) <= 130  # a note under the end of a long line starts left of its carets


def test_the_source_form_is_the_text_with_comments(tmp_path: Path) -> None:
    (tmp_path / "a.cu").write_text(CONFLICT, encoding="utf-8")
    ran = run_command("facts", "a.cu", "--format", "source", cwd=tmp_path)
    lines = [line for line in ran.stdout.splitlines() if not line.startswith("//")]
    assert "\n".join(lines).strip() == "\n".join(x for x in CONFLICT.splitlines() if not x.startswith("//")).strip()


@pytest.mark.nvcc
def test_compile_adds_what_the_compiler_says(tmp_path: Path) -> None:
    (tmp_path / "a.cu").write_text(CONFLICT, encoding="utf-8")
    (tmp_path / "b.cu").write_text("__global__ void k(float* x) { x[0] = y; }\n", encoding="utf-8")
    ran = run_command("facts", "a.cu", "b.cu", "--compile", "--format", "json", cwd=tmp_path)
    assert ran.status == 0
    transpose, broken = ran.json["kernels"]
    (compiled,) = transpose["compiled"]
    assert (compiled["shared_bytes"], compiled["arch"]) == (4096, "sm_90")
    assert compiled["occupancy"][0]["fraction"] == 1.0
    assert "compiled" not in broken
    assert "b.cu: judged by its text alone: nvcc found an error" in ran.stderr
