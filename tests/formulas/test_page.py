"""docs/formulas.md: each of its formulas is one, and it names all that the language has."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from warpwright.formulas.functions import COMPARISONS, FUNCTIONS, KEYWORDS, REDUCTIONS
from warpwright.formulas.parser import LEVELS, parse
from warpwright.formulas.printer import printed, shown
from warpwright.formulas.resolve import formula_of
from warpwright.formulas.types import TYPES

PAGE = (Path(__file__).parents[2] / "docs" / "formulas.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```formula\n(.*?)```", PAGE, re.DOTALL)


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: block.split("=")[0].split("\n")[-1].strip())
def test_a_block_is_a_formula(block: str) -> None:
    formula = formula_of(block)
    assert formula.outputs
    assert parse(printed(parse(block))) == parse(block)


def test_there_are_worked_examples() -> None:
    assert len(BLOCKS) >= 18


def test_every_word_of_the_language_is_on_the_page() -> None:
    text = PAGE.replace("&#124;", "|")
    words = set(re.findall(r"\w+", text))
    assert {*FUNCTIONS, *REDUCTIONS, *TYPES, *KEYWORDS} <= words
    assert all(sign in text for sign in (*LEVELS, *COMPARISONS))


@pytest.mark.parametrize(
    ("text", "outputs"),
    [
        ("x: bf16  y[i] = 2 * x[i]", {"y": "bf16"}),
        ("x: bf16  y[i] = alpha * x[i]", {"y": "bf16"}),
        ("x: bf16  alpha: f32  y[i] = alpha * x[i]", {"y": "f32"}),
        ("x: f16  w: bf16  y[i] = x[i] * w[i]", {"y": "f32"}),
        ("x: u8  w: i8  y[i] = x[i] + w[i]", {"y": "i16"}),
        ("x: i32  y[i] = x[i] / 2", {"y": "f32"}),
        ("x: i32  y[i] = x[i] // 2", {"y": "i32"}),
        ("x: i32  y[i] = x[i] + i", {"y": "i64"}),
        ("x: i8  y[r] = sum[c] x[r, c]", {"y": "i64"}),
        ("x: i8  y[r] = sum:i32[c] x[r, c]", {"y": "i32"}),
        ("y[r] = sum:f64[c] x[r, c]", {"y": "f32"}),
        ("y[i] = x[i] < 2", {"y": "bool"}),
        ("z: c64  y[i] = abs(z[i])", {"y": "f32"}),
        ("a[i] = b[i] + 1, b[i] = x[i]", {"a": "f32", "b": "f32"}),
    ],
)
def test_types_follow_as_the_page_says(text: str, outputs: dict[str, str]) -> None:
    assert {each.name: each.type for each in formula_of(text).outputs} == outputs
    assert [each.name for each in formula_of(text).outputs] == list(outputs)


@pytest.mark.parametrize(
    ("text", "extents"),
    [
        ("y[r, c] = x[c, r]", {"x": "C, R", "y": "R, C"}),
        ("x: f32[R, 768]  y[r] = sum[c] x[r, c]", {"x": "R, 768", "y": "R"}),
        ("y[i] = sum[k < 3] w[k] * x[i + k]", {"w": "3", "x": "I + 2", "y": "I"}),
        ("y[i] = sum[k] w[k] * x[i + k]", {"w": "K", "x": "I + K - 1", "y": "I"}),
        ("y[i] = x[i - 1; zero]", {"x": "I", "y": "I"}),
        ("y[t] = table[ids[t]]", {"table": "table_size", "ids": "T", "y": "T"}),
        ("y[r] = sum[first[r] <= e < first[r + 1]] a[e]", {"first": "R + 1", "a": "E", "y": "R"}),
        ("y[i] = sum[j >= i] x[j]", {"x": "I", "y": "I"}),
        ("y[i] = sum[i - 2 <= j <= i + 2] x[j]", {"x": "J", "y": "I"}),
        ("x: f32[A]  w: f32[B]  y: f32[A + B]  y[i] = x[i] if i < A else w[i - A]", {"x": "A", "w": "B", "y": "A + B"}),
        ("x: f32[N]  y[n] = x[N - 1 - n]", {"x": "N", "y": "N"}),
        ("x: f32[2 * N]  y: f32[N]  y[i] = x[i] + x[i + N]", {"x": "2 * N", "y": "N"}),
    ],
)
def test_extents_follow_as_the_page_says(text: str, extents: dict[str, str]) -> None:
    found = {name: ", ".join(map(shown, each.extents)) for name, each in formula_of(text).tensors.items()}
    assert found == extents
