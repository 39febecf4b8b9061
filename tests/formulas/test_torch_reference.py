"""The reference by torch, which the harness has for a GPU, agrees with that by NumPy in everything."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

np = pytest.importorskip("numpy", reason="not installed: numpy")
torch = pytest.importorskip("torch", reason="not installed: torch")

from support.formulas import FORMULAS  # noqa: E402
from warpwright.formulas import numpy_types  # noqa: E402
from warpwright.formulas.document import document_of  # noqa: E402
from warpwright.formulas.inputs import NoInputsError  # noqa: E402
from warpwright.formulas.numpy_inputs import Style, drawn  # noqa: E402
from warpwright.formulas.numpy_reference import EvaluationError, evaluate  # noqa: E402
from warpwright.formulas.resolve import formula_of  # noqa: E402
from warpwright.formulas.tolerance import with_errors  # noqa: E402
from warpwright.formulas.types import TYPES  # noqa: E402
from warpwright_harness import formula_reference, formula_types  # noqa: E402

STYLES: list[Style] = ["normal", "ties", "nan", "inf", "zeros"]


def agree(text: str, sizes: dict[str, int], seed: int, style: Style, errors: bool = False) -> None:
    formula = formula_of(text)
    try:
        arrays, scalars = drawn(formula, sizes, seed, style)
    except NoInputsError:
        return
    formula = with_errors(formula) if errors else formula
    document = json.loads(json.dumps(document_of(formula)))
    tensors = {name: torch.from_numpy(np.ascontiguousarray(as_signed(each))) for name, each in arrays.items()}
    try:
        expected = evaluate(formula, arrays, scalars, sizes)
    except EvaluationError:
        with pytest.raises(formula_reference.EvaluationError):
            formula_reference.evaluate(document, tensors, scalars, sizes)
        return
    found = formula_reference.evaluate(document, tensors, scalars, sizes)
    assert found.keys() == expected.keys()
    for name, values in expected.items():
        got = found[name].numpy()
        assert got.shape == values.shape, name
        kind = formula.type_of(name)
        if kind.kind in ("integer", "bool"):
            np.testing.assert_array_equal(got, values, err_msg=name)
        else:
            np.testing.assert_allclose(got, values, rtol=1e-6 if errors else 1e-9, atol=1e-10, err_msg=name)


def as_signed(values: Any) -> Any:
    return values.astype(np.int64) if values.dtype.kind == "u" else values


@pytest.fixture(params=[1 << 24, 11], ids=["whole", "split"])
def boxes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(formula_reference, "MOST_ELEMENTS", request.param)


@pytest.mark.sampled(3)
@pytest.mark.usefixtures("boxes")
@pytest.mark.parametrize("name", FORMULAS)
@settings(max_examples=4, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_both_references_agree(name: str, data: st.DataObject) -> None:
    formula = formula_of(FORMULAS[name])
    sizes = {each: data.draw(st.sampled_from([0, 1, 2, 3, 4, 5, 7, 9]), label=each) for each in formula.sizes}
    agree(FORMULAS[name], sizes, data.draw(st.integers(0, 99)), data.draw(st.sampled_from(STYLES)))


@pytest.mark.parametrize("name", FORMULAS)
def test_bounds_of_errors_agree(name: str) -> None:
    formula = formula_of(FORMULAS[name])
    sizes = {each: 3 + place for place, each in enumerate(formula.sizes)}
    agree(FORMULAS[name], sizes, 1, "normal", errors=True)


@pytest.mark.parametrize("kind", TYPES)
def test_casts_agree(kind: str) -> None:
    values = np.random.default_rng(0).standard_normal(4000) * 10.0 ** np.random.default_rng(1).integers(-46, 40, 4000)
    values = np.concatenate(
        [values, np.arange(-64, 64) / 16, [0.0, np.inf, -np.inf, np.nan, 300.0, -1e30, 448.0, 465.0]]
    )
    if kind == "u64":
        values = values[~(values >= 2.0**63)]  # torch holds it as i64
    expected = numpy_types.cast(values, TYPES[kind])
    np.testing.assert_array_equal(formula_types.cast(torch.from_numpy(values), kind).numpy(), expected)
    if TYPES[kind].kind == "integer" and kind != "u64":
        whole = np.array([0, 1, -1, 127, 128, 255, 256, -129, 2**31, -(2**31) - 1, 2**62])
        got = formula_types.cast(torch.from_numpy(whole), kind).numpy()
        np.testing.assert_array_equal(got, numpy_types.cast(whole, TYPES[kind]))


def test_a_shape_that_does_not_fit_is_said() -> None:
    document = document_of(formula_of("y[i] = x[i]"))
    with pytest.raises(formula_reference.EvaluationError, match=r"x has the shape \(2,\), not \(3,\)."):
        formula_reference.evaluate(document, {"x": torch.zeros(2)}, {}, {"I": 3})
