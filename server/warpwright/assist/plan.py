"""A plan: which of the applicable rewrites the model would try, in its own words.

Nothing trusts it. Its order is the order in which candidates are tried, and its words are shown as the model's; what
is offered is what verification says.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from warpwright.assist.counted import counted_changes
from warpwright.assist.engine import CompletionRequest, Engine, EngineError
from warpwright.assist.prompts import (
    ANALYSIS_CHARACTERS,
    PLAN_SHOTS,
    PlanQuestion,
    nearest_shots,
    one_line,
    plan_grammar,
    plan_prompt,
)
from warpwright.facts.analyze import analyze
from warpwright.facts.model import Kernel
from warpwright.progress import CancelledError, IsCancelled, never_cancelled
from warpwright.rewrites.base import Rewrite
from warpwright.rules.base import Finding
from warpwright.syntax.source import include_reader

MAX_TOKENS = 288  # the longest plan: 240 characters of analysis, six names, a number
MAX_FINDINGS = 6
LONGEST_PLACE = 120  # characters: a finding may mark a launch of many lines
LONGEST_MESSAGE = 400
SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Plan:
    """What the model answered. `raw` is its text unmodified; `estimated_speedup` is its guess, never a measurement.

    `optimizations` are names of rewrites, each once, in the order to try; empty where there was nothing to choose
    from, and then `raw` is empty too: the model was not asked.
    """

    analysis: str
    optimizations: tuple[str, ...]
    estimated_speedup: float | None
    raw: str

    def to_json(self) -> dict[str, object]:
        return {
            "analysis": self.analysis,
            "optimizations": list(self.optimizations),
            "estimated_speedup": self.estimated_speedup,
            "raw": self.raw,
        }


def make_plan(
    engine: Engine,
    kernel: Kernel,
    findings: Sequence[Finding],
    candidates: Sequence[Rewrite],
    goal: str,
    *,
    is_cancelled: IsCancelled = never_cancelled,
) -> Plan:
    """Ask the model, at temperature 0 and under a grammar that admits only the names of `candidates`.

    Raises EngineError (one sentence) where the model could not answer or its answer is cut off, CancelledError.
    """
    if not candidates:
        return Plan(f"No rewrite that is known here applies to {kernel.name} for {goal}.", (), None, "")
    question = plan_question(kernel, findings, candidates, goal)
    names = [name for name, _ in question.rewrites]
    completion = engine.complete(
        CompletionRequest(
            plan_prompt(question, () if engine.is_taught else nearest_shots(question, PLAN_SHOTS)),
            max_tokens=MAX_TOKENS,
            grammar=plan_grammar(names),
            seconds=SECONDS,
        ),
        is_cancelled,
    )
    if completion.stop == "cancelled":
        raise CancelledError
    if completion.stop == "time":
        raise EngineError(f"The model had not finished its plan after {SECONDS:.0f} seconds.")
    return parse_plan(completion.text, names)


def plan_question(
    kernel: Kernel, findings: Sequence[Finding], candidates: Sequence[Rewrite], goal: str
) -> PlanQuestion:
    """What the model is told of a kernel: its text, its findings with their numbers, the rewrites that apply, each with
    what the counts of its text differ in."""
    said = tuple(
        f"{finding.rule} at `{one_line(finding.span.text)[:LONGEST_PLACE]}`: {finding.headline[:LONGEST_MESSAGE]}"
        for finding in findings[:MAX_FINDINGS]
    )
    titles = {each.rewrite: ". ".join([each.title, *_changes(kernel, each)]) for each in candidates}
    return PlanQuestion(goal, kernel.span.text, said, tuple(titles.items()))


def _changes(kernel: Kernel, candidate: Rewrite) -> list[str]:
    if not candidate.edits:
        return []
    edited = candidate.apply()
    program = analyze(edited, include_reader({**kernel.sources, edited.path: edited}))
    after = program.kernel(candidate.beside or kernel.name)
    return [each.removesuffix(".") for each in counted_changes(kernel, after)] if after is not None else []


def parse_plan(raw: str, names: Sequence[str]) -> Plan:
    """Read a plan strictly. Raises EngineError for whatever is not exactly a plan over `names`.

    >>> parse_plan('{"analysis": "It waits.", "optimizations": ["b", "b", "a"], "estimated_speedup": 1.5}', ["a", "b"])
    ... # doctest: +ELLIPSIS
    Plan(analysis='It waits.', optimizations=('b', 'a'), estimated_speedup=1.5, raw='...')
    >>> parse_plan('{"analysis": "It', ["a"])
    Traceback (most recent call last):
    ...
    warpwright.assist.engine.EngineError: The model's plan could not be read.
    """
    unreadable = EngineError("The model's plan could not be read.")
    try:
        plan = json.loads(raw)
    except (ValueError, RecursionError):
        raise unreadable from None
    if not isinstance(plan, dict) or set(plan) != {"analysis", "optimizations", "estimated_speedup"}:
        raise unreadable
    analysis, chosen, speedup = plan["analysis"], plan["optimizations"], plan["estimated_speedup"]
    if not isinstance(analysis, str) or len(analysis) > ANALYSIS_CHARACTERS:
        raise unreadable
    if not isinstance(chosen, list) or any(name not in names for name in chosen):
        raise unreadable
    if isinstance(speedup, bool) or not isinstance(speedup, int | float) or not 0 < speedup < 100:
        raise unreadable
    return Plan(analysis, tuple(dict.fromkeys(chosen)), float(speedup), raw)
