"""Formulas by the schedules of their shapes, at sizes around the limits of each path, in the emulator."""

from __future__ import annotations

import re

import pytest
from support.built import built
from support.formulas import FORMULAS
from warpwright.formulas.normal import normal
from warpwright.formulas.numpy_inputs import Style
from warpwright.formulas.resolve import formula_of
from warpwright.schedules.model import Columns, Pointwise, Rows, Schedule, Tile
from warpwright.schedules.rules import default, legal
from warpwright.schedules.shape import row_shape
from warpwright.writer.write import ScheduleError, alternatives, file_text, plain, written

pytestmark = pytest.mark.sampled(12)

SOFTMAX = """y[r, c] = exp(x[r, c] - m[r]) / s[r]
where m[r] = max[c] x[r, c], s[r] = sum[c] exp(x[r, c] - m[r])"""
LAYER_NORM = """y[r, c] = (x[r, c] - mu[r]) * rsqrt(v[r] + eps) * w[c] + b[c]
where mu[r] = mean[c] x[r, c], v[r] = var[c] x[r, c]"""
RMS_NORM = """x: bf16
res: bf16
w: bf16
h: bf16
y: bf16
h[r, c] = x[r, c] + res[r, c]
y[r, c] = h[r, c] * rsqrt(ms[r] + eps) * w[c] where ms[r] = mean[c] h[r, c]**2"""
SHARES = """x: bf16
y[r, c] = p[r, c] / sum[c] p[r, c] where p[r, c] = x[r, c] * z[r, c] + w[c]"""
GROUP_NORM = """x: f32[N, G, K, S]
y[n, g, k, s] = (x[n, g, k, s] - mu[n, g]) * rsqrt(v[n, g] + eps) * w[g, k]
where mu[n, g] = mean[k, s] x[n, g, k, s], v[n, g] = var[k, s] x[n, g, k, s]"""
BATCH_NORM = """y[n, c, s] = (x[n, c, s] - mu[c]) * rsqrt(v[c] + eps)
where mu[c] = mean[n, s] x[n, c, s], v[c] = var[n, s] x[n, c, s]"""
LENGTHS = (1, 2, 3, 6, 31, 64, 130, 1001, 1024, 4098)

