"""What a comment in words means, as formulas: by the wordings that come with warpwright, else by the model.

The wordings answer only where every word is understood, and are certain. The model guesses: of its answers that may be
meant those that most samples agree on are readings, with their votes, but for the first where it is certain, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from warpwright.assist.certain import is_certain
from warpwright.assist.engine import Engine
from warpwright.assist.formula_task import FormulaRequest
from warpwright.assist.formula_votes import BUDGET_SECONDS, SAMPLES, Voted, formulas_for
from warpwright.assist.meant import meant
from warpwright.assist.worded_formula import Reading, worded
from warpwright.assist.worded_names import function_name_of
from warpwright.formulas.equality import same
from warpwright.progress import IsCancelled, never_cancelled

MOST_READINGS = 4
REPAIR_ROUNDS = 2
"""Where a command asks, which has the time."""
LEAST_SHARE = 0.5
"""Of a model's samples that mean the same, for it to be shown."""


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
    rounds: int = 0,
) -> list[Reading]:
    """What the model reads, the likeliest first, if its samples agree; where none can be meant it is told why and asked
    again, in so many `rounds`. Raises EngineError."""
    request = FormulaRequest(comment, given)
    found = formulas_for(
        engine,
        request,
        SAMPLES,
        is_cancelled,
        budget_seconds=budget_seconds,
        taken=lambda formula: meant(formula, request),
        rounds=rounds,
    )
    return shown(found, request)


def shown(found: Sequence[Voted], request: FormulaRequest) -> list[Reading]:
    """The answers that may be shown: none where the likeliest is not what most samples mean.

    >>> from warpwright.formulas.resolve import formula_of
    >>> mean, asked = formula_of("y[r] = mean[c] x[r, c]"), FormulaRequest("row means")
    >>> [each.votes for each in shown([Voted(mean, 5, 8)], asked)], shown([Voted(mean, 3, 8)], asked)
    (['5 of 8'], [])
    """
    if not found or found[0].votes < LEAST_SHARE * found[0].samples:
        return []
    names = [function_name_of(request.comment, each.formula) for each in found[:MOST_READINGS]]
    votes = [f"{each.votes} of {each.samples}" for each in found]
    read = [Reading(*each) for each in zip((each.formula for each in found), names, votes, strict=False)]
    return [replace(read[0], votes="")] if is_certain(found[0], request) else read
