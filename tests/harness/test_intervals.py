"""Times with all that real ones have: noise with long tails, outliers, drift, and a first place that is slower.

The amounts are above what an H200 shows (`benchmarks/results/gpu_timing.json`).
"""

from __future__ import annotations

import random
from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st
from warpwright_harness.timing.intervals import LEAST_EFFECT, LOOKS, Ratio, is_enough, median_interval, ratio_of

SIGMA = 0.012
ORDER_EFFECT = 0.01
OUTLIERS = 0.03


def run(seed: int, ratio: float, sigma: float = SIGMA) -> tuple[Ratio, int]:
    """A whole interleaved run, as the harness does it: the ratio that it ends with, and after how many rounds."""
    source = random.Random(seed)
    drift = source.uniform(-0.1, 0.1)
    baseline: list[float] = []
    candidate: list[float] = []
    orders: list[tuple[int, int]] = []
    while True:
        orders = orders or source.sample(((0, 1), (1, 0)), 2)
        level = 100.0 * (1 + drift * len(baseline) / 90) * source.lognormvariate(0.0, 0.03)  # of the round's address
        for samples, true, place in ((baseline, ratio, orders[0][0]), (candidate, 1.0, orders[0][1])):
            slow = 1.0 + ORDER_EFFECT * place
            noise = source.lognormvariate(0.0, sigma) * (source.uniform(1.1, 2.0) if source.random() < OUTLIERS else 1)
            samples.append(level * true * slow * noise)
        orders = orders[1:]
        if is_enough(baseline, candidate):
            return ratio_of(baseline, candidate), len(baseline)


def test_the_same_kernel_twice_wins_or_loses_in_less_than_one_of_a_hundred_runs() -> None:
    called = sum(found.is_faster or found.is_slower for found, _ in (run(seed, 1.0) for seed in range(1000)))
    assert called < 5


def test_at_three_shapes_neither() -> None:
    """A candidate is slower where it is slower at any of its shapes."""
    runs = [[run(1000 * shape + seed, 1.0)[0] for shape in (11, 12, 13)] for seed in range(300)]
    called = sum(shapes[0].is_faster or any(shape.is_slower for shape in shapes) for shapes in runs)
    assert called < 3


@pytest.mark.parametrize("ratio", [1.03, 1 / 1.03])
def test_three_percent_are_seen(ratio: float) -> None:
    found = [run(seed, ratio)[0] for seed in range(300)]
    assert sum(f.is_faster if ratio > 1 else f.is_slower for f in found) >= 0.97 * 300


def test_the_interval_holds_the_truth_in_95_percent_of_runs_although_it_is_looked_at_many_times() -> None:
    found = [run(seed, 1.02, 0.02)[0] for seed in range(600)]
    assert sum(f.low <= 1.02 <= f.high for f in found) >= 0.94 * 600


def test_a_large_difference_ends_the_run_at_once() -> None:
    runs = [run(seed, 1.9) for seed in range(50)]
    assert all(1.7 < found.low < found.high < 2.1 for found, _ in runs)
    assert median(rounds for _, rounds in runs) == LOOKS[0]
    assert max(rounds for _, rounds in runs) < LOOKS[-1], "outliers alone keep a clear run going, and not for long"


def test_a_drift_that_hits_both_sides_cancels() -> None:
    source = random.Random(1)
    drift = [1.0 + step / 30 for step in range(60)]
    baseline = [150.0 * d * source.lognormvariate(0.0, 0.03) for d in drift]
    candidate = [100.0 * d * source.lognormvariate(0.0, 0.03) for d in drift]
    found = ratio_of(baseline, candidate)
    assert 1.45 < found.low < 1.5 < found.high < 1.55


def test_samples_come_in_rounds() -> None:
    with pytest.raises(ValueError, match="as many samples"):
        ratio_of([1.0], [1.0, 2.0])
    with pytest.raises(ValueError, match="at least one"):
        median_interval([])


TIMES = st.lists(st.tuples(*[st.floats(0.5, 5e4)] * 2), min_size=1, max_size=40)


@given(TIMES)
def test_whoever_is_called_the_baseline_the_ratio_is_the_same(pairs: list[tuple[float, float]]) -> None:
    first, second = [a for a, _ in pairs], [b for _, b in pairs]
    one, other = ratio_of(first, second), ratio_of(second, first)
    assert one.low <= one.value * (1 + 1e-12)
    assert one.value <= one.high * (1 + 1e-12)
    assert one.value == pytest.approx(1 / other.value)
    assert one.low == pytest.approx(1 / other.high)
    assert not (one.is_faster and (one.is_slower or one.is_same))
    assert one.is_faster == (one.low > one.least)
    assert one.least == other.least >= LEAST_EFFECT


def test_a_tenth_of_a_microsecond_is_no_difference_whatever_its_share() -> None:
    tiny = ratio_of([5.0, 5.01] * 20, [4.9, 4.91] * 20)
    assert tiny.low > LEAST_EFFECT
    assert not tiny.is_faster
    assert ratio_of([5.0, 5.01] * 20, [4.5, 4.51] * 20).is_faster
    assert ratio_of([500.0, 501.0] * 20, [490.0, 491.0] * 20).is_faster


@given(TIMES, st.floats(0.1, 10.0))
def test_units_do_not_matter(pairs: list[tuple[float, float]], unit: float) -> None:
    first, second = [a for a, _ in pairs], [b for _, b in pairs]
    plain, scaled = ratio_of(first, second), ratio_of([a * unit for a in first], [b * unit for b in second])
    assert scaled.low == pytest.approx(plain.low)
    assert scaled.high == pytest.approx(plain.high)


@given(st.lists(st.floats(0.0, 1e6), min_size=1, max_size=60))
def test_the_interval_of_a_median_holds_it(samples: list[float]) -> None:
    low, high = median_interval(samples)
    assert low <= median(samples) <= high
    assert {low, high} <= set(samples)


def test_the_interval_of_a_median_holds_the_true_one_in_95_percent() -> None:
    source = random.Random(3)
    held = 0
    for _ in range(2000):
        low, high = median_interval([source.lognormvariate(0.0, 0.5) for _ in range(27)])
        held += low <= 1.0 <= high
    assert held >= 0.94 * 2000
