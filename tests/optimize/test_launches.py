"""Searches over kernels whose launches are not what the file shows at first sight."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from warpwright.facts.analyze import analyze
from warpwright.missing import Missing
from warpwright.optimize.optimize import optimize
from warpwright.optimize.outcome import Outcome
from warpwright.syntax.source import Source
from warpwright.toolchain.find import find_toolchain

WEIGHTED = """__global__ void weighted(float *sums, const float *in, const float *weights, int rows, int terms) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  sums[row] = 0.5f;
  for (int t = 0; t < terms; t++) sums[row] += weights[t * rows + row] * in[row];
}
static void launch(float *sums, const float *in, const float *weights, int rows, int terms) {
  const float *from = in;
  weighted<<<(rows + 127) / 128, 128>>>(sums, from, weights, rows, terms);
}
void run(float *sums, const float *in, const float *weights, int rows, int terms) {
  launch(sums, in, weights, rows, terms);
}
int main() {
  int rows = 200, terms = 24;
  float *data, *weights, *other;
  cudaMalloc(&data, rows * sizeof(float));
  cudaMalloc(&other, rows * sizeof(float));
  cudaMalloc(&weights, rows * terms * sizeof(float));
  run(SECOND, data, weights, rows, terms);
  return cudaDeviceSynchronize();
}
"""

SPREAD = """// Another file says: extern __global__ void spread(float *, const float *, int, int);
// warpwright: shape rows=300 columns=40
// warpwright: check rows=129 columns=33
__global__ void spread(float *out, const float *in, int rows, int columns) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  float low = 1e30f, high = -1e30f;
  for (int c = 0; c < columns; c++) {
    low = fminf(low, in[row * columns + c]);
    high = fmaxf(high, in[row * columns + c]);
  }
  out[row] = high - low;
}
void run(float *out, const float *in, int rows, int columns) {
  spread<<<(rows + 127) / 128, 128>>>(out, in, rows, columns);
}
"""
OTHER = """extern __global__ void spread(float *, const float *, int, int);
void run(float *, const float *, int, int);
int main() {
  float *data = nullptr;
  spread<<<4, 256>>>(data, data, 1000, 10);
  run(data, data, 10, 10);
}
"""


NEED_THEM_APART = ("accumulate-in-register", "add-restrict")


def searched(source: Source, name: str, rewrites: Sequence[str]) -> Outcome:
    """What a search of a kernel finds that tries these rewrites alone: each costs seconds in the emulator."""
    program = analyze(source)
    kernel = program.kernel(name)
    assert kernel is not None
    return optimize(program, kernel, "speed", is_wanted=lambda step: step.rewrite in rewrites)


def weighted(name: str, second: str) -> Outcome:
    return searched(Source(name, WEIGHTED.replace("SECOND", second).encode()), "weighted", NEED_THEM_APART)


@pytest.mark.nvcc
def test_what_a_caller_hands_over_twice_is_not_taken_to_be_apart() -> None:
    outcome = weighted("twice.cu", "data")
    declined = {each.rewrite: each.reason for each in outcome.declined}
    for name in NEED_THEM_APART:
        assert declined[name] == "At twice.cu:20 sums and in alias, and the new code needs them not to."
    assert not outcome.candidates


@pytest.mark.slow
@pytest.mark.nvcc
def test_what_callers_hand_over_apart_is_used() -> None:
    outcome = weighted("apart.cu", "other")
    tried = [each.rewrites for each in outcome.candidates if each.report.status == "correct"]
    assert ("accumulate-in-register",) in tried


@pytest.mark.slow
@pytest.mark.nvcc
def test_a_kernel_that_another_file_launches_stays_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "spread.cu"
    path.write_text(SPREAD, encoding="utf-8")
    outcome = searched(Source("spread.cu", SPREAD.encode()), "spread", ("warp-per-row", "add-restrict"))
    assert outcome.best is not None, outcome.reason
    best = outcome.candidates[outcome.best]
    assert best.report.status == "correct"
    subprocess.run(["patch", "-p1"], cwd=tmp_path, input=best.diff, text=True, check=True, capture_output=True)
    after = path.read_text(encoding="utf-8")
    kernel = SPREAD[SPREAD.index("__global__ void spread(float *out") : SPREAD.index("void run")]
    assert kernel in after
    assert after.count("__global__ void spread_tuned(") == 1, "the steps of a search work on one new kernel"
    assert "\n  spread_tuned<<<" in after
    assert "\n  spread<<<" not in after
    (tmp_path / "other.cu").write_text(OTHER, encoding="utf-8")
    toolchain = find_toolchain()
    assert not isinstance(toolchain, Missing)
    linked = subprocess.run(
        [toolchain.nvcc, "-rdc=true", "-arch=sm_90", "spread.cu", "other.cu", "-o", "both"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert linked.returncode == 0, linked.stdout + linked.stderr
