"""Whether a formula has finite values: what is asked of one that is not compiled."""

from __future__ import annotations

import numpy as np
from warpwright.formulas.inputs import NoInputsError
from warpwright.formulas.model import Formula
from warpwright.formulas.numpy_inputs import drawn
from warpwright.formulas.numpy_reference import EvaluationError, evaluate

_SIZES = (4, 5, 3, 6, 7, 2, 8, 9)


def is_finite(formula: Formula) -> bool:
    """Whether NumPy evaluates it at small sizes to finite values; -inf is one where the formula writes it.

    >>> from warpwright.formulas.resolve import formula_of
    >>> is_finite(formula_of("y[i] = x[i] + 1")), is_finite(formula_of("y[i] = x[i] / (a[i] - a[i])"))
    (True, False)
    """
    sizes = dict(zip(formula.sizes, _SIZES, strict=False))
    if len(sizes) < len(formula.sizes):
        return False
    try:
        arrays, scalars = drawn(formula, sizes)
        results = evaluate(formula, arrays, scalars, sizes).values()
    except (NoInputsError, EvaluationError):
        return False
    if "-inf" in formula.text:
        results = [each[~np.isneginf(each)] for each in results]  # type: ignore[assignment]
    return all(bool(np.isfinite(each).all()) for each in results)
