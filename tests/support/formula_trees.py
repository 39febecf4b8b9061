"""Formulas as hypothesis draws them: every kind of node at every place, as the parser gives them."""

from __future__ import annotations

import math

from hypothesis import strategies as st
from warpwright.formulas.functions import ARITHMETIC, BITS, COMPARISONS, FUNCTIONS, KEYWORDS, LOGIC, REDUCTIONS
from warpwright.formulas.parser import LAYOUTS
from warpwright.formulas.tree import Call, Declaration, Equation, Expr, Load, Name, Num, Range, Reduce, Written
from warpwright.formulas.types import TYPES

RESERVED = {*KEYWORDS, *REDUCTIONS}
NAMES = st.one_of(
    st.sampled_from(["x", "i", "N", "exp", "row", "column", "zero", "clamp", "f32", "p.x", "_a1"]),
    st.from_regex(r"[A-Za-z_][A-Za-z_0-9]{0,4}", fullmatch=True),
).filter(lambda name: name not in RESERVED)
READ = st.one_of(NAMES, NAMES.map(lambda name: f"{name}'"))
PLAIN = NAMES.filter(lambda name: "." not in name)
DOUBLE_SIDED = [*COMPARISONS, *ARITHMETIC, *BITS, "and", "or"]
WHOLE = st.integers(-(2**64) + 1, 2**64 - 1)
NUMBERS = st.one_of(
    WHOLE, st.floats(allow_nan=False), st.booleans(), st.sampled_from([math.pi, -math.pi, math.inf, math.nan, -0.0, 0])
).map(Num)


def _calls(inner: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
    def function(name: str) -> st.SearchStrategy[Expr]:
        known = FUNCTIONS[name]
        return st.lists(inner, min_size=known.least, max_size=known.most).map(lambda args: Call(name, tuple(args)))

    return st.one_of(
        st.sampled_from(sorted(FUNCTIONS)).flatmap(function),
        st.builds(lambda name, arg: Call(name, (arg,)), st.sampled_from([*TYPES, "neg", "~", "not"]), inner),
        st.builds(lambda name, *args: Call(name, args), st.sampled_from(DOUBLE_SIDED), inner, inner),
        st.builds(lambda *args: Call("select", args), inner, inner, inner),
    )


def ranges(inner: st.SearchStrategy[Expr]) -> st.SearchStrategy[Range]:
    return st.one_of(
        st.builds(Range, NAMES),
        st.builds(Range, NAMES, st.none(), inner, st.booleans()),
        st.builds(Range, NAMES, inner, inner, st.booleans()),
        st.builds(Range, NAMES, inner),
    )


def _loads(inner: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
    outside = st.one_of(st.none(), st.sampled_from(["clamp", "wrap", "reflect"]), NUMBERS)
    return st.builds(Load, READ, st.lists(inner, min_size=1, max_size=3).map(tuple), outside)


def _reductions(inner: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
    over = st.lists(ranges(inner), min_size=1, max_size=2, unique_by=lambda each: each.name).map(tuple)
    return st.builds(Reduce, st.sampled_from(REDUCTIONS), over, inner, st.sampled_from(["", *TYPES]))


EXPRESSIONS: st.SearchStrategy[Expr] = st.recursive(
    st.one_of(NUMBERS, st.builds(Name, READ)),
    lambda inner: st.one_of(_calls(inner), _loads(inner), _reductions(inner)),
    max_leaves=12,
)


@st.composite
def declarations(draw: st.DrawFn) -> Declaration:
    name, kind = draw(NAMES), draw(st.sampled_from(sorted(TYPES)))
    if draw(st.booleans()):
        return Declaration(name, kind)
    extents = tuple(draw(st.lists(EXPRESSIONS, max_size=3)))
    strides = tuple(draw(EXPRESSIONS) for _ in extents) if draw(st.booleans()) else ()
    layout = "row" if strides else draw(st.sampled_from(LAYOUTS))
    fields = tuple(draw(st.lists(PLAIN, max_size=3, unique=True)))
    return Declaration(name, kind, extents, strides, layout, fields)


def equations(temporary: bool) -> st.SearchStrategy[Equation]:
    index = st.lists(EXPRESSIONS, max_size=3).map(tuple)
    combine = st.sampled_from(["", "+", "*", "max", "min"])
    return st.builds(Equation, NAMES, index, EXPRESSIONS, combine, st.booleans(), st.just(temporary))


FORMULAS = st.builds(
    lambda outputs, stages, declared: Written((*outputs, *stages), tuple(declared)),
    st.lists(equations(False), min_size=1, max_size=3),
    st.lists(equations(True), max_size=2),
    st.lists(declarations(), max_size=2),
)

assert {*LOGIC} <= {*DOUBLE_SIDED, "not"}
