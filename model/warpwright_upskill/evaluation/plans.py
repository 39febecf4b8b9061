"""Asking for plans of held-out kernels: is the plan valid, is the best rewrite named first, how much of the best gain
does it reach; beside the order in which the question offers them, and chance."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from warpwright.assist.engine import Engine, EngineError
from warpwright.assist.plan import make_plan
from warpwright.facts.analyze import analyze
from warpwright.progress import Progress
from warpwright.rewrites.base import Rewrite
from warpwright.rules.registry import run_rules
from warpwright.syntax.source import Source

from warpwright_upskill.examples import PLAN, Example, Question

WITHIN = 1.5
"""By which factor an estimate may lie off."""


@dataclass(frozen=True, slots=True)
class PlanAnswer:
    """`right`: the first rewrite named is the best one. `estimated` is the gain that the plan speaks of, `gain` the one
    that is known of the best."""

    id: str
    valid: bool
    right: bool
    estimated: float | None
    gain: float
    seconds: float
    said: str


def asked_plans(examples: Sequence[Example]) -> list[Example]:
    return [each for each in examples if each.task == PLAN and each.question is not None and each.rewrites]


def ask_plans(engine: Engine, examples: Sequence[Example], progress: Progress) -> list[PlanAnswer]:
    """The model's plan for each kernel. An engine that dies of a request costs that request alone."""
    found = []
    for at, example in enumerate(examples):
        progress("plans", at / len(examples))
        if example.question is not None:
            found.append(_plan(engine, example, example.question))
    progress("done", 1.0)
    return found


def _plan(engine: Engine, example: Example, question: Question) -> PlanAnswer:
    gain = example.metrics.speedup
    program = analyze(Source("evaluated.cu", example.source.encode()))
    kernel = program.kernel(example.kernel)
    if kernel is None:
        return PlanAnswer(example.id, False, False, None, gain, 0.0, "The kernel is not in the example's source.")
    findings = [finding for finding in run_rules(program) if finding.kernel == kernel.name]
    choices = [Rewrite(name, title, kernel.source, (), title) for name, title in question.rewrites]
    started = time.perf_counter()
    try:
        plan = make_plan(engine, kernel, findings, choices, question.goal)
    except EngineError as error:
        return PlanAnswer(example.id, False, False, None, gain, time.perf_counter() - started, str(error))
    right = plan.optimizations[:1] == example.rewrites[:1]
    seconds = round(time.perf_counter() - started, 3)
    return PlanAnswer(example.id, True, right, plan.estimated_speedup, gain, seconds, plan.raw)


def fixed_order(example: Example) -> PlanAnswer:
    """The first rewrite that the question offers."""
    assert example.question is not None
    first = example.question.rewrites[0][0]
    return PlanAnswer(example.id, True, (first,) == example.rewrites[:1], None, example.metrics.speedup, 0.0, first)


def plan_summary(answers: Sequence[PlanAnswer]) -> dict[str, Any]:
    told = [each for each in answers if each.estimated is not None]
    near = sum(1 / WITHIN <= (each.estimated or 0) / each.gain <= WITHIN for each in told)
    return {
        "plans": len(answers),
        "valid": sum(each.valid for each in answers),
        "right_first": sum(each.right for each in answers),
        "estimates": len(told),
        "estimates_within_1.5": near,
    }


def right_by_chance(examples: Sequence[Example]) -> float:
    return round(sum(1 / len(each.question.rewrites) for each in examples if each.question), 1)
