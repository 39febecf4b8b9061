"""Whether what a model read is certain enough to be shown without the mark of a draft.

Two grounds suffice: the model gives the whole answer most of its likelihood, or the comment holds an equation that says
the same and the model finds it likely. Neither does where the words name a rank or a type that the formula has not, say
"a over b", which divides or names what is gone through, or where an input is longer than a size that somebody named.
How often it is right, `benchmarks/ghost_words.py` counts.
"""

from __future__ import annotations

import re

from warpwright.assist.formula_task import FormulaRequest
from warpwright.assist.formula_votes import Voted
from warpwright.assist.signature import parameters
from warpwright.assist.wording_table import phrases
from warpwright.assist.written_equation import is_written
from warpwright.formulas.model import Formula
from warpwright.formulas.tree import Name, Num

LIKELY = 0.9
"""Of all that the model might answer, for one answer alone."""
LIKELY_AND_WRITTEN = 1 / 3
"""For one that an equation in the comment says, too."""
_OF_ROWS = re.compile(r"\b(?:row|column|col|matrix|matrices)(?:s|wise)?\b", re.IGNORECASE)

_OF_TYPES = re.compile(
    r"half|halv|double|bfloat|complex|bool|short|long|char|byte|bit|\b[biuf]p?f?\d+|float\d|u?int(?:\d|s?\b|eger)|e4m3|e5m2",
    re.IGNORECASE,
)
"""What may say that something is not f32."""


def is_certain(found: Voted, request: FormulaRequest) -> bool:
    """Whether most of the model's likelihood lies on a formula, or an equation of the comment bears it out.

    >>> from warpwright.formulas.resolve import formula_of
    >>> relu = formula_of("y[i] = relu(x[i])")
    >>> [is_certain(Voted(relu, 4, 4, likelihood), FormulaRequest("relu of x")) for likelihood in (0.9, 0.5)]
    [True, False]
    >>> is_certain(Voted(relu, 4, 4, 0.9), FormulaRequest("relu of each row of x"))
    False
    """
    formula, comment = found.formula, request.comment
    if _is_over(formula, comment) or (_is_longer(formula) and "[" not in comment):
        return False
    if not parameters(request.given) and not (_has_its_rank(formula, comment) and _has_its_types(formula, comment)):
        return False
    return found.likelihood >= LIKELY or (found.likelihood >= LIKELY_AND_WRITTEN and is_written(formula, comment))


def _is_over(formula: Formula, comment: str) -> bool:
    """Whether one input stands "over" another in the words."""
    names = {each.name for each in formula.inputs}
    return any({one, other} <= names for one, other in re.findall(r"\b(\w+) over (\w+)\b", comment))


def _is_longer(formula: Formula) -> bool:
    """Whether an input has an extent that is computed, such as 2 * N: a launch with N elements reads past their end."""
    return any(not isinstance(extent, Name | Num) for each in formula.inputs for extent in each.extents)


def _has_its_rank(formula: Formula, comment: str) -> bool:
    """Whether something has rows, where words name some."""
    return not _OF_ROWS.search(comment) or any(len(each.extents) > 1 for each in formula.inputs)


def _has_its_types(formula: Formula, comment: str) -> bool:
    """Whether types that words name are there, and none but those and f32 of floating point."""
    words = re.findall(r"[a-z][a-z0-9]*", comment.lower())
    named = {
        phrase.value
        for each in words
        if (phrase := phrases().get((each.removesuffix("s"),))) is not None and phrase.what == "type"
    }
    types = {each.type for each in formula.tensors.values()}
    if types <= {"f32"} and _OF_TYPES.search(comment):
        return False
    return named <= types | {"f32"} and {each for each in types if "f" in each} <= named | {"f32"}
