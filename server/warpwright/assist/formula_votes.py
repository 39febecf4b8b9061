"""Several answers to one request for a formula, the one that most of them mean first."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass

from warpwright.assist.engine import CompletionRequest, Engine
from warpwright.assist.formula_grammar import formula_grammar
from warpwright.assist.formula_task import STOP, FormulaRequest, formula_prompt, read_formula
from warpwright.formulas.equality import same
from warpwright.formulas.model import Formula
from warpwright.progress import IsCancelled, never_cancelled

MAX_TOKENS = 256
TEMPERATURE = 0.7
SAMPLES = 8
BUDGET_SECONDS = 30.0
_COMPARE_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class Voted:
    """A formula that the model wrote, and how many of its answers mean the same."""

    formula: Formula
    votes: int


def formulas_for(
    engine: Engine,
    request: FormulaRequest,
    samples: int = SAMPLES,
    is_cancelled: IsCancelled = never_cancelled,
    *,
    budget_seconds: float = BUDGET_SECONDS,
) -> list[Voted]:
    """The formulas that the model writes for a request, each meaning once: what most answers mean first, of as many the
    likelier. The first sample is the likeliest answer; what is no formula has no vote. Raises EngineError."""
    prompt, grammar = formula_prompt(request), formula_grammar(request)
    deadline = time.monotonic() + budget_seconds
    written: list[Formula] = []
    for seed in range(samples):
        seconds = deadline - time.monotonic()
        if seconds <= 0 or is_cancelled():
            break
        temperature = TEMPERATURE if seed else 0.0
        asked = CompletionRequest(prompt, MAX_TOKENS, temperature, seed, (STOP,), grammar, seconds)
        answer = engine.complete(asked, is_cancelled)
        formula = read_formula(answer.text) if answer.stop in ("end", "stop") else ""
        if isinstance(formula, Formula):
            written.append(formula)
    return voted(written)


def voted(written: Sequence[Formula]) -> list[Voted]:
    """Formulas by meaning, what most mean first, of as many what came first."""
    groups: list[list[Formula]] = []
    for formula in written:
        group = next((each for each in groups if each[0].text == formula.text or same(each[0], formula)), None)
        if group is None:
            groups.append([formula])
        else:
            group.append(formula)
    numbers = _agreeing([each[0].text for each in groups])
    votes: dict[int, int] = {}
    for number, group in zip(numbers, groups, strict=True):
        votes[number] = votes.get(number, 0) + len(group)
    ranked = sorted(votes, key=lambda number: -votes[number])
    return [Voted(groups[number][0], votes[number]) for number in ranked]


def _agreeing(texts: Sequence[str]) -> list[int]:
    """For each formula the number of the first with the same results; its own where nothing can be evaluated."""
    alone = list(range(len(texts)))
    if len(texts) < 2:
        return alone
    command = [sys.executable, "-P", "-m", "warpwright.formulas.numpy_votes"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    try:
        done = subprocess.run(
            command,
            input=json.dumps(texts),
            capture_output=True,
            text=True,
            env=environment,
            timeout=_COMPARE_SECONDS,
            check=False,  # one that failed has written no list
        )
        numbers: list[int] = json.loads(done.stdout)
    except (subprocess.TimeoutExpired, ValueError):
        return alone
    return numbers
