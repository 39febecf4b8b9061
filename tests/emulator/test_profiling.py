"""Profiles by the emulator's own process: what comes back, and that nothing of it stays."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path

import pytest
from support.processes import running
from warpwright.emulator.profiling import Wanted, emulated_profile
from warpwright.facts.analyze import analyze
from warpwright.facts.model import Assumptions, Program
from warpwright.facts.profile import FaultKind, InstructionSet, Profile
from warpwright.missing import Missing
from warpwright.problems.chosen import chosen_shape
from warpwright.problems.infer import find_problem
from warpwright.problems.model import Problem
from warpwright.problems.shapes import Shape
from warpwright.progress import CancelledError, never_cancelled, silent
from warpwright.syntax.source import Source, read_include

SAXPY = """\
#ifdef TWICE
#define STEP 2
#else
#define STEP 1
#endif
__global__ void saxpy(const float* x, float* y, float a, int n) {
    int i = (blockIdx.x * blockDim.x + threadIdx.x) * STEP;
    if (i < n) {
        y[i] = a * x[i] + y[i];
    }
}
void run(const float* x, float* y, float a, int n) { saxpy<<<(n + 255) / 256, 256>>>(x, y, a, n); }
"""
START = "int main() { float *x, *y; cudaMalloc(&x, 4); cudaMalloc(&y, 4); float a = 2;"
WAITING = "__global__ void spin(int* a, int n) { while (a[0] < 2000000000) a[threadIdx.x] = 0; }\n" + (
    "void run(int* a, int n) { spin<<<1, 32>>>(a, n); }\n"
)
ENDLESS = WAITING.replace("a[threadIdx.x] = 0;", "a[threadIdx.x + 1] += 1;")
"""Each turn counts in memory, so that nobody can say that it waits for ever."""


def program(folder: Path, text: str = SAXPY) -> Program:
    return analyze(Source(str(folder / "a.cu"), text.encode()), read_include)


def problem(of: Program) -> Problem:
    found = find_problem(of, of.kernels[0])
    assert isinstance(found, Problem), found
    return found


def chosen(known: Problem, asked: Mapping[str, int] | None = None) -> Shape | Missing:
    return chosen_shape(known, asked or {}, known.profile)


def profiled(of: Program, assume: Assumptions | None = None, **shape: int) -> Profile | Missing:
    wanted = Wanted(of.kernels[0].name, shape, assume or Assumptions())
    return emulated_profile(of, wanted, silent, never_cancelled)


def test_the_users_own_sizes_come_first_where_they_are_small(tmp_path: Path) -> None:
    def own(n: int) -> Problem:
        text = SAXPY.replace("void run(const float* x, float* y, float a, int n) {", f"{START} int n = {n};")
        return problem(program(tmp_path, text))

    assert chosen(own(5000)) == {"n": 5000}
    assert chosen(own(1 << 24)) == {"n": 50_021}


def test_several_full_blocks_and_a_partial_one_are_taken_and_what_is_asked_for_goes_over_it(tmp_path: Path) -> None:
    known = problem(program(tmp_path))
    assert chosen(known) == {"n": 50_021}
    assert chosen(known, {"n": 77}) == {"n": 77}
    refused = chosen(known, {"m": 3})
    assert isinstance(refused, Missing)
    assert refused.reason == "saxpy has no size `m`: its symbols are n."


@pytest.mark.nvcc
def test_each_line_has_its_counts(tmp_path: Path) -> None:
    """1,000 floats are 125 sectors, and the 32 warps of 4 blocks come to the guard."""
    found = profiled(program(tmp_path), n=1000)
    assert isinstance(found, Profile), found
    path = str(tmp_path / "a.cu")
    guard, body = found.line(path, 8), found.line(path, 9)
    assert guard is not None and body is not None
    assert (found.launch.grid, found.launch.block, found.launch.shape) == ((4, 1, 1), (256, 1, 1), {"n": 1000})
    assert (guard.instruction_set, guard.branches, guard.divergent_branches) == (InstructionSet.PTX, 32, 1)
    assert (body.requests, body.sectors, body.ideal_sectors) == (96, 375, 375)
    assert (found.function, found.flags) == ("saxpy", ("-arch=sm_90",))
    assert found.faults == ()


@pytest.mark.nvcc
def test_macros_of_the_analysis_are_the_compilers(tmp_path: Path) -> None:
    assume = Assumptions(defines={"TWICE": "1", "__cplusplus": "201703L"})
    found = profiled(program(tmp_path), assume, n=1000)
    assert isinstance(found, Profile), found
    body = found.line(str(tmp_path / "a.cu"), 9)
    assert body is not None
    assert (body.requests, body.sectors) == (48, 375)
    assert found.flags == ("-arch=sm_90", "-DTWICE=1", "-std=c++17")


@pytest.mark.nvcc
def test_what_does_not_compile_is_one_sentence(tmp_path: Path) -> None:
    found = profiled(program(tmp_path, SAXPY.replace("a * x[i]", "a * x[i] + none")))
    assert isinstance(found, Missing)
    assert "nvcc found an error: a.cu:9" in found.reason


@pytest.mark.nvcc
def test_a_cancel_ends_it_at_once_and_leaves_nothing(tmp_path: Path) -> None:
    def left() -> set[int]:
        """Of this process, or of none that lives: tests beside this one have emulators of their own."""
        return {each for parent in (os.getpid(), 1) for each in running("warpwright.emulator", parent)}

    before, started = left(), time.monotonic()
    spinning = program(tmp_path, ENDLESS)
    with pytest.raises(CancelledError):
        emulated_profile(
            spinning, Wanted("spin", {"n": 32}, Assumptions()), silent, lambda: time.monotonic() - started > 4
        )
    assert left() <= before


@pytest.mark.nvcc
def test_a_loop_in_which_nothing_changes_is_a_deadlock_and_not_waited_for(tmp_path: Path) -> None:
    found = profiled(program(tmp_path, WAITING), n=32)
    assert isinstance(found, Profile), found
    assert (FaultKind.DEADLOCK, 1) in [(fault.kind, fault.line) for fault in found.faults]


PAST_ITS_OWN = """\
__global__ void largest(const float* in, float* out, int n) {
    float best[4] = {0, 0, 0, 0};
    for (int j = 0; j < n; ++j) {
        int k = 3;
        for (; k >= 0 && best[k] < in[j]; --k) best[k + 1] = best[k];
        best[k + 1] = in[j];
    }
    for (int k = 0; k < 4; ++k) out[4 * threadIdx.x + k] = best[k];
}
void run(const float* in, float* out) { largest<<<1, 32>>>(in, out, 50); }
"""


@pytest.mark.nvcc
def test_an_access_outside_of_a_threads_own_array_comes_of_no_guess_about_others(tmp_path: Path) -> None:
    """How many elements `in` has is guessed, as nothing allocates it."""
    made = profiled(program(tmp_path, PAST_ITS_OWN))
    assert isinstance(made, Profile), made
    (fault,) = made.faults
    assert (fault.kind, fault.array, fault.guessed) == (FaultKind.OUT_OF_BOUNDS, None, ())


@pytest.mark.nvcc
def test_a_run_may_take_so_long(tmp_path: Path) -> None:
    wanted = Wanted("spin", {"n": 32}, Assumptions(), seconds=3)
    found = emulated_profile(program(tmp_path, ENDLESS), wanted, silent, never_cancelled)
    assert isinstance(found, Missing)
    assert found.reason == "The run was not done in 3 seconds and was stopped."


def test_a_child_that_dies_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.executable", str(_dying(tmp_path)))
    found = profiled(program(tmp_path), n=1000)
    assert isinstance(found, Missing)
    assert found.reason == "The emulator ended unexpectedly (killed by something)."


def _dying(folder: Path) -> Path:
    script = folder / "python"
    script.write_text("#!/bin/sh\necho killed by something >&2\nexit 9\n", encoding="utf-8")
    script.chmod(0o755)
    return script
