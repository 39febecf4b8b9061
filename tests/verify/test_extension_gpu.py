"""On a GPU, extensions that cheat are rejected and honest ones pass: some of benchmarks/extension_attacks.py."""

from __future__ import annotations

from typing import Any

import pytest
from extension_attacks import CHECKS
from warpwright.verify.acceptable import acceptable
from warpwright.verify.verify import verify

pytestmark = [pytest.mark.gpu, pytest.mark.nvcc]

SAMPLE = ("cached_by_checksum", "kernel_never_launched", "thread_changes_later", "softmax")
"""Of all that the benchmark runs in parallel: each is built anew, which takes a minute."""

SAMPLED = [check for check in CHECKS if check.name in SAMPLE]


@pytest.mark.parametrize("check", SAMPLED, ids=lambda c: c.name)
def test_the_verdict_is_true(check: Any) -> None:
    report = verify(check.original, check.candidate, goal="speed", again=True)
    assert str(report.status) in check.statuses, (report.reason, report.notes)
    assert check.words in report.reason
    assert acceptable(report, "speed") == (str(report.status) == "faster")
