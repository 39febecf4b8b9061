"""The program's own test: real projects, built by make and g++ and run, before a change and after it."""

from __future__ import annotations

import shutil
import threading
import time
from pathlib import Path

import pytest
from warpwright.progress import CancelledError, never_cancelled, silent
from warpwright.sandbox.confine import in_force_here
from warpwright.toolchain.program import ProgramTest
from warpwright.verify.program_output import compare_outputs
from warpwright.verify.program_run import run_program
from warpwright.verify.report import Level, ProgramOutcome, ProgramStatus, Report, Status

needs_compiler = pytest.mark.skipif(
    shutil.which("make") is None or shutil.which("g++") is None, reason="make and g++ build the program"
)

MAKEFILE = "app: main.cpp sum.h\n\tg++ -O1 -o app main.cpp\n"
MAIN = """#include <chrono>
#include <cstdio>
#include "sum.h"
int main() {
    auto start = std::chrono::steady_clock::now();
    double total = sum(1000);
    std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
    std::printf("sum %.3f\\ntook %.6f ms\\n", total, took.count());
    return total > 0 ? 0 : 3;
}
"""
SUM = "inline double sum(int n) { double s = 0; for (int i = 0; i < n; ++i) s += i; return s; }\n"
FORMULA = "inline double sum(int n) { return 0.5 * n * (n - 1.0); }\n"
WRONG = "inline double sum(int n) { return 0.5 * n * n; }\n"
NOTHING = "inline double sum(int n) { return 0; }\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "a project"
    folder.mkdir()
    for name, text in (("Makefile", MAKEFILE), ("main.cpp", MAIN), ("sum.h", SUM)):
        (folder / name).write_text(text)
    return folder


def outcome_of(folder: Path, candidate: str, *, file: str = "sum.h", run: str = "./app", build: str = "make",
           compare: str = "output", seconds: float = 60.0, is_trusted: bool = True) -> ProgramOutcome:  # fmt: skip
    path = folder / file
    test = ProgramTest(folder, run, build, compare, seconds)
    return run_program(
        test,
        {path: path.read_bytes()},
        {path: candidate.encode()},
        is_trusted=is_trusted,
        progress=silent,
        is_cancelled=never_cancelled,
    )


@needs_compiler
def test_the_same_program_but_for_its_times(project: Path) -> None:
    outcome = outcome_of(project, FORMULA)
    assert outcome.status is ProgramStatus.SAME, outcome.reason
    assert outcome.original is not None
    assert outcome.candidate is not None
    assert len(outcome.original.seconds) == len(outcome.candidate.seconds) >= 2
    assert outcome.original.build_seconds > 0
    assert "but for 1 number" in outcome.compared
    assert not (project / "app").exists(), "the user's own folder is left as it is"
    assert (project / "sum.h").read_text() == SUM


@needs_compiler
@pytest.mark.parametrize(
    ("candidate", "words"),
    [
        (WRONG, "line 1 is `sum 500000.000`, and `sum 499500.000` before"),
        (NOTHING, "ends with 3, and the original's with 0"),
        ("inline double sum(int n) { return m; }\n", "could not be built"),
        ("#include <cstdlib>\ninline double sum(int n) { std::abort(); }\n", "ends with "),
        ("inline double sum(int n) { for (volatile int i = 0;; i = 0) ; }\n", "did not finish in 5 seconds"),
    ],
    ids=["another-result", "another-status", "no-build", "aborts", "never-ends"],
)
def test_another_program_is_told(project: Path, candidate: str, words: str) -> None:
    outcome = outcome_of(project, candidate, seconds=5.0)
    assert outcome.status is ProgramStatus.DIFFERS
    assert words in outcome.reason
    report = Report(Status.FASTER, (Level.COMPILED, Level.CORRECT, Level.FASTER)).with_program(outcome)
    assert (report.status, report.levels) == (Status.WRONG, (Level.COMPILED,))
    assert report.to_json()["program"]["status"] == "differs"


@needs_compiler
def test_status_alone(project: Path) -> None:
    assert outcome_of(project, WRONG, compare="status").status is ProgramStatus.SAME
    assert outcome_of(project, NOTHING, compare="status").status is ProgramStatus.DIFFERS


