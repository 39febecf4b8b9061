"""Which readings of a model are shown without the mark of a draft."""

from __future__ import annotations

import pytest
from warpwright.assist.certain import LIKELY, LIKELY_AND_WRITTEN, is_certain
from warpwright.assist.formula_task import FormulaRequest
from warpwright.assist.formula_votes import Voted
from warpwright.assist.readings import shown
from warpwright.assist.written_equation import is_written
from warpwright.formulas.resolve import formula_of


@pytest.mark.parametrize(
    ("comment", "text"),
    [
        ("D_ij = min_k (A_ik + B_kj)", "D[i, j] = min[k] (A[i, k] + B[k, j])"),
        ("out[j] = sum_i v[i] M[i][j]; M is half", "M: f16, out[j] = sum[i] v[i] * M[i, j]"),
        ("dropout (true = keep): y = mask ? x / (1 - p) : 0", "mask: bool, y[i] = x[i] / (1 - p) if mask[i] else 0"),
        ("SGD: p -= lr * (g + wd * p);  // coupled", "p'[i] = p[i] - lr * (g[i] + wd * p[i])"),
        (
            "w -= a*g, after that m = b*m + (1-b)*g. In place",
            "w'[i] = w[i] - a * g[i], m'[i] = b * m[i] + (1 - b) * g[i]",
        ),
        ("softsign: y = x/(1+|x|), elementwise", "z[i] = x[i] / (1 + abs(x[i]))"),
        ("t_{i,j} = sum over k of 2 a_{ik}^2 b_{kj}", "t[i, j] = sum[k] 2 * a[i, k] ** 2 * b[k, j]"),
    ],
)
def test_an_equation_says_a_formula(comment: str, text: str) -> None:
    assert is_written(formula_of(text), comment)


@pytest.mark.parametrize(
    ("comment", "text"),
    [
        ("D_ij = min_k (A_ik + B_kj)", "D[i, j] = min[k] (A[i, k] + B[j, k])"),
        ("C = alpha*A*B", "C[i, j] = alpha * (sum[k] A[i, k] * B[k, j])"),  # elementwise, as it stands there
        ("y = x > 0 ? x : a*x", "y[i] = x[i] if x[i] > 0 else -a * x[i]"),
        ("p -= lr * g", "p'[i] = p[i] + lr * g[i]"),
        ("w -= a*g, after that m = b*m", "w'[i] = w[i] - a * g[i], m'[i] = b * m[i] + g[i]"),
        ("relu of x", "y[i] = relu(x[i])"),
        ("y = = ?? x_{ [[ |", "y[i] = x[i]"),
    ],
)
def test_an_equation_that_says_another_or_none(comment: str, text: str) -> None:
    assert not is_written(formula_of(text), comment)


@pytest.mark.parametrize(
    ("comment", "given", "text", "likelihood", "certain"),
    [
        ("the relu of x", "", "y[i] = relu(x[i])", LIKELY, True),
        ("the relu of x", "", "y[i] = relu(x[i])", LIKELY - 0.01, False),
        ("y = max(x, 0)", "", "y[i] = max(x[i], 0)", LIKELY_AND_WRITTEN, True),
        ("y = max(x, 0)", "", "y[i] = max(x[i], 0)", LIKELY_AND_WRITTEN - 0.01, False),
        ("gradient of row softmax: d_j = p_j g_j", "", "d[j] = p[j] * g[j]", 0.9, False),  # no rows
        ("gradient of row softmax: d_j = p_j g_j", "const float* p, const float* g, float* d, int n",
         "d[j] = p[j] * g[j]", 0.9, True),
        ("relu of x, doubles", "", "y[i] = relu(x[i])", 0.9, False),
        ("max of a over b", "const float* a, const float* b, float* out, int n",
         "out = max[i] a[i] / b[i]", 0.99, False),
        ("every second element of x", "const float* x, float* y, int n",
         "x: f32[2 * N], y: f32[N], y[i] = x[2 * i]", 0.99, False),
        ("every second element of x[2 * n]", "const float* x, float* y, int n",
         "x: f32[2 * N], y: f32[N], y[i] = x[2 * i]", 0.99, True),
        ("relu of x, all of them halves", "", "y[i] = relu(x[i])", 0.9, False),
        ("relu of x, uint8", "", "y[i] = relu(x[i])", 0.9, False),
        ("relu of a float x, pointwise", "", "y[i] = relu(x[i])", 0.9, True),
        ("relu of x, doubles", "", "x: f64, y[i] = relu(x[i])", 0.9, True),
        ("relu of x", "", "x: f16, y[i] = relu(x[i])", 0.9, False),
    ],
)  # fmt: skip
def test_what_is_certain(comment: str, given: str, text: str, likelihood: float, certain: bool) -> None:
    request = FormulaRequest(comment, given)
    found = Voted(formula_of(text), 4, 4, likelihood)
    assert is_certain(found, request) == certain
    assert [each.votes for each in shown([found], request)] == ["" if certain else "4 of 4"]
