"""A new kernel in the place of several launches is compared with these, run in their order."""

from __future__ import annotations

import pytest
from warpwright.facts.analyze import analyze
from warpwright.syntax.source import Source
from warpwright.verify import emulation, planned
from warpwright.verify.budget import Budget
from warpwright.verify.report import Report, Status
from warpwright.verify.sequence import replaced_launches
from warpwright.verify.verify import verify

pytestmark = pytest.mark.sampled(4)

KERNELS = """
__global__ void square(const float *in, float *squares, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) squares[i] = in[i] * in[i];
}
__global__ void add(float *out, const float *a, const float *b, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = a[i] + b[i];
}
"""
FUSED = """
__global__ void square_add(const float *in, float *squares, int n, float *out, const float *b) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) { squares[i] = in[i] * in[i]; out[i] = squares[i] + b[i]; }
}
"""
GRID = "<<<(n + 127) / 128, 128>>>"
BEFORE = f"square{GRID}(in, tmp, n);\n  add{GRID}(out, tmp, b, n);"
AFTER = f"square_add{GRID}(in, tmp, n, out, b);"
ORIGINAL, CANDIDATE = KERNELS, KERNELS + FUSED


def source(kernels: str, launches: str) -> Source:
    text = f"{kernels}\nvoid run(const float *in, float *tmp, const float *b, float *out, int n) {{\n  {launches}\n}}\n"
    return Source("k.cu", text.encode())


def report(candidate: str, launches: str = AFTER) -> Report:
    return verify(source(ORIGINAL, BEFORE), source(candidate, launches), backend="emulator", again=True)


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(emulation, "BUDGET", Budget(1_000_000, 20_000_000, 200_000))


@pytest.mark.nvcc
@pytest.mark.parametrize("seed", [*range(3), 14 * 7919, 38 * 7919])
def test_a_kernel_that_does_the_same_as_two_is_correct_whatever_sizes_are_drawn(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planned.secrets, "randbits", lambda bits: seed + 3)
    found = report(CANDIDATE)
    assert (found.status, found.kernel) == (Status.CORRECT, "square_add"), found.reason


@pytest.mark.nvcc
def test_one_that_computes_something_else_is_wrong() -> None:
    found = report(CANDIDATE.replace("squares[i] + b[i]", "squares[i] - b[i]"))
    assert found.status is Status.WRONG
    assert "out[" in found.reason


@pytest.mark.nvcc
def test_one_that_writes_less_is_not_accepted() -> None:
    assert report(CANDIDATE.replace("squares[i] = in[i] * in[i]; ", "")).status is not Status.CORRECT


@pytest.mark.nvcc
def test_one_that_leaves_out_a_part_is_wrong_although_its_arrays_are_as_small() -> None:
    found = report(CANDIDATE.replace("{ squares[i] =", "if (i < n / 2 + 1) { squares[i] ="))
    assert found.status is Status.WRONG
    assert "by which the arrays are sized" in found.reason


@pytest.mark.nvcc
def test_one_that_is_handed_another_array_is_not_run() -> None:
    found = report(CANDIDATE, AFTER.replace("out, b)", "out, in)"))
    assert found.status is Status.NOT_RUN
    assert "one array twice" in found.reason


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (BEFORE, AFTER.replace("128>>>", "256>>>")),
        (BEFORE.replace("128>>>(out", "128, 0, 1>>>(out"), AFTER),
        (BEFORE.replace("\n", "\n  cudaMemset(tmp, 0, n);"), AFTER),
        (BEFORE, f"square{GRID}(in, tmp, n);\n  {AFTER}"),
        (BEFORE, f"{AFTER}\n  {AFTER}"),
        (BEFORE, BEFORE),
    ],
)
def test_launches_that_differ_in_more_are_no_such_place(before: str, after: str) -> None:
    old, new = analyze(source(ORIGINAL, before)), analyze(source(CANDIDATE, after))
    assert replaced_launches(old, new) is None


def test_the_launches_around_stay() -> None:
    rest = f"add{GRID}(out, out, b, n);"
    old = analyze(source(ORIGINAL, f"{rest}\n  {BEFORE}\n  {rest}"))
    found = replaced_launches(old, analyze(source(CANDIDATE, f"{rest}\n  {AFTER}\n  {rest}")))
    assert found is not None
    assert [old.source.node_text(call).partition("<")[0] for call in found.before] == ["square", "add"]


SCALE = """
__global__ void scale(float *y, const float *x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = 2.0f * x[i];
}
"""
BATCHED = """
__global__ void scale_batched(float *y, const float *x, int n) {
  y += (size_t)blockIdx.y * (n + 1); x += (size_t)blockIdx.y * n;
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = 2.0f * x[i];
}
"""
LOOP = "for (int r = 0; r < 3; ++r) scale<<<(n + 63) / 64, 64>>>(y + r * (n + 1), &x[n * r], n);"
ONCE = "scale_batched<<<dim3((n + 63) / 64, 3), 64>>>(y, x, n);"


def looped(kernels: str, launches: str) -> Source:
    return Source("k.cu", f"{kernels}\nvoid run(float *y, const float *x, int n) {{\n  {launches}\n}}\n".encode())


@pytest.mark.nvcc
@pytest.mark.parametrize(
    ("text", "changed", "status"),
    [
        ("", "", Status.CORRECT),
        ("blockIdx.y * n", "blockIdx.y * (n + 1)", Status.WRONG),
        ("blockIdx.y * (n + 1)", "blockIdx.y * n", Status.WRONG),  # as large as it asks for is too small for the loop
        ("2.0f * x[i];\n}\n", "(blockIdx.y > 1 ? 3.0f : 2.0f) * x[i];\n}\n", Status.WRONG),
    ],
)
def test_one_launch_in_the_place_of_a_loop_is_compared_with_all_of_its_iterations(
    text: str, changed: str, status: Status
) -> None:
    candidate = looped(SCALE + BATCHED.replace(text, changed), ONCE)
    found = verify(looped(SCALE, LOOP), candidate, backend="emulator", again=True)
    assert (found.status, found.kernel) == (status, "scale_batched"), found.reason


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (LOOP, ONCE.replace(", 3)", ", 2)")),
        (LOOP, ONCE.replace("63) / 64,", "63) / 64 + 1,")),
        (LOOP, ONCE.replace("(y, x", "(y, x + n")),
        (LOOP, f"for (int r = 0; r < 3; ++r) {ONCE}"),
        (LOOP.replace("; ++r)", "; r += 2)"), ONCE),
        (LOOP.replace("r = 0", "r = 1"), ONCE),
        (LOOP.replace("63) / 64, 64", "63) / 64, 64, 0, streams[r]"), ONCE),
        (LOOP.replace("<<<(n", "<<<r + (n"), ONCE.replace("dim3((n", "dim3(r + (n")),
        (LOOP.replace("&x[n * r]", "&x[r * r]"), ONCE),
    ],
)
def test_a_loop_that_is_not_all_of_the_new_grid_is_no_such_place(before: str, after: str) -> None:
    old, new = analyze(looped(SCALE, before)), analyze(looped(SCALE + BATCHED, after))
    assert replaced_launches(old, new) is None


@pytest.mark.nvcc
def test_a_new_kernel_that_stands_for_nothing_known_is_not_run() -> None:
    found = verify(
        looped(SCALE, LOOP), looped(SCALE + BATCHED, ONCE.replace(", 3)", ", 2)")), backend="emulator", again=True
    )
    assert found.status is Status.NOT_RUN
    assert "scale_batched" in found.reason
