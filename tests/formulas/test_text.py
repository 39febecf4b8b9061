"""Parsing and printing are inverse."""

from __future__ import annotations

import pytest
from hypothesis import given
from support.examples import examples
from support.formula_trees import EXPRESSIONS, FORMULAS
from warpwright.formulas.parser import parse
from warpwright.formulas.printer import printed, printed_in_one_line, shown
from warpwright.formulas.tree import Call, Expr, Load, Name, Num, Range, Reduce, Written

# hypothesis would show how a formula was drawn, at great length.
pytestmark = pytest.mark.filterwarnings("ignore::hypothesis.errors.HypothesisWarning")


def read(text: str) -> Expr:
    return parse(f"y = {text}").equations[0].value


@examples(250)
@given(FORMULAS)
def test_what_is_printed_is_read_as_the_same(formula: Written) -> None:
    assert parse(printed(formula)) == formula


@examples(250)
@given(FORMULAS)
def test_what_is_printed_in_one_line_is_read_as_the_same(formula: Written) -> None:
    text = printed_in_one_line(formula)
    assert parse(text) == formula
    assert "\n" not in text


@examples(800)
@given(EXPRESSIONS)
def test_an_expression_is_read_as_it_was(node: Expr) -> None:
    assert read(shown(node)) == node


@examples(100)
@given(FORMULAS)
def test_printing_again_changes_nothing(formula: Written) -> None:
    text = printed(formula)
    assert printed(parse(text)) == text


a, b, c = Name("a"), Name("b"), Name("c")


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("a - b - c", Call("-", (Call("-", (a, b)), c))),
        ("a ** b ** c", Call("**", (a, Call("**", (b, c))))),
        ("-2 ** 2", Call("neg", (Call("**", (Num(2), Num(2))),))),
        ("(-2) ** 2", Call("**", (Num(-2), Num(2)))),
        ("2 ** -1", Call("**", (Num(2), Num(-1)))),
        ("-(2)", Call("neg", (Num(2),))),
        ("-0.0", Num(-0.0)),
        ("a & b == c", Call("==", (Call("&", (a, b)), c))),
        ("a << b + c", Call("<<", (a, Call("+", (b, c))))),
        ("not a == b and c", Call("and", (Call("not", (Call("==", (a, b)),)), c))),
        ("a if b else b if c else a", Call("select", (b, a, Call("select", (c, b, a))))),
        ("sum[k] a * b + c", Call("+", (Reduce("sum", (Range("k"),), Call("*", (a, b))), c))),
        ("a * sum[k] b * c", Call("*", (a, Reduce("sum", (Range("k"),), Call("*", (b, c)))))),
        ("sum:f64[k < 3] a", Reduce("sum", (Range("k", None, Num(3)),), a, "f64")),
        ("sum[j >= a] b", Reduce("sum", (Range("j", a),), b)),
        ("sum[j > a] b", Reduce("sum", (Range("j", Call("+", (a, Num(1)))),), b)),
        ("sum[0 < j <= a] b", Reduce("sum", (Range("j", Num(1), a, True),), b)),
        ("sum[a <= j < b] c", Reduce("sum", (Range("j", a, b),), c)),
        ("max(a, b)", Call("max", (a, b))),
        ("max[c] a", Reduce("max", (Range("c"),), a)),
        ("half(a)", Call("f16", (a,))),
        ("x[a - 1, b; reflect]", Load("x", (Call("-", (a, Num(1))), b), "reflect")),
        ("x[a; -inf]", Load("x", (a,), Num(-float("inf")))),
        ("0xFF", Num(255)),
    ],
)
def test_operators_bind_as_in_python(text: str, tree: Expr) -> None:
    assert read(text) == tree


def test_white_space_and_comments_mean_nothing() -> None:
    written = parse("# rows\ny[r,c]=x[r,c]-m[r] where\n\tm[r]=max[c]x[r,c] # stable")
    assert written == parse("y[r, c] = x[r, c] - m[r] where m[r] = max[c] x[r, c]")


def test_an_array_may_have_the_name_of_a_layout() -> None:
    written = parse("x: f32[R] column\nrow[i] = x[i]\nz: f32[R]\ncolumn += 1")
    assert [each.layout for each in written.declarations] == ["column", "row"]
    assert [each.name for each in written.equations] == ["row", "column"]
