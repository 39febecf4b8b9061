"""What a run finds of a defect that a rule also reads in the text: found where the text does not tell, and said
once."""

from __future__ import annotations

import re

import pytest
from support.carets import Mark
from support.findings import marks, program, ran
from warpwright.rules.base import Finding, Severity
from warpwright.rules.registry import run_rules

RACE = """\
__global__ void shift(float *out, const float *in, const int *from) {
  __shared__ float tile[256];
  int i = blockIdx.x * 256 + threadIdx.x;
  tile[threadIdx.x] = in[i];
  out[i] = tile[INDEX];
}
void run(const float *host, const int *places) {
  float *out, *in;
  int *from;
  cudaMalloc(&out, 64 * 256 * sizeof(float));
  cudaMalloc(&in, 64 * 256 * sizeof(float));
  cudaMalloc(&from, 64 * 256 * sizeof(int));
  cudaMemcpy(in, host, 64 * 256 * sizeof(float), cudaMemcpyHostToDevice);
  cudaMemcpy(from, places, 64 * 256 * sizeof(int), cudaMemcpyHostToDevice);
  shift<<<64, 256>>>(out, in, from);
}
"""
BY_DATA = RACE.replace("INDEX", "from[i] & 255").replace("tile[256]", "tile[512]")
"""Threads write a part of the array, so that the text does not know whether what data choose is written."""
BY_THREAD = RACE.replace("INDEX", "255 - threadIdx.x")
pytestmark = pytest.mark.nvcc


def _found(text: str, rule: str) -> list[Finding]:
    return run_rules(ran(text), select=(rule,))


def test_a_race_that_depends_on_data_is_found_by_the_run_with_both_places_and_threads() -> None:
    assert not run_rules(program(BY_DATA), select=("shared-memory-race",))
    (found,) = _found(BY_DATA, "shared-memory-race")
    assert (found.span.line, found.related[0].span.line) == (5, 4)
    first, second = found.evidence["threads"]  # type: ignore[misc]
    assert first != second
    assert found.evidence["basis"] == "emulated"
    assert found.message.endswith("with no __syncthreads() between; emulated, block 256.")
    assert [fix.rewrite for fix in found.fixes] == ["add-barrier", "update-atomically"]


def test_a_race_that_the_text_shows_is_told_once_and_confirmed() -> None:
    (read,) = run_rules(program(BY_THREAD), select=("shared-memory-race",))
    (found,) = _found(BY_THREAD, "shared-memory-race")
    assert (found.span.key, found.headline, found.severity) == (read.span.key, read.headline, Severity.ERROR)
    assert found.evidence["run"] == "confirmed"
    shown = r"\nConfirmed by a run: .* of tile \(value -?[0-9.]+\), which .* at line 4, .*; emulated, block 256\.$"
    assert re.search(shown, found.message)


def test_a_comment_suppresses_what_a_run_finds() -> None:
    line = "  out[i] = tile[from[i] & 255];"
    assert not _found(BY_DATA.replace(line, line + "  // warpwright: ignore[shared-memory-race]"), "shared-memory-race")


def test_a_finding_of_a_run_is_gone_with_the_barrier() -> None:
    store = "  tile[threadIdx.x] = in[i];\n"
    assert not _found(BY_DATA.replace(store, store + "  __syncthreads();\n"), "synchronization")


def test_threads_that_ended_before_a_barrier_are_information() -> None:
    text = """\
__global__ void sum(float *out, const float *in, int n) {
  __shared__ float tile[128];
  int i = blockIdx.x * 128 + threadIdx.x;
  if (i >= n) return;
  tile[threadIdx.x] = in[i];
  __syncthreads();
  if (threadIdx.x > 0) out[i] = tile[threadIdx.x - 1];
}
void run(const float *host) {
  float *out, *in;
  cudaMalloc(&out, 1000 * sizeof(float));
  cudaMalloc(&in, 1000 * sizeof(float));
  cudaMemcpy(in, host, 1000 * sizeof(float), cudaMemcpyHostToDevice);
  sum<<<8, 128>>>(out, in, 1000);
}
"""
    assert marks(_found(text, "barrier-in-divergent-branch")) == [
        Mark(
            6,
            3,
            16,
            "barrier-in-divergent-branch (information): 24 of the block's 128 threads ended before this barrier "
            "Emulated, block 128.",
        )
    ]


MASKED = """\
__global__ void broadcast(int *out, const int *in) {
  int x = in[threadIdx.x];
  unsigned mask = __ballot_sync(0xffffffff, CONDITION);
  out[threadIdx.x] = __shfl_sync(mask, x, 3);
}
void run(const int *host) {
  int *out, *in;
  cudaMalloc(&out, 32 * sizeof(int));
  cudaMalloc(&in, 32 * sizeof(int));
  cudaMemcpy(in, host, 32 * sizeof(int), cudaMemcpyHostToDevice);
  broadcast<<<1, 32>>>(out, in);
}
"""


def test_a_lane_outside_of_its_own_mask_is_found_by_a_run() -> None:
    (found,) = _found(MASKED.replace("CONDITION", "threadIdx.x * (x * 0 + 1) < 5"), "barrier-in-divergent-branch")
    assert (found.span.line, found.severity) == (4, Severity.ERROR)
    assert "thread (5, 0, 0) of block (0, 0, 0) calls this with a mask that" in found.message.lower()
    assert not _found(MASKED.replace("CONDITION", "x == x"), "barrier-in-divergent-branch")


def test_an_access_outside_by_data_is_found_where_all_sizes_are_known() -> None:
    text = """\
__global__ void last(float *out, const float *in) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int places = 0;
  for (int k = i; k > 0; k /= 2) places++;
  out[i * 4 / (places > 0 ? 4 : 2)] = in[i + places];
}
void run(const float *host) {
  float *out, *in;
  cudaMalloc(&out, 1024 * sizeof(float));
  cudaMalloc(&in, 1024 * sizeof(float));
  cudaMemcpy(in, host, 1024 * sizeof(float), cudaMemcpyHostToDevice);
  last<<<4, 256>>>(out, in);
}
"""
    (found,) = _found(text, "missing-bounds-check")
    assert found.span.line == 5
    assert found.evidence["array"] == "in"


def test_what_is_read_behind_a_barrier_that_threads_miss_is_not_said_to_be_unwritten() -> None:
    text = RACE.replace("  tile[threadIdx.x] = in[i];\n", "  if (i < 16300) {\n    tile[threadIdx.x] = in[i];\n")
    text = text.replace(
        "  out[i] = tile[INDEX];\n", "    __syncthreads();\n    out[i] = tile[255 - threadIdx.x];\n  }\n"
    )
    assert _found(text, "barrier-in-divergent-branch")
    assert not _found(text, "uninitialised-read")


def test_a_run_confirms_what_the_text_shows_of_bounds_and_barriers() -> None:
    outside = RACE.replace("tile[INDEX]", "tile[threadIdx.x + 1]")
    missed = RACE.replace("  out[i] = tile[INDEX];\n", "  if (threadIdx.x < 64) __syncthreads();\n  __syncthreads();\n")
    for text, rule in ((outside, "missing-bounds-check"), (missed, "barrier-in-divergent-branch")):
        assert run_rules(program(text), select=(rule,))
        found = next(found for found in _found(text, rule) if found.severity is Severity.ERROR)
        assert found.evidence["run"] == "confirmed"
        assert "\nConfirmed by a run: " in found.message