def test_a_folder_that_is_not_allowed_runs_nothing(project: Path, tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    outcome = outcome_of(project, FORMULA, build="", run=f"touch '{mark}'", is_trusted=False)
    assert outcome.status is ProgramStatus.NOT_RUN
    assert "not an allowed folder" in outcome.reason
    assert not mark.exists()


@pytest.mark.skipif(not any("Landlock" in each for each in in_force_here()), reason="this kernel has no Landlock")
def test_it_is_kept_to_its_copy_and_has_no_secrets(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_TOKEN", "hunter2")
    (tmp_path / "private").write_text("private")
    run = f"env; cat '{tmp_path / 'private'}'; echo x > '{tmp_path / 'written'}'; echo y > here; cat sum.h; true"
    outcome = outcome_of(project, SUM, build="", run=f"({run}) > log 2>&1; ! grep -q 'hunter2\\|^private$' log")
    assert outcome.status is ProgramStatus.SAME, outcome.reason
    assert outcome.original is not None
    assert outcome.original.exit_status == 0
    assert not (tmp_path / "written").exists()
    assert not (project / "here").exists()


@pytest.mark.parametrize(
    ("run", "words"),
    [("sleep 60", "did not finish in 1 seconds"), ("echo >> ../runs; exit $(wc -l < ../runs)", "the same exit status")],
    ids=["too-long", "restless"],
)
def test_an_original_that_is_no_measure_says_nothing(project: Path, run: str, words: str) -> None:
    outcome = outcome_of(project, FORMULA, build="", run=run, seconds=1.0)
    assert outcome.status is ProgramStatus.NOT_RUN
    assert words in outcome.reason


@pytest.mark.parametrize(
    ("run", "words"),
    [
        ("./no-such-program --test", "./no-such-program"),
        ("cd . && no-such-command", "no-such-command"),
        ("./sum.h", "ermission denied"),
        (": ; exit 127", "exit status 127"),
    ],
)
def test_a_program_that_cannot_be_started_says_nothing(project: Path, run: str, words: str) -> None:
    outcome = outcome_of(project, FORMULA, build="", run=run)
    assert outcome.status is ProgramStatus.NOT_RUN
    assert outcome.reason.startswith(f"The program could not be started by `{run}`: ")
    assert words in outcome.reason
    report = Report(Status.CORRECT, (Level.COMPILED, Level.CORRECT)).with_program(outcome)
    assert report.to_json()["program"]["status"] == "not-run"


def test_a_candidate_that_alone_cannot_be_started_differs(project: Path) -> None:
    start = "sh ./sum.h"
    (project / "sum.h").write_text("true")
    outcome = outcome_of(project, "no-such-command", build="", run=start)
    assert outcome.status is ProgramStatus.DIFFERS
    assert "ends with 127, and the original's with 0" in outcome.reason


def test_an_original_that_does_not_build(project: Path) -> None:
    outcome = outcome_of(project, FORMULA, build="echo no rule; exit 2")
    assert outcome.status is ProgramStatus.NOT_RUN
    assert outcome.reason == "The original's program could not be built: `no rule`."


def test_a_file_outside_of_the_project(project: Path, tmp_path: Path) -> None:
    (tmp_path / "k.cu").write_text("")
    outcome = outcome_of(project, "", file="../k.cu", build="", run="true")
    assert outcome.status is ProgramStatus.NOT_RUN
    assert "does not lie in" in outcome.reason


def test_a_link_is_not_written_through(project: Path, tmp_path: Path) -> None:
    (tmp_path / "shared.h").write_text("shared")
    (project / "linked.h").symlink_to(tmp_path / "shared.h")
    test = ProgramTest(project, "cat linked.h; cat sum.h")
    outcome = run_program(
        test, {project / "sum.h": b"a"}, {project / "sum.h": b"b"}, is_trusted=True, progress=silent,
        is_cancelled=never_cancelled,
    )  # fmt: skip
    assert outcome.status is ProgramStatus.DIFFERS
    assert (tmp_path / "shared.h").read_text() == "shared"


def test_it_ends_where_it_is_cancelled(project: Path) -> None:
    asked = threading.Event()
    threading.Timer(0.5, asked.set).start()
    started = time.monotonic()
    with pytest.raises(CancelledError):
        run_program(
            ProgramTest(project, "sleep 100"), {}, {}, is_trusted=True, progress=silent, is_cancelled=asked.is_set
        )
    assert time.monotonic() - started < 30


@pytest.mark.parametrize(
    ("originals", "candidate", "same"),
    [
        (["0.5 ms\n", "0.5 ms\n"], "0.2 ms\n", True),
        (["GB/s: 812\n"] * 2, "GB/s: 1900\n", True),
        (["seed 3 ok\n", "seed 9 ok\n"], "seed 5 ok\n", True),
        (["seed 3 ok\n", "seed 9 ok\n"], "seed 5 FAILED\n", False),
        (["error 1e-7\n"] * 2, "error 2e-7\n", False),
        (["PASS\n"] * 2, "", False),
        (["PASS\n"] * 2, "PASS\nwarning\n", False),
        (["a[3] = 4\n"] * 2, "a[3] = 5\n", False),
    ],
)
def test_what_counts_as_the_same_output(originals: list[str], candidate: str, *, same: bool) -> None:
    compared = compare_outputs(originals, [candidate])
    assert (not compared.why) is same, compared
    assert not compared.is_restless


def test_a_tolerance_is_for_fractions_alone() -> None:
    assert not compare_outputs(["x 1.0000\n"] * 2, ["x 1.0001\n"], 1e-3).why
    assert compare_outputs(["n 10000\n"] * 2, ["n 10001\n"], 1e-3).why
