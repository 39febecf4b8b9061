"""Whether an answer of the model is right: not word by word, but by what it means, and never by running it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from warpwright.assist.formula_task import read_formula
from warpwright.formulas.equality import same

from warpwright_upskill.examples import FORMULA, KERNEL, PLAN, REPAIR


@dataclass(frozen=True, slots=True)
class Verdict:
    """`reason` says in one sentence why an answer is not right; "" where it is."""

    reason: str

    @property
    def right(self) -> bool:
        return not self.reason


def judge(task: str, wanted: str, said: str) -> Verdict:
    """Judge the answer `said` by `wanted`, the example's own.

    >>> judge("formula", " y[i] = 2 * x[i]", " y[n] = x[n] + x[n]").right
    True
    >>> judge("formula", " y[i] = 2 * x[i]", " y[n] = x[n]").reason
    'It computes something else.'
    """
    return Verdict(_JUDGES[task](wanted, said))


def _formula(wanted: str, said: str) -> str:
    one, other = read_formula(wanted), read_formula(said)
    if isinstance(one, str):
        return f"The example itself is no formula: {one}"
    if isinstance(other, str):
        return other
    return "" if same(one, other) else "It computes something else."


def _plan(wanted: str, said: str) -> str:
    """The first choice decides; the words around it do not."""
    try:
        one, other = json.loads(wanted), json.loads(said)
        first, chosen = one["optimizations"][0], other["optimizations"][0]
        complete = isinstance(other["analysis"], str) and float(other["estimated_speedup"]) >= 1
    except (ValueError, KeyError, IndexError, TypeError):
        return "It is no plan."
    if not complete:
        return "It is no plan."
    return "" if first == chosen else f"It chooses {chosen} where {first} is best."


def _repair(wanted: str, said: str) -> str:
    """The edits decide, and of their lines not the white space; the reason given for them does not."""
    if _edits(said) == _edits(wanted):
        return ""
    return "It changes other lines, or changes them otherwise."


def _edits(answer: str) -> list[str]:
    lines = [" ".join(line.split()) for line in answer.strip().splitlines()]
    return [line for line in lines if line and not line.startswith("@why")]


def _kernel(wanted: str, said: str) -> str:
    return "" if " ".join(wanted.split()) == " ".join(said.split()) else "It is another text."


_JUDGES: Mapping[str, Callable[[str, str], str]] = {FORMULA: _formula, PLAN: _plan, REPAIR: _repair, KERNEL: _kernel}


def judge_all(asked: list[tuple[str, str, str]], seconds: float) -> list[Verdict]:
    """Verdicts on (task, wanted, said); what is not reached within the time counts as wrong."""
    limit = time.monotonic() + seconds
    return [
        judge(*each) if time.monotonic() < limit else Verdict("There was no time left to judge it.") for each in asked
    ]
