"""What a finding is said to be worth."""

from __future__ import annotations

from warpwright.facts.analyze import analyze
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
