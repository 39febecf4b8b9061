"""Which answers of a model may be what a request means."""

from __future__ import annotations

import pytest
from warpwright.assist.formula_task import FormulaRequest
from warpwright.assist.meant import meant
from warpwright.formulas.resolve import formula_of

ROWS = "const float* x, float* y, int rows, int cols"


@pytest.mark.parametrize(
    ("comment", "given", "answer"),
    [
        ("largest absolute value of each row", ROWS, "y[r] = max[c] abs(x[r, c])"),
        ("running maximum of each row", ROWS, "y[r, c] = max[k <= c] x[r, k]"),
        ("log of the sum of exponentials of each row", ROWS, "y[r] = logsumexp[c] x[r, c]"),
        ("a third of each entry", "const float* x, float* y, int n", "y[i] = x[i] / 3"),
        ("y[i] = x[i] where x is positive, else 0.1 times it", "", "y[i] = x[i] if x[i] > 0 else 0.1 * x[i]"),
        ("the relu of everything", "", "b[i] = relu(a[i])"),
        ("add bias[cols] to every row of x[rows][cols]", "", "y[r, c] = x[r, c] + bias[c]"),
        ("exponential moving average of x with decay d", "float* ema, const float* x, float d, int n",
         "ema'[i] = d * ema[i] + (1 - d) * x[i]"),
        ("copy x", "const float* x, float* y, int n", "y[i] = x[i]"),
        ("half in, float out", "const half* x, float* y, int n", "x: f16, y[i] = x[i]"),
        ("out[i] = table[ids[i]]", "", "ids: i32, out[i] = table[ids[i]]"),
    ],
)  # fmt: skip
def test_what_is_said_is_taken(comment: str, given: str, answer: str) -> None:
    assert meant(formula_of(answer), FormulaRequest(comment, given)) is not None


@pytest.mark.parametrize(
    ("comment", "given", "answer"),
    [
        ("largest absolute value of each row", ROWS, "y[r, c] = max[k <= c] abs(x[r, k])"),  # a part that nobody named
        ("clip each row at 1", ROWS, "y[i] = min(x[i], 1)"),  # a size that is handed over has no place
        ("clip negatives to zero", ROWS, "y[r, c] = clamp(x[r, c], 0, 6)"),  # a number that nobody named
        ("three times the row sums, plus 5", ROWS, "y[r] = 3 * sum[c] x[r, c]"),  # 5 is left out
        ("row sums", ROWS, "y[r] = max[c] x[r, c]"),  # no sum
        ("row sums", "const float* x, const float* y, int rows, int cols", "y[r] = sum[c] x[r, c]"),  # y is read only
        ("row sums", ROWS, "x: f64, y[r] = sum[c] x[r, c]"),  # another type than the signature's
        ("scale a by the norm", "", "y[i] = a[i] * w[i]"),  # w is nobody's array
        ("p[i] is the position, double it", "", "y[i] = 2 * x[i]"),  # p is left out
        ("add bias[cols] to every row of x[rows][cols]", "", "cols: i32, y[r, c] = x[r, c] + bias[cols[r]]"),  # a size
        ("this is a nice file", "", "y[i] = x[i]"),  # nothing is computed, and no copy is asked for
    ],
)
def test_what_is_not_said_is_dropped(comment: str, given: str, answer: str) -> None:
    assert meant(formula_of(answer), FormulaRequest(comment, given)) is None
