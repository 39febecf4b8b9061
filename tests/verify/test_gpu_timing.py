"""What a timed report holds, on a GPU; how right its times are is measured by benchmarks/gpu_timing.py."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest
from warpwright.syntax.source import Source, read_source
from warpwright.verify.plan import gpu_lock
from warpwright.verify.report import Report, Status
from warpwright.verify.verify import verify

pytestmark = [pytest.mark.gpu, pytest.mark.nvcc]

SAMPLES = Path(__file__).parents[2] / "csrc_samples"


def pair(sample: str, old: str, new: str) -> tuple[Source, Source]:
    original = read_source(SAMPLES / sample / "kernel.cu")
    assert old in original.text()
    return original, Source(original.path, original.text().replace(old, new).encode())


TRANSPOSE = "memory/transpose_tiled", "float tile[TILE][TILE]", "float tile[TILE][TILE + 1]"
SAXPY = "elementwise/saxpy", "int i = blockIdx.x", "int  i = blockIdx.x"


@pytest.fixture(scope="module")
def transpose() -> Report:
    return verify(*pair(*TRANSPOSE))


def test_cold_and_warm_with_intervals_at_an_odd_shape_and_one_that_is_not_square(transpose: Report) -> None:
    assert transpose.status is Status.FASTER, transpose.reason
    shapes = [tuple(speed.shape.values()) for speed in transpose.speed]
    assert (1237, 853) in shapes
    assert any(width != height for width, height in shapes)
    for speed in transpose.speed:
        assert speed.ci95[0] <= speed.speedup <= speed.ci95[1]
        low, high = speed.details["candidate_ci95_us"]
        assert low <= speed.candidate_us <= high
        assert speed.details["warm"]["ci95"][0] <= speed.details["warm"]["speedup"]
        assert speed.details["floor_us"] < speed.candidate_us


def test_the_bound_is_of_bytes_at_a_measured_rate_and_is_not_beaten(transpose: Report) -> None:
    first = transpose.speed[0]
    bound = first.details["bound"]
    assert bound["bytes"] == 2 * 4 * 4096 * 4096
    assert bound["limited_by"] == "memory"
    assert bound["us"] == pytest.approx(bound["bytes"] / bound["rate"] * 1e6)
    assert 0.2 < first.details["fraction_of_bound"] < 1.0


def test_torch_stands_beside_it_and_the_fastest_is_named(transpose: Report) -> None:
    for speed in transpose.speed:
        peers = speed.details["peers"]
        assert peers["eager_us"] > 0
        assert peers["compile_us"] or peers["compile_failed"]
        best = speed.details["best_baseline"]
        assert best["us"] <= speed.baseline_us
        assert best["speedup"] == pytest.approx(best["us"] / speed.candidate_us)


def test_a_reference_with_a_matrix_product_is_bound_by_its_operations() -> None:
    report = verify(*pair("matrix/matmul_swapped", "int row = blockIdx.x", "int  row = blockIdx.x"))
    for speed in report.speed:
        n = speed.shape["n"]
        assert speed.details["bound"]["operations"] == 2 * n**3
        assert speed.details["bound"]["limited_by"] == "arithmetic"


def test_a_size_that_the_launch_governs_is_called_that() -> None:
    report = verify(*pair(*SAXPY))
    small = min(report.speed, key=lambda speed: speed.candidate_us)
    assert small.details["launch_bound"]
    assert report.status is Status.INCONCLUSIVE


def test_whoever_has_the_gpu_alone_is_waited_for() -> None:
    holder = (
        "import sys; from warpwright_harness.gpu_lock import gpu_alone\n"
        "with gpu_alone(sys.argv[1], lambda: None): print('holds', flush=True); sys.stdin.readline()"
    )
    waited = threading.Event()

    def progress(text: str, _: float | None) -> None:
        if text == "Waiting for the GPU":
            waited.set()
            release()

    command = [sys.executable, "-c", holder, gpu_lock()]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        stdin = process.stdin

        def release() -> None:
            if not stdin.closed:
                stdin.write("\n")
                stdin.close()

        assert process.stdout.readline() == "holds\n"
        report = verify(*pair(*TRANSPOSE), progress=progress)
        release()
    assert waited.is_set()
    assert report.status is Status.FASTER
