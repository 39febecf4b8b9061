"""Asking for plans of held-out kernels: is the plan valid, is the best rewrite named first, how much of the best gain
does it reach; beside the order of what gained on the kernels that are trained on, and chance."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from warpwright.assist.engine import Engine, EngineError
from warpwright.assist.plan import make_plan
from warpwright.facts.analyze import analyze
from warpwright.progress import Progress
from warpwright.rewrites.base import Rewrite
from warpwright.rules.registry import run_rules
from warpwright.syntax.source import Source

from warpwright_upskill.evaluation.judge_plans import ENOUGH, PlanJudgement, in_fixed_order, judge_plan
from warpwright_upskill.examples import PLAN, TRAIN, Example, Question


@dataclass(frozen=True, slots=True)
class PlanAnswer:
    id: str
    judgement: PlanJudgement
    seconds: float
    said: str


def asked_plans(examples: Sequence[Example]) -> list[Example]:
    return [each for each in examples if each.task == PLAN and each.question is not None and each.metrics.scores]


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
    program = analyze(Source("evaluated.cu", example.source.encode()))
    kernel = program.kernel(example.kernel)
    if kernel is None:
        said = "The kernel is not in the example's source."
        return PlanAnswer(example.id, judge_plan(example, ""), 0.0, said)
    findings = [finding for finding in run_rules(program) if finding.kernel == kernel.name]
    choices = [Rewrite(name, title, kernel.source, (), title) for name, title in question.rewrites]
    started = time.perf_counter()
    try:
        answer = said = make_plan(engine, kernel, findings, choices, question.goal).raw
    except EngineError as error:
        answer, said = "", str(error)
    return PlanAnswer(example.id, judge_plan(example, answer), round(time.perf_counter() - started, 3), said)


def kept_plans(examples: Sequence[Example], texts: Mapping[str, Sequence[str]]) -> list[PlanAnswer]:
    """A model's first answers that were written before, by the ids of the examples."""
    said = {each.id: next(iter(texts.get(each.id, ())), "").strip() for each in examples}
    return [PlanAnswer(each.id, judge_plan(each, said[each.id]), 0.0, said[each.id]) for each in examples]


def fixed_order(examples: Sequence[Example], known: Sequence[Example]) -> list[PlanAnswer]:
    """The plans without a model, by what the kernels of `known` that are trained on gained."""
    trained = [each for each in asked_plans(known) if each.split == TRAIN]
    answers = {each.id: in_fixed_order(each, trained) for each in examples}
    return [PlanAnswer(each.id, judge_plan(each, answers[each.id]), 0.0, answers[each.id]) for each in examples]


def plan_summary(answers: Sequence[PlanAnswer]) -> dict[str, Any]:
    """`reached` is the mean part of the best speed-up that first choices have; `right_first` have enough of it."""
    judged = [each.judgement for each in answers]
    return {
        "plans": len(judged),
        "valid": sum(each.is_valid for each in judged),
        "right_first": sum(each.is_right for each in judged),
        "reached": round(fmean(each.reached for each in judged), 3) if judged else None,
        "estimates": sum(each.estimated is not None for each in judged),
        "estimates_within_1.5": sum(each.is_estimated for each in judged),
    }


def right_by_chance(examples: Sequence[Example]) -> float:
    """How many plans are right where the first choice is drawn."""
    shares = []
    for each in examples:
        gains = [max(1.0, gain) for gain in (each.metrics.scores or {}).values()]
        shares.append(sum(gain >= ENOUGH * max(gains) for gain in gains) / len(gains))
    return round(sum(shares), 1)