CASES: dict[str, tuple[str, list[dict[str, int]]]] = {
    "softmax": (SOFTMAX, [{"R": 1 + n % 5, "C": c} for n, c in enumerate((*LENGTHS, 0, 17001))] + [{"R": 0, "C": 4}]),
    "layer norm": (LAYER_NORM, [{"R": 3, "C": c} for c in LENGTHS]),
    "rms norm and residual, bf16": (RMS_NORM, [{"R": 3, "C": c} for c in (1, 8, 13, 34, 517, 4096, 4099)]),
    "rms norm and residual, in place": (
        "res'[r, c] = res[r, c] + x[r, c]\ny[r, c] = res'[r, c] * rsqrt((mean[c] res'[r, c] ** 2) + eps)",
        [{"R": 3, "C": c} for c in (1, 34, 4096, 17001)],
    ),
    "softmax, f64": (f"x: f64\ny: f64\n{SOFTMAX}", [{"R": 3, "C": c} for c in (1, 6, 33, 1026)]),
    "softmax, f16": (f"x: f16\ny: f16\n{SOFTMAX}", [{"R": 3, "C": c} for c in (7, 16, 514)]),
    "group norm": (GROUP_NORM, [{"N": 2, "G": 3, "K": 2, "S": s} for s in (1, 3, 4, 49, 600, 4801)]),
    "causal softmax": (
        """p[b, i, j] = e[b, i, j] / sum[j] e[b, i, j]
where s[b, i, j] = x[b, i, j] * scale if j <= i else -inf, m[b, i] = max[j] s[b, i, j],
e[b, i, j] = exp(s[b, i, j] - m[b, i])""",
        [{"B": 2, "I": i, "J": j} for i, j in ((1, 1), (5, 5), (33, 36), (6, 130), (2, 9001), (2, 9004))],
    ),
    "softmax, bf16": (f"x: bf16\ny: bf16\n{SOFTMAX}", [{"R": 9, "C": c} for c in (1, 5, 13, 61, 517, 2051, 8209)]),
    "shares of two arrays": (SHARES, [{"R": 9, "C": c} for c in (1, 7, 100, 8203)]),
    "places": ("y[r] = argmax[c] x[r, c]", [{"R": 9, "C": c} for c in (1, 7, 100, 515, 8203)]),
    "shares of gathered rows": (
        "y[t, d] = table[ids[t], d] / (sum[d] table[ids[t], d] ** 2)",
        [{"T": 9, "table_size0": 5, "D": d} for d in (1, 7, 100, 515)],
    ),
    "bytes": ("x: u8\ny[r] = max[c] x[r, c]", [{"R": 3, "C": c} for c in (1, 16, 33, 4100)]),
    "any": ("y[r] = any[c] (x[r, c] > 1)", [{"R": 3, "C": c} for c in (1, 6, 33, 768)]),
    "cross entropy": (
        "loss[n] = (logsumexp[c] x[n, c]) - x[n, label[n]]",
        [{"N": 5, "C": c} for c in (1, 6, 33, 4096)],
    ),
    "mean cross entropy": (
        "loss = mean[n] ((logsumexp[c] x[n, c]) - x[n, label[n]])",
        [{"N": 3, "C": 4}, {"N": 5000, "C": 3}],
    ),
    "mean of gathered": (
        "x: f32[N, C]\nloss = mean[n] (x[n, label[n]] * w[n] if label[n] >= 0 else 0)",
        [{"N": 3, "C": 4}, {"N": 5000, "C": 3}, {"N": 5001, "C": 2}],
    ),
    "column sums beside a row's numbers": (
        "dw[c] = sum[r] dy[r, c] * (x[r, c] - mu[r]) * rstd[r]\ndb[c] = sum[r] dy[r, c]",
        [{"R": r, "C": c} for r, c in ((5, 7), (4099, 9), (4100, 40))],
    ),
    "column sum": ("y[c] = sum[r] x[r, c]", [{"R": r, "C": c} for r, c in ((1, 1), (5, 7), (600, 120), (701, 97))]),
    "column softmax": (
        "p[r, c] = exp(x[r, c] - m[c]) / sum[r] exp(x[r, c] - m[c]) where m[c] = max[r] x[r, c]",
        [{"R": r, "C": c} for r, c in ((3, 4), (600, 120), (701, 97))],
    ),
    "middle sum": (
        "y[a, c] = sum[b] x[a, b, c]",
        [{"A": 2, "B": b, "C": c} for b, c in ((4, 5), (600, 64), (560, 61))],
    ),
    "batch norm": (BATCH_NORM, [{"N": n, "C": 3, "S": s} for n, s in ((2, 5), (5, 1200), (5, 1201))]),
    "sum": ("s = sum[i] x[i] * x[i]", [{"I": i} for i in (0, 1, 5000, 70001, 70004)]),
    "bias and gelu": ("y[r, c] = gelu(x[r, c] + b[c])", [{"R": 5, "C": c} for c in (1, 3, 4, 130, 516)]),
    "bias and relu, bf16": (
        "x: bf16\nb: bf16\ny: bf16\ny[r, c] = relu(x[r, c] + b[c])",
        [{"R": 5, "C": c} for c in (1, 6, 8, 131)],
    ),
    "a scale for each row": ("y[r, c] = x[r, c] * s[r]", [{"R": 5, "C": c} for c in (1, 3, 4, 130, 516)]),
    "dequantised bytes": ("q: i8\ny[i] = (q[i] - zero) * scale", [{"I": i} for i in (0, 1, 15, 16, 5003)]),
    "running sum": ("y[r, i] = sum[j <= i] x[r, j]", [{"R": 3, "I": i} for i in (1, 7, 1024, 1025, 2500)]),
    "running maximum before": ("y[r, i] = max[j < i] x[r, j]", [{"R": 3, "I": i} for i in (1, 7, 1024, 1500)]),
    "running mean": ("y[r, i] = (sum[j <= i] x[r, j]) / (i + 1)", [{"R": 3, "I": i} for i in (1, 7, 1030)]),
    "one long running sum": ("x: i32\ny[i] = sum[j <= i] x[j]", [{"I": i} for i in (0, 1, 5, 17001)]),
    "neighbours": ("d[i] = x[i + 1] - x[i]", [{"I": i} for i in (1, 4, 33, 1024)]),
    "a stencil": (
        "y[i, j] = x[i - 1, j; clamp] + x[i, j + 1; zero] - x[i, j]",
        [{"I": i, "J": j} for i, j in ((1, 1), (7, 33), (40, 60))],
    ),
    "neighbours in rows": ("d[r, i] = x[r, i + 1] * s[r] - x[r, i]", [{"R": 3, "I": i} for i in (1, 4, 33, 127)]),
    "sum of neighbours": ("s = sum[i] abs(x[i + 1] - x[i])", [{"I": i} for i in (3, 4096, 5001)]),
    "rows of a fixed length": (f"x: f32[R, 70]\n{SOFTMAX}", [{"R": 1}, {"R": 9}]),
    "a fixed count": ("x: f32[100]\ns = sum[i] x[i]", [{}]),
    "in place": ("y'[i] = a * x[i] + y[i]", [{"I": i} for i in (1, 7, 1024, 4099)]),
    "rows with a pitch": (
        "x: f32[R, C](ld, 1)\ny[r, c] = a * x[r, c]",
        [{"R": 5, "C": 7, "ld": 16}, {"R": 5, "C": 8, "ld": 12}, {"R": 5, "C": 8, "ld": 9}],
    ),
    "softmax of rows with a pitch": (
        f"x: f32[R, C](ld, 1)\n{SOFTMAX}",
        [{"R": 5, "C": 7, "ld": 16}, {"R": 5, "C": 8, "ld": 12}, {"R": 5, "C": 8, "ld": 9}],
    ),
    "column-major result": ("y: f32[R, C] column\ny[r, c] = x[r, c]", [{"R": 5, "C": 7}, {"R": 36, "C": 72}]),
    "channels last": (
        "x: f32[N, C, H, W] channels_last\ny: f32[N, C, H, W] channels_last\n"
        "y[n, c, h, w] = x[n, c, h, w] * scale[c] + shift[c]",
        [{"N": 2, "C": c, "H": 3, "W": 5} for c in (3, 4, 8)],
    ),
    "fields of structs": ("p: f32[N]{x, y}\np.x'[i] = 2 * p.y[i]\np.y'[i] = p.x[i] + 1", [{"N": 1}, {"N": 7}]),
    "joined columns": (
        "x: f32[R, A]\ny: f32[R, B]\nz: f32[R, A + B]\nz[r, c] = x[r, c] if c < A else y[r, c - A]",
        [{"R": 20, "A": 28, "B": 12}, {"R": 3, "A": 5, "B": 7}],
    ),
    "gathered rows": (
        "y[t, d] = table[ids[t], d]",
        [{"T": 5, "D": d, "table_size0": 9} for d in (1, 4, 6, 130)],
    ),
    "rows that may be missing": (
        "y[t, d] = table[ids[t], d] if ids[t] >= 0 else 0",
        [{"T": 9, "D": d, "table_size0": 2} for d in (1, 4, 6, 130)],
    ),
    "transpose": (
        "y[j, i] = x[i, j]",
        [{"I": i, "J": j} for i, j in ((1, 1), (3, 130), (64, 64), (67, 132), (96, 68))],
    ),
    "transpose of bytes": (
        "x: i8\ny: i8\ny[j, i] = x[i, j]",
        [{"I": i, "J": j} for i, j in ((3, 130), (128, 128), (131, 136), (272, 136), (17, 19))],
    ),
    "transpose of halves": (
        "x: f16\ny: f16\ny[j, i] = x[i, j]",
        [{"I": i, "J": j} for i, j in ((72, 136), (65, 66), (17, 19))],
    ),
    "transpose with others": (
        "x: bf16\ny[b, j, i] = x[b, i, j] * s[i] + i",
        [{"B": 2, "I": i, "J": j} for i, j in ((72, 132), (65, 66), (17, 2))],
    ),
    "transpose of doubles": ("x: f64\ny: f64\ny[j, i] = x[i, j]", [{"I": 66, "J": 34}, {"I": 17, "J": 67}]),
    "transpose of complex numbers": ("x: c128\ny: c128\ny[j, i] = x[i, j]", [{"I": 33, "J": 34}]),
    "channels last, bf16": (
        "x: bf16[N, C, H, W]\ny: bf16[N, H, W, C]\ny[n, h, w, c] = relu(x[n, c, h, w]) * s[c]",
        [{"N": 2, "C": c, "H": 3, "W": w} for c, w in ((1, 1), (3, 65), (32, 66), (64, 64))],
    ),
}


