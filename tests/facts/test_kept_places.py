"""Facts that are kept from one version of a text to the next stand where the kernel stands now."""

from __future__ import annotations

import pytest
from warpwright.facts.analyze import analyze, no_includes
from warpwright.facts.cache import KernelCache
from warpwright.facts.model import Kernel
from warpwright.syntax.source import Source, Span

TEXT = """\
__global__ void k(float *out) {
  __shared__ float tile[64];
  int x[2];
  tile[threadIdx.x] = x[1];
  out[threadIdx.x] = tile[threadIdx.x + 1];
  if (threadIdx.x < 20) __syncwarp();
}
int main() {
  float *p;
  cudaMalloc(&p, 32 * sizeof(float));
  k<<<1, 64>>>(p);
}
"""


def places(kernel: Kernel) -> dict[str, list[Span]]:
    return {
        "races": [place for race in kernel.races for place in (race.write, race.other)],
        "outside": [each.span for each in kernel.outside],
        "unwritten": [each.span for each in kernel.unwritten],
        "missed_waits": [each.span for each in kernel.missed_waits],
    }


def read(text: str, cache: KernelCache | None) -> Kernel:
    kernel = analyze(Source("/a.cu", text.encode()), no_includes, None, cache).kernel("k")
    assert kernel is not None
    return kernel


@pytest.mark.parametrize("kind", ["races", "outside", "unwritten", "missed_waits"])
def test_faults_move_with_their_kernel(kind: str) -> None:
    cache = KernelCache()
    assert places(read(TEXT, cache))[kind], "the kernel has one"
    moved = "// a line above\n" + TEXT
    kept, fresh = (places(read(moved, each))[kind] for each in (cache, None))
    assert [(each.start, each.line, each.text) for each in kept] == [
        (each.start, each.line, each.text) for each in fresh
    ]
