"""What a comment in words means, as formulas: by the wordings that come with warpwright, else by the model.

A kernel for what nobody asked for is worse than none. The wordings answer only where every word is understood. Of the
model only an answer is taken that most of its samples mean, that fits the signature, and that has what the words name.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from warpwright.assist.engine import Engine
from warpwright.assist.formula_examples import operations
from warpwright.assist.formula_task import FormulaRequest
from warpwright.assist.formula_votes import BUDGET_SECONDS, SAMPLES, Voted, formulas_for
from warpwright.assist.signature import parameters
from warpwright.assist.worded_formula import Reading, fits, worded
from warpwright.formulas.equality import same
from warpwright.formulas.functions import FUNCTIONS, REDUCTIONS
from warpwright.formulas.model import Formula
from warpwright.progress import IsCancelled, never_cancelled

MOST_READINGS = 4
LEAST_SHARE = 0.75
"""Of a model's samples that mean the same, for it to be believed."""
_NUMBER = re.compile(r"(?<![\w.])(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?(?!\w)")


def by_wordings(comment: str, given: str = "") -> list[Reading]:
    """Without a model: at once, and nothing where a word is not understood. No two mean the same."""
    found: list[Reading] = []
    for each in worded(comment, given):
        if not any(same(each.formula, other.formula) for other in found):
            found.append(each)
    return found[:MOST_READINGS]


def by_model(
    engine: Engine,
    comment: str,
    given: str = "",
    is_cancelled: IsCancelled = never_cancelled,
    budget_seconds: float = BUDGET_SECONDS,
) -> list[Reading]:
    """What the model reads, if it is sure of it. Raises EngineError."""
    request = FormulaRequest(comment, given)
    return believed(formulas_for(engine, request, SAMPLES, is_cancelled, budget_seconds=budget_seconds), comment, given)


def believed(found: Sequence[Voted], comment: str, given: str = "") -> list[Reading]:
    """The answers that may be shown: none where the first may not.

    >>> from warpwright.formulas.resolve import formula_of
    >>> sure = Voted(formula_of("y[r] = mean[c] x[r, c]"), 7)
    >>> len(believed([sure], "mean of each row of x")), len(believed([sure], "mean of each row of x, times 3"))
    (1, 0)
    """
    signature = parameters(given)
    fit = [each for each in found if fits(each.formula, signature) and accounts_for(each.formula, comment)]
    if not fit or fit[0] != found[0] or fit[0].votes < LEAST_SHARE * SAMPLES:
        return []
    return [Reading(each.formula) for each in fit[:MOST_READINGS]]


def accounts_for(formula: Formula, comment: str) -> bool:
    """Whether a formula has the numbers and the functions that words name."""
    text = formula.text
    numbers = {float(each) for each in _NUMBER.findall(text)}
    if any(float(each) not in numbers for each in _NUMBER.findall(comment)):
        return False
    named = operations(comment) & {*FUNCTIONS, *REDUCTIONS}
    return named <= {*re.findall(r"[A-Za-z_]\w*", text)}
