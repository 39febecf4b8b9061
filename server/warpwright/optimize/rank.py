"""Which of two candidates that may both be offered is the better one."""

from __future__ import annotations

from collections.abc import Sequence

from warpwright.rules.base import Finding, Severity
from warpwright.verify.report import Report, Status

Rank = tuple[float, ...]
"""Compared from left to right; more is better."""

SLOWER = 0.95
"""A predicted speedup below that is a prediction of a loss; above it, the model does not tell it from the same."""

_PROOF = {Status.FASTER: 3, Status.CORRECT: 2, Status.INCONCLUSIVE: 2}


def rank_of(report: Report, goal: str, findings: Sequence[Finding]) -> Rank:
    """The rank of a candidate: what was proved of it, then what the goal asks for.

    `findings` are those that its kernel still has. For speed: the lower end of the measured speedup's interval at the
    user's own launch, or without a GPU the predicted speedup (0 where there is neither), then the fewest findings. For
    memory: the fewest bytes, then registers. For a fix: the fewest findings.
    """
    proof = float(_PROOF.get(report.status, 1))
    fewest = -float(sum(finding.severity in (Severity.ERROR, Severity.WARNING) for finding in findings))
    if goal == "speed":
        # To two decimals, of predictions one: what lies closer is noise, and the shorter sequence, tried first, stays.
        predicted = round(report.predicted.speedup, 1) if report.predicted else 0.0
        certain = round(report.speed[0].ci95[0], 2) if report.speed else predicted
        return proof, certain, fewest
    if goal == "memory":
        return proof, *_footprint(report), fewest
    return proof, fewest


def is_gain(report: Report, goal: str) -> bool:
    """Whether a candidate may be a gain: not where speed is asked for and it is predicted to be slower."""
    return goal != "speed" or report.predicted is None or report.predicted.speedup >= SLOWER


def _footprint(report: Report) -> tuple[float, float]:
    candidate = report.compilation.candidate if report.compilation else None
    if candidate is None:
        return 0.0, 0.0
    taken = candidate.resources
    return -float(taken.shared_bytes + taken.stack_bytes + taken.spill_bytes), -float(taken.registers)