@pytest.mark.sampled(16)
@pytest.mark.nvcc
@pytest.mark.parametrize("name", CASES)
def test_every_size_is_right(name: str) -> None:
    text, tried = CASES[name]
    made = built(text)
    for sizes in tried:
        made.run(sizes)


@pytest.mark.nvcc
@pytest.mark.parametrize("name", ["softmax", "cross entropy", "bias and gelu", "transpose", "column sum"])
def test_arrays_that_are_not_aligned_take_another_path(name: str) -> None:
    text, tried = CASES[name]
    made = built(text)
    sizes = max(tried, key=lambda each: sum(n % 4 == 0 for n in each.values()))
    aligned, moved = made.run(sizes), made.run(sizes, alignment=4)
    assert all(not path.aligned for path in moved.paths)
    assert aligned.paths != moved.paths


@pytest.mark.sampled(16)
@pytest.mark.nvcc
@pytest.mark.parametrize("style", ["nan", "inf", "zeros", "ties"])
def test_what_is_not_finite_is_handed_on(style: Style) -> None:
    for text, tried in (
        (SOFTMAX, [{"R": 7, "C": 12}, {"R": 2, "C": 16500}]),
        ("y[r] = argmax[c] x[r, c]", [{"R": 7, "C": 33}, {"R": 2, "C": 4096}]),
        ("m = argmax[i] x[i]", [{"I": 9000}]),
        ("y[r] = max[c] x[r, c]", [{"R": 3, "C": 130}]),
    ):
        made = built(text)
        for sizes in tried:
            made.run(sizes, style=style)


