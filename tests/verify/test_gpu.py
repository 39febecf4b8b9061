"""On a GPU, the rewrites of benchmarks/gpu_check.py, honest and broken, get the verdicts that are true of them."""

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
    path = Path(__file__).parents[2] / "benchmarks" / "gpu_check.py"
    spec = importlib.util.spec_from_file_location("gpu_check", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["gpu_check"] = module
    spec.loader.exec_module(module)
    return module


CHECKS = _load().CHECKS


@pytest.mark.parametrize("check", CHECKS, ids=lambda c: c.name)
def test_the_verdict_is_true(check: Any) -> None:
    original, candidate = check.texts()
    report = verify(original, candidate, goal=check.goal)
    assert str(report.status) in check.expected, (report.reason, report.notes)
    assert check.words in report.reason
    assert acceptable(report, check.goal) == (str(report.status) in ("faster", "correct"))
