"""How good a plan is, and what one without a model would answer."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from warpwright.assist.engine import EngineError
from warpwright.assist.plan import parse_plan
from warpwright.assist.prompts import plan_answer
from warpwright.optimize.order import UNKNOWN

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


def in_fixed_order(example: Example, known: Sequence[Example]) -> str:
    """The answer without a model: the choices in the order of what they gained on `known` kernels, of each the
    geometric mean with one sample more on which nothing was gained, as `warpwright.optimize.order` has it."""
    question = example.question
    assert question is not None
    logs: dict[str, list[float]] = {}
    for scores in {each.provenance: each.metrics.scores for each in known if not each.provenance.structure}.values():
        for name, gain in (scores or {}).items():
            logs.setdefault(name, []).append(math.log(max(1.0, gain)))
    means = {name: math.exp(sum(of) / (len(of) + 1)) for name, of in logs.items()}
    names = sorted((name for name, _ in question.rewrites), key=lambda name: (-means.get(name, UNKNOWN), name))
    return plan_answer("What gained most on other kernels comes first.", names, means.get(names[0], UNKNOWN))
