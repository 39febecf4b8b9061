"""Examples as the text that the model is trained on: rendered by the functions that render the server's prompts."""

from __future__ import annotations

from dataclasses import dataclass

from warpwright.assist.prompts import PlanQuestion, generate_answer, generate_prompt, plan_answer, plan_prompt
from warpwright_upskill.examples import Example


@dataclass(frozen=True, slots=True)
class Rendered:
    prompt: str
    answer: str


def render(example: Example) -> Rendered:
    """The prompt that the server would send, and the answer that it should get. No worked examples: the form is learned."""
    question = example.question
    if question is None:
        answer = generate_answer(example.reasoning_steps, example.cuda_kernel)
        return Rendered(generate_prompt(example.problem), answer)
    asked = PlanQuestion(question.goal, question.kernel, question.findings, question.rewrites)
    analysis = " ".join(example.reasoning_steps)
    return Rendered(plan_prompt(asked), plan_answer(analysis, example.rewrites, max(1.0, example.estimated_speedup)))
