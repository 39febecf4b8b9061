"""Tolerances: what is computed in the formula's own types agrees, in whatever order; what is wrong does not."""

from __future__ import annotations

import math
from typing import Any

import pytest

np = pytest.importorskip("numpy", reason="not installed: numpy")

from support.formulas import FORMULAS  # noqa: E402
from warpwright.formulas import numpy_types  # noqa: E402
from warpwright.formulas.model import Formula  # noqa: E402
from warpwright.formulas.numpy_agreement import agreement, agreements, reference  # noqa: E402
from warpwright.formulas.numpy_inputs import drawn  # noqa: E402
from warpwright.formulas.numpy_reference import evaluate, stored  # noqa: E402
from warpwright.formulas.resolve import formula_of  # noqa: E402
from warpwright.formulas.shapes import to_try  # noqa: E402
from warpwright.formulas.types import TYPES, ElementType, computed  # noqa: E402

Array = Any


def as_a_kernel(formula: Formula, arrays: dict[str, Array], scalars: dict[str, Any], sizes: dict[str, int]) -> Any:
    """The outputs, computed in f32 where a kernel computes in f32."""
    precise = numpy_types.working

    def working(kind: ElementType) -> Any:
        own = computed(kind)
        return {"f32": np.float32, "c64": np.complex64}.get(own.name) or precise(kind)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(numpy_types, "working", working)
        return stored(formula, evaluate(formula, arrays, scalars, sizes))


@pytest.mark.parametrize("name", [name for name in FORMULAS if name != "dot in f64"])
def test_what_is_computed_in_single_precision_agrees(name: str) -> None:
    formula = formula_of(FORMULAS[name])
    for seed, shape in enumerate(to_try(formula, 1 << 13, 1 << 17)):
        arrays, scalars = drawn(formula, shape.sizes, seed)
        expected = reference(formula, arrays, scalars, shape.sizes)
        for each in agreements(formula, as_a_kernel(formula, arrays, scalars, dict(shape.sizes)), expected):
            assert each.agrees, (shape, str(each))
            assert each.unjudged <= each.elements // 20, (shape, each)


@pytest.mark.parametrize("name", FORMULAS)
def test_what_is_wrong_in_one_element_does_not_agree(name: str) -> None:
    """A change of 1 % is found in any output, and so is a NaN."""
    formula = formula_of(FORMULAS[name])
    shapes = to_try(formula, 1 << 13, 1 << 17)
    shape = next((each for each in shapes if each.name == "odd"), shapes[-1])
    arrays, scalars = drawn(formula, shape.sizes, 1)
    expected = reference(formula, arrays, scalars, shape.sizes)
    right = stored(formula, {each.name: expected[each.name] for each in formula.outputs})
    assert all(each.agrees for each in agreements(formula, right, expected))
    coarse = {"f8e4m3": 1.2, "f8e5m2": 1.4}
    for output in formula.outputs:
        kind = formula.type_of(output.name)
        got = {key: values.copy() for key, values in right.items()}
        place = np.unravel_index(np.argmax(np.abs(got[output.name].astype(np.complex128))), got[output.name].shape)
        if kind.kind in ("float", "complex"):
            got[output.name][place] *= coarse.get(kind.name, 1.01)
        else:
            got[output.name][place] ^= True
        (wrong,) = [each for each in agreements(formula, got, expected) if each.output == output.name]
        assert wrong.wrong == 1, (output.name, wrong)
        assert wrong.place == tuple(place)
        if kind.is_float:
            got[output.name][place] = math.nan
            assert not all(each.agrees for each in agreements(formula, got, expected))


def test_what_is_added_up_in_a_wider_type_is_judged_by_it() -> None:
    formula = formula_of(FORMULAS["dot in f64"])
    arrays, _ = drawn(formula, {"I": 3000})
    expected = reference(formula, arrays)
    single = (arrays["x"] * arrays["w"]).sum()
    wider = (arrays["x"] * arrays["w"]).astype(np.float64).sum().astype(np.float32)
    assert agreements(formula, {"y": wider}, expected)[0].agrees
    assert not agreements(formula, {"y": single + np.float32(1e-3)}, expected)[0].agrees


