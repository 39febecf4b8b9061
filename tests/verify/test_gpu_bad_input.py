"""Kernels that fault, trap, hang or ask for too much on a GPU: a status each, and the next verification is unharmed."""

from __future__ import annotations

from pathlib import Path

import pytest
from warpwright.missing import Missing
from warpwright.progress import never_cancelled
from warpwright.syntax.source import Source
from warpwright.verify import harness
from warpwright.verify.harness import find_gpu
from warpwright.verify.report import Report, Status
from warpwright.verify.verify import verify

pytestmark = [pytest.mark.gpu, pytest.mark.nvcc]

HONEST = """__global__ void k(float* a, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) a[i] = 2 * a[i];
}
void f(float* a) { int n = 100000; k<<<(n + 255) / 256, 256>>>(a, n); }
"""
FINE = (Status.FASTER, Status.SLOWER, Status.INCONCLUSIVE, Status.CORRECT)


def verified(folder: Path, candidate: str, goal: str = "fix") -> Report:
    path = str(folder / "a.cu")
    return verify(Source(path, HONEST.encode()), Source(path, candidate.encode()), goal=goal, again=True)


def with_more(more: str) -> str:
    return HONEST.replace("a[i] = 2 * a[i];", f"{{ a[i] = 2 * a[i]; {more} }}")


@pytest.mark.parametrize(
    ("more", "status", "words"),
    [
        ("a[i + (1ull << 40)] = 1;", Status.UNSAFE, "illegal memory access"),
        ("*(double*)((char*)a + 4) = 1;", Status.UNSAFE, "misaligned"),
        ("if (n == 31) __trap();", Status.UNSAFE, "n = 31"),
        ("while (n == 33 && ((volatile float*)a)[i] != 1.25e-30f);", Status.TIMEOUT, "does not finish at n = 33"),
    ],
    ids=["illegal", "misaligned", "trap", "endless"],
)
def test_a_kernel_that_fails_is_named_and_the_next_is_unharmed(
    more: str, status: Status, words: str, tmp_path: Path
) -> None:
    report = verified(tmp_path, with_more(more))
    assert (report.status, words in report.reason) == (status, True), report.reason
    assert verified(tmp_path, HONEST.replace("2 * a[i]", "a[i] + a[i]")).status in FINE


def test_the_harness_is_confined(tmp_path: Path) -> None:
    report = verified(tmp_path, HONEST.replace("2 * a[i]", "a[i] + a[i]"), goal="speed")
    assert report.status in FINE
    assert "no network" in report.environment["sandbox"]


def test_a_gpu_that_is_gone_is_said_and_its_return_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as gone:
        gone.setenv("CUDA_VISIBLE_DEVICES", "")
        harness.forget_gpu()
        assert isinstance(find_gpu(never_cancelled), Missing)
        assert verified(tmp_path, HONEST.replace("2 * a[i]", "a[i] + a[i]")).backend in ("emulator", "none")
    harness.forget_gpu()
    assert verified(tmp_path, HONEST.replace("2 * a[i]", "a[i] + a[i]")).backend.startswith("cuda:")
