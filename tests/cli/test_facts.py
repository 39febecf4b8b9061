"""`warpwright facts`: the contract's JSON, the text for people, and what it does with bad input."""

from __future__ import annotations

from pathlib import Path

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
    assert "32 wavefronts (fewest 1)" in ran.stdout


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
