"""What a search found: every candidate that was tried, with its verification, and the one that is offered."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from warpwright.assist.plan import Plan
from warpwright.rewrites.base import Declined
from warpwright.syntax.edits import unified_diff
from warpwright.syntax.source import Source
from warpwright.verify.report import Report


@dataclass(frozen=True, slots=True)
class Candidate:
    """Rewrites applied in order to one file, and what verification said of the result against the user's own text."""

    rewrites: tuple[str, ...]
    explanations: tuple[str, ...]
    source_before: Source
    source_after: Source
    report: Report

    @property
    def diff(self) -> str:
        """From the user's own text to the candidate's, unified."""
        before, after = self.source_before, self.source_after
        return unified_diff(before.text(), after.text(), Path(before.path).name)

    def to_json(self) -> dict[str, object]:
        return {
            "rewrites": list(self.rewrites),
            "explanations": list(self.explanations),
            "diff": self.diff,
            "report": self.report.to_json(),
        }


@dataclass(frozen=True, slots=True)
class Outcome:
    """The end of a search. `best` is the index of the candidate to offer; without one `reason` says why there is none.

    Without a plan `plan_missing` says why and what to do about it. `declined` are the rewrites for the goal that do not
    apply to the kernel, each with its reason.
    """

    kernel: str
    goal: str
    plan: Plan | None
    plan_missing: str
    candidates: tuple[Candidate, ...]
    best: int | None
    reason: str = ""
    declined: tuple[Declined, ...] = ()

    def to_json(self) -> dict[str, object]:
        return {
            "kernel": self.kernel,
            "goal": self.goal,
            "plan": self.plan.to_json() if self.plan else None,
            "plan_missing": self.plan_missing,
            "candidates": [candidate.to_json() for candidate in self.candidates],
            "best": self.best,
            "reason": self.reason,
            "declined": [{"rewrite": declined.rewrite, "reason": declined.reason} for declined in self.declined],
        }
