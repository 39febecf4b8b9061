"""Have a teacher review examples: a level, reasons, and other words for the same request.

    python -m warpwright_upskill.review examples.jsonl --teacher openai --url http://localhost:8080/v1 --model NAME \\
        --out reviewed.jsonl

Other words enter as examples of their own if they keep all numbers and names and hold nothing that may not be trained
on. A teacher that answers nonsense or nothing costs its reviews alone: the examples are written without them. With
`--teacher search` the verified search itself is the teacher: its level is what was verified.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any

import click
from warpwright.assist.child_engine import ChildEngine
from warpwright.assist.formula_task import read_formula
from warpwright.formulas.model import Formula

from warpwright_upskill.console import fail, progress_bar, stage
from warpwright_upskill.data.poison import poison
from warpwright_upskill.data.teachers import Anthropic, Local, OpenAi, Teacher, TeacherError, key_of
from warpwright_upskill.examples import FORMULA, Example, read_examples, write_json_lines
from warpwright_upskill.options import find_base

NUMBER = re.compile(r"(?<![\w.])\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")
BEST = 5
"""The level of what answers a request exactly."""
QUESTION = """A CUDA programmer asked for a kernel, and this formula was written for it.
Request: {problem}
Given: {given}
Formula: {formula}
Reply with one JSON object and nothing else: {{"level": 1 to 5 for how exactly the formula answers the request,
"reasons": ["one short sentence", ...], "rewordings": ["the same request as another programmer would type it", ...]}}
Keep every number and every name in a rewording."""


@dataclass(frozen=True, slots=True)
class Review:
    level: int
    reasons: tuple[str, ...]
    rewordings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Search:
    """The verified search as a teacher: it knows how far an example came, and no other words."""

    name: str = "search"

    def answer(self, question: str) -> str:
        return json.dumps({"level": BEST, "reasons": ["The kernel agrees with its formula."], "rewordings": []})


def asked(teacher: Teacher, example: Example) -> Review:
    """Raises TeacherError for an answer that is no review."""
    question = QUESTION.format(problem=example.problem, given=example.given or "nothing", formula=example.formula)
    answer = teacher.answer(question)
    try:
        given: Any = json.loads(answer[answer.index("{") : answer.rindex("}") + 1])
        level, reasons, rewordings = given["level"], given["reasons"], given["rewordings"]
    except (ValueError, KeyError, TypeError):
        raise TeacherError(f"{teacher.name} answers no review.") from None
    texts = [*reasons, *rewordings] if isinstance(reasons, list) and isinstance(rewordings, list) else [None]
    if type(level) is not int or not 1 <= level <= BEST or not all(isinstance(each, str) for each in texts):
        raise TeacherError(f"{teacher.name} answers a review with a wrong level or texts that are none.")
    return Review(level, tuple(reasons[:5]), tuple(rewordings[:5]))


def refusal_of(words: str, example: Example) -> str:
    """Why other words do not say what the example's say; "" where nothing speaks against them."""
    if not words.strip() or len(words) > 1000:
        return "It is empty, or too long."
    if Counter(NUMBER.findall(words)) != Counter(NUMBER.findall(example.problem)):
        return "It has other numbers."
    formula = read_formula(example.formula)
    if isinstance(formula, Formula):
        names = {each.array for each in formula.tensors.values()} | set(formula.scalars)
        for name in sorted(names):
            spoken = re.compile(rf"\b{re.escape(name)}\b")
            if spoken.search(example.problem) and not spoken.search(words):
                return f"It does not name {name}."
    return poison(replace(example, problem=words))


def reviewed(example: Example, teacher: Teacher) -> Iterator[Example]:
    """The example with what the teacher says of it, and the same in other words. Raises TeacherError."""
    review = asked(teacher, example)
    scores = {**(example.metrics.scores or {}), "level": float(review.level)}
    reasons = tuple(each for each in review.reasons if not poison(replace(example, problem=each)))
    kept = replace(
        example,
        reasoning_steps=(*example.reasoning_steps, *reasons),
        metrics=replace(example.metrics, scores=scores),
    )
    yield kept
    for words in review.rewordings:
        if not refusal_of(words, example):
            yield replace(kept, problem=words, provenance=replace(kept.provenance, wording=f"teacher {teacher.name}"))


def teacher_of(kind: str, url: str, model: str, variable: str) -> Teacher:
    """Raises TeacherError where the key is missing."""
    if kind == "openai":
        return OpenAi(url, model, key_of(variable))
    if kind == "anthropic":
        return Anthropic(url or "https://api.anthropic.com", model, key_of(variable))
    return Local(ChildEngine(find_base(model))) if kind == "gguf" else Search()


@click.command()
@click.argument("examples", type=click.Path(path_type=Path))
@click.option("--teacher", "kind", required=True, type=click.Choice(["search", "openai", "anthropic", "gguf"]))
@click.option("--url", default="", help="Address of the endpoint, as http://localhost:8080/v1.")
@click.option("--model", default="", help="Its name for the model; of gguf the file.")
@click.option("--key-variable", default="", help="Environment variable that holds the key.")
@click.option("--count", default=100, show_default=True, type=click.IntRange(1), help="Examples to review.")
@click.option("--seed", default=0, show_default=True)
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), required=True, help="JSON lines to write.")
def main(
    *, examples: Path, kind: str, url: str, model: str, key_variable: str, count: int, seed: int, out: Path
) -> None:
    """Write EXAMPLES with a teacher's reviews of --count of them into OUT."""
    if kind != "search" and not model:
        fail("--model: name the teacher's model.")
    found = read_examples(examples)
    places = [at for at, each in enumerate(found) if each.task == FORMULA]
    chosen = set(Random(seed).sample(places, min(count, len(places))))
    written: list[Example] = []
    done = failed = 0
    stopped = False
    teacher: Teacher | None = None
    try:
        teacher = teacher_of(kind, url, model, key_variable)
    except TeacherError as error:
        click.echo(f"The teacher is not asked: {error}", err=True)
    with progress_bar("reviewing", max(1, len(chosen))) as progress:
        for at, example in enumerate(found):
            if teacher is None or stopped or at not in chosen:
                written.append(example)
                continue
            try:
                written += reviewed(example, teacher)
                done += 1
            except TeacherError as error:
                written.append(example)
                failed += 1
                stopped = failed >= 3 and not done
                if stopped:
                    click.echo(f"The teacher is not asked again: {error}", err=True)
            progress(f"{done} reviewed", (done + failed) / len(chosen))
    if isinstance(teacher, Local):
        teacher.engine.close()
    write_json_lines(out, written)
    more = len(written) - len(found)
    click.echo(json.dumps({"reviewed": done, "failed": failed, "in_other_words": more, "examples": len(written)}))


if __name__ == "__main__":
    stage(main)
