"""The derivative of a formula against differences of the formula itself, in double precision."""

from __future__ import annotations

import pytest

np = pytest.importorskip("numpy", reason="not installed: numpy")

from warpwright.formulas.derivative import NoDerivativeError, derivative  # noqa: E402
from warpwright.formulas.numpy_reference import at_sizes, evaluate  # noqa: E402
from warpwright.formulas.resolve import formula_of  # noqa: E402

EXTENT = {"R": 3, "C": 5, "I": 4, "J": 3, "K": 6, "T": 4}
STEP = 1e-6
FORMULAS = [
    "y[r] = sum[c] x[r, c] * w[c]",
    "y[r, c] = exp(x[r, c] - m[r]) / s[r] * w[c] where m[r] = max[c] x[r, c], s[r] = sum[c] exp(x[r, c] - m[r])",
    "y[r, c] = (x[r, c] - mean[c] x[r, c]) * rsqrt(var[c] x[r, c] + eps) * w[c] + b[c]",
    "y[i, j] = gelu(sum[k] a[i, k] * b[k, j]) * v[j]",
    "y[r] = logsumexp[c] x[r, c]",
    "y[i] = sum[j <= i] x[j] * x[j]",
    "y[i] = sum[k] x[i + k] * w[k]",
    "y[t, c] = table[ids[t], c] * table2[t, c] * s",
    "h[ids[i]] = sum[i] x[i] * x[i]",
    "u[i] = sin(x[i]), v[i] = u[i] * tanh(x[i])",
    "y[i] = silu(x[i]) + (softplus(x[i]) if x[i] > 0 else abs(x[i])) + x[i] ** 3 + clamp(x[i], -1, z[i])",
    "y[i] = gelu_tanh(x[i]) * rsqrt(2 + x[i] * x[i])",
    "y[i] = hypot(x[i], z[i]) + atan2(x[i], z[i]) + max(x[i], z[i]) + square(z[i]) / (1 + exp(x[i])) + erf(x[i])",
    "x: bf16, y[r, c] = x[r, c] / (2 + sum[c] square(x[r, c]))",
]


@pytest.mark.parametrize("text", FORMULAS)
def test_it_agrees_with_differences(text: str) -> None:
    random = np.random.default_rng(4)
    forward = formula_of(text)
    made = derivative(text)
    backward = formula_of(made.text)
    sizes = {name: EXTENT.get(name, 5) for name in forward.sizes}

    def of(tensor: str) -> tuple[int, ...]:
        return tuple(int(at_sizes(each, sizes)) for each in forward.tensors[tensor].extents)

    arrays = {
        each.name: random.integers(0, 3, of(each.name)) if each.type == "i32" else random.normal(size=of(each.name))
        for each in forward.inputs
    }
    numbers = dict.fromkeys(forward.scalars, 0.7)
    given = {made.given[name]: random.normal(size=of(name)) for name in made.given}

    def total(name: str, moved: object) -> float:
        results = evaluate(forward, {**arrays, name: moved}, numbers, sizes)
        return float(sum((results[each] * given[gradient]).sum() for each, gradient in made.given.items()))

    read = {each.name: {**arrays, **given}[each.name] for each in backward.inputs}
    left = {name: sizes[name] for name in backward.sizes if name in sizes}
    found = evaluate(backward, read, dict.fromkeys(backward.scalars, 0.7), left)
    assert set(made.made) == {each.name for each in forward.inputs if each.type != "i32"}
    for name, gradient in made.made.items():
        way = random.normal(size=of(name))
        slope = (total(name, arrays[name] + STEP * way) - total(name, arrays[name] - STEP * way)) / (2 * STEP)
        assert float((found[gradient] * way).sum()) == pytest.approx(slope, rel=1e-4, abs=1e-6), name


def test_those_that_tie_share_the_gradient_of_a_maximum() -> None:
    made = derivative("y[r] = max[c] x[r, c]")
    found = evaluate(formula_of(made.text), {"x": np.array([[1.0, 3.0, 3.0]]), "y_grad": np.array([2.0])})
    assert found["x_grad"].tolist() == [[0.0, 1.0, 1.0]]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x'[i] = 2 * x[i]", "x is written over"),
        ("y[i] = x[i - 1; zero]", "reads beyond an extent"),
        ("y[r] = prod[c] x[r, c]", "The derivative of prod is not written"),
        ("y[i] = lgamma(x[i])", "The derivative of lgamma is not written"),
        ("x: i32, y[i] = x[i] + 1", "No input of floating point has a gradient"),
        ("x: f32[R, C](ld, 1) y[r, c] = x[r, c]", "laid out in a way of its own"),
        ("y[r] = max[c] (x[r, c] + 1)", "is not found again"),
        ("y[i] = x[i] - x[i - 1] if i > 0 else x[0]", "computed"),
    ],
)
def test_what_has_none_is_refused_in_a_sentence(text: str, said: str) -> None:
    with pytest.raises(NoDerivativeError, match=said):
        derivative(text)
