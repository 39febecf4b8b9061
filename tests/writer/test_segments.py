"""Reductions over segments that memory tells, by lanes and by columns, in the emulator."""

from __future__ import annotations

import pytest
from support.built import built
from warpwright.formulas.numpy_inputs import Style
from warpwright.schedules.model import Segments

SPMV = "y[r] = sum[first[r] <= e < first[r + 1]] values[e] * x[col[e]]"
SHAPES = ((1, 0), (3, 5), (40, 100), (9, 100), (5, 300), (130, 20), (2, 5000))
COLUMNS = ((1, 1), (4, 5), (6, 40), (36, 100))

CASES: dict[str, tuple[str, list[dict[str, int]]]] = {
    "sparse matrix times vector": (SPMV, [{"R": r, "E": e, "x_size": 7} for r, e in SHAPES]),
    "f64": (f"values: f64 x: f64 {SPMV}", [{"R": r, "E": e, "x_size": 7} for r, e in SHAPES]),
    "f16": (f"values: f16 x: f16 y: f16 {SPMV}", [{"R": r, "E": e, "x_size": 7} for r, e in SHAPES]),
    "maximum": ("y[r] = max[first[r] <= e < first[r + 1]] x[e]", [{"R": r, "E": e} for r, e in SHAPES]),
    "counts of bytes": ("x: u8 y[r] = sum[first[r] <= e < first[r + 1]] x[e]", [{"R": r, "E": e} for r, e in SHAPES]),
    "any": ("y[r] = any[first[r] <= e < first[r + 1]] x[e] > 1", [{"R": r, "E": e} for r, e in SHAPES]),
    "place": ("y[r] = argmax[first[r] <= e < first[r + 1]] x[e]", [{"R": r, "E": e} for r, e in SHAPES]),
    "to its end": ("y[r] = sum[first[r] <= e <= last[r]] x[e]", [{"R": r, "E": e} for r, e in ((3, 5), (9, 100))]),
    "logarithm of a sum": (
        "y[r] = logsumexp[first[r] <= e < first[r + 1]] x[e]",
        [{"R": r, "E": e} for r, e in ((3, 5), (9, 100))],
    ),
    "sparse matrix times matrix": (
        "y[r, k] = sum[first[r] <= e < first[r + 1]] values[e] * x[col[e], k]",
        [{"R": 5, "E": e, "x_size0": 7, "K": k} for k, e in COLUMNS],
    ),
    "mean of neighbours": (
        "y[v, d] = w[d] * (sum[first[v] <= e < first[v + 1]] x[source[e], d]) / max(first[v + 1] - first[v], 1)",
        [{"V": 5, "E": e, "x_size0": 7, "D": d} for d, e in COLUMNS],
    ),
    "maximum of neighbours, bf16": (
        "x: bf16 y: bf16 y[v, d] = max[first[v] <= e < first[v + 1]] x[source[e], d]",
        [{"V": 5, "E": e, "x_size0": 7, "D": d} for d, e in (*COLUMNS, (8, 30))],
    ),
    "several heads": (
        "y[v, h, d] = sum[first[v] <= e < first[v + 1]] a[e, h] * x[source[e], h, d]",
        [{"V": 5, "E": e, "x_size0": 7, "H": 2, "D": d} for d, e in COLUMNS],
    ),
}


@pytest.mark.sampled(12)
@pytest.mark.nvcc
@pytest.mark.parametrize("name", CASES)
def test_every_size_is_right(name: str) -> None:
    text, tried = CASES[name]
    made = built(text)
    for sizes in tried:
        made.run(sizes)
    made.run(tried[-1], alignment=8)


@pytest.mark.sampled(12)
@pytest.mark.nvcc
@pytest.mark.parametrize("lanes", [2, 16, 32, 256])
def test_lanes_share_a_segment(lanes: int) -> None:
    made = built(SPMV, Segments(lanes))
    for rows, count in SHAPES[1:]:
        ran = made.run({"R": rows, "E": count, "x_size": 7})
        assert ran.paths[0].conditions


@pytest.mark.nvcc
@pytest.mark.parametrize("style", ["nan", "inf"])
def test_what_is_not_finite_is_handed_on(style: Style) -> None:
    for text in (SPMV, "y[r] = max[first[r] <= e < first[r + 1]] x[e]"):
        made = built(text)
        made.run({"R": 5, "E": 60, "x_size": 7}, style=style)
