"""Windows and pairs: each path right in the emulator, at sizes below, at and beyond packs and windows."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from warpwright.emulator.formula_check import compared
from warpwright.emulator.formulas import compiled
from warpwright.formulas.normal import normal
from warpwright.formulas.numpy_agreement import reference_of
from warpwright.formulas.numpy_inputs import Style
from warpwright.formulas.resolve import formula_of
from warpwright.missing import Missing
from warpwright.schedules.model import Schedule
from warpwright.schedules.pairs import Pairs, all_pairs
from warpwright.schedules.windows import Windows, neighbours
from warpwright.writer.code import Path
from warpwright.writer.partition import partition
from warpwright.writer.write import ScheduleError, file_text, written

pytestmark = pytest.mark.sampled(12)

CROSS = "x[i - 1, j; zero] + x[i + 1, j; zero] + x[i, j - 1; zero] + x[i, j + 1; zero] - 4 * x[i, j]"
CONVOLUTION = "y[n, o, h, w] = sum[c, r < 3, s < 3] k[o, c, r, s] * x[n, c, h + r - 1, w + s - 1; zero]"
BODIES = """
ax[i] = sum[j] m[j] * dx[i, j] * w[i, j]
ay[i] = sum[j] m[j] * dy[i, j] * w[i, j]
  where dx[i, j] = x[j] - x[i], dy[i, j] = y[j] - y[i], w[i, j] = rsqrt(dx[i, j] ** 2 + dy[i, j] ** 2 + eps) ** 3"""
PLANE = [{"I": i, "J": j} for i, j in ((0, 5), (1, 1), (2, 3), (7, 36), (9, 33), (17, 132))]
IMAGES = [{"N": 2, "O": 3, "C": 2, "H": h, "W": w} for h, w in ((1, 4), (2, 5), (5, 8), (4, 33), (6, 36))]

CASES: dict[str, tuple[str, Schedule | None, list[dict[str, int]]]] = {
    "cross": (f"y[i, j] = {CROSS}", None, PLANE),
    "cross, one row each": (f"y[i, j] = {CROSS}", Windows(4, 1), PLANE),
    "cross, f64": (f"x: f64\ny: f64\ny[i, j] = {CROSS}", None, PLANE),
    "cross, bf16": (f"x: bf16\ny: bf16\ny[i, j] = {CROSS}", None, [*PLANE, {"I": 5, "J": 72}]),
    "cross, i32": (f"x: i32\ny[i, j] = {CROSS}", None, PLANE),
    "periodic": (f"y[i, j] = {CROSS.replace('zero', 'wrap')}", None, PLANE[1:]),
    "mirrored blur": ("y[i, j] = sum[a < 5, b < 5] g[a] * g[b] * x[i + a - 2, j + b - 2; reflect]", None, PLANE[1:]),
    "bytes": ("x: u8\ny[i, j] = min[a < 3, b < 3] x[i + a - 1, j + b - 1; clamp]", None, PLANE[1:]),
    "i64 beyond the edge": ("x: i64\ny[i] = sum[k < 5] x[i + k - 2; 2] * w[k]", None, [{"I": i} for i in (1, 7, 33)]),
    "a guarded neighbour": ("d[r, i] = x[r, i] - x[r, i - 1] if i > 0 else x[r, i]", None, [{"R": 3, "I": 9}]),
    "inner elements": (
        "x: f32[I + 2, J + 2]\ny: f32[I, J]\ny[i, j] = x[i, j + 1] + x[i + 2, j + 1] - b[i, j] * x[i + 1, j + 2]",
        None,
        [*PLANE, {"I": 3, "J": 34}],
    ),
    "rows with a pitch": (
        "x: f32[I, J](ld, 1)\ny[i, j] = x[i, j - 1; zero] + x[i, j + 1; zero]",
        None,
        [{"I": 3, "J": 7, "ld": 8}, {"I": 3, "J": 7, "ld": 9}, {"I": 3, "J": 8, "ld": 12}],
    ),
    "channels last": (
        "x: f32[N, C, H, W] channels_last\ny: f32[N, C, H, W] channels_last\n"
        "y[n, c, h, w] = sum[r < 3, s < 3] k[r, s] * x[n, c, h + r - 1, w + s - 1; zero]",
        None,
        [{"N": 2, "C": c, "H": 3, "W": 5} for c in (3, 4, 36)],
    ),
    "in space": (
        "y[i, j, k] = a * x[i, j, k] + x[i - 1, j, k; zero] + x[i + 1, j, k; zero] + x[i, j - 1, k; clamp]"
        " + x[i, j, k + 1; zero]",
        None,
        [{"I": i, "J": j, "K": k} for i, j, k in ((1, 1, 1), (5, 3, 8), (6, 9, 13), (3, 0, 4))],
    ),
    "a blur in two steps": (
        "y[i, j] = (sum[b < 5] t[i, j + b - 2; clamp]) / 5 where t[i, j] = (sum[a < 5] x[i + a - 2, j; clamp]) / 5",
        None,
        PLANE[1:],
    ),
    "a variance nearby": ("v[i] = var[k < 9] x[i + k - 4; clamp]", None, [{"I": i} for i in (1, 3, 8, 33, 1030)]),
    "two results": (
        "gx[i, j] = x[i, j + 1; clamp] - x[i, j - 1; clamp]\ngy[i, j] = x[i + 1, j; clamp] - x[i - 1, j; clamp]",
        None,
        PLANE[1:],
    ),
    "pooling": (
        "x: f32[N, 2 * H, 2 * W]\ny[n, h, w] = max[a < 3, b < 3] x[n, 2 * h + a - 1, 2 * w + b - 1; -inf]",
        None,
        [{"N": 2, "H": h, "W": w} for h, w in ((1, 1), (3, 4), (5, 34), (7, 36))],
    ),
    "mean of four, f16": (
        "x: f16\ny: f16\ny[n, h, w] = mean[a < 2, b < 2] x[n, 2 * h + a, 2 * w + b]",
        None,
        [{"N": 2, "H": h, "W": w} for h, w in ((1, 1), (3, 4), (5, 34), (3, 40))],
    ),
    "depthwise": (
        "y[n, c, h, w] = sum[r < 3, s < 3] k[c, r, s] * x[n, c, h + r - 1, w + s - 1; zero]",
        None,
        [{"N": 2, "C": 3, "H": h, "W": w} for h, w in ((1, 1), (2, 5), (5, 8), (4, 36))],
    ),
    "filter": (
        "y[i] = sum[k] h[k] * x[i - k; zero]",
        Windows(8),
        [{"K": k, "I": i} for k, i in ((1, 4), (9, 5), (16, 33), (17, 64), (65, 40), (0, 4))],
    ),
    "filter of what is there": (
        "y[i] = sum[k] h[k] * x[i + k]",
        Windows(4),
        [{"K": k, "I": i} for k, i in ((1, 4), (5, 33), (16, 36), (17, 64))],
    ),
    "largest in a window": (
        "y[r, i] = max[k] (x[r, i + k] + h[k])",
        Windows(4),
        [{"R": 3, "K": k, "I": i} for k, i in ((1, 4), (5, 33), (17, 64))],
    ),
    "convolution": (CONVOLUTION, Windows(4, 4, 4, 4), IMAGES),
    "convolution, two rows of eight": (CONVOLUTION, Windows(8, 2, 2, 4), IMAGES),
    "convolution, f16": (f"x: f16\nk: f16\ny: f16\n{CONVOLUTION}", Windows(8, 2, 2, 4), IMAGES),
    "convolution with steps and bias": (
        "x: f32[N, C, 2 * H, 2 * W]\ny[n, o, h, w] = b[o] + sum[c, r < 3, s < 3] k[o, c, r, s]"
        " * x[n, c, 2 * h + r - 1, 2 * w + s - 1; zero]",
        Windows(4, 2, 2, 4),
        IMAGES,
    ),
    "convolution of any window": (
        "y[n, o, h, w] = relu(b[o] + sum[c, r, s] k[o, c, r, s] * x[n, c, h + 2 * r, w + s])",
        Windows(4, 1, 4, 4),
        [{"R": 2, "S": s, **each} for s, each in zip((1, 2, 3, 5, 4), IMAGES, strict=True)],
    ),
    "bodies": (BODIES, Pairs(4, 1), [{"I": i} for i in (0, 1, 5, 1100)]),
    "bodies, parts": (BODIES, Pairs(2, 8), [{"I": i} for i in (1, 5, 65, 300)]),
    "bodies, f64": (f"x: f64\ny: f64\nm: f64\n{BODIES}", Pairs(2, 4), [{"I": i} for i in (1, 5, 65, 300)]),
    "nearest centre": (
        "label[i] = argmin[c] ((px[i] - cx[c]) ** 2 + (py[i] - cy[c]) ** 2)",
        Pairs(4, 1),
        [{"I": i, "C": c} for i, c in ((1, 1), (7, 300), (1030, 5), (3, 0))],
    ),
    "pairs with themselves left out, in batches": (
        "e[b, i] = sqrt(sum[j] (0 if j == i else (x[b, i] - x[b, j]) ** 2))",
        Pairs(1, 8),
        [{"B": 3, "I": i} for i in (1, 33, 270)],
    ),
}


def paths_of(
    text: str, schedule: Schedule | None, tried: list[dict[str, int]], style: Style = "normal"
) -> list[tuple[Mapping[str, int], Path]]:
    """Runs what is written of a formula at some sizes, and compares it; the paths that were taken."""
    formula = formula_of(text)
    code = written(formula, "tried", schedule)
    ptx = compiled(file_text(code))
    assert not isinstance(ptx, Missing), (ptx, file_text(code))
    paths = []
    for sizes in tried:
        for alignment in (256, 4) if style == "normal" else (256,):
            found = compared(formula, code, ptx, reference_of(formula), sizes, 1, style, alignment)
            assert not isinstance(found, Missing), found
            assert found.ok, (sizes, alignment, style, found.reason)
            paths += [(sizes, path) for path in found.paths]
    return paths


@pytest.mark.sampled(12)
@pytest.mark.nvcc
@pytest.mark.parametrize("name", CASES)
def test_every_size_is_right(name: str) -> None:
    taken = paths_of(*CASES[name])
    kernels = {launch.kernel for _, path in taken for launch in path.launches}
    assert all(kernel.endswith(("_windows", "_pairs")) for kernel in kernels), kernels


@pytest.mark.slow
@pytest.mark.nvcc
@pytest.mark.parametrize("style", ["nan", "inf"])
def test_what_is_not_finite_is_handed_on(style: Style) -> None:
    """Elements that are held beside those that are used do not come into a result."""
    for name in ("cross", "pooling", "filter", "convolution", "nearest centre"):
        text, schedule, tried = CASES[name]
        paths_of(text, schedule, tried[-2:-1], style)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("y[i] = 2 * x[i]", "No element is read for several results"),
        ("y[j, i] = x[i + 1, j] + x[i, j]", "No element is read for several results"),
        ("y[i] = argmax[k < 3] x[i + k]", "Places"),
        ("h[b[i]] += x[i + 1] + x[i]", "computed places"),
        ("s = sum[i] x[i + 1] * x[i]", "one result"),
    ],
)
def test_what_is_no_window_is_left_to_others(text: str, reason: str) -> None:
    formula = normal(formula_of(text))
    (group,) = partition(formula)
    found = neighbours(formula, group.dims, group.stages, None)
    assert isinstance(found, str)
    assert reason in found
    assert not any("windows" in kernel.name for kernel in written(formula_of(text), "tried").kernels)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("y[i] = sum[j] A[i, j] * x[j]", "other elements alone"),
        ("y[i] = sum[j <= i] x[j] * x[i]", "one whole dimension"),
        ("y: f32[1] y[i] = sum[j] x[j]", "Nothing is read"),
        ("y[i] = x[i]", "Nothing is reduced"),
    ],
)
def test_what_is_no_pair_is_left_to_others(text: str, reason: str) -> None:
    formula = normal(formula_of(text))
    (group,) = partition(formula)
    found = all_pairs(formula, group.dims, group.stages)
    assert isinstance(found, str)
    assert reason in found


def test_a_schedule_that_does_not_fit_is_refused_with_a_reason() -> None:
    for text, schedule, reason in (
        ("y[i] = x[i + 1] - x[i]", Windows(3), "whole packs"),
        ("y[i] = sum[j] (x[i] - x[j]) ** 2", Pairs(4, 3), "shared out"),
        ("y[i] = argmin[j] (x[i] - p[j]) ** 2", Pairs(4, 8), "Places"),
        ("y[i] = sum[j] (x[i] - x[j]) ** 2", Pairs(64, 8), "shared memory"),
    ):
        with pytest.raises(ScheduleError, match=reason):
            written(formula_of(text), "tried", schedule)


def test_few_results_are_left_to_blocks_that_share_them() -> None:
    """Of a long filter over few places each result is a sum that blocks share; a workspace is asked for by them
    alone."""
    formula = formula_of("y[i] = sum[k] h[k] * x[i - k; zero]")
    code = written(formula, "tried")
    (step,) = code.steps
    assert any("partial" in path.launches[0].kernel for path in step.paths)
    (held,) = code.temporaries
    assert "<" in str(held.extents[0])
