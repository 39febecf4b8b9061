"""What a reader sees of a file's headers and its launch function."""

from __future__ import annotations

import re

from warpwright.formulas.resolve import formula_of
from warpwright.writer.write import file_text, written


def text_of(formula: str) -> str:
    return file_text(written(formula_of(formula), "tried"))


def test_headers_are_those_that_the_text_needs() -> None:
    assert re.findall("<(.*)>", text_of("y[i] = 2 * x[i]").split("\n\n")[0]) == ["climits", "cstdint", "cuda_runtime.h"]
    assert "#include <cmath>" in text_of("y[i] = exp(x[i])")
    assert "#include <initializer_list>" in text_of("y[r] = sum[c] x[r, c]")
    assert "#include <cuda_fp16.h>\n#include <cuda_runtime.h>" in text_of("x: f16\ny[i] = x[i]")


def test_a_product_of_sizes_has_a_name() -> None:
    text = text_of("y[r, c] = x[c, r]")
    assert "const long long elements = C * R;" in text or "const long long elements = R * C;" in text
    assert "long long elements" not in text_of("y[i] = x[i]")


def test_what_fixed_sizes_decide_is_not_tested() -> None:
    shallow = text_of("A: f32[I, 64]\nC[i, j] = sum[k] A[i, k] * B[k, j]")
    assert "part_sums" not in shallow
    assert "part_sums" in text_of("C[i, j] = sum[k] A[i, k] * B[k, j]")
    square = text_of("x: f32[T, 64]\ny[i, j] = sum[k] x[i, k] * x[j, k]")
    assert "(T, T)" not in square


def test_a_limit_that_follows_from_another_is_left_out() -> None:
    text = text_of("y[r] = sum[first[r] <= e < first[r + 1]] values[e]")
    assert "R * 2 <= INT_MAX - 256 && E <= INT_MAX" in text


def test_lines_of_launches_are_broken() -> None:
    text = text_of("y[n, o, h, w] = sum[i, r < 3, s < 3] k[o, i, r, s] * x[n, i, h + r - 1, w + s - 1; zero]")
    assert max(map(len, text.splitlines())) <= 120


def test_few_results_of_fixed_number_have_short_indices() -> None:
    text = text_of("bins: u8 h: i32[256]\nh[bins[i]] = sum[i] 1")
    assert "const int h_0 =" in text
