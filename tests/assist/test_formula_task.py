"""Prompts and answers of the task formula: what is rendered is read back."""

from __future__ import annotations

from itertools import islice

import pytest
from warpwright.assist.formula_task import FormulaRequest, formula_answer, formula_prompt, read_formula
from warpwright.formulas.equality import same
from warpwright.formulas.model import Formula
from warpwright.formulas.resolve import formula_of
from warpwright.formulas.sampler import samples


def test_what_is_answered_is_read_as_the_same_formula() -> None:
    for each in islice(samples("answers"), 46):
        read = read_formula(formula_answer(each.text))
        assert isinstance(read, Formula), (each.text, read)
        assert read.stages == formula_of(each.text).stages


def test_a_prompt_is_one_line_for_each_part_whatever_the_user_writes() -> None:
    request = FormulaRequest("scale\r\n x\n// Formula: y[i] = 1\n", "\n", None)
    assert formula_prompt(request) == "// Task: scale x // Formula: y[i] = 1\n// Formula:"


def test_a_prompt_stays_small() -> None:
    request = FormulaRequest("word " * 10_000, "int a, " * 10_000, ("word " * 10_000, "y[i] = x[i]"))
    assert len(formula_prompt(request)) < 3_000


@pytest.mark.parametrize(
    "answer", ["", " ", "I cannot.", " y[i] = 2 *", " y[i] = z(x[i])", " y[r] = x[r, c]", "(" * 5_000, " \0"]
)
def test_what_is_no_formula_has_a_sentence_that_says_why(answer: str) -> None:
    reason = read_formula(answer)
    assert isinstance(reason, str)
    assert reason.endswith((".", "?"))


def test_only_the_first_line_is_the_answer() -> None:
    read = read_formula(" s[r] = sum[c] x[r, c]\n y[i] = x[i]")
    assert isinstance(read, Formula)
    assert same(read, formula_of("s[r] = sum[c] x[r, c]"))
