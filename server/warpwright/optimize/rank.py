"""Which of several candidates is the best one, and which may lead to a better one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from warpwright.rules.base import Finding, Severity
from warpwright.verify.acceptable import acceptable
from warpwright.verify.report import Report, Status

ON_FIGURES = frozenset(
    {"add-restrict", "add-launch-bounds", "capture-graph", "compute-in-float", "fast-math-functions"}
)
"""Rewrites that nothing but a figure speaks for: hints to the compiler, of which it may make no use; fewer digits; and
a graph, which gains nothing where launches fill the GPU."""

MEASURED_NOISE, PREDICTED_NOISE = 1.03, 1.05
"""Speedups whose quotient is no larger are the same one: timings of one text differ by so much from one verification
to the next, and predictions tell no better."""

SLOWER = 0.95
"""A predicted speedup below that is a prediction of a loss; up to PREDICTED_NOISE the model does not tell it from the
same."""

_PROOF = {Status.FASTER: 3, Status.CORRECT: 2, Status.INCONCLUSIVE: 2}


@dataclass(frozen=True, slots=True)
class Score:
    """What a candidate is worth. Scores compare by `proof`, then by `gain` beyond `noise`, then by `rest`.

    `gain` is for speed the lower end of the measured speedup's interval at the user's own launch, or without a GPU the
    predicted speedup, 0 where there is neither, and 1 for other goals. `rest` is compared from left to right, more is
    better: for speed the fewest findings where nothing was measured, then the shortest sequence; for memory the fewest
    bytes, then registers, before these; for a fix as where nothing was measured.
    """

    proof: int
    gain: float
    noise: float
    rest: tuple[float, ...]


def score_of(report: Report, goal: str, findings: Sequence[Finding], steps: int) -> Score:
    """The score of a candidate of `steps` rewrites whose kernel still has these findings."""
    shorter = -float(steps)
    fewest = -float(sum(finding.severity in (Severity.ERROR, Severity.WARNING) for finding in findings))
    proof = _PROOF.get(report.status, 1)
    if goal == "memory":
        return Score(proof, 1.0, PREDICTED_NOISE, (*_footprint(report), fewest, shorter))
    if goal == "speed" and report.speed:
        return Score(proof, report.speed[0].ci95[0], MEASURED_NOISE, (shorter,))
    predicted = report.predicted.speedup if report.predicted else 0.0
    return Score(proof, predicted if goal == "speed" else 1.0, PREDICTED_NOISE, (fewest, shorter))


def best_of(scores: Sequence[Score]) -> int | None:
    """The index of the best: of those that prove most, and of these within the noise of the largest gain, the one with
    the best `rest`; the first of equals. None of none.

    >>> long, short = Score(3, 1.50, 1.02, (-3.0,)), Score(3, 1.49, 1.02, (-1.0,))
    >>> best_of([long, short, Score(3, 1.3, 1.02, (-1.0,)), Score(2, 9.0, 1.02, (-1.0,))])
    1
    """
    most = max((score.proof for score in scores), default=0)
    gains = [score.gain for score in scores if score.proof == most]
    near = [i for i, s in enumerate(scores) if s.proof == most and s.gain * s.noise >= max(gains)]
    return max(near, key=lambda i: (scores[i].rest, -i), default=None)


def may_be_offered(report: Report, goal: str, rewrites: Sequence[str]) -> bool:
    """Whether a candidate may be the answer: it is `acceptable`, and may be a gain.

    For speed, without a time, that is what is predicted to gain more than predictions err by; and what nothing is
    predicted of, unless there is nothing but a figure that could speak for it.
    """
    if not acceptable(report, goal):
        return False
    if goal != "speed" or report.speed:
        return True
    if report.predicted is None:
        return not ON_FIGURES.issuperset(rewrites)
    return report.predicted.speedup > PREDICTED_NOISE


def gain_of(report: Report) -> float | None:
    """The measured speedup at the user's own launch, else the predicted one; None where there is neither."""
    if report.speed:
        return report.speed[0].speedup
    return report.predicted.speedup if report.predicted else None


def _footprint(report: Report) -> tuple[float, float]:
    candidate = report.compilation.candidate if report.compilation else None
    if candidate is None:
        return 0.0, 0.0
    taken = candidate.resources
    return -float(taken.shared_bytes + taken.stack_bytes + taken.spill_bytes), -float(taken.registers)
