"""How good a plan is, and what one without a model would answer."""

from __future__ import annotations

from dataclasses import dataclass

from warpwright.assist.engine import EngineError
from warpwright.assist.plan import parse_plan
from warpwright.assist.prompts import plan_answer
from warpwright.optimize.order import fixed_order

from warpwright_upskill.examples import Example

ENOUGH = 0.95
"""Of the best gain, which the first choice is to reach."""
WITHIN = 1.5
"""By which factor an estimate may lie off."""


@dataclass(frozen=True, slots=True)
class PlanJudgement:
    """`reached` is the part of the best gain that the first choice has, 0 of what cannot be read; `first` is what a
    kernel gains by it, `best` what it could; `estimated` what the plan says it gains, None where it says nothing."""

    is_valid: bool
    first: float
    best: float
    estimated: float | None = None

    @property
    def reached(self) -> float:
        return self.first / self.best if self.is_valid else 0.0

    @property
    def is_right(self) -> bool:
        return self.reached >= ENOUGH

    @property
    def is_estimated(self) -> bool:
        """Whether the estimate lies near what its first choice gains."""
        return self.estimated is not None and self.first / WITHIN <= self.estimated <= self.first * WITHIN


def judge_plan(example: Example, answer: str) -> PlanJudgement:
    """An answer to the question of an example of `plans`. What would slow the kernel down gains nothing: the search
    keeps the kernel as it is."""
    gains = {name: max(1.0, gain) for name, gain in (example.metrics.scores or {}).items()}
    best = max(gains.values())
    try:
        plan = parse_plan(answer, list(gains))
    except EngineError:
        return PlanJudgement(False, 1.0, best)
    if not plan.optimizations:
        return PlanJudgement(False, 1.0, best)
    return PlanJudgement(True, gains[plan.optimizations[0]], best, plan.estimated_speedup)


def in_fixed_order(example: Example) -> str:
    """The answer without a model: the choices in the order of what gained most on the samples. It has seen the samples
    that are held out, too, which speaks for it."""
    question = example.question
    assert question is not None
    offered = {name for name, _ in question.rewrites}
    names = [name for name in fixed_order(question.goal, ()) if name in offered]
    return plan_answer("What gained most on other kernels comes first.", names, 1.0)
