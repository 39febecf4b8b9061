"""Running values along any dimension, from either end, in registers and from block to block, in the emulator."""

from __future__ import annotations

import pytest
from support.built import built
from warpwright.formulas.numpy_inputs import Style
from warpwright.formulas.resolve import formula_of
from warpwright.schedules.model import Scan
from warpwright.writer.write import ScheduleError, written

pytestmark = pytest.mark.sampled(12)

ROWS = "y[r, i] = sum[j <= i] x[r, j]"
FROM_END = "y[r, i] = sum[j >= i] x[r, j]"
BEHIND = "x: f32[R, I] y[r, i] = sum[j > i] x[r, j]"
LOG_SUM = "y[r, i] = logsumexp[j <= i] x[r, j]"
COLUMNS = "y[i, c] = sum[j <= i] x[j, c]"
LENGTHS = (0, 1, 3, 4, 31, 128, 130, 515, 2048, 4100)

CASES: dict[str, tuple[str, list[dict[str, int]]]] = {
    "along rows": (ROWS, [{"R": 3, "I": i} for i in LENGTHS]),
    "many short rows": (ROWS, [{"R": 600, "I": i} for i in (0, 1, 4, 9)]),
    "before the element": ("y[r, i] = sum[j < i] x[r, j]", [{"R": 3, "I": i} for i in LENGTHS]),
    "from the end": (FROM_END, [{"R": 3, "I": i} for i in LENGTHS]),
    "behind the element": (BEHIND, [{"R": 3, "I": i} for i in LENGTHS]),
    "maximum": ("y[r, i] = max[j <= i] x[r, j]", [{"R": 3, "I": i} for i in LENGTHS]),
    "maximum of f64": ("x: f64 y[r, i] = max[j <= i] x[r, j]", [{"R": 3, "I": i} for i in (1, 6, 515)]),
    "columns, minimum of f64": ("x: f64 y[i, c] = min[j <= i] x[j, c]", [{"I": 150, "C": c} for c in (3, 8)]),
    "columns, maximum of i64": ("x: i64 y[i, c] = max[j <= i] x[j, c]", [{"I": 150, "C": c} for c in (3, 8)]),
    "minimum of i64": ("x: i64 y[r, i] = min[j < i] x[r, j]", [{"R": 3, "I": i} for i in (1, 6, 515)]),
    "product": ("y[r, i] = prod[j <= i] x[r, j]", [{"R": 3, "I": i} for i in (1, 6, 30)]),
    "any": ("y[r, i] = any[j <= i] x[r, j] > 2", [{"R": 3, "I": i} for i in (1, 6, 515)]),
    "f64": (f"x: f64 y: f64 {ROWS}", [{"R": 3, "I": i} for i in (1, 6, 515)]),
    "f16": (f"x: f16 y: f16 {ROWS}", [{"R": 3, "I": i} for i in (1, 6, 8, 515, 1024)]),
    "bf16": (f"x: bf16 y: bf16 {ROWS}", [{"R": 3, "I": i} for i in (1, 6, 8, 515, 1024)]),
    "bytes": ("x: u8 y[r, i] = sum[j <= i] x[r, j]", [{"R": 3, "I": i} for i in (1, 16, 515, 1024)]),
    "i32": ("x: i32 y: i32 y[i] = sum:i32[j <= i] x[j]", [{"I": i} for i in (0, 1, 5, 17001, 17004)]),
    "mean so far": ("y[r, i] = (sum[j <= i] x[r, j]) / (i + 1)", [{"R": 3, "I": i} for i in (1, 7, 1032)]),
    "of an expression": (
        "y[r, i] = w[i] * z[r, i] where z[r, i] = sum[j <= i] a * x[r, j] * x[r, j] * v[j]",
        [{"R": 3, "I": i} for i in (1, 7, 1032)],
    ),
    "of gathered values": ("y[r, i] = sum[j <= i] x[r, p[j]]", [{"R": 3, "I": i, "x_size1": 5} for i in (1, 7, 132)]),
    "several dimensions in front": (
        "y[a, b, i] = s[a] * sum[j <= i] x[a, b, j] * t[b]",
        [{"A": 2, "B": 3, "I": i} for i in (1, 7, 132)],
    ),
    "several running values": (
        "y[r, i] = (sum[j <= i] x[r, j]) / (max[j < i] abs(x[r, j])) m[r, i] = max[j <= i] x[r, j]",
        [{"R": 3, "I": i} for i in (0, 1, 7, 132)],
    ),
    "running logarithm of a sum": (LOG_SUM, [{"R": 3, "I": i} for i in LENGTHS]),
    "running logarithm of a sum, f64": (f"x: f64 y: f64 {LOG_SUM}", [{"R": 3, "I": i} for i in (1, 7, 132)]),
    "running logarithm of a sum, bf16": (f"x: bf16 y: bf16 {LOG_SUM}", [{"R": 3, "I": i} for i in (1, 7, 136)]),
    "running softmax of columns": (
        "y[i, c] = exp(x[i, c] - logsumexp[j >= i] x[j, c])",
        [{"I": i, "C": c} for i, c in ((1, 1), (5, 4), (130, 6), (300, 36))],
    ),
    "along columns": (COLUMNS, [{"I": i, "C": c} for i, c in ((0, 3), (1, 1), (5, 4), (130, 6), (300, 132))]),
    "columns, before the element": (
        "y[i, c] = max[j < i] x[j, c]",
        [{"I": i, "C": c} for i, c in ((1, 1), (5, 4), (130, 6), (300, 132))],
    ),
    "columns, from the end": (
        "y[i, c] = sum[j >= i] x[j, c]",
        [{"I": i, "C": c} for i, c in ((1, 1), (5, 4), (130, 6), (300, 132))],
    ),
    "columns, f16": ("x: f16[I, C] y: f16 y[i, c] = sum[j > i] x[j, c]", [{"I": 150, "C": c} for c in (3, 8)]),
    "columns, f64": ("x: f64[I, C] y: f64 y[i, c] = sum[j > i] x[j, c]", [{"I": 150, "C": c} for c in (3, 8)]),
    "causal average": (
        "y[b, i, d] = (sum[j <= i] x[b, j, d]) / (i + 1)",
        [{"B": 2, "I": i, "D": d} for i, d in ((1, 4), (131, 3), (260, 36))],
    ),
    "columns of two dimensions": (
        "y[b, i, h, d] = w[h] * sum[j <= i] x[b, j, h, d]",
        [{"B": 2, "I": i, "H": 3, "D": d} for i, d in ((1, 4), (131, 3), (260, 36))],
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


@pytest.mark.sampled(8)
@pytest.mark.nvcc
@pytest.mark.parametrize("text", ["y[i] = sum[j <= i] x[j]", FROM_END, LOG_SUM, COLUMNS])
def test_parts_are_carried_from_block_to_block(text: str) -> None:
    """Far enough that groups of parts tell each other."""
    made = built(text, Scan(2, 1, 2, 1))
    given = {"R": 2, "C": 5}
    lengths = (2, 127, 128, 129, 3 * 128, 64 * 128, 65 * 128 + 2, 66 * 128 + 3)
    for length in lengths[: 5 if text in (FROM_END, LOG_SUM) else None]:  # whose reference takes the square of that
        own = length // 64 if text == COLUMNS else length
        made.run({name: given.get(name, own) for name in made.formula.sizes})


@pytest.mark.slow
@pytest.mark.sampled(16)
@pytest.mark.nvcc
@pytest.mark.parametrize("style", ["nan", "inf", "zeros", "ties"])
def test_what_is_not_finite_is_handed_on(style: Style) -> None:
    for text in (ROWS, LOG_SUM, "y[r, i] = max[j <= i] x[r, j]", "x: f32[R, I] y[r, i] = min[j > i] x[r, j]"):
        made = built(text)
        for length in (7, 600):
            made.run({"R": 3, "I": length}, style=style)


def test_a_schedule_that_does_not_fit_is_refused_with_a_reason() -> None:
    for schedule in (Scan(2, 2, 4, 1), Scan(64, 1, 4, 1)):
        with pytest.raises(ScheduleError, match="at most 32 warps"):
            written(formula_of(ROWS), "tried", schedule)


@pytest.mark.nvcc
def test_rows_that_are_not_aligned_take_another_path() -> None:
    made = built(ROWS)
    aligned, moved = made.run({"R": 3, "I": 512}), made.run({"R": 3, "I": 512}, alignment=4)
    assert aligned.paths != moved.paths
    assert all(not path.aligned for path in moved.paths)
