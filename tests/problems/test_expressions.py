from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from warpwright.problems.expressions import (
    Binary,
    Conditional,
    Expression,
    ExpressionError,
    Name,
    Number,
    Unary,
    evaluate,
    parse,
    show,
    substitute,
)

LEAVES = st.one_of(st.integers(0, 1000).map(Number), st.sampled_from(["n", "m", "gridDim.x"]).map(Name))
TREES: st.SearchStrategy[Expression] = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.builds(Binary, st.sampled_from(["+", "-", "*", "/", "%", "<", ">=", "==", "&&", "||"]), inner, inner),
        st.builds(Unary, st.sampled_from(["-", "!"]), inner),
        st.builds(Conditional, inner, inner, inner),
    ),
    max_leaves=12,
)
VALUES = {"n": 37, "m": 5, "gridDim.x": 9}


def value(tree: Expression) -> object:
    try:
        return evaluate(tree, VALUES)
    except ExpressionError:
        return "error"


@given(TREES)
def test_what_is_shown_reads_back_as_the_same_expression(tree: Expression) -> None:
    assert parse(show(tree)) == tree


@given(TREES)
def test_substitution_keeps_the_value(tree: Expression) -> None:
    if value(tree) != "error":
        assert value(substitute(tree, {"n": Number(37)})) == value(tree)


@given(st.text(max_size=40))
def test_any_text_gives_an_expression_or_one_sentence(text: str) -> None:
    try:
        evaluate(parse(text), {})
    except ExpressionError as error:
        assert str(error)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("7 / 2", 3), ("-7 / 2", -3), ("7 % -2", 1), ("1 << 4 >> 2", 4), ("2 + 3 * 4", 14), ("(2 + 3) * 4", 20),
     ("!0 && 2", 1), ("1 ? 2 : 3 ? 4 : 5", 2), ("max(3, min(9, 5))", 5), ("0x10 + 010", 24), ("3 / 2.0", 1.5)],
)  # fmt: skip
def test_values_are_cs(text: str, expected: float) -> None:
    assert evaluate(text, {}) == expected


@pytest.mark.parametrize(
    "text",
    ["", "n", "1 / 0", "1 % 0", "1 << 99", "f(1)", "(1", "1 2", "1.5 % 2", "a b", "__import__('os')", "9**9", "1e999",
     "(" * 400 + "1" + ")" * 400, "9999999999 * 9999999999"],
)  # fmt: skip
def test_what_cannot_be_evaluated_is_one_sentence(text: str) -> None:
    with pytest.raises(ExpressionError):
        evaluate(text, {})
