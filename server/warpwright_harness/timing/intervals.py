"""Is B faster than A, and by how much? Intervals for the ratio of two times that were taken in the same rounds.

Sample i of both sides stems from the same round of an interleaved run, on the same values at the same addresses, so
what counts is the round's own ratio: a drift of the clock, or an address that suits neither side, cancels out in it.
Under no difference a round's log ratio is as likely to be x as -x, whatever the noise looks like, which is all that the
signed-rank test needs: its intervals hold for few samples and with outliers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist, median

LOOKS = (16, 24, 36, 54, 80, 120)
"""After how many rounds the interval is looked at, and the run may stop."""

LOOK_CONFIDENCE = 0.9858
"""Of each interval, so that at six looks at a growing sample all of them hold in 95 % of runs: Pocock's nominal level
for six looks is 0.0142. Source: Pocock, Biometrika 64 (1977); Jennison and Turnbull, Group Sequential Methods,
table 2.1."""

LEAST_EFFECT = 1.01
LEAST_US = 0.2
"""A ratio nearer to 1 than LEAST_EFFECT counts as none, and so does a difference of less than LEAST_US microseconds:
where code and buffers happen to lie moves a time by that, on the same text compiled twice. An interval must lie beyond
both to be called a difference."""

NARROW = 0.005
PRECISE = 0.03
"""How far an interval may reach from its middle for a run to stop: wherever it lies, and where the verdict is clear."""


@dataclass(frozen=True, slots=True)
class Ratio:
    """How many times as fast the candidate is: the estimate, an interval that holds it in 95 % of runs, and the least
    ratio that counts."""

    value: float
    low: float
    high: float
    least: float

    @property
    def is_faster(self) -> bool:
        return self.low > self.least

    @property
    def is_slower(self) -> bool:
        return self.high < 1 / self.least

    @property
    def is_same(self) -> bool:
        """Whether no difference that counts is possible."""
        return self.low >= 1 / self.least and self.high <= self.least

    @property
    def is_settled(self) -> bool:
        """Whether more rounds would change no verdict, and not much of what is said with it."""
        clear = self.is_faster or self.is_slower or self.is_same
        return self.high / self.low < (1 + (PRECISE if clear else NARROW)) ** 2


def is_enough(baseline: Sequence[float], candidate: Sequence[float]) -> bool:
    """Whether to stop after these rounds: at a look, where the verdict is settled, or at the last."""
    rounds = len(baseline)
    return rounds in LOOKS and (rounds == LOOKS[-1] or ratio_of(baseline, candidate).is_settled)


def ratio_of(baseline: Sequence[float], candidate: Sequence[float], confidence: float = LOOK_CONFIDENCE) -> Ratio:
    """The Hodges-Lehmann estimate of baseline / candidate over paired samples in microseconds, and the interval of the
    signed-rank test. Source: Hollander, Wolfe and Chicken, Nonparametric Statistical Methods, sections 3.2 and 3.3.

    >>> ratio = ratio_of([20.0, 21.0, 19.0, 20.0] * 8, [10.0, 11.0, 9.0, 10.0] * 8)
    >>> round(ratio.value, 2), ratio.low > 1.9, ratio.high < 2.1, ratio.is_faster
    (2.0, True, True, True)
    >>> ratio_of([100.0] * 30, [100.0] * 30)
    Ratio(value=1.0, low=1.0, high=1.0, least=1.01)
    """
    if len(baseline) != len(candidate) or not baseline:
        raise ValueError("expected as many samples of the baseline as of the candidate, and at least one")
    logs = [math.log(a / b) for a, b in zip(baseline, candidate, strict=True)]
    count = len(logs)
    averages = sorted((logs[i] + logs[j]) / 2 for i in range(count) for j in range(i, count))
    spread = math.sqrt(count * (count + 1) * (2 * count + 1) / 24)
    quantile = NormalDist().inv_cdf((1 + confidence) / 2)
    cut = max(0, math.floor(len(averages) / 2 - quantile * spread))
    least = max(LEAST_EFFECT, 1 + LEAST_US / median([*baseline, *candidate]))
    return Ratio(math.exp(median(averages)), math.exp(averages[cut]), math.exp(averages[-1 - cut]), least)


def median_interval(samples: Sequence[float], confidence: float = 0.95) -> tuple[float, float]:
    """An interval for the median, between two of the samples, from the binomial distribution; all of them where they
    are too few for that confidence. Source: Hollander, Wolfe and Chicken, section 3.6.

    >>> median_interval([5.0, 1.0, 4.0, 2.0, 3.0, 6.0, 7.0, 8.0, 9.0])
    (2.0, 8.0)
    """
    if not samples:
        raise ValueError("expected at least one sample")
    ordered = sorted(samples)
    count = len(ordered)
    outside, cut = 0.5**count, 0
    while cut + 1 <= (count - 1) // 2:
        outside += math.comb(count, cut + 1) * 0.5**count
        if 2 * outside > 1 - confidence:
            break
        cut += 1
    return ordered[cut], ordered[-1 - cut]
