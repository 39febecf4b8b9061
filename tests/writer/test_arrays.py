"""Arrays that one kernel reads in several ways: twice, as fields of a struct, by strides."""

from __future__ import annotations

import pytest
from warpwright.emulator.formula_batch import check_many
from warpwright.formulas.resolve import formula_of
from warpwright.formulas.shapes import to_try
from warpwright.writer.code import taken
from warpwright.writer.coverage import sizes_of
from warpwright.writer.write import plain, written

COMPUTED = {
    "a product with its own transpose": "a: f16\ny[i, j] = sum[k] a[i, k] * a[j, k]",
    "a square": "a: bf16[I, I] y: bf16\ny[i, j] = sum[k] a[i, k] * a[k, j]",
    "a batch with its first": "a: f16[B, I, K]\ny[b, i, j] = sum[k] a[b, i, k] * a[0, j, k]",
    "a residual of an operand": "x: f16[I, I] w: f16\ny[i, j] = x[i, j] + sum[k] x[i, k] * w[k, j]",
    "a gate of an operand": "x: f16 w: f16[K, K]\ny[i, j] = w[i % K, j] * relu(sum[k] x[i, k] * w[k, j])",
    "a product of two fields": "a: f32[I, K]{u, v}\ny[i, j] = sum[k] a.u[i, k] * a.v[j, k]",
    "a product of two fields of f16": "a: f16[I, K]{u, v}\ny[i, j] = sum[k] a.u[i, k] * a.v[j, k]",
    "a scan of a struct p": "p: f32[N]{x, y}\nr[i] = sum[j <= i] p.x[j] * p.y[j]",
    "a struct k": "k: f32[N]{x, y}\nr = sum[j] k.x[j] * k.y[j]",
    "four strides": "x: f32[A, B, C, D](s0, s1, s2, s3)\ny[a, d] = sum[b, c] x[a, b, c, d]",
    "strides of a result": "y: f32[A, B, C](s0, s1, s2)\ny[a, b, c] = x[b, a] * w[c]",
    "one row for all": "x: f32[N, M](0, 1)\ny[i, j] = x[i, j] * w[i]",
    "complement of truth values": "x: bool\ny[i] = ~x[i]",
    "a number of f16": "alpha: f16\ny[i] = alpha * x[i]",
    "a number of f8": "alpha: f8e4m3\ny[i] = alpha * x[i]",
    "whole numbers by 0": "x: i32 w: i32\ny[i] = x[i] // (w[i] & 1) + x[i] % (w[i] & 1)",
    "numbers without a sign by 0": "x: u8 w: u8\ny[i] = x[i] // (w[i] & 1) + x[i] % (w[i] & 1)",
    "a mean between ends in any order": "y[r] = mean[lo[r] <= c < hi[r]] x[r, c]",
    "the largest of i64 in i32": "x: i64 y: i32\ny[r] = max[c] (x[r, c] << 31)",
    "the last place in i32": "y: i32\ny[r] = max[c] (c if x[r, c] > t else -1)",
    "the smallest so far in u32": "x: i32 y: u32\ny[i] = min[j <= i] x[j]",
    "a variance up to an end from memory": "y[r] = var[r <= c < hi[r]] x[r, c]",
}


@pytest.mark.nvcc
def test_what_reads_arrays_in_several_ways_computes_its_formula() -> None:
    made = []
    for number, text in enumerate(COMPUTED.values()):
        formula = formula_of(text)
        made += [(f"f{number}{each.__name__}", formula, each(formula, f"f{number}_{each.__name__}"))
                 for each in (plain, written)]  # fmt: skip
    found = [each for each in check_many(made, shapes=4) if each.status != "correct"]
    assert not found, found


@pytest.mark.parametrize(
    "text",
    [
        "p: f32[N]{x, y, z}\nr[i] = p.x[i] + p.y[i - 1; zero]",
        "p: f32[N]{x, y, z}\nr[i] = sum[j] rsqrt((p.x[i] - p.x[j]) ** 2 + 1)",
        "p: f32[N]{x, y, z}\nr = sum[j] p.x[j] * p.y[j]",
        "p: f32[N]{x, y, z}\nr[i] = sum[j <= i] p.x[j] * p.y[j]",
        "p: f32[N]{x, y, z} h: f32[64]\nh[b[i]] = sum[i] p.x[i]",
        "p: f32[N]{x, y, z}\nr[i] = max[k < 3] p.x[i + k - 1; clamp]",
    ],
)
def test_a_struct_of_more_than_32_bits_of_elements_has_long_indices(text: str) -> None:
    formula = formula_of(text)
    code = written(formula, "f")
    sizes = sizes_of(code, formula, {**dict.fromkeys(formula.sizes, 64), "N": 2**30})
    launches = [launch for step in code.steps for path in [taken(step, sizes, {})] if path for launch in path.launches]
    narrow = [each for each in launches if each.index == "int" and "p" in code.kernel(each.kernel).parameters]
    assert not narrow


def test_sizes_leave_room_between_strides() -> None:
    text = "y: f32[A, B, C](s0, s1, s2)\ny[a, b, c] = x[a] * w[b] * v[c]"
    for shape in to_try(formula_of(text)):
        each = shape.sizes
        if min(each["A"], each["B"], each["C"]):
            assert each["s2"] >= 1
            assert each["s1"] > (each["C"] - 1) * each["s2"]
            assert each["s0"] > (each["B"] - 1) * each["s1"] + (each["C"] - 1) * each["s2"]
