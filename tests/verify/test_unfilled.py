"""What a candidate's host code no longer fills: seen where the text shows all of it, and then read in the emulator."""

from __future__ import annotations

import pytest
from warpwright.facts.analyze import analyze
from warpwright.syntax.source import Source
from warpwright.verify.host_code import host_differences
from warpwright.verify.report import Report, Status, What
from warpwright.verify.unfilled import unfilled_arrays
from warpwright.verify.verify import verify

COUNT = """__global__ void count(const int *in, int *bins, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) atomicAdd(&bins[in[i] & 15], 1);
}
"""
MEMSET = "cudaMemset(bins, 0, 16 * sizeof(int));"
LAUNCH = "count<<<(n + 127) / 128, 128>>>(in, bins, n);"


def text(fill: str, launch: str = LAUNCH, allocation: str = "cudaMalloc(&bins, 16 * sizeof(int));") -> str:
    return f"""{COUNT}
__global__ void clear(int *bins) {{ bins[threadIdx.x] = 0; }}
void run(const int *in, int *sums, int n) {{
  int *bins;
  {allocation}
  {fill}
  {launch}
  cudaMemcpy(sums, bins, 16 * sizeof(int), cudaMemcpyDeviceToHost);
  cudaFree(bins);
}}
"""


def unfilled(before: str, after: str) -> tuple[str, ...]:
    old, new = (analyze(Source("a.cu", each.encode())) for each in (before, after))
    return unfilled_arrays(old, new, "count", host_differences(old, new))


def test_a_fill_that_is_gone_is_seen() -> None:
    assert unfilled(text(MEMSET), text("")) == ("bins",)
    checked = text(f"CHECK({MEMSET[:-1]});")
    assert unfilled(checked, text("")) == ("bins",)
    copied = text("cudaMemcpyAsync(bins, sums, 16 * sizeof(int), cudaMemcpyHostToDevice, 0);")
    assert unfilled(copied, text("")) == ("bins",)


@pytest.mark.parametrize(
    "after",
    [
        text(MEMSET.replace("cudaMemset", "cudaMemsetAsync")),
        text("clear<<<1, 16>>>(bins);"),
        text("for (int b = 0; b < 16; b++) bins[b] = 0;", allocation="cudaMallocManaged(&bins, 64);"),
        text("int *same = bins; cudaMemset(same, 0, 64);"),
        text("fill(bins);"),
        text("", allocation="bins = zeroed(16);"),
        text("", launch=f"{LAUNCH} {MEMSET}"),
    ],
    ids=["another-fill", "a-kernel", "the-host", "an-alias", "a-function", "an-allocation-unseen", "later"],
)
def test_what_may_be_filled_otherwise_is_left_to_be_named(after: str) -> None:
    assert unfilled(text(MEMSET), after) == ()


def emulated(before: str, after: str) -> Report:
    return verify(Source("a.cu", before.encode()), Source("a.cu", after.encode()), backend="emulator", again=True)


@pytest.mark.nvcc
def test_one_that_reads_it_is_not_safe() -> None:
    report = emulated(text(MEMSET), text("").replace("bins[in[i] & 15]", "bins[15 & in[i]]"))
    assert report.status is Status.UNSAFE
    assert "bins, which nothing has written; the candidate's host code no longer fills bins" in report.reason


@pytest.mark.nvcc
def test_one_that_does_not_read_it_is_named_alone() -> None:
    writes = COUNT.replace("atomicAdd(&bins[in[i] & 15], 1)", "bins[i] = in[i]")
    before = text(MEMSET).replace(COUNT, writes)
    report = emulated(before, before.replace(MEMSET, "").replace("= in[i]", "= +in[i]"))
    assert report.status is Status.CORRECT
    assert [each.what for each in report.uncovered] == [What.HOST_CODE]
