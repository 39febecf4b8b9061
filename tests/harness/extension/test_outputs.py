from __future__ import annotations

import importlib.util

import pytest

if importlib.util.find_spec("torch") is None:
    pytest.skip("not installed: torch", allow_module_level=True)

import torch
from warpwright_harness.checks.compare import STRICT_ULPS
from warpwright_harness.extension.outputs import (
    LEAST_FINITE,
    MOST_ROUNDINGS,
    Sample,
    differences,
    is_few,
    quick_differences,
    sampled,
    tolerance_of,
)

EPSILON = torch.finfo(torch.float32).eps


def sample(noise: float, *, rough: float | None = 1.0, error: float = 0.0, whole: bool = False) -> Sample:
    return Sample(EPSILON, 4, 1000.0, noise, rough, error, whole)


def test_what_an_output_shows_is_read_where_it_is_finite() -> None:
    base = torch.tensor([1.0, float("nan"), float("inf"), -2.0])
    moved = torch.tensor([1.25, 5.0, 7.0, -2.0])
    truth = torch.tensor([1.0, 0.0, 0.0, -2.125], dtype=torch.float64)
    names = ("its result",)
    given = [dict.fromkeys(names, each) for each in (base, moved, moved)]
    found = sampled([given[0]], [given[1]], given[2], dict.fromkeys(names, truth), exact=False)
    assert found == {"its result": Sample(EPSILON, 2, 2.0, 0.25, 0.25, 0.125, False)}
    assert is_few(found)
    assert not is_few(sampled([{"its result": torch.ones(LEAST_FINITE)}], [], None, None, exact=False))
    assert not sampled([{"its result": torch.ones(4, dtype=torch.int32)}], [], None, None, exact=False)


def test_the_originals_own_error_is_left_room() -> None:
    allowed = {"its result": tolerance_of([sample(1e-5, error=0.005)])}
    assert 0.0099 < allowed["its result"] < 0.0101
    original = {"its result": torch.full((4,), 1000.005)}
    assert not differences({"its result": torch.full((4,), 999.998)}, original, allowed).why
    assert differences({"its result": torch.full((4,), 999.98)}, original, allowed).why


def test_a_reference_that_is_wrong_widens_little() -> None:
    assert tolerance_of([sample(1e-5, error=1000.0)]) == pytest.approx(MOST_ROUNDINGS * EPSILON * 1000.0)


def test_what_the_next_lower_precision_would_pass_is_taken_strictly() -> None:
    strict = STRICT_ULPS * EPSILON * 1000.0
    assert tolerance_of([sample(0.5)]) == pytest.approx(strict)
    assert tolerance_of([sample(0.01)]) == pytest.approx(0.08)
    assert tolerance_of([sample(0.0, rough=0.0)]) == 0.0
    assert tolerance_of([sample(0.0, rough=None)]) == pytest.approx(strict)


def test_several_samples_are_as_loose_as_the_loosest_and_no_luck_decides() -> None:
    lucky = sample(0.01, rough=0.02)
    assert tolerance_of([lucky]) < 0.01
    assert tolerance_of([lucky, sample(0.02)]) == pytest.approx(0.16)


def test_equality_is_asked_for_where_all_samples_are_whole() -> None:
    assert tolerance_of([sample(0.0, rough=None, whole=True)]) == -1.0
    assert tolerance_of([sample(0.0, rough=None, whole=True), sample(0.1, rough=None)]) == pytest.approx(0.8)
    original, allowed = {"its result": torch.ones(4)}, {"its result": -1.0}
    moved = {"its result": torch.ones(4).nextafter(torch.tensor(2.0))}
    assert differences(moved, original, allowed).why
    assert quick_differences(moved, original, allowed)
    assert not quick_differences(original, original, allowed)
