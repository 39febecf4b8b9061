"""Examples as the text that the model is trained on: rendered by the functions that render the server's prompts."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from warpwright.assist.engine import EngineError
from warpwright.assist.formula_task import FormulaRequest, formula_answer, formula_prompt
from warpwright.assist.plan import parse_plan
from warpwright.assist.prompts import (
    ANALYSIS_CHARACTERS,
    PlanQuestion,
    generate_answer,
    generate_prompt,
    plan_answer,
    plan_prompt,
)
from warpwright.assist.repair_task import RepairRequest, repair_answer, repair_prompt

from warpwright_upskill.examples import FORMULA, KERNEL, REPAIR, Example

# What `plan_grammar` admits as an analysis.
_ANALYSIS = re.compile(rf"[A-Za-z][ !#-\[\]-~]{{10,{ANALYSIS_CHARACTERS - 1}}}")


@dataclass(frozen=True, slots=True)
class Rendered:
    prompt: str
    answer: str


def render(example: Example, shown: Example | None = None) -> Rendered | None:
    """The prompt that the server would send (an adapter gets no worked examples), and the answer that it should get.

    None for an example of what the server does not ask: a kernel to be corrected freely, without a choice of rewrites.
    A request for a formula shows the words and the formula of `shown`. Raises FormulaError for a formula that is none.
    """
    question = example.question
    if question is not None:
        asked = PlanQuestion(question.goal, question.kernel, question.findings, question.rewrites)
        analysis = brief(example.reasoning_steps, ANALYSIS_CHARACTERS)
        return Rendered(plan_prompt(asked), plan_answer(analysis, example.rewrites, example.metrics.speedup))
    if example.task == FORMULA:
        like = (shown.problem, shown.formula) if shown is not None else None
        asked_for = FormulaRequest(example.problem, example.given, like)
        return Rendered(formula_prompt(asked_for), formula_answer(example.formula))
    if example.task == REPAIR and example.edits:
        broken = RepairRequest(example.source, tuple(example.message.splitlines()))
        return Rendered(repair_prompt(broken), repair_answer(example.reasoning_steps[0], example.edits))
    if example.task == KERNEL:
        answer = generate_answer(example.reasoning_steps, example.cuda_kernel)
        return Rendered(generate_prompt(generation_task(example)), answer)
    return None


def plan_refusal(example: Example) -> str:
    """Why the server could not have got this answer from its model, in one sentence; "" where it could."""
    rendered = render(example)
    if rendered is None or example.question is None:
        return "It is no answer to a question of the server's."
    try:
        plan = parse_plan(rendered.answer, [name for name, _ in example.question.rewrites])
    except EngineError as error:
        return str(error)
    if not _ANALYSIS.fullmatch(plan.analysis):
        return f"The plan's grammar does not admit the analysis {plan.analysis!r}."
    return "" if plan.optimizations == example.rewrites else "The plan names other rewrites."


def generation_task(example: Example) -> str:
    """What a user would write as a comment: what the kernel computes, and what it must be like."""
    return " ".join((example.problem, *example.constraints))


def brief(steps: Sequence[str], limit: int) -> str:
    """The steps in order as far as whole ones fit, with the last one, which says what to do; what stands before it is
    cut where nothing else fits.

    >>> brief(["One two three four.", "Five.", "So six."], 16)
    'Five. So six.'
    >>> brief(["One two three four.", "So six."], 16)
    'One two So six.'
    """
    last = steps[-1][:limit] if steps else ""
    room = limit - len(last) - 1
    said = ""
    for step in steps[:-1]:
        longer = f"{said} {step}".strip()
        if len(longer) <= room:
            said = longer
    return f"{said or ' '.join(steps[:1] if len(steps) > 1 else [])[: max(room, 0)].strip()} {last}".strip()
