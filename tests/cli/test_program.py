"""The program's own test at the end of `verify` and `optimize`: in an allowed folder, built and run for real."""

from __future__ import annotations

import shlex
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from support.command import run_command
from warpwright.cli.program import outcome_with_program
from warpwright.optimize.outcome import Candidate, Outcome
from warpwright.progress import never_cancelled, silent
from warpwright.syntax.source import Source, read_source
from warpwright.verify.report import Level, Report, Status

pytestmark = pytest.mark.nvcc

KERNEL = """// warpwright: array x[n] in-out
// warpwright: launch grid((n + 255) / 256) block(256)
__global__ void twice(float* x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] = x[i] * 2.0f;
}
"""
ADDED = KERNEL.replace("x[i] * 2.0f", "x[i] + x[i]")
CHECK = """import pathlib, sys
text = pathlib.Path("twice.cu").read_text()
print("kernel of", text.count("{}") + 1, "files")
sys.exit(0 if "x[i]" in text else 1)
"""
PICKY = 'import pathlib\nprint("sum" if "x[i] + x[i]" in pathlib.Path("twice.cu").read_text() else "product")\n'


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "twice.cu").write_text(KERNEL)
    (tmp_path / "twice_added.cu").write_text(ADDED)
    (folder / "check.py").write_text(CHECK)
    (folder / "warpwright.toml").write_text(
        f'[program]\nrun = "{shlex.quote(sys.executable)} check.py"\nreads = ["{sys.prefix}", "{sys.base_prefix}"]\n'
    )
    return folder


def verified(project: Path, *more: str) -> dict[str, object]:
    arguments = ("--backend", "emulator", "--goal", "fix", "--format", "json", *more)
    ran = run_command("verify", "twice.cu", "../twice_added.cu", *arguments, cwd=project)
    assert ran.status in (0, 1), ran.stderr
    report: dict[str, object] = ran.json
    return {**report, "exit": ran.status}


def test_it_is_run_in_an_allowed_folder_alone(project: Path) -> None:
    report = verified(project)
    assert report["status"] == "correct"
    assert "is not an allowed folder" in str(report["program"])
    assert run_command("trust", project, cwd=project).status == 0
    report = verified(project)
    program = report["program"]
    assert isinstance(program, dict)
    assert (report["status"], program["status"]) == ("correct", "same"), program
    assert verified(project, "--no-program")["program"] is None


def test_a_program_that_prints_something_else_is_wrong(project: Path) -> None:
    (project / "check.py").write_text(PICKY)
    assert run_command("trust", project, cwd=project).status == 0
    report = verified(project)
    assert (report["status"], report["exit"]) == ("wrong", 1)
    assert "line 1 is `sum`, and `product` before" in str(report)
    arguments = ("--backend", "emulator", "--goal", "fix")
    text = run_command("verify", "twice.cu", "../twice_added.cu", *arguments, cwd=project).stdout
    assert "The program's own test" in text


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("g++") is None, reason="nvcc has the host's compiler build the program")
def test_a_cuda_program_is_built(project: Path) -> None:
    (project / "main.cu").write_text('#include "twice.cu"\nint main() { return 0; }\n')
    build = "nvcc -c -o main.o main.cu"
    (project / "warpwright.toml").write_text(f'[program]\nbuild = "{build}"\nrun = "ls main.o"\n')
    assert run_command("trust", project, cwd=project).status == 0
    program = verified(project)["program"]
    assert isinstance(program, dict)
    assert program["status"] == "same", program
    assert program["candidate"]["build_seconds"] > 0


def test_a_version_whose_program_differs_is_not_offered(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (project / "check.py").write_text(PICKY)
    monkeypatch.setenv("WARPWRIGHT_TRUSTED_FOLDERS", str(project))
    before = read_source(project / "twice.cu")
    report = Report(Status.CORRECT, (Level.CORRECT,), backend="emulator")
    candidate = Candidate((), (), before, Source(before.path, ADDED.encode()), report)
    found = Outcome("twice", "speed", None, "", (candidate,), 0)
    outcome = outcome_with_program(found, silent, never_cancelled)
    assert outcome.best is None
    assert "prints something else" in outcome.reason
    assert outcome.candidates[0].report.status is Status.WRONG
    same = replace(found, candidates=(replace(candidate, source_after=before),))
    assert outcome_with_program(same, silent, never_cancelled).best == 0
