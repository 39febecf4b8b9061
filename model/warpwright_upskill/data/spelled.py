"""Requests that spell out their mathematics, and the formulas that they ask for.

Formulas are drawn from a grammar and said from their own syntax tree in many notations (`requests.spelled`). Each one
is parsed, resolved and evaluated by NumPy; none is written as CUDA. Some pairs of what stands in a formula are kept for
evaluation (`splits`).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from random import Random

from warpwright_upskill.admission import refusal
from warpwright_upskill.data.corpus import stage_sentences
from warpwright_upskill.data.requests.spelled.request import said
from warpwright_upskill.data.requests.spelled.sketch import Sketch, sketched
from warpwright_upskill.data.splits import side_of_sketch
from warpwright_upskill.examples import (
    EVALUATED,
    FORMULA,
    SPELLED,
    Example,
    Jobs,
    Metrics,
    Provenance,
    Rejected,
    in_parts,
)

TOGETHER = 2000
"""Formulas of a part."""
_METRICS = Metrics(EVALUATED, "parsed, resolved and evaluated by NumPy", not_higher="No kernel is written for it.")


def spelled_jobs(formulas: int, wordings: int, seed: str) -> Jobs:
    return in_parts(f"spelled-{wordings}", formulas, TOGETHER, partial(part, wordings=wordings, seed=seed))


def part(first: int, count: int, *, wordings: int, seed: str) -> list[Example | Rejected]:
    """The examples of some formulas from the number `first` on, and what was rejected."""
    found: list[Example | Rejected] = []
    for number in range(first, first + count):
        name = f"{seed}/spelled/{number}"
        for example in examples(sketched(name), name, wordings):
            reason = refusal(example)
            found.append(Rejected(FORMULA, example.provenance, reason) if reason else example)
    return found


def examples(sketch: Sketch, name: str, wordings: int) -> Iterator[Example]:
    """The requests for a formula in `wordings` different words."""
    chance = Random(f"{name}/words")
    side = side_of_sketch(sketch)
    for _ in range(wordings):
        words = said(sketch, chance)
        yield Example(
            task=FORMULA,
            problem=words.comment,
            given=words.given,
            constraints=words.constraints,
            reasoning_steps=stage_sentences(words.formula),
            formula=words.formula.text,
            provenance=Provenance(SPELLED, f"spelled {sketch.kind}", sketch.structure, words.how, name),
            metrics=_METRICS,
            split=side,
        )
