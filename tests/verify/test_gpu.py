"""On a GPU, the rewrites of benchmarks/gpu_check.py, honest and broken, get the verdicts that are true of them."""

from __future__ import annotations

from typing import Any

import pytest
from gpu_check import CHECKS
from warpwright.syntax.source import Source
from warpwright.verify.acceptable import acceptable
from warpwright.verify.report import Status
from warpwright.verify.verify import verify

pytestmark = [pytest.mark.gpu, pytest.mark.nvcc]


@pytest.mark.parametrize("check", CHECKS, ids=lambda c: c.name)
def test_the_verdict_is_true(check: Any) -> None:
    original, candidate = check.texts()
    report = verify(original, candidate, goal=check.goal)
    assert str(report.status) in check.expected, (report.reason, report.notes)
    assert check.words in report.reason
    assert acceptable(report, check.goal) == (str(report.status) in ("faster", "correct"))


BEHIND_THE_END = """\
// warpwright: launch grid((n + 255) / 256) block(256)
// warpwright: array out[n] out
__global__ void k(const float* in, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i + 4] = in[i];
}
"""


@pytest.mark.parametrize(
    ("head", "words"),
    [
        ("", "could not reconstruct this launch: it writes outside out, whose extent is"),
        ("// warpwright: array in[n] in\n", "the original is not sound here: it writes outside out, whose extent is"),
    ],
)
def test_an_original_at_fault_is_blamed_where_nothing_was_guessed(head: str, words: str) -> None:
    text = head + BEHIND_THE_END
    sound = text.replace("i + 4", "i")
    report = verify(Source("a.cu", text.encode()), Source("a.cu", sound.encode()), goal="fix")
    assert report.status is Status.NOT_RUN
    assert words in report.reason
