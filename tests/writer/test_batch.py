"""Hundreds of kernels in one compilation, each compared with its formula."""

from __future__ import annotations

from dataclasses import replace

import pytest
from warpwright.emulator.formula_batch import Outcome, check_many
from warpwright.formulas.model import Formula
from warpwright.formulas.resolve import formula_of
from warpwright.writer.code import Code
from warpwright.writer.write import instances_text, written


def made(name: str, text: str) -> tuple[str, Formula, Code]:
    formula = formula_of(text)
    return name, formula, written(formula, name)


def changed(one: tuple[str, Formula, Code], old: str, new: str) -> tuple[str, Formula, Code]:
    """With another text in its kernels."""
    name, formula, code = one
    kernels = tuple(replace(each, text=each.text.replace(old, new)) for each in code.kernels)
    assert kernels != code.kernels
    return name, formula, replace(code, kernels=kernels)


def outcomes(*given: tuple[str, Formula, Code]) -> dict[str, Outcome]:
    return {each.name: each for each in check_many(given)}


@pytest.mark.nvcc
def test_each_formula_of_a_batch_has_an_outcome_of_its_own() -> None:
    found = outcomes(
        made("right", "y[r, c] = x[r, c] / sum[c] x[r, c]"),
        changed(made("wrong", "y[i] = 2 * x[i]"), "2.0f", "3.0f"),
        changed(made("broken", "y[i] = exp(x[i])"), "expf", "no_function"),
        made("also_right", "y[i] = tanh(x[i])"),
    )
    assert {name: each.status for name, each in found.items()} == {
        "right": "correct", "wrong": "wrong", "broken": "does-not-compile", "also_right": "correct",
    }  # fmt: skip
    assert found["right"].runs == 6
    assert 1 < found["right"].taken < found["right"].paths


@pytest.mark.nvcc
@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("y[i] = ", "y[i + 1] = ", "past the end"),
        ("y[i] = ", "if (i != 5) y[i] = ", "y[5] is"),
    ],
    ids=["beyond its array", "an element left out"],
)
def test_a_kernel_that_writes_elsewhere_or_not_at_all_is_wrong(old: str, new: str, reason: str) -> None:
    formula = formula_of("y[i] = x[2 * i]")
    found = outcomes(changed(("one", formula, written(formula, "one")), old, new))["one"]
    assert found.status == "wrong"
    assert reason in found.reason


@pytest.mark.nvcc
@pytest.mark.parametrize(
    "text",
    [
        "x: i8\ny[r] = max[c] (x[r, c] ^ 1)",
        "x: i8\ny[r] = min[c <= r] x[r, c]",
        "x: f16\ny[r, n] = mean[c >= n + 1] x[r, c]",
        "y[r] = var[c >= 1] x[r, c]",
    ],
)
def test_a_reduction_over_nothing_gives_what_changes_nothing(text: str) -> None:
    found = list(check_many([made("one", text)], shapes=30))
    assert [each.status for each in found] == ["correct"], found


def test_only_the_instances_that_are_launched_are_compiled() -> None:
    _, _, code = made("f", "y[i] = 2 * x[i]")
    paths = [path for step in code.steps for path in step.paths]
    text = instances_text([code], paths[-1].launches)
    launched = paths[-1].launches[0]
    assert f"reinterpret_cast<const void*>({launched.kernel}" in text
    assert all(each.name == launched.kernel or f" {each.name}(" not in text for each in code.kernels)


@pytest.mark.nvcc
def test_new_values_of_rows_are_stored_after_all_lanes_have_read_the_old_ones() -> None:
    found = outcomes(
        made("average", "r'[i] = b * r[i] + (mean[j] g[i, j] ** 2)"),
        made("scaled", "r'[i] = b * r[i] + (mean[j] g[i, j] * r[i])  u[i, j] = g[i, j] * rsqrt(r'[i]) * r[i]"),
    )
    assert [each.status for each in found.values()] == ["correct", "correct"], found
