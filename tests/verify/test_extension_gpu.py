"""On a GPU, extensions that cheat are rejected and honest ones pass: some of benchmarks/extension_attacks.py."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from warpwright.verify.verify import acceptable, verify

pytestmark = [pytest.mark.gpu, pytest.mark.nvcc]


def _load() -> ModuleType:
    path = Path(__file__).parents[2] / "benchmarks" / "extension_attacks.py"
    spec = importlib.util.spec_from_file_location("extension_attacks", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["extension_attacks"] = module
    spec.loader.exec_module(module)
    return module


SAMPLE = ("cached_by_checksum", "kernel_never_launched", "thread_changes_later", "softmax")
"""Of all that the benchmark runs in parallel: each is built anew, which takes a minute."""

CHECKS = [check for check in _load().CHECKS if check.name in SAMPLE]


@pytest.mark.parametrize("check", CHECKS, ids=lambda c: c.name)
def test_the_verdict_is_true(check: Any) -> None:
    report = verify(*check.sources(), goal="speed", again=True)
    assert str(report.status) in check.statuses, (report.reason, report.notes)
    assert check.words in report.reason
    assert acceptable(report, "speed") == (str(report.status) == "faster")
