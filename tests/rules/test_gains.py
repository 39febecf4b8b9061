"""What a finding is said to be worth."""

from __future__ import annotations

from warpwright.facts.analyze import analyze
from warpwright.rules.base import Severity
from warpwright.rules.registry import run_rules
from warpwright.syntax.source import Source

COPY = b"""
__global__ void copy(float *out, const float *in, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = in[%s];
}
void run(float *out, const float *in, int n) { copy<<<n / 256, 256>>>(out, in, n); }
"""


def gains(index: bytes) -> list[float | None]:
    program = analyze(Source("a.cu", COPY % index), lambda _path, _name: None)
    return [each.gain for each in run_rules(program) if each.rule == "uncoalesced-access"]


def test_what_is_saved_is_a_share_of_all_that_is_moved() -> None:
    """32 sectors and 4, of which 28 are too many; 16 and 4, of which 12 are."""
    (all_of_it,), (some,) = gains(b"32 * i"), gains(b"4 * i")
    assert all_of_it is not None and abs(all_of_it - 28 / 36) < 0.01
    assert some is not None and abs(some - 12 / 20) < 0.01


def test_what_is_coalesced_is_no_finding() -> None:
    assert gains(b"i") == []


LOOPS = b"""
__global__ void filter(float *out, const float *in, int width, int radius, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  out[32 * i] = 0;
  for (int x = 1; x < radius; x++) out[width * i + x] = in[n + i];
  for (int x = radius; x < width - radius; x++) out[width * i + x] = in[i];
}
void run(float *out, const float *in, int w, int r, int n) { filter<<<n / 256, 256>>>(out, in, w, r, n); }
"""


def test_a_loop_that_no_warp_enters_by_the_sizes_assumed_has_no_estimate_and_next_to_nothing_is_no_warning() -> None:
    program = analyze(Source("a.cu", LOOPS), lambda _path, _name: None)
    found = {each.span.line: each for each in run_rules(program) if each.rule == "uncoalesced-access"}
    assert found[7].gain is None and found[7].severity is Severity.WARNING
    assert found[6].gain is not None and found[6].gain > 0.7 and found[6].severity is Severity.WARNING
    assert found[5].gain is not None and found[5].gain < 0.01 and found[5].severity is Severity.INFORMATION
