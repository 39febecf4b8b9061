"""Arithmetic on dimensions in 64 bits, and on literals and whole numbers as precise as what they meet."""

from __future__ import annotations

import pytest
from support.written import computes_plainly_and_by_schedules
from warpwright.formulas.resolve import formula_of
from warpwright.writer.write import file_text, written

pytestmark = pytest.mark.sampled(8)

WIDE = (
    "y: i64[N] y[i] = i * 1234567",
    "y[i] = x[i] * ((i * 1234567) % 1000)",
    "y[i] = x[i] * cos(i * i * i * 0.001)",
    "y[i] = x[i] if i * 1234567 < 3000000000 else 0",
    "n: i32[N] y[i] = n[i] * (i * 1234567) + (n[i] + i)",
    "y[r] = sum[c] x[r, c] * ((c * 12345678) % 7)",
    "y[i, j] = x[i, j] * ((i * 1103515245 + j * 12345) % 1000)",
    "n: i32[N] y: bf16[N] y[i] = n[i] * 1234567",
)
PRECISE = (
    "x: f64 y[i] = x[i] * (0.5 - 0.5 * cos(2 * pi * i / (I - 1)))",
    "x: f64 y[t, d] = x[t, d] * sin(t * 10000 ** (-d / D)) * exp(-0.1 * d)",
    "x: f64 n: i32 y[i] = x[i] * (n[i] / 3) + sqrt(abs(n[i])) + f64(1 / 3)",
    "x: f64[N] y[i] = logsumexp[j < 3] (x[i] + 0.1 * j)",
    "x: c128 y[k] = sum[n] x[n] * exp(complex(0, -2 * pi * k * n / N))",
    "x: f64 y[i] = x[i] * real(exp(complex(0, 0.1 * i / 3)))",
    "y[i] = x[i] * real(exp(complex(0, 0.1 * i / 3))) + abs(complex(x[i], 1))",
    "x: f64 y: f16 y[i] = x[i] * 0.1",
    "y[r] = std:f64[c] x[r, c]",
    "x: f64 y: bf16 y[i] = f64(f8e4m3(x[i])) * 0.1",
)


@pytest.mark.parametrize("text", [*WIDE, *PRECISE])
def test_values_are_as_wide_as_their_types(text: str) -> None:
    computes_plainly_and_by_schedules(formula_of(text), "k")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("y[i] = x[i] * ((i * 1234567) % 1000)", "i * 1234567LL % 1000"),
        ("y[i] = x[i] * (i * i)", "static_cast<long long>(i) * i"),
        ("y[r, c] = x[r, c] * (r * C + c)", "* (r * C + c)"),
        ("x: f64 y[i] = x[i] * (i / I)", "static_cast<double>(i) / static_cast<double>(I)"),
        ("y[i] = x[i] * (i / I)", "static_cast<float>(i) / static_cast<float>(I)"),
        ("x: f64 y: f16 y[i] = x[i] * 2", "__double2half(x_pack.at[j] * 2.0)"),
    ],
)
def test_what_is_written_is_no_wider_than_needed(text: str, said: str) -> None:
    assert said in file_text(written(formula_of(text), "k"))
