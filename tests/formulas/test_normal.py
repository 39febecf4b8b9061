"""A formula in its normal form computes what it did before."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest
from formula_catalogue import Entry, catalogue
from warpwright.formulas.model import Formula
from warpwright.formulas.normal import PLAIN, normal
from warpwright.formulas.numpy_inputs import drawn
from warpwright.formulas.numpy_reference import evaluate
from warpwright.formulas.resolve import formula_of
from warpwright.formulas.sampler import FAMILIES, samples
from warpwright.formulas.tree import Reduce, walk

FEW = (3, 5, 4, 2, 3, 2, 5, 3, 4)


def same(formula: Formula, sizes: dict[str, int]) -> None:
    form = normal(formula)
    arrays, numbers = drawn(formula, sizes)
    before, after = (evaluate(each, arrays, numbers, sizes) for each in (formula, form))
    for stage in formula.outputs:
        near = 1e-3 if formula.type_of(stage.name).bits < 32 else 1e-4
        np.testing.assert_allclose(after[stage.name], before[stage.name], rtol=near, atol=near / 10, err_msg=stage.name)
    for stage in form.stages:
        reductions = [node for node in walk(stage.value) if isinstance(node, Reduce)]
        assert all(each is stage.value and each.op in PLAIN for each in reductions)


@pytest.mark.parametrize(
    ("text", "dims"),
    [
        ("y[r, c] = sum[k] x[r, k]", [("r",), ("r", "c")]),
        ("x: f32[N, N] y[i, j] = max[j] x[i, j]", [("i",), ("i", "j")]),
        ("x'[i] = sum[j] x[j]", [(), ("i",), ("i",)]),
        ("y: f32[R, 1] y[r, o] = sum[k] x[r, k]", [("r", "o")]),
    ],
)
def test_what_is_stored_in_many_places_is_reduced_once(text: str, dims: list[tuple[str, ...]]) -> None:
    assert [each.dims for each in normal(formula_of(text)).stages] == dims


LARGE = {"monte_carlo_pi"}
"""Of a size of its own that takes many seconds."""


@pytest.mark.parametrize(
    "entry",
    [pytest.param(each, id=each.name, marks=[pytest.mark.slow] if each.name in LARGE else []) for each in catalogue()],
)
def test_formulas_of_the_catalogue(entry: Entry) -> None:
    same(entry.formula, dict(entry.small))


@pytest.mark.parametrize("turn", range(10))
def test_samples(turn: int) -> None:
    for each in islice(samples(f"normal {turn}"), len(FAMILIES)):
        formula = formula_of(each.text)
        sizes = dict(zip(formula.sizes, FEW, strict=False))
        same(formula, sizes | {name: 16 for name in sizes if name in ("ld", "stride", "pitch")})
