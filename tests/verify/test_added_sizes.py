"""A candidate whose kernel takes a size more is compared with the original, which is not handed it."""

from __future__ import annotations

import pytest
from warpwright.facts.analyze import analyze
from warpwright.problems.infer import find_problem
from warpwright.problems.model import Problem, Step
from warpwright.syntax.source import Source
from warpwright.verify import emulation
from warpwright.verify.added_sizes import with_added_sizes
from warpwright.verify.budget import Budget
from warpwright.verify.host_code import host_differences
from warpwright.verify.report import Status
from warpwright.verify.verify import verify

ORIGINAL = """
__global__ void ramp(float *out, float step) {
  int i = blockIdx.x;
  out[i] = step * i;
}
void run(float *out, float step, int n) {
  ramp<<<n, 1>>>(out, step);
}
"""
CANDIDATE = """
__global__ void ramp(float *out, float step, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  out[i] = step * i;
}
void run(float *out, float step, int n) {
  ramp<<<(n + 63) / 64, 64>>>(out, step, n);
}
"""


def source(text: str) -> Source:
    return Source("ramp.cu", text.encode())


def problem(text: str) -> Problem:
    program = analyze(source(text))
    kernel = program.kernel("ramp")
    assert kernel is not None
    found = find_problem(program, kernel)
    assert isinstance(found, Problem), found
    return found


def test_the_original_is_one_step_with_its_own_arguments() -> None:
    made = with_added_sizes(problem(ORIGINAL), problem(CANDIDATE))
    assert [a.name for a in made.arguments] == ["out", "step", "n"]
    assert made.steps == (Step("ramp", (), ("out", "step")),)
    assert made.case({"n": 100}).grid == (100, 1, 1)
    assert made.case({"n": 100}).scalars["n"] == 100


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("int n) {\n  int", "const float *n) {\n  int"),  # an array
        ("int n) {\n  int", "float n) {\n  int"),
        ("float *out, float step, int n) {\n  int", "int n, float *out, float step) {\n  int"),  # in front
    ],
)
def test_what_is_no_size_behind_the_others_is_not_added(old: str, new: str) -> None:
    assert old in CANDIDATE
    original = problem(ORIGINAL)
    assert with_added_sizes(original, problem(CANDIDATE.replace(old, new))) == original


def test_nothing_is_said_of_the_argument_more() -> None:
    assert host_differences(analyze(source(ORIGINAL)), analyze(source(CANDIDATE))) == ()
    other = analyze(source(CANDIDATE.replace("(out, step, n)", "(out + 1, step, n)")))
    (difference,) = host_differences(analyze(source(ORIGINAL)), other)
    assert "ramp is passed `(out + 1, step, n)`" in difference.text


@pytest.mark.nvcc
@pytest.mark.parametrize(
    ("handed", "status"), [("n", Status.CORRECT), ("n - 1", Status.WRONG)], ids=["the-size", "one-less"]
)
def test_it_is_handed_what_the_launch_says(handed: str, status: Status, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(emulation, "BUDGET", Budget(1_000_000, 20_000_000, 200_000))
    candidate = CANDIDATE.replace("(out, step, n);", f"(out, step, {handed});")
    found = verify(source(ORIGINAL), source(candidate), backend="emulator", again=True)
    assert found.status is status, found.reason
