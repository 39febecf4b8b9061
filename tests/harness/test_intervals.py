from __future__ import annotations

import random

import pytest
from warpwright_harness.intervals import speedup_interval


def samples(seed: int, scale: float, count: int = 60) -> list[float]:
    source = random.Random(seed)
    return [scale * source.lognormvariate(0.0, 0.03) for _ in range(count)]


def test_the_same_kernel_twice_is_within_the_effect_that_counts() -> None:
    called_faster = 0
    for seed in range(40):
        _, (low, _high) = speedup_interval(samples(seed, 100.0), samples(seed + 1000, 100.0), seed)
        called_faster += low > 1.02
    assert called_faster == 0


def test_a_real_difference_is_seen() -> None:
    ratio, (low, high) = speedup_interval(samples(1, 190.0), samples(2, 100.0))
    assert low > 1.8 < ratio < high < 2.0


def test_a_drift_that_hits_both_sides_cancels() -> None:
    drift = [1.0 + step / 30 for step in range(60)]
    baseline = [x * d for x, d in zip(samples(1, 150.0), drift, strict=True)]
    candidate = [x * d for x, d in zip(samples(2, 100.0), drift, strict=True)]
    _, (low, high) = speedup_interval(baseline, candidate)
    assert 1.4 < low < 1.5 < high < 1.6


def test_samples_come_in_rounds() -> None:
    with pytest.raises(ValueError, match="as many samples"):
        speedup_interval([1.0], [1.0, 2.0])
