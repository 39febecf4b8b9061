"""The checks on what nvcc makes of CUDA: the samples with a barrier deleted, and idioms that are right or nearly so."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from emulator_races import without_one
from hypothesis import given, settings
from hypothesis import strategies as st
from warpwright.emulator.launch import ArrayArgument, Launch, ScalarArgument, run
from warpwright.emulator.program import translate
from warpwright.emulator.ptx.parse import parse
from warpwright.emulator.report import faults_of
from warpwright.syntax.source import Source
from warpwright.toolchain.compile import compile_ptx

pytestmark = pytest.mark.nvcc

ROOT = Path(__file__).resolve().parents[2]
SHAPES = {
    "transpose_tiled": (Launch((3, 3, 1), (32, 8, 1)), 77 * 70, (77, 70)),
    "reduce_interleaved": (Launch((5, 1, 1), (256, 1, 1)), 1200, (1200,)),
    "stencil_1d": (Launch((5, 1, 1), (256, 1, 1)), 1280, (1280,)),
}


def faults(
    text: str, launch: Launch, *arguments: ArrayArgument | ScalarArgument, kernel: str = ""
) -> set[tuple[str, int]]:
    """The kind and line of each fault of a run of the file's kernel, or of the one whose name holds `kernel`."""
    compiled = compile_ptx(Source("a.cu", text.encode()), arch="sm_90")
    assert compiled.ok, compiled.reason
    module = parse(compiled.text)
    name = next(f.name for f in module.functions.values() if f.is_kernel)
    program = translate(module, name)
    result = run(program, launch, arguments, most_lane_steps=200_000_000)
    return {(fault.kind.value, fault.line) for fault in faults_of(program, result, {})}


def number(value: int) -> ScalarArgument:
    return ScalarArgument(f"n{value}", np.int32(value).tobytes())


@pytest.mark.parametrize("name", SHAPES)
def test_each_barrier_of_a_sample_is_missed(name: str) -> None:
    path = next(ROOT.glob(f"csrc_samples/*/{name}/kernel.cu"))
    launch, size, sizes = SHAPES[name]
    floats = np.random.default_rng(3).random(size).astype(np.float32)

    def races(text: str) -> set[str]:
        arguments = [ArrayArgument("in", floats, "in"), ArrayArgument("out", np.zeros_like(floats), "out")]
        return {kind for kind, _ in faults(text, launch, *arguments, *map(number, sizes))}

    text = path.read_text(encoding="utf-8")
    assert races(text) == set()
    shorter = list(without_one(text))
    assert shorter
    for line, deleted in shorter:
        # Where neighbours exchange words, threads of one warp alone race.
        assert races(deleted) & {"shared-memory-race", "missing-syncwarp"}, line


REDUCE = """
__global__ void sum(const float* in, float* out) {
    __shared__ %s float s[256];
    int t = threadIdx.x;
    s[t] = in[blockIdx.x * 256 + t];
    __syncthreads();
    for (int d = 128; d >= 32; d /= 2) {
        if (t < d) s[t] += s[t + d];
        __syncthreads();
    }
    if (t < 32) {
        for (int d = 16; d > 0; d /= 2) {
            float v = s[t + d]; %s
            s[t] += v; %s
        }
    }
    if (t == 0) out[blockIdx.x] = s[0];
}
"""


def test_the_last_warp_of_a_reduction() -> None:
    data = np.random.default_rng(4).random(256 * 40).astype(np.float32)

    def found(*holes: str) -> set[str]:
        arrays = (ArrayArgument("in", data, "in"), ArrayArgument("out", np.zeros(40, np.float32), "out"))
        return {kind for kind, _ in faults(REDUCE % holes, Launch((40, 1, 1), (256, 1, 1)), *arrays)}

    assert found("", "__syncwarp();", "__syncwarp();") == set()
    assert found("volatile", "", "") == {"missing-syncwarp"}
    assert found("volatile", "", "__syncwarp();") == {"missing-syncwarp"}


GRID = """
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
__global__ void twice(const int* in, int* mid, int* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) mid[i] = in[i] * 2;
    %s
    if (i < n) out[i] = mid[n - 1 - i];
}
"""


