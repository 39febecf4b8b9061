"""`warpwright optimize`: the search from the command line, with and without a model."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from cli.kernels import CLEAN, CONFLICT, SEARCHED
from support.command import run_command
from support.untaught import untaught_model

NO_MODEL = {"WARPWRIGHT_MODEL": "/nowhere/model.gguf"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "a.cu").write_text(SEARCHED, encoding="utf-8")
    return tmp_path


@pytest.mark.nvcc
@pytest.mark.llm
def test_the_model_plans_and_the_best_is_a_diff(folder: Path) -> None:
    command = ("optimize", "a.cu", "--plan", "model", "--format", "json")
    ran = run_command(*command, cwd=folder, env=untaught_model())
    assert ran.status == 0, ran.stderr
    outcome = ran.json
    assert (outcome["kernel"], outcome["goal"]) == ("transpose", "speed")
    assert outcome["plan"]["analysis"] in outcome["plan"]["raw"]
    best = outcome["candidates"][outcome["best"]]
    assert {"pad-shared-array", "swizzle-shared-array"} & set(best["rewrites"]), "either ends the bank conflict"
    assert "re-analysed" in best["report"]["levels"]
    assert (folder / "a.cu").read_text(encoding="utf-8") == SEARCHED


@pytest.mark.nvcc
def test_without_a_model_the_rewrites_are_tried_and_the_missing_is_named(folder: Path) -> None:
    ran = run_command("optimize", "a.cu", "--plan", "model", cwd=folder, env=NO_MODEL)
    assert ran.status == 0
    assert ran.stderr.startswith("note: transpose, line 5: 32-way bank conflict on ")
    assert "/nowhere/model.gguf cannot be read" in ran.stderr
    assert ran.stdout.splitlines()[0].partition(": ")[2].startswith("correct (") and "registers" not in ran.stdout
    whole = run_command("optimize", "a.cu", "--plan", "model", "--verbose", cwd=folder, env=NO_MODEL).stdout
    assert "/nowhere/model.gguf cannot be read" in whole and "registers" in whole
    diff = ran.stdout[ran.stdout.index("--- a/a.cu") :]
    subprocess.run(["patch", "-p1"], cwd=folder, input=diff, text=True, check=True, capture_output=True)
    assert run_command("check", "a.cu", cwd=folder).status == 0


def test_a_model_that_was_asked_for_must_be_there(folder: Path) -> None:
    ran = run_command("optimize", "a.cu", "--model", "/nowhere/model.gguf", cwd=folder)
    assert ran.status == 2
    assert "/nowhere/model.gguf" in ran.stderr


@pytest.mark.nvcc
def test_nothing_to_do(folder: Path) -> None:
    (folder / "clean.cu").write_text(CLEAN, encoding="utf-8")
    ran = run_command("optimize", "clean.cu", "--format", "json", cwd=folder, env=NO_MODEL)
    assert ran.status == 1
    assert ran.json["best"] is None
    assert ran.json["reason"]


@pytest.mark.nvcc
def test_of_several_kernels_the_worst_is_taken(folder: Path) -> None:
    (folder / "two.cu").write_text(CLEAN + CONFLICT, encoding="utf-8")
    ran = run_command("optimize", "two.cu", "--seconds", "1", "--format", "json", cwd=folder, env=NO_MODEL)
    assert ran.json["kernel"] == "transpose"
    assert "of the kernels scale, transpose, 'transpose' is taken" in ran.stderr


@pytest.mark.slow
@pytest.mark.nvcc
def test_a_wish_is_kept_and_one_that_is_not_understood_is_said(folder: Path) -> None:
    (folder / "a.cu").write_text(CONFLICT, encoding="utf-8")
    ran = run_command("optimize", "a.cu", "--wish", "keep it exact", "--format", "json", cwd=folder)
    assert ran.status == 0, ran.stderr
    assert ran.json["plan"] is None and "No model was asked" in ran.json["plan_missing"]
    assert not any("add-restrict" in candidate["rewrites"] for candidate in ran.json["candidates"])
    ran = run_command("optimize", "a.cu", "--wish", "in pink", cwd=folder)
    assert ran.status == 2
    assert '"in pink" asks for nothing that a search knows' in ran.stderr


@pytest.mark.nvcc
def test_a_kernel_that_does_not_compile_is_repaired_where_that_is_certain(folder: Path) -> None:
    broken = CLEAN.replace(";", "", 1)
    assert broken != CLEAN
    (folder / "broken.cu").write_text(broken, encoding="utf-8")
    ran = run_command("optimize", "broken.cu", "--goal", "fix", "--format", "json", cwd=folder)
    assert ran.status == 0, ran.stderr
    best = ran.json["candidates"][ran.json["best"]]
    assert best["rewrites"] == ["missing-semicolon"]
    ran = run_command("optimize", "broken.cu", cwd=folder)
    assert ran.status == 2
    assert "cannot be compared with anything until its file compiles" in ran.stderr
    assert "--goal fix" in ran.stderr


def test_bad_input(folder: Path) -> None:
    (folder / "empty.cu").write_text("int x;\n", encoding="utf-8")
    ran = run_command("optimize", "empty.cu", cwd=folder)
    assert ran.status == 2
    assert "empty.cu: no kernel (__global__ function) in this file" in ran.stderr
    ran = run_command("optimize", "a.cu", "--kernel", "none", cwd=folder)
    assert ran.status == 2
    assert "no kernel 'none'; it has: transpose" in ran.stderr
    assert run_command("optimize", "a.cu", "--goal", "beauty", cwd=folder).status == 2


def test_without_a_compiler(folder: Path) -> None:
    ran = run_command("optimize", "a.cu", cwd=folder, env={"WARPWRIGHT_NVCC": "/nowhere/nvcc"})
    assert ran.status == 2
    assert "nothing can be verified. WARPWRIGHT_NVCC names /nowhere/nvcc" in ran.stderr


@pytest.mark.slow
@pytest.mark.nvcc
def test_macros_reach_the_compiler(folder: Path) -> None:
    (folder / "a.cu").write_text(SEARCHED.replace("tile[32][32]", "tile[SIDE][SIDE]"), encoding="utf-8")
    ran = run_command("optimize", "a.cu", "-DSIDE=32", cwd=folder, env=NO_MODEL)
    assert ran.status == 0, ran.stderr
