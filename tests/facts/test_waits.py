"""Threads that others wait for at barriers which inline assembly names, and that do not come."""

from __future__ import annotations

import pytest
from warpwright.facts.analyze import analyze
from warpwright.syntax.source import Source

KERNEL = """\
__global__ void k(float *out, int n) {
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
        (f"if (t >= 32) {_bar('sync 1, 128')}", (64, 0)),
        (f"if (t < 32) {_bar('arrive 1, 128')} else if (t < 64) {_bar('sync 1, 128')}", (32, 64)),
    ],
)
def test_a_named_barrier_that_waits_for_more_than_come_is_found(body: str, found: tuple[int, int]) -> None:
    assert _missed(body) == [found]


@pytest.mark.parametrize(
    "body",
    [
        f"if (t < 64) {_bar('sync 1, 64')}",
        f"if (t < 64) {_bar('arrive 1, 128')} else {_bar('sync 1, 128')}",
        f"if (t < 64) {_bar('sync 1, 64')} else {_bar('sync 2, 64')}",
        f"for (int k = 0; k < 2; k++) if (t < 64) {_bar('sync 1, 64')}",
        f"if (t < n) {_bar('sync 1, 128')}",
        f'if (t < 64) {_bar("sync 1, 128")} else asm volatile("bar.sync %0, %1;" :: "r"(1), "r"(128));',
    ],
)
def test_one_to_which_as_many_may_come_is_not(body: str) -> None:
    assert not _missed(body)
