"""Formulas beside texts of kernels: the same requests, and when a text is right."""

from __future__ import annotations

import pytest
from warpwright_upskill.examples import Example, Metrics, Provenance
from warpwright_upskill.texts import both_ways, right_texts

REQUEST = Example(
    "formula", "sums of rows", Provenance("requests", "sums"), Metrics("correct", "test"),
    given="const float *x, float *y", formula="y[r] = sum[c] x[r, c]", cuda_kernel="written",
)  # fmt: skip


def test_a_request_is_answered_either_way() -> None:
    formula, text = both_ways([REQUEST])
    assert (formula.task, text.task) == ("formula", "kernel")
    assert text.problem == "sums of rows const float *x, float *y"
    assert text.cuda_kernel.count("__global__") == 1


@pytest.mark.nvcc
def test_a_text_is_right_that_computes_the_formula() -> None:
    _, example = both_ways([REQUEST])
    text = example.cuda_kernel
    assert "+=" in text
    wrong, broken, empty = text.replace("+=", "-="), text.replace(";", ""), "// I do not know."
    assert right_texts([(example, each) for each in (text, wrong, broken, empty)]) == [True, False, False, False]
