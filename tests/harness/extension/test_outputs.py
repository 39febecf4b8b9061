from __future__ import annotations

import importlib.util

import pytest

if importlib.util.find_spec("torch") is None:
    pytest.skip("not installed: torch", allow_module_level=True)

import torch
from warpwright_harness.extension.outputs import MOST_ROUNDINGS, differences, quick_differences, widened


def test_the_originals_own_error_is_left_room() -> None:
    truth = {"its result": torch.full((4,), 1000.0, dtype=torch.float64)}
    original = {"its result": torch.full((4,), 1000.005)}
    allowed = widened({"its result": 1e-4}, original, truth)
    assert 0.0099 < allowed["its result"] < 0.0101
    assert not differences({"its result": torch.full((4,), 999.998)}, original, allowed).why
    assert differences({"its result": torch.full((4,), 999.98)}, original, allowed).why


def test_a_reference_that_is_wrong_widens_little() -> None:
    original = {"its result": torch.full((4,), 1000.0)}
    allowed = widened({"its result": 1e-4}, original, {"its result": torch.zeros(4, dtype=torch.float64)})
    assert allowed["its result"] == pytest.approx(MOST_ROUNDINGS * torch.finfo(torch.float32).eps * 1000.0)


def test_equality_stays_equality() -> None:
    original = {"its result": torch.ones(4)}
    allowed = widened({"its result": -1.0}, original, {"its result": torch.zeros(4, dtype=torch.float64)})
    assert allowed == {"its result": -1.0}
    moved = {"its result": torch.ones(4).nextafter(torch.tensor(2.0))}
    assert differences(moved, original, allowed).why
    assert quick_differences(moved, original, allowed)
    assert not quick_differences(original, original, allowed)
