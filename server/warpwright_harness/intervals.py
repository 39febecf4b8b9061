"""Is B faster than A? Medians of interleaved samples, and a bootstrap interval for their ratio."""

from __future__ import annotations

import random
from collections.abc import Sequence
from statistics import median

RESAMPLES = 2000


def speedup_interval(
    baseline: Sequence[float], candidate: Sequence[float], seed: int = 0
) -> tuple[float, tuple[float, float]]:
    """The ratio median(baseline) / median(candidate) and its 95 % interval, by a paired percentile bootstrap.

    Sample i of both stems from the same round of an interleaved run, so rounds are resampled, not samples: a drift of
    the clock that hits both cancels out. Source: Efron and Tibshirani, An Introduction to the Bootstrap, chapter 13.

    >>> ratio, (low, high) = speedup_interval([2.0, 2.1, 1.9, 2.0] * 8, [1.0, 1.1, 0.9, 1.0] * 8)
    >>> ratio, low > 1.8, high < 2.2
    (2.0, True, True)
    >>> speedup_interval([1.0] * 30, [1.0] * 30)
    (1.0, (1.0, 1.0))
    """
    if len(baseline) != len(candidate) or not baseline:
        raise ValueError("expected as many samples of the baseline as of the candidate, and at least one")
    source = random.Random(seed)
    rounds = range(len(baseline))
    ratios: list[float] = []
    for _ in range(RESAMPLES):
        picked = source.choices(rounds, k=len(baseline))
        ratios.append(median(baseline[i] for i in picked) / median(candidate[i] for i in picked))
    ratios.sort()
    low, high = ratios[int(0.025 * RESAMPLES)], ratios[int(0.975 * RESAMPLES) - 1]
    return median(baseline) / median(candidate), (low, high)
