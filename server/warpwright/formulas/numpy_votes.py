"""Which formulas agree on random inputs: `python -m warpwright.formulas.numpy_votes` reads a JSON list of texts.

It answers with a JSON list of as many numbers: formulas of one number gave the same results, of the same arrays, at
each of some sizes. Two that cannot be compared have numbers of their own.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from itertools import islice

import numpy as np

from warpwright.formulas.inputs import NoInputsError
from warpwright.formulas.model import Formula
from warpwright.formulas.numpy_inputs import drawn
from warpwright.formulas.numpy_reference import EvaluationError, evaluate, sizes_of
from warpwright.formulas.numpy_types import Array
from warpwright.formulas.resolve import formula_of
from warpwright.formulas.shapes import to_try

_SIZES = 3
_MOST_ELEMENTS, _MOST_OPERATIONS = 1 << 14, 1 << 18
_TOLERANCE = 1e-9


def groups(texts: list[str]) -> list[int]:
    """The number of each formula.

    >>> groups(["y[i] = x[i] + x[i]", "y[n] = 2 * x[n]", "y[i] = x[i] ** 2", "y[i] = 2 * a[i]"])
    [0, 0, 2, 3]
    """
    formulas = [formula_of(text) for text in texts]
    found: list[int] = []
    for at, formula in enumerate(formulas):
        known = (each for each in sorted(set(found)) if agree(formulas[each], formula))
        found.append(next(known, at))
    return found


def agree(one: Formula, other: Formula) -> bool:
    """Whether both give the same results, of the same arrays, at each of some sizes."""
    if _signature(one) != _signature(other):
        return False
    shapes = [each for each in to_try(one, _MOST_ELEMENTS, _MOST_OPERATIONS) if 0 not in each.sizes.values()]
    compared = 0
    for seed, shape in enumerate(islice(shapes, _SIZES)):
        try:
            arrays, numbers = drawn(one, shape.sizes, seed)
            known = sizes_of(other, arrays)
            sizes = {name: size for name, size in shape.sizes.items() if name in other.sizes and name not in known}
            first, second = evaluate(one, arrays, numbers, shape.sizes), evaluate(other, arrays, numbers, sizes)
        except (EvaluationError, NoInputsError):
            return False
        if not _equal(first, second):
            return False
        compared += 1
    return compared > 0


def _signature(formula: Formula) -> tuple[object, ...]:
    """What a caller hands over and gets."""
    arrays = sorted((each.name, each.type, len(each.extents), each.role) for each in formula.tensors.values())
    return arrays, sorted(formula.scalars.items()), sorted(each.name for each in formula.outputs)


def _equal(one: Mapping[str, Array], other: Mapping[str, Array]) -> bool:
    return one.keys() == other.keys() and all(
        np.shape(one[name]) == np.shape(other[name])
        and np.allclose(one[name], other[name], _TOLERANCE, _TOLERANCE, equal_nan=True)
        for name in one
    )


if __name__ == "__main__":
    json.dump(groups(json.load(sys.stdin)), sys.stdout)
