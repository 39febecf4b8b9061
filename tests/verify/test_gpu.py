"""On a GPU, the rewrites of benchmarks/gpu_check.py, honest and broken, get the verdicts that are true of them."""

from __future__ import annotations

from typing import Any

import pytest
from gpu_check import CHECKS
from warpwright.verify.acceptable import acceptable
from warpwright.verify.verify import verify

pytestmark = [pytest.mark.gpu, pytest.mark.nvcc]


@pytest.mark.parametrize("check", CHECKS, ids=lambda c: c.name)
def test_the_verdict_is_true(check: Any) -> None:
    original, candidate = check.texts()
    report = verify(original, candidate, goal=check.goal)
    assert str(report.status) in check.expected, (report.reason, report.notes)
    assert check.words in report.reason
    assert acceptable(report, check.goal) == (str(report.status) in ("faster", "correct"))