@pytest.mark.nvcc
def test_a_row_of_minus_infinity_in_one_pass() -> None:
    """Lanes of which all elements are -inf take part in a maximum that is none."""
    text = """y[r] = log(s[r]) + m[r]
where m[r] = max[c] (x[r, c] if c >= C - 5 else -inf), s[r] = sum[c] exp((x[r, c] if c >= C - 5 else -inf) - m[r])"""
    made = built(text, Rows(1024, 1, 1, 1, "reload", online=True))
    made.run({"R": 2, "C": 9000})


@pytest.mark.nvcc
@pytest.mark.parametrize(
    ("text", "schedule", "sizes"),
    [
        (SOFTMAX, Rows(4, 32, 4, 2), {"R": 37, "C": 32}),
        (SOFTMAX, Rows(96, 1, 2, 3), {"R": 3, "C": 510}),
        (SOFTMAX, Rows(256, 1, 4, 1, "reload"), {"R": 2, "C": 2052}),
        (SOFTMAX, Rows(64, 1, 4, 1, "shared"), {"R": 3, "C": 516}),
        (SHARES, Rows(32, 1, 1, 1, "shared"), {"R": 3, "C": 35}),
        (SHARES, Rows(64, 1, 4, 1, "shared"), {"R": 3, "C": 260}),
        (SHARES, Rows(64, 1, 4, 1, "shared", is_whole=False), {"R": 7, "C": 259}),
        (SHARES, Rows(32, 4, 4, 3, is_whole=False), {"R": 7, "C": 259}),
        (LAYER_NORM, Rows(32, 4, 4, 3, is_whole=False), {"R": 7, "C": 259}),
        (SOFTMAX, Rows(64, 1, 2, 3, is_whole=False), {"R": 7, "C": 259}),
        (LAYER_NORM, Rows(32, 1, 1, 1, "shared"), {"R": 3, "C": 35}),
        (LAYER_NORM, Rows(64, 1, 1, 9, stream=True), {"R": 3, "C": 515}),
        ("y[r, c] = x[r, c] + b[c]", Pointwise(128, 2, 4), {"R": 37, "C": 66}),
        ("y[j, i] = x[i, j]", Tile(32, 8, 2), {"I": 66, "J": 34}),
        ("y[c] = sum[r] x[r, c]", Columns(2, 8, 3), {"R": 900, "C": 130}),
    ],
)
def test_a_wanted_schedule_is_taken(text: str, schedule: Schedule, sizes: dict[str, int]) -> None:
    ran = built(text, schedule).run(sizes)
    assert ran.paths[0].conditions or isinstance(schedule, Rows)


