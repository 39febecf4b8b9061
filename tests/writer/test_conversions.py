"""Values that are converted to types that do not hold them."""

from __future__ import annotations

import pytest
from support.written import computes_plainly_and_by_schedules
from warpwright.formulas.resolve import formula_of
from warpwright.writer.write import file_text, plain

FORMULAS = (
    "y: i8 y[i] = x[i] * 1e10",
    "y: u8 y[i] = x[i] * 1000",
    "y: i32 y[r] = sum[c] x[r, c]",
    "x: f64 y: f32 y[r] = sum[c] x[r, c]",
    "y[i] = i32(u8(x[i] * 1000)) + i32(i16(x[i] * 1e6))",
    "y: i8 y[i] = clamp(round(x[i] * 100), -127, 127)",
    "y: i16 y[r] = sum[c] x[r, c] * 100000",
    "y: i16 y[c] = (sum[r] x[r, c]) * 100000",
    "y: i8 y[i] = (sum[j <= i] x[j]) * 100",
    "y[b, i] = all[s <= i] (h[b, s] < -1 or h[b, s] > 1)",
    "x: bf16 y[r] = logsumexp:f64[c] x[r, c]",
    "x: f64 y[b, i] = sum:f64[i - 7 <= j <= i] fma(asinh(x[b, j]), temperature, 0.25)",
    "y = var[r] expm1(x[r])",
    "x: f64 y: i32 y[i] = x[i] * 1e12",
    "x: f64 y: u64 y[i] = i8(x[i]) + u64(x[i])",
    "x: f16 y: i64 y[i] = sum[j <= i] x[j] * 1e30",
    "x: f64 y: i16 y[r] = sum[begin[r] <= e < begin[r + 1]] x[e]",
    "x: f32 y: i64 y[i] = max[k < 3] x[i + k; -inf]",
    "x: c64 w: c64 y[r, c] = sum[l] x[r, l] * w[c, l] + b[c]",
)


@pytest.mark.sampled(8)
@pytest.mark.nvcc
@pytest.mark.parametrize("text", FORMULAS)
def test_what_lies_beyond_a_small_type_becomes_its_nearest_value(text: str) -> None:
    computes_plainly_and_by_schedules(formula_of(text), "k")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x: f64 y: f64 y[r] = (sum[c] x[r, c]) ** (1 / 3)", "pow(y_sum, 1.0 / 3.0)"),
        ("x: f64 y: f64 y[i] = x[i] * sqrt(1 / 3) * (2 if x[i] > 1 / 7 else 3)", "sqrt(1.0 / 3.0)"),
        ("x: f64 y: f64 y[i] = x[i] * f32(1 / 3)", "1.0f / 3.0f"),
        ("y[i] = x[i] * (1 / 3)", "1.0f / 3.0f"),
        ("x: c128 y: c128 y[i] = x[i] * (1 / 3)", "1.0 / 3.0"),
    ],
)
def test_literals_are_as_precise_as_what_they_meet(text: str, said: str) -> None:
    assert said in file_text(plain(formula_of(text), "k"))
