"""What a model is asked and answers of a broken kernel: rendered, read, and the same text again."""

from __future__ import annotations

import pytest
from warpwright.assist.blocks import Proposal, read_blocks
from warpwright.assist.repair_task import RepairRequest, edits_between, quoted, repair_answer
from warpwright.facts.analyze import analyze
from warpwright.syntax.source import Source

WHOLE = """\
__global__ void sums(const float *a, float *b, int n) {
  __shared__ float s[256];
  int i = blockIdx.x * 256 + threadIdx.x;
  s[threadIdx.x] = i < n ? a[i] : 0.0f;
  __syncthreads();
  for (int k = 128; k > 0; k /= 2) {
    if (threadIdx.x < k) s[threadIdx.x] += s[threadIdx.x + k];
    __syncthreads();
  }
  if (threadIdx.x == 0) b[blockIdx.x] = s[0];
}
"""


@pytest.mark.parametrize(
    "broken",
    [
        WHOLE.replace("    __syncthreads();\n", ""),
        WHOLE.replace("  __syncthreads();\n  for", "  for"),
        WHOLE.replace("+= s", "= s"),
        WHOLE.replace("int n", "int m").replace("256 + threadIdx.x;", "256 + threadIdx.x"),
        WHOLE.replace("  int i", "  __syncthreads();\n  int i"),
        WHOLE.replace("  for (", "\n\n  for ("),
    ],
)
def test_the_edits_between_two_texts_are_read_as_the_second(broken: str) -> None:
    (kernel,) = analyze(Source("a.cu", broken.encode())).defined_kernels
    proposal = read_blocks(repair_answer("It is broken.", edits_between(broken, WHOLE)), kernel)
    assert isinstance(proposal, Proposal), proposal
    assert kernel.source.edited(list(proposal.edits)).text() == WHOLE


def test_only_the_kernels_own_lines_are_quoted() -> None:
    request = RepairRequest("a;\n  b;\n", (), first_line=7)
    said = "line 8 of k.cu: one reads what line 7 wrote (called from line 12, from line 1)"
    assert quoted(said, request) == "`b;`: one reads what `a;` wrote (called from line 12, from line 1)"
