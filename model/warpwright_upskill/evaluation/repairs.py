"""Asking for repairs of held-out broken kernels: does the repaired text compile and compute what the kernel is for;
beside the repair of the nearest known message, copied."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from warpwright.assist.blocks import GRAMMAR
from warpwright.assist.engine import CompletionRequest, Engine, EngineError
from warpwright.assist.free_form import MAX_TOKENS
from warpwright.assist.repair_task import REPAIR_SHOT
from warpwright.progress import Progress

from warpwright_upskill.data.render import render
from warpwright_upskill.evaluation.judge_repairs import copied, judge_repair
from warpwright_upskill.evaluation.worker import Worker, WorkerError
from warpwright_upskill.examples import REPAIR, TRAIN, Example

TRIES = 4
SECONDS = 300.0
JUDGING_SECONDS = 120.0
_TEMPERATURES = (0.0, 0.2, 0.4, 0.6)
Answers = Callable[[Example], Iterator[str]]


@dataclass(frozen=True, slots=True)
class RepairAnswer:
    """`right_at`: the number of the first right answer, 0 for none. `status` and `reason` are those of the first."""

    id: str
    right_at: int
    status: str
    reason: str


def asked_repairs(examples: Sequence[Example]) -> list[Example]:
    return [each for each in examples if each.task == REPAIR and each.edits]


def from_engine(engine: Engine) -> Answers:
    """What a model answers, as the server asks it; one that has not learned the form is shown an example first."""

    def answers(example: Example) -> Iterator[str]:
        rendered = render(example)
        assert rendered is not None
        prompt = rendered.prompt if engine.is_taught else REPAIR_SHOT + rendered.prompt
        for number, temperature in enumerate(_TEMPERATURES):
            request = CompletionRequest(prompt, MAX_TOKENS, temperature, number, grammar=GRAMMAR, seconds=SECONDS)
            try:
                yield engine.complete(request, is_enough=lambda so_far: "\n// Task" in so_far).text
            except EngineError:
                yield ""

    return answers


def from_kept(texts: Mapping[str, Sequence[str]]) -> Answers:
    """A model's answers that were written before, by the ids of the examples."""
    return lambda example: iter(texts.get(example.id, ()))


def from_known(examples: Sequence[Example]) -> Answers:
    """The copied repair of the nearest message among those that are trained on."""
    known = [each for each in asked_repairs(examples) if each.split == TRAIN]

    def answers(example: Example) -> Iterator[str]:
        yield copied(example, known)

    return answers


def ask_repairs(
    answers: Answers, examples: Sequence[Example], worker: Worker, progress: Progress
) -> list[RepairAnswer]:
    """What comes of each broken kernel. What cannot be judged in time costs that answer alone."""
    found: list[RepairAnswer] = []
    for at, example in enumerate(examples):
        progress(f"{sum(each.right_at > 0 for each in found)} of {at} repaired", at / len(examples))
        found.append(_asked(answers, example, worker))
    progress("done", 1.0)
    return found


def _asked(answers: Answers, example: Example, worker: Worker) -> RepairAnswer:
    first = ("no answer", "")
    for number, answer in enumerate(islice(answers(example), TRIES), 1):
        try:
            judgement = worker.call(judge_repair, example, answer, seconds=JUDGING_SECONDS)
            status, reason, is_right = judgement.status, judgement.reason, judgement.is_right
        except WorkerError as error:
            status, reason, is_right = "not-run", f"The judgement {error}.", False
        if number == 1:
            first = status, reason[:300]
        if is_right:
            return RepairAnswer(example.id, number, *first)
    return RepairAnswer(example.id, 0, *first)


def repair_summary(answers: Sequence[RepairAnswer]) -> dict[str, Any]:
    return {
        "repairs": len(answers),
        "right_at_first": sum(each.right_at == 1 for each in answers),
        "right_within": sum(each.right_at > 0 for each in answers),
        "first_answers": dict(Counter(each.status for each in answers).most_common()),
    }
