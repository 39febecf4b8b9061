"""Several answers to one request for a formula, the one that most of them mean first."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from warpwright.assist.engine import CompletionRequest, Engine
from warpwright.assist.formula_grammar import formula_grammar
from warpwright.assist.formula_shots import worked_examples
from warpwright.assist.formula_task import STOP, FormulaRequest, again_prompt, formula_prompt, read_formula
from warpwright.assist.mended_formula import read_or_mended
from warpwright.formulas.equality import same
from warpwright.formulas.model import Formula
from warpwright.progress import IsCancelled, never_cancelled

MAX_TOKENS = 256
TEMPERATURE = 0.7
SAMPLES = 8
AT_ONCE = 4
"""Samples that are computed side by side. All of one meaning need no others."""
BUDGET_SECONDS = 30.0
NOT_MEANT = "It does not fit the signature, or leaves out or adds what the words do not say."
_COMPARE_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class Voted:
    """A formula that the model wrote, how many of its `samples` mean the same, and how likely the text is, 0 where that
    is not known."""

    formula: Formula
    votes: int
    samples: int
    likelihood: float = 0.0


def formulas_for(
    engine: Engine,
    request: FormulaRequest,
    samples: int = SAMPLES,
    is_cancelled: IsCancelled = never_cancelled,
    *,
    budget_seconds: float = BUDGET_SECONDS,
    taken: Callable[[Formula], Formula | None] = lambda formula: formula,
    rounds: int = 0,
) -> list[Voted]:
    """The formulas that the model writes for a request, each meaning once: what most answers mean first, of as many the
    likelier. The first sample is the likeliest answer; what is no formula, and what is not `taken`, has no vote. No
    more is asked once no other can come first, or where none of the first few is taken: then it reads what is wrong
    with its likeliest answer, in so many `rounds` more. Raises EngineError."""
    shots = "" if engine.is_taught else worked_examples()
    prompt, grammar = f"{shots}{formula_prompt(request)}", formula_grammar(request)
    deadline = time.monotonic() + budget_seconds
    written: list[Formula] = []
    logs: dict[str, float] = {}
    asked_for = 0
    refused: tuple[str, str] | None = None
    while True:
        if asked_for and not written:
            if not rounds or refused is None:
                break
            prompt, rounds, asked_for, refused = f"{prompt}{again_prompt(*refused)}", rounds - 1, 0, None
        seconds = deadline - time.monotonic()
        count = min(AT_ONCE, samples - asked_for)
        if count <= 0 or seconds <= 0 or is_cancelled() or _is_decided(written, samples - asked_for):
            break
        temperatures = [TEMPERATURE if number else 0.0 for number in range(asked_for, asked_for + count)]
        first, *more = temperatures
        asked = CompletionRequest(prompt, MAX_TOKENS, first, asked_for, (STOP,), grammar, seconds, tuple(more))
        answer = engine.complete(asked, is_cancelled)
        asked_for += count
        texts = ((answer.text, answer.stop), *answer.others)
        for (text, stop), log in zip(texts, answer.logs or (-math.inf,) * len(texts), strict=True):
            formula = read_or_mended(text, request.comment) if stop in ("end", "stop") else "It has no end."
            found = taken(formula) if isinstance(formula, Formula) else None
            if found is not None:
                written.append(found)
                is_as_written = isinstance(read_formula(text), Formula)  # else a rule mended it
                logs[found.text] = max(logs.get(found.text, -math.inf), log if is_as_written else -math.inf)
            elif refused is None:
                refused = text, formula if isinstance(formula, str) else NOT_MEANT
    return [replace(each, likelihood=math.exp(logs[each.formula.text])) for each in voted(written, asked_for)]


def _is_decided(written: Sequence[Formula], left: int) -> bool:
    """Whether none but the first can have the most votes, whatever the answers that are left mean."""
    counts = sorted(map(len, _groups(written)), reverse=True)
    return bool(counts) and counts[0] - sum(counts[1:2]) >= left


def _groups(written: Sequence[Formula]) -> list[list[Formula]]:
    """Formulas that are the same, by algebra."""
    groups: list[list[Formula]] = []
    for formula in written:
        group = next((each for each in groups if each[0].text == formula.text or same(each[0], formula)), None)
        if group is None:
            groups.append([formula])
        else:
            group.append(formula)
    return groups


def voted(written: Sequence[Formula], samples: int = 0) -> list[Voted]:
    """Formulas by meaning, what most mean first, of as many what came first; of so many samples, or as many as they
    are."""
    groups = _groups(written)
    numbers = _agreeing([each[0].text for each in groups])
    votes: dict[int, int] = {}
    for number, group in zip(numbers, groups, strict=True):
        votes[number] = votes.get(number, 0) + len(group)
    ranked = sorted(votes, key=lambda number: -votes[number])
    return [Voted(groups[number][0], votes[number], samples or len(written)) for number in ranked]


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