def test_a_missing_term_is_found_in_long_sums() -> None:
    formula = formula_of("y[r] = sum[c] x[r, c]")
    for length in (10, 1000, 100_000):
        x = np.random.default_rng(1).standard_normal((2, length)).astype(np.float32)
        expected = reference(formula, {"x": x})
        x[1, -1] = 1.0
        (found,) = agreements(formula, {"y": x[:, :-1].astype(np.float64).sum(1).astype(np.float32)}, expected)
        assert not found.agrees


def test_cancellation_is_not_blamed() -> None:
    """The difference of two sums that are equal but for their roundings."""
    formula = formula_of("y = (sum[i] x[i]) - sum[i] x[i] * w[i]")
    x = np.random.default_rng(1).standard_normal(10_000).astype(np.float32)
    w = np.ones_like(x)
    expected = reference(formula, {"x": x, "w": w})
    forwards = np.add.accumulate(x)[-1] - np.add.accumulate(x[::-1])[-1]
    (found,) = agreements(formula, {"y": forwards}, expected)
    assert found.agrees
    assert forwards != 0
    assert found.tolerance < 0.5


def test_copies_are_exact() -> None:
    formula = formula_of("x: f16[I] y[i] = x[I - 1 - i]")
    x = np.arange(5, dtype=np.float16) / 3
    expected = reference(formula, {"x": x})
    assert agreements(formula, {"y": x[::-1]}, expected)[0].agrees
    near = np.nextafter(x[::-1], np.float16(9))
    assert agreements(formula, {"y": near}, expected)[0].wrong == 5


def test_what_is_not_finite_must_be_the_same() -> None:
    def of(got: list[float], expected: list[float], error: float = 1e-3) -> int:
        return agreement("y", np.array(got), np.array(expected), np.full(len(got), error), TYPES["f32"]).wrong

    assert of([math.inf, -math.inf, math.nan], [math.inf, -math.inf, math.nan]) == 0
    assert of([math.inf, math.nan, 1.0, 1.0], [1.0, 1.0, math.inf, math.nan]) == 4
    assert of([math.inf], [1e39]) == 0
    assert of([1.0], [1.0], math.inf) == 0


def test_steps_are_judged_by_what_comes_before() -> None:
    """`round` of what was rounded may end one further where it lay between two."""
    formula = formula_of("y[i] = round(x[i] * x[i] * x[i])")
    x = np.array([1.3572088, 2.0], np.float32)  # x**3 is 2.5000000...
    expected = reference(formula, {"x": x})
    assert agreements(formula, {"y": np.array([2.0, 8.0])}, expected)[0].agrees
    assert agreements(formula, {"y": np.array([3.0, 8.0])}, expected)[0].agrees
    assert agreements(formula, {"y": np.array([2.0, 9.0])}, expected)[0].wrong == 1
    assert agreements(formula_of("y[i] = round(x[i])"), {"y": np.array([2.0, 2.0])},
                      reference(formula_of("y[i] = round(x[i])"), {"x": x}))[0].wrong == 1  # fmt: skip


def test_literals_are_those_of_the_kernel() -> None:
    """A row that a mask leaves nothing of is judged, and what lies at a bound is compared with that of the type."""
    masked = formula_of(
        "y[r, c] = exp(s[r, c] - m[r]) where s[r, c] = x[r, c] if k[r, c] else -1e30, m[r] = max[c] s[r, c]"
    )
    x, mask = np.ones((2, 3), np.float32), np.array([[False] * 3, [True, False, True]])
    expected = reference(masked, {"x": x, "k": mask})
    (found,) = agreements(masked, {"y": np.array([[1, 1, 1], [1, 0, 1]], np.float32)}, expected)
    assert found.agrees
    assert not found.unjudged
    above = formula_of("y[i] = 1.0 if x[i] > 0.1 else 0.0")
    assert evaluate(above, {"x": np.array([0.1], np.float32)})["y"].tolist() == [0.0]