def test_a_cooperative_launch_meets_across_its_blocks() -> None:
    n = 50_000
    counted: Any = np.arange(n, dtype=np.int32)

    def found(meeting: str) -> set[tuple[str, int]]:
        arrays = (
            ArrayArgument("in", counted, "in"),
            ArrayArgument("mid", np.zeros(n, np.int32), "in-out"),
            ArrayArgument("out", np.zeros(n, np.int32), "out"),
        )
        return faults(GRID % meeting, Launch((-(-n // 256), 1, 1), (256, 1, 1)), *arrays, number(n))

    assert found("cg::this_grid().sync();") == set()
    assert found("__syncthreads();") == {("global-memory-race", 6), ("global-memory-race", 8)}
    ((kind, _),) = found("if (blockIdx.x == 100) return; cg::this_grid().sync();")
    assert kind == "deadlock"


LAST = """
__device__ unsigned finished = 0;
__global__ void total(const int* in, int* sums, int* out) {
    __shared__ int part;
    __shared__ bool is_last;
    if (threadIdx.x == 0) part = 0;
    __syncthreads();
    atomicAdd(&part, in[blockIdx.x * blockDim.x + threadIdx.x]);
    __syncthreads();
    if (threadIdx.x == 0) {
        sums[blockIdx.x] = part;
        %s
        is_last = atomicAdd(&finished, 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (is_last && threadIdx.x == 0) {
        int all = 0;
        for (int b = 0; b < gridDim.x; b++) all += sums[b];
        *out = all;
    }
}
"""


def test_the_last_block_needs_a_fence() -> None:
    data: Any = np.ones(128 * 300, np.int32)

    def found(fence: str) -> set[tuple[str, int]]:
        arrays = (
            ArrayArgument("in", data, "in"),
            ArrayArgument("sums", np.zeros(300, np.int32), "out"),
            ArrayArgument("out", np.zeros(1, np.int32), "out"),
        )
        return faults(LAST % fence, Launch((300, 1, 1), (128, 1, 1)), *arrays)

    assert found("__threadfence();") == set()
    assert found("") == {("global-memory-race", 18)}


TOLD = """
__global__ void tell(int* data, volatile int* ready, int* out) {
    if (blockIdx.x == 0) {
        data[threadIdx.x] = threadIdx.x;
        %s
        if (threadIdx.x == 0) {
            __threadfence();
            *ready = 1;
        }
    } else {
        while (*ready == 0) {}
        __threadfence();
        out[threadIdx.x] = data[31 - threadIdx.x];
    }
}
"""


def test_a_fence_tells_what_the_lanes_did_that_its_lane_has_met() -> None:
    def found(barrier: str) -> set[str]:
        zeros: Any = np.zeros(32, np.int32)
        arrays = tuple(ArrayArgument(name, zeros.copy(), "out") for name in ("data", "ready", "out"))
        return {kind for kind, _ in faults(TOLD % barrier, Launch((2, 1, 1), (32, 1, 1)), *arrays)}

    assert found("__syncwarp();") == set()
    assert found("__syncthreads();") == set()
    assert found("") == {"global-memory-race"}


@settings(max_examples=6, deadline=None)
@given(st.integers(1, 1000))
def test_a_histogram_is_clean_at_every_size(n: int) -> None:
    text = """
    __global__ void count(const int* in, int* bins, int n) {
        __shared__ int own[64];
        if (threadIdx.x < 64) own[threadIdx.x] = 0;
        __syncthreads();
        int first = blockIdx.x * blockDim.x + threadIdx.x;
        for (int i = first; i < n; i += gridDim.x * blockDim.x) atomicAdd(&own[in[i]], 1);
        __syncthreads();
        if (threadIdx.x < 64) atomicAdd(&bins[threadIdx.x], own[threadIdx.x]);
    }
    """
    data = np.random.default_rng(n).integers(0, 64, n).astype(np.int32)
    arrays = (ArrayArgument("in", data, "in"), ArrayArgument("bins", np.zeros(64, np.int32)))
    assert faults(text, Launch((3, 1, 1), (96, 1, 1)), *arrays, number(n)) == set()


LOCK = """
__global__ void add(int* lock, int* sum) {
    %s
    while (atomicCAS(lock, 0, 1) != 0) { }
    %s
    sum[0] += 1;
    %s
    atomicExch(lock, 0);
}
"""


def test_a_lock_orders_the_threads_of_a_block_where_it_has_fences() -> None:
    def found(text: str) -> set[str]:
        arrays = (ArrayArgument("lock", np.zeros(1, np.int32)), ArrayArgument("sum", np.zeros(1, np.int32)))
        return {kind for kind, _ in faults(text, Launch((2, 1, 1), (96, 1, 1)), *arrays)}

    assert found(LOCK % ("", "__threadfence();", "__threadfence();")) == set()
    assert found(LOCK % ("", "", "")) == {"global-memory-race"}
    assert found(LOCK % ("sum[0] = threadIdx.x;", "__threadfence();", "__threadfence();")) == {"global-memory-race"}
