"""Which of two candidates that may both be offered is the better one."""

from __future__ import annotations

from collections.abc import Sequence

from warpwright.rules.base import Finding, Severity
from warpwright.verify.report import Report, Status

Rank = tuple[float, ...]
"""Compared from left to right; more is better."""

_PROOF = {Status.FASTER: 3, Status.CORRECT: 2, Status.INCONCLUSIVE: 2}


def rank_of(report: Report, goal: str, findings: Sequence[Finding]) -> Rank:
    """The rank of a candidate: what was proved of it, then what the goal asks for.

    `findings` are those that its kernel still has. For speed: the lower end of the measured speedup's interval at the
    user's own launch (0 where nothing was timed), then the fewest findings. For memory: the fewest bytes, then
    registers. For a fix: the fewest findings.
    """
    proof = float(_PROOF.get(report.status, 1))
    fewest = -float(sum(finding.severity in (Severity.ERROR, Severity.WARNING) for finding in findings))
    if goal == "speed":
        # To two decimals: what lies closer is noise, and the shorter sequence, which was tried first, stays.
        certain = round(report.speed[0].ci95[0], 2) if report.speed else 0.0
        return proof, certain, fewest
    if goal == "memory":
        return proof, *_footprint(report), fewest
    return proof, fewest


def _footprint(report: Report) -> tuple[float, float]:
    candidate = report.compilation.candidate if report.compilation else None
    if candidate is None:
        return 0.0, 0.0
    taken = candidate.resources
    return -float(taken.shared_bytes + taken.stack_bytes + taken.spill_bytes), -float(taken.registers)
