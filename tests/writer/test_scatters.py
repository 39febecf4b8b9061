"""Scatters with combine: gathered in shared memory first, and by atomic operations in memory, in the emulator."""

from __future__ import annotations

import pytest
from support.built import built
from warpwright.formulas.numpy_inputs import Style

pytestmark = pytest.mark.sampled(8)

FEW = "h: i32[H] h[b[i]] = sum[i] 1"
CASES: dict[str, tuple[str, list[dict[str, int]]]] = {
    "bytes": ("h: i32[256] bins: u8 h[bins[i]] = sum[i] 1", [{"I": i} for i in (0, 1, 300, 16384, 20003)]),
    "few bins": (FEW, [{"H": h, "I": i} for h, i in ((1, 0), (1, 64), (7, 4097), (33, 9001), (400, 25600))]),
    "bins that are not cleared": ("h: i32 h[b[i]] += 1", [{"h_size": h, "I": 2001} for h in (1, 9, 31)]),
    "counts of 64 bits": ("h[b[i]] = sum[i] 1", [{"h_size": h, "I": 2001} for h in (1, 9, 31)]),
    "weights": ("h[b[i]] += w[i]", [{"h_size": h, "I": i} for h, i in ((5, 3), (5, 700), (9, 2002))]),
    "weights of f64": ("w: f64 h[b[i]] += w[i]", [{"h_size": 9, "I": 2002}]),
    "weights of f16": ("w: f16 h: f16 h[b[i]] += w[i]", [{"h_size": 9, "I": 2002}]),
    "weights of bf16": ("w: bf16 h: bf16 h[b[i]] += w[i]", [{"h_size": 9, "I": 2002}]),
    "weights of i64": ("w: i64 h: i64 h[b[i]] += w[i]", [{"h_size": 9, "I": 2002}]),
    "products": ("h[b[i]] *= w[i]", [{"h_size": 9, "I": 700}]),
    "a maximum": ("h[b[i]] max= w[i]", [{"h_size": 9, "I": i} for i in (5, 2002)]),
    "a fresh minimum": ("h[b[i]] = min[i] w[i]", [{"h_size": 9, "I": i} for i in (0, 5, 2002)]),
    "a minimum of whole numbers": ("w: i64 h: i64 h[b[i]] = min[i] w[i]", [{"h_size": 9, "I": i} for i in (5, 2002)]),
    "pixels": (
        "image: u8[H, W] h: i32[4, 256] h[w % 4, image[h2, w]] = sum[h2, w] 1",
        [{"H": h, "W": w} for h, w in ((3, 5), (130, 508), (127, 517))],
    ),
    "a row for each index": (
        "y[ids[t], d] += a * x[t, d]",
        [{"T": t, "D": d, "y_size0": 3} for t, d in ((5, 1), (400, 2), (300, 4), (70, 8), (80, 30), (300, 33))],
    ),
    "a row of packs for each index": (
        "y[ids[t], d] += a * x[t, d] * w[d]",
        [{"T": t, "D": d, "y_size0": 30} for t, d in ((5, 1), (20, 4), (3, 6), (40, 132), (0, 4))],
    ),
    "a row of packs for each index, f16": (
        "x: f16 y: f16 y[ids[t], d] += x[t, d]",
        [{"T": t, "D": d, "y_size0": 30} for t, d in ((5, 1), (20, 4), (3, 8), (20, 136))],
    ),
    "a row of packs for each index, bf16": (
        "x: bf16 y: bf16 y[ids[t], d] += x[t, d]",
        [{"T": t, "D": d, "y_size0": 30} for t, d in ((5, 1), (3, 8), (20, 136))],
    ),
    "sums of segments": (
        "y[segment[b, i], h, d] = sum[b, i] x[b, i, h, d]",
        [{"B": 2, "I": 9, "H": 3, "D": d, "y_size0": 30} for d in (1, 4, 6, 12)],
    ),
    "softmax of groups": (
        "k: i32 m: f32[G] s: f32[G] y[e] = exp(x[e] - m[k[e]]) / s[k[e]] where m[k[e]] = max[e] x[e], "
        "s[k[e]] = sum[e] exp(x[e] - m[k[e]])",
        [{"G": 3, "E": e} for e in (0, 5, 2002)],
    ),
    "differences from the means of groups": (
        "k: i32 n: f32[G] y[i, d] = x[i, d] - t[k[i], d] / n[k[i]] "
        "where t[k[i], d] = sum[i, d] x[i, d], n[k[i]] = sum[i] 1",
        [{"I": i, "D": d, "G": 4, "t_size0": 4} for i, d in ((9, 3), (70, 4))],
    ),
    "a histogram equalised": (
        "b: u8 h: i32[256] y: u8 y[i] = 255 * c[b[i]] / I where c[v] = sum[u <= v] h[u], h[b[i]] = sum[i] 1",
        [{"I": i} for i in (3, 2002)],
    ),
    "sums of floats in bins of their value": (
        "h: i32[16] h[clamp(i32(floor((x[i] - lo) * scale)), 0, 15)] = sum[i] 1",
        [{"I": i} for i in (5, 1030)],
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
        made.run(sizes, alignment=8)


@pytest.mark.sampled(16)
@pytest.mark.nvcc
@pytest.mark.parametrize("style", ["nan", "inf", "zeros", "ties"])
def test_what_is_not_finite_is_handed_on(style: Style) -> None:
    for text in ("h[b[i]] max= w[i]", "h[b[i]] = min[i] w[i]", "h[b[i]] += w[i]"):
        made = built(text)
        for count in (9, 2002):
            made.run({"h_size": 5, "I": count}, style=style)
