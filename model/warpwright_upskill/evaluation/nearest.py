"""The baseline without a model: of a corpus the formula whose problem is worded most alike and that fits the signature,
in the prompt's names, types and numbers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from warpwright.assist.formula_examples import Examples, operations
from warpwright.assist.signature import Parameter, parameters
from warpwright.formulas.functions import FUNCTIONS
from warpwright.formulas.lexer import FormulaError

from warpwright_upskill.evaluation.adapted import adapted, misfits, shape_of

_LOOKED_AT = 2000
"""Problems whose formulas may come first because they fit."""
_SMALLER = 0.85
"""What the likeness of words is worth where a formula has fewer sizes or a lower rank than is said."""
_NOT_NAMED = 0.8
"""The same for each function that the words name and the formula does not have."""
_SHAPES = re.compile(
    r"[\[(]\s*(\w+(?:\s*,\s*\w+)+)\s*[\])]"  # [B, T, C]
    r"|\b((?:[A-Z]|\d+)(?:\s*[x×]\s*(?:[A-Z]|\d+))+)\b"  # H x W
    r"|((?:\[[\w +-]+\]){2,})"  # a[i][j]
    r"|\b([BNTCDHWL]{2,5})\b"  # NCHW
)
_RANKS = {"vector": 1, "1d": 1, "1-d": 1, "matrix": 2, "row": 2, "rows": 2, "2d": 2, "2-d": 2, "3d": 3, "3-d": 3}


class Nearest:
    """Problems with their formulas, found by their words."""

    def __init__(self, problems: Iterable[tuple[str, str]]) -> None:
        self._examples = Examples(problems)

    def __len__(self) -> int:
        return len(self._examples.pairs)

    def formulas(self, comment: str, given: str) -> Iterator[str]:
        """Formulas in the names and types of a signature, no two the same: those that fit it first, of these those of
        the nearest problems.

        >>> index = Nearest([("sum of each row", "s[r] = sum[c] x[r, c]"), ("rows, a plus b", "y[i] = a[i] + b[i]")])
        >>> next(index.formulas("sum up the rows of these", "const float* in, float* total, int n, int m"))
        'total[r] = sum[c] in[r, c]'
        """
        signature, ranks, functions = parameters(given), ranks_said(comment), operations(comment) & FUNCTIONS.keys()
        ranked = []
        for number, score in self._examples.scored(comment)[:_LOOKED_AT]:
            text = self._examples.pairs[number][1]
            try:
                shape = shape_of(text)
            except FormulaError:
                continue
            own, more = (
                max(each.rank or 0 for each in (*shape.inputs, *shape.outputs)),
                _sizes_over(shape.sizes, signature),
            )
            misfit = misfits(shape, signature) + max(0, more) + (own > max(ranks, default=own))
            likeness = score * _NOT_NAMED ** len(functions - set(re.findall(r"\w+", text)))
            likeness *= _SMALLER ** (min(2, max(0, -more)) + (own < min(ranks, default=own)))
            ranked.append((misfit, -likeness, number))
        seen: set[str] = set()
        for _, _, number in sorted(ranked):
            problem, formula = self._examples.pairs[number]
            text = adapted(formula, comment, given, problem)
            if text not in seen:
                seen.add(text)
                yield text


def ranks_said(comment: str) -> set[int]:
    """The ranks of the shapes that words name.

    >>> sorted(ranks_said("x is [B, T, C], w[k][c], y is NCHW"))
    [2, 3, 4]
    """
    found = {_RANKS[each] for each in re.findall(r"[\w-]+", comment.lower()) if each in _RANKS}
    for listed, product, indexed, letters in _SHAPES.findall(comment):
        found.add(
            len(re.split("[,x×]", listed or product)) if listed or product else indexed.count("[") or len(letters)
        )
    return found


def _sizes_over(sizes: int, signature: Sequence[Parameter]) -> int:
    """How many sizes more than a signature of pointers hands over a formula has; 0 where it hands over none."""
    whole = sum(not each.pointer and each.type[:1] in ("i", "u") for each in signature)
    return sizes - whole if whole and any(each.pointer for each in signature) else 0
