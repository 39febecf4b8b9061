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


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("k<<<1, 64>>>(p)", "k<<<1, 32>>>(p)"),
        ("k<<<1, 64, 32>>>(room)", "k<<<1, 64, 32 * sizeof(float)>>>(room)"),
        ("sum<<<1, 32>>>(p)", "cudaMemset(p, 0, 32 * sizeof(float)); sum<<<1, 32>>>(p)"),
    ],
)
def test_facts_are_read_anew_where_a_launch_or_what_it_is_handed_changes(old: str, new: str) -> None:
    """Its shape, its dynamic shared memory, whether the host filled the memory."""
    more = (
        "__global__ void k(float *x) { extern __shared__ float room[]; room[threadIdx.x % 32] = 0; *x = room[0]; }\n"
        if "room" in old
        else "__global__ void sum(float *x) { x[threadIdx.x] += 1; }\n"
        if "sum" in old
        else TEXT.partition("int main")[0]
    )
    text = more + "void run() {\n  float *p, *room = 0;\n  cudaMalloc(&p, 32 * sizeof(float));\n  " + old + ";\n}\n"
    name = "sum" if "sum" in old else "k"
    cache = KernelCache()

    def found(source: str, kept: KernelCache | None) -> dict[str, int]:
        kernel = analyze(Source("/a.cu", source.encode()), no_includes, None, kept).kernel(name)
        assert kernel is not None
        return {what: len(spans) for what, spans in places(kernel).items()}

    before = found(text, cache)
    after = found(text.replace(old, new), cache)
    assert after == found(text.replace(old, new), None)
    assert after != before
