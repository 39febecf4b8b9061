"""Requests and the formulas that they ask for, each formula verified.

Formulas are composed of operators, of what is applied before and after them, types and layouts, and said in words that
vary (`requests`). Each one is written as CUDA, compiled with hundreds of others and compared in the
emulator with its evaluation by NumPy. Compositions that are kept for evaluation, pairs of operators, of a family and a
layout, of a family and a type, and two whole families, never stand in a training example (`splits`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from random import Random

from warpwright.emulator.formula_batch import check_many
from warpwright.formulas.model import Formula
from warpwright.progress import never_cancelled, silent
from warpwright.verify.formulas import Asked, written_and_checked
from warpwright.verify.report import Status
from warpwright.writer.write import file_text, plain

from warpwright_upskill.admission import KERNEL_NAME, refusal
from warpwright_upskill.console import progress_bar
from warpwright_upskill.data.likeness import likeness
from warpwright_upskill.data.requests import compose
from warpwright_upskill.data.requests.compose import Parts
from warpwright_upskill.data.requests.wording import worded
from warpwright_upskill.data.splits import side_of
from warpwright_upskill.examples import FORMULA, Example, Jobs, Metrics, Provenance, Rejected, in_parts

TOGETHER = 200
"""Formulas of a part: one compilation."""
ORIGIN = "requests"


def request_jobs(formulas: int, wordings: int, seed: str) -> Jobs:
    return in_parts(f"formulas-{wordings}", formulas, TOGETHER, partial(part, wordings=wordings, seed=seed))


def part(first: int, count: int, *, wordings: int, seed: str) -> list[Example | Rejected]:
    """The examples of some formulas from the number `first` on, and what was rejected."""
    names = [f"{seed}/{number}" for number in range(first, first + count)]
    drawn = [(name, compose.composed(name)) for name in names]
    codes = [(f"f{at}", parts.formula, plain(parts.formula, f"f{at}")) for at, (_, parts) in enumerate(drawn)]
    outcomes = check_many(codes)
    found: list[Example | Rejected] = []
    for (name, parts), outcome in zip(drawn, outcomes, strict=True):
        if outcome.status != "correct":
            where = Provenance(ORIGIN, parts.operator.family, parts.structure, "", name)
            found.append(Rejected(FORMULA, where, f"{parts.text}: {outcome.status}: {outcome.reason}"))
            continue
        metrics = Metrics("correct", "emulator, compared with NumPy", runs=outcome.runs)
        kernel = file_text(plain(parts.formula, KERNEL_NAME))
        found += [_admitted(example) for example in examples(parts, name, wordings, kernel, metrics)]
    return found


def examples(parts: Parts, name: str, wordings: int, kernel: str, metrics: Metrics) -> Iterator[Example]:
    """The requests for a formula in `wordings` different words."""
    side = side_of(parts)
    chance = Random(f"{name}/words")
    for _ in range(wordings):
        words = worded(parts, chance)
        yield Example(
            task=FORMULA,
            problem=words.comment,
            given=words.given,
            constraints=words.constraints,
            reasoning_steps=stage_sentences(parts.formula),
            formula=parts.text,
            cuda_kernel=kernel,
            kernel=KERNEL_NAME,
            provenance=Provenance(ORIGIN, parts.operator.family, parts.structure, words.how, name),
            metrics=metrics,
            split=side,
        )


def stage_sentences(formula: Formula) -> tuple[str, ...]:
    """What the formula says, one sentence for each of its equations.

    For example "m over r: the intermediate result.", "y over r, c: the result, of type f32."
    """
    said = []
    for each in formula.stages:
        over = f" over {', '.join(each.dims)}" if each.dims else ""
        what = "an intermediate result" if each.temporary else f"a result of type {each.type}"
        said.append(f"{each.name}{over}: {what}.")
    return (*said, *formula.promises)


def _admitted(example: Example) -> Example | Rejected:
    reason = refusal(example)
    return Rejected(example.task, example.provenance, reason) if reason else example


def distinct(found: Sequence[Example]) -> list[Example]:
    """Without examples that are like an earlier one."""
    seen: set[str] = set()
    kept: list[Example] = []
    for example in found:
        key = likeness(example)
        if key not in seen:
            seen.add(key)
            kept.append(example)
    return kept


def audited(examples: Sequence[Example], share: float, seed: str, workers: int) -> list[str]:
    """What the product's own verification says against a share of formulas, each alone with its fast kernels."""
    sample = Random(seed).sample(examples, round(len(examples) * share))
    with ProcessPoolExecutor(workers) as pool, progress_bar("audit", len(sample)) as progress:
        said = []
        for at, reason in enumerate(pool.map(_audit, [each.formula for each in sample]), 1):
            progress("verified alone", at / len(sample))
            said.append(reason)
    return [reason for reason in said if reason]


def _audit(text: str) -> str:
    from warpwright.formulas.resolve import formula_of

    report = written_and_checked(formula_of(text), Asked("audited"), silent, never_cancelled).report
    if report is None or report.status is not Status.CORRECT:
        return f"{text}: {report.reason or report.status.value if report else 'no report'}"
    return ""
