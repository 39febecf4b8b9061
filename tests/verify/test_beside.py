"""A kernel that a candidate writes beside the old one is compared as an edit of the old one."""

from __future__ import annotations

import pytest
from warpwright.facts.analyze import analyze
from warpwright.facts.model import Program
from warpwright.syntax.source import Source
from warpwright.verify import emulation
from warpwright.verify.beside import Beside, beside
from warpwright.verify.budget import Budget
from warpwright.verify.report import Report, Status
from warpwright.verify.verify import verify

SCALE = """// warpwright: check n=100
__global__ void scale(float *out, const float *in, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = 2.0f * in[i];
}
"""
TUNED = """
static __global__ void scale_tuned(float *out, const float *in, int n) {
  int i = 2 * (blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) out[i] = 2.0f * in[i];
  if (i + 1 < n) out[i + 1] = 2.0f * in[i + 1];
}
"""
OLD = "scale<<<(n + 127) / 128, 128>>>(out, in, n);"
NEW = "scale_tuned<<<(n + 255) / 256, 128>>>(out, in, n);"


def source(kernels: str, launches: str) -> Source:
    return Source("k.cu", f"{kernels}\nvoid run(float *out, const float *in, int n) {{\n  {launches}\n}}\n".encode())


def found(before: Source, after: Source) -> Beside | None:
    return beside(analyze(before), analyze(after), analyze)


def report(kernels: str, launches: str = NEW, before: str = OLD) -> Report:
    return verify(source(SCALE, before), source(kernels, launches), backend="emulator", again=True)


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(emulation, "BUDGET", Budget(4_000_000, 60_000_000, 200_000))


@pytest.mark.nvcc
def test_one_that_does_the_same_is_correct_and_predicted_under_the_old_name() -> None:
    made = report(SCALE + TUNED)
    assert (made.status, made.kernel) == (Status.CORRECT, "scale"), made.reason
    assert made.predicted is not None
    assert made.compilation is not None
    assert made.compilation.candidate is not None
    assert made.compilation.candidate.resources.mangled_name.endswith("scale_tunedPfPKfi")


@pytest.mark.nvcc
def test_one_that_computes_something_else_is_wrong() -> None:
    made = report(SCALE + TUNED.replace("out[i + 1] = 2.0f", "out[i + 1] = 3.0f"))
    assert made.status is Status.WRONG
    assert "out[" in made.reason


@pytest.mark.nvcc
def test_one_whose_launch_covers_a_part_is_wrong() -> None:
    made = report(SCALE + TUNED, NEW.replace("255) / 256", "511) / 512"))
    assert made.status is Status.WRONG


@pytest.mark.slow
@pytest.mark.nvcc
def test_one_that_nobody_launches_is_compared_too() -> None:
    text = SCALE.replace("scale", "scale_tuned").replace("2.0f * in", "in")
    wrong = verify(Source("k.cu", SCALE.encode()), Source("k.cu", (SCALE + text).encode()), backend="emulator")
    assert wrong.status is Status.WRONG
    right = verify(
        Source("k.cu", SCALE.encode()),
        Source("k.cu", (SCALE + text.replace("= in[i]", "= in[i] + in[i]")).encode()),
        backend="emulator",
    )
    assert right.status is Status.CORRECT, right.reason


@pytest.mark.nvcc
def test_the_old_kernel_may_not_change_unseen() -> None:
    made = report(SCALE.replace("2.0f", "4.0f") + TUNED)
    assert made.status is not Status.CORRECT


def lines(program: Program) -> list[tuple[str, int]]:
    return [(kernel.name, kernel.span.line) for kernel in program.defined_kernels]


def test_lines_stay_and_the_old_text_is_gone() -> None:
    seen = found(source(SCALE, OLD), source(SCALE + TUNED, NEW))
    assert seen is not None
    assert (seen.old, seen.name) == ("scale", "scale_tuned")
    assert lines(seen.program) == [("scale", 7)]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(OLD, f"{OLD}\n  {NEW}", id="a launch more"),
        pytest.param(f"{OLD}\n  {OLD}", f"{NEW}\n  {OLD}", id="one of two launches left at the old kernel"),
        pytest.param(f"{OLD}\n  {OLD}", NEW, id="one of two launches gone"),
        pytest.param(f"for (int i = 0; i < 3; i++) {OLD}", NEW, id="out of its loop"),
        pytest.param(OLD, NEW.replace("out, in", "out, out"), id="another argument"),
        pytest.param(OLD, f"cudaMemset(out, 0, n);\n  {NEW}", id="more host code"),
        pytest.param(OLD, f"{NEW}\n  cudaFuncSetCacheConfig(scale, cudaFuncCachePreferL1);", id="the old one is named"),
    ],
)
def test_other_changes_are_no_kernel_beside(before: str, after: str) -> None:
    assert found(source(SCALE, before), source(SCALE + TUNED, after)) is None


def test_two_new_kernels_are_no_kernel_beside() -> None:
    second = TUNED.replace("scale_tuned", "another")
    assert found(source(SCALE, OLD), source(SCALE + TUNED + second, NEW)) is None
