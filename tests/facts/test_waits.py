"""Threads that others wait for at barriers of parts of a block and of clusters, and that do not come."""

from __future__ import annotations

import pytest
from warpwright.facts.analyze import analyze
from warpwright.facts.cache import KernelCache
from warpwright.syntax.source import Source

KERNEL = """\
__global__ void __cluster_dims__(2, 1, 1) k(float *out, int n) {
  int t = threadIdx.x;
  BODY
}
void run(float *out, int n) { k<<<2, 128>>>(out, n); }
"""


def _missed(body: str) -> list[tuple[int, int | None]]:
    (kernel,) = analyze(Source("a.cu", KERNEL.replace("BODY", body).encode())).kernels
    return [wait.threads for wait in kernel.missed_waits]


def _bar(what: str) -> str:
    return f'asm volatile("bar.{what};" ::: "memory");'


@pytest.mark.parametrize(
    ("body", "found"),
    [
        (f"if (t < 64) {_bar('sync 1, 128')}", (32, 64)),
        (f"if (t >= 32) {_bar('sync 1, 128')}", (96, 0)),
        ('if (t >= 32) asm volatile("barrier.sync %0, %1;" :: "r"(1), "r"(128));', (96, 0)),
        (f"for (int k = 0; k < (t < 32 ? 3 : 2); k++) {_bar('sync 1, 128')}", (0, None)),
        (f"if (t < 64) {_bar('arrive 1, 160')} else {_bar('sync 1, 160')}", (96, None)),
        (f"if (t < 32) {{ {_bar('sync 1, 128')} __syncthreads(); }} else __syncthreads();", (0, 32)),
        (
            "__shared__ cuda::barrier<cuda::thread_scope_block> b; if (t == 0) init(&b, blockDim.x); __syncthreads();"
            " if (t < 64) b.arrive_and_wait();",
            (32, 64),
        ),
        (
            "namespace cg = cooperative_groups; auto cluster = cg::this_cluster();"
            " if (cluster.block_rank() == 1) cluster.sync();",
            (0, 0),
        ),
        (f"if (t < 32) {_bar('arrive 1, 128')} else if (t < 64) {_bar('sync 1, 128')}", (32, 64)),
    ],
)
def test_a_barrier_that_waits_for_more_than_come_is_found(body: str, found: tuple[int, int | None]) -> None:
    assert _missed(body) == [found]


@pytest.mark.parametrize(
    "body",
    [
        f"if (t < 64) {_bar('sync 1, 64')}",
        f"if (t < 64) {_bar('arrive 1, 128')} else {_bar('sync 1, 128')}",
        f"if (t < 64) {_bar('sync 1, 64')} else {_bar('sync 2, 64')}",
        f"for (int k = 0; k < 2; k++) if (t < 64) {_bar('sync 1, 64')}",
        f"if (t < n) {_bar('sync 1, 128')}",
        f"if (t < 64) {_bar('arrive 1, 128')} else for (int k = 0; k < 1; k++) {_bar('sync 1, 128')}",
        "__shared__ cuda::barrier<cuda::thread_scope_block> b; if (t == 0) init(&b, blockDim.x); __syncthreads();"
        " auto token = b.arrive(); b.wait(std::move(token));",
        "auto cluster = cooperative_groups::this_cluster(); if (out[blockIdx.x] > 0.0f) cluster.sync();",
        f'if (t < 64) {_bar("sync 1, 128")} else asm volatile("bar.sync %0, %1;" :: "r"(1), "r"(128));',
    ],
)
def test_one_to_which_as_many_may_come_is_not(body: str) -> None:
    assert not _missed(body)


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("for (int k = 0; k < out[t]; k++) __syncwarp();", True),
        ("if (out[t] > 0.0f) out[t] = __shfl_down_sync(0xffffffff, out[t], 1);", True),
        ("for (;;) { if (out[t] > 0.0f) break; __syncwarp(); }", True),
        ("for (int k = 0; k < out[blockIdx.x]; k++) __syncwarp();", False),
        ("while (__any_sync(0xffffffff, out[t] > 0.0f)) out[t] -= 1.0f;", False),
        ("unsigned m = __ballot_sync(0xffffffff, out[t] > 0.0f); if (out[t] > 0.0f) __syncwarp(m);", False),
        (
            "float v = out[t]; for (int d = 16; d; d /= 2) v += __shfl_xor_sync(0xffffffff, v, d);"
            " if (v > 0.0f) __syncwarp();",
            False,
        ),
        ("if (out[t] > 0.0f) cooperative_groups::coalesced_threads().sync();", False),
    ],
)
def test_a_warp_is_waited_for_where_data_of_each_lane_decide(body: str, found: bool) -> None:
    (kernel,) = analyze(Source("a.cu", KERNEL.replace("BODY", body).encode())).kernels
    assert bool(kernel.doubtful_waits) == found


def test_what_is_missed_moves_with_the_text() -> None:
    cache, text = KernelCache(), KERNEL.replace("BODY", f"if (t < 64) {_bar('sync 1, 128')}")

    def lines(text: str) -> list[int]:
        (kernel,) = analyze(Source("a.cu", text.encode()), cache=cache).kernels
        return [wait.span.line for wait in kernel.missed_waits]

    assert lines(text) == [3]
    assert lines(f"\n\n{text}") == [5]