def test_weights_of_16_bit_arrays_may_be_rounded_to_their_type() -> None:
    """As tensor cores take them; a factor that is an array, and a sum that is no matrix product, have no more."""
    random = np.random.default_rng(2)
    arrays = {"x": random.standard_normal((5, 64)), "v": random.standard_normal((64, 3))}
    texts = {kind: f"v: {kind} y: f32 y[i, d] = sum[j] exp(x[i, j]) * v[j, d]" for kind in ("f32", "f16", "bf16")}
    bounds = {kind: reference(formula_of(text), arrays)["error of y"] for kind, text in texts.items()}
    assert (bounds["f16"] > 50 * bounds["f32"]).all()
    assert (bounds["bf16"] > 5 * bounds["f16"]).all()
    size = np.sqrt(np.exp(2 * arrays["x"]) @ arrays["v"] ** 2)
    assert (bounds["bf16"] < 20 * 2.0**-8 * size).all()
    loads = formula_of("v: bf16 y: f32 y[i, d] = sum[j] x[i, j] * v[j, d]")
    assert (reference(loads, arrays)["error of y"] < bounds["bf16"] / 50).all()


def test_a_complex_tangent_may_err_by_the_square_of_its_value_near_a_pole() -> None:
    formula = formula_of("x: c64 y: c64 z[i] = tanh(x[i] + y[i])")
    half = (np.array([0.003 + 1.57j, 0.5 + 0.2j]) / 2).astype(np.complex64)
    found = reference(formula, {"x": half, "y": half})
    errors = found["error of z"]
    assert errors[0] > 1e-7 * np.abs(found["z"][0]) ** 2
    assert errors[1] < 1e-4
    near = {"z": found["z"] + 0.9 * errors}
    assert all(each.agrees for each in agreements(formula, near, found))


@pytest.mark.parametrize("name", ["exp", "sin", "cos", "tan", "tanh", "log", "sqrt"])
def test_errors_of_complex_arguments_are_bounded(name: str) -> None:
    formula = formula_of(f"x: c64 y: c64 z[i] = {name}(x[i] * y[i])")
    random = np.random.default_rng(3)
    x, y = ((random.standard_normal(2000) + 1j * random.standard_normal(2000)).astype(np.complex64) for _ in range(2))
    found = reference(formula, {"x": x, "y": y})
    assert all(each.agrees for each in agreements(formula, {"z": getattr(np, name)(x * y)}, found))


def test_a_function_of_literals_and_dimensions_is_as_precise_as_what_it_meets() -> None:
    formula = formula_of("x: f64 y: f64 y[i] = x[i] * tanh(0.1 * (i + 1))")
    found = reference(formula, {"x": np.ones(1)})
    in_single = {"y": np.ones(1) * float(np.tanh(np.float32(0.1)))}
    assert all(each.agrees for each in agreements(formula, {"y": np.tanh([0.1])}, found))
    assert not all(each.agrees for each in agreements(formula, in_single, found))


def test_a_remainder_errs_as_its_operands_and_by_a_whole_divisor_where_its_quotient_may_jump() -> None:
    formula = formula_of("y[r] = min[c] fmod(erfc(x[r, c]), abs(v[c]) + 1)")
    random = np.random.default_rng(1)
    x, v = random.standard_normal((9, 5)).astype(np.float32), random.standard_normal(5).astype(np.float32)
    found = reference(formula, {"x": x, "v": v})
    near = {"y": found["y"] * (1 + 2.0**-23)}
    assert all(each.agrees for each in agreements(formula, near, found))
    assert not all(each.agrees for each in agreements(formula, {"y": found["y"] * 1.001}, found))