@pytest.mark.parametrize(
    ("text", "schedule", "reason"),
    [
        (SOFTMAX, Rows(48, 1, 4, 1), "whole warps"),
        (SOFTMAX, Rows(24, 4, 4, 1), "no power of two"),
        (SOFTMAX, Rows(32, 64, 4, 1), "2048 threads"),
        (SOFTMAX, Rows(512, 1, 4, 40), "registers"),
        (SOFTMAX, Rows(32, 4, 3, 1), "not read at once"),
        (SOFTMAX, Rows(16, 4, 4, 1, "shared"), "whole warps"),
        ("y[r] = sum[c] x[r, c]", Rows(256, 1, 4, 1, "shared"), "more than one pass"),
        ("y[i] = 2 * x[i]", Rows(), "Nothing is reduced"),
        ("y[c] = sum[r] x[r, c]", Rows(), "No array is read along its rows"),
        ("y[r, c] = 2 * x[r, c]", Tile(), "No single array turns"),
        ("y[r] = sum[c] x[r, c]", Pointwise(), "element by element"),
    ],
)
def test_a_schedule_that_does_not_fit_is_refused_with_a_reason(text: str, schedule: Schedule, reason: str) -> None:
    with pytest.raises(ScheduleError, match=reason):
        written(formula_of(text), "tried", schedule)


@pytest.mark.parametrize("name", FORMULAS)
def test_the_last_path_is_right_for_any_size(name: str) -> None:
    formula = formula_of(FORMULAS[name])
    for code in (plain(formula, "tried"), written(formula, "tried")):
        for step in code.steps:
            assert not step.paths[-1].conditions
            assert not step.paths[-1].aligned
        text = file_text(code)
        for kernel in code.kernels:
            assert text.count(f" {kernel.name}(") == 1, kernel.name
            assert re.search(rf" {kernel.name}\s*<", text), kernel.name


def test_the_rules_give_legal_schedules_that_hold_the_row() -> None:
    for text in (SOFTMAX, LAYER_NORM, RMS_NORM):
        formula = normal(formula_of(text))
        shape = row_shape(formula, formula.stages)
        assert not isinstance(shape, str)
        for length in (*LENGTHS, 768, 16384, 50257, 10**6):
            found = default(formula, shape, {"R": 100, "C": length})
            assert not any(legal(formula, shape, each) for each in found)
            assert found[-1].keep == "reload"
            assert found[0].keep == "shared" if length > 8192 else found[0].capacity >= length


def test_what_is_read_for_each_row_alone_does_not_say_how_a_matrix_lies() -> None:
    text, _ = CASES["column sums beside a row's numbers"]
    assert "load_pack<kVector>(dy + r * C + column)" in file_text(written(formula_of(text), "tried"))


def test_a_search_tries_schedules_of_the_formulas_shape() -> None:
    tried = {
        SOFTMAX: Rows, "y[i] = 2 * x[i]": Pointwise, "y[j, i] = x[i, j]": Tile, "y[c] = sum[r] x[r, c]": Columns,
    }  # fmt: skip
    for text, kind in tried.items():
        formula = formula_of(text)
        found = alternatives(formula, dict.fromkeys(formula.sizes, 4096))
        assert len(found) > 3
        assert all(isinstance(each, kind) for each in found)
