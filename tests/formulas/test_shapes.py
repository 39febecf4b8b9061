"""Shapes and inputs of formulas of every kind: all can be drawn and evaluated, and are what they are called."""

from __future__ import annotations

import pytest

np = pytest.importorskip("numpy", reason="not installed: numpy")

from support.formulas import FORMULAS  # noqa: E402
from warpwright.formulas.extents import at_sizes  # noqa: E402
from warpwright.formulas.inputs import Draw, NoInputsError, draws_of  # noqa: E402
from warpwright.formulas.normal import normal  # noqa: E402
from warpwright.formulas.numpy_inputs import Style, drawn  # noqa: E402
from warpwright.formulas.numpy_reference import evaluate, stored  # noqa: E402
from warpwright.formulas.resolve import formula_of  # noqa: E402
from warpwright.formulas.shapes import TIMED_BYTES, bytes_of, elements, operations, to_time, to_try  # noqa: E402


@pytest.mark.parametrize("name", FORMULAS)
def test_every_shape_can_be_evaluated(name: str) -> None:
    formula = formula_of(FORMULAS[name])
    shapes = to_try(formula, 1 << 13, 1 << 17)
    assert shapes
    for seed, shape in enumerate(shapes):
        arrays, scalars = drawn(formula, shape.sizes, seed)
        found = stored(formula, evaluate(formula, arrays, scalars, shape.sizes))
        for output in formula.outputs:
            expected = tuple(at_sizes(each, shape.sizes) for each in formula.extents_of(output.name))
            assert found[output.name].shape == expected, (shape, output.name)
            if shape.name not in ("one",) and "product" not in name and name != "causal attention":
                assert not np.isnan(found[output.name]).any() or 0 in shape.sizes.values(), (shape, output.name)


@pytest.mark.parametrize("name", FORMULAS)
def test_the_normal_form_computes_the_same(name: str) -> None:
    formula = formula_of(FORMULAS[name])
    simple = normal(formula)
    for seed, shape in enumerate(to_try(formula, 1 << 10, 1 << 14)):
        arrays, scalars = drawn(formula, shape.sizes, seed)
        found = evaluate(formula, arrays, scalars, shape.sizes)
        same = evaluate(simple, arrays, scalars, shape.sizes)
        for output, values in found.items():
            np.testing.assert_allclose(same[output], values, rtol=1e-9, atol=1e-11, err_msg=f"{shape} {output}")


def test_sizes_to_try_are_of_every_remainder_and_bounded() -> None:
    formula = formula_of(FORMULAS["matrix product"])
    shapes = to_try(formula)
    assert {each.sizes["K"] % 4 for each in shapes} == {0, 1, 2, 3}
    assert any(0 in each.sizes.values() for each in shapes)
    assert any(set(each.sizes.values()) == {1} for each in shapes)
    assert any(each.sizes["K"] > 1000 for each in shapes)
    assert all(
        operations(formula, each.sizes) <= 1 << 24 and elements(formula, each.sizes) <= 1 << 18 for each in shapes
    )
    assert any(len(set(each.sizes.values())) == 3 for each in shapes)


def test_fixed_extents_stay() -> None:
    assert [dict(each.sizes) for each in to_try(formula_of("x: f32[4, 5] y[i] = sum[j] x[i, j]"))] == [{}]
    assert [dict(each.sizes) for each in to_time(formula_of("x: f32[4, 5] y[i] = sum[j] x[i, j]"))] == [{}]
    assert all(
        each.sizes["N"] >= 2 for each in to_try(formula_of("x: f32[N] y: f32[N - 2] y[i] = x[i + 2] - x[i + 1]"))
    )


def test_sizes_to_time_fill_a_gpu() -> None:
    for name in ("copy", "softmax", "transpose", "running sum"):
        formula = formula_of(FORMULAS[name])
        for shape in to_time(formula):
            assert TIMED_BYTES / 5 < bytes_of(formula, shape.sizes) <= TIMED_BYTES, (name, shape)


def test_indices_of_expressions_and_more_than_one_array() -> None:
    two = formula_of("x: f32[N] z: f32[M] y[t] = x[2 * ids[t] + 1] + z[ids[t] - 1]")
    assert draws_of(two, {"N": 10, "M": 3, "T": 4})["ids"] == Draw("whole", 1, 3)
    wide = formula_of("x: f32[N] y[t] = sum[k < 3] x[ids[t] + k]")
    assert draws_of(wide, {"N": 10, "T": 4})["ids"] == Draw("whole", 0, 7)
    with pytest.raises(NoInputsError, match="No value of ids is an index"):
        draws_of(wide, {"N": 2, "T": 4})
    assert draws_of(formula_of("x: f32[N] y[t] = x[ids[t]; zero]"), {"N": 9, "T": 4})["ids"] == Draw("whole", -3, 11)


@pytest.mark.parametrize("style", ["ties", "nan", "inf", "huge", "zeros"])
def test_styles_keep_indices_legal(style: Style) -> None:
    for name in ("sparse product", "cross entropy", "argmax", "to f8"):
        formula = formula_of(FORMULAS[name])
        shape = to_try(formula)[-1]
        arrays, scalars = drawn(formula, shape.sizes, 3, style)
        evaluate(formula, arrays, scalars, shape.sizes)
        floats = [each for each in arrays.values() if each.dtype.kind == "f"]
        assert any({
            "ties": lambda x: np.unique(x).size <= 5, "nan": lambda x: np.isnan(x).any(),
            "inf": lambda x: np.isinf(x).any(), "huge": lambda x: np.abs(x).max() > 1e15,
            "zeros": lambda x: not x.any(),
        }[style](each) for each in floats), name  # fmt: skip


def test_what_functions_take_in_part_is_drawn_from_there() -> None:
    logit = draws_of(formula_of("y[i] = log(p[i] / (1 - p[i]))"), {"I": 3})
    assert logit["p"] == Draw("between", 0.25, 0.875)
    formula = formula_of("y[i] = log(s[i] / k[i]) / (v * sqrt(t[i])) + asin(u[i]) + 7 // n[i] n: i32")
    draws = draws_of(formula, {"I": 3})
    assert {name: draws[name].kind for name in "skt"} == dict.fromkeys("skt", "between")
    assert draws["u"] == Draw("between", -0.9, 0.9)
    assert draws["n"] == Draw("whole", 1, 9)


def test_nothing_is_read_of_arrays_without_elements() -> None:
    formula = formula_of("x: f32[R, C] y: f32[R, C + 8] y[r, c] = x[r, c - 4; reflect]")
    assert all(each.sizes["C"] for each in to_try(formula) if each.sizes["R"])
