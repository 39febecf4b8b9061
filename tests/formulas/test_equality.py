"""Formulas that are called the same compute the same; those that differ by their spelling alone are called so."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import islice

import numpy as np
import pytest
from formula_catalogue import catalogue
from warpwright.formulas.equality import same
from warpwright.formulas.lexer import FormulaError
from warpwright.formulas.model import Formula
from warpwright.formulas.normal import normal
from warpwright.formulas.numpy_inputs import drawn
from warpwright.formulas.numpy_reference import evaluate
from warpwright.formulas.parser import parse
from warpwright.formulas.printer import declared as declared_as
from warpwright.formulas.printer import printed
from warpwright.formulas.resolve import formula_of
from warpwright.formulas.sampler import FAMILIES, samples
from warpwright.formulas.tree import Call, Equation, Expr, Load, Name, Num, Range, Reduce, Written, rebuilt, walk

TEXTS = [each.text for each in catalogue()] + [each.text for each in islice(samples("equality"), 4 * len(FAMILIES))]
FEW = (3, 5, 4, 2, 3, 2, 5, 3, 4)


def with_values(written: Written, change: Callable[[Expr], Expr]) -> Written:
    """The formula with a change of each node of its equations."""

    def of(each: Equation) -> Equation:
        index = tuple(rebuilt(index, change) for index in each.index)
        return replace(each, index=index, value=rebuilt(each.value, change))

    return replace(written, equations=tuple(map(of, written.equations)))


def renamed(text: str) -> str:
    """With other names for dimensions, for the sizes that are called after them, and for stages."""
    written, formula = parse(text), formula_of(text)
    taken = {*formula.tensors, *formula.scalars, *formula.sizes}
    declared = " ".join(declared_as(each) for each in written.declarations)
    dims = [dim for dim in formula.dims if dim not in taken and dim.upper() not in declared]
    names = {dim: f"d{n}" for n, dim in enumerate(dims)}
    names |= {dim.upper(): names[dim].upper() for dim in dims if dim.upper() not in formula.tensors}
    stages = {each.name: f"stage{n}" for n, each in enumerate(written.equations) if each.temporary}
    names |= stages

    def change(node: Expr) -> Expr:
        match node:
            case Name(name=name):
                return Name(names.get(name, name))
            case Load(tensor=tensor) if tensor in stages:
                return replace(node, tensor=stages[tensor])
            case Reduce(ranges=ranges):
                return replace(node, ranges=tuple(replace(r, name=names.get(r.name, r.name)) for r in ranges))
        return node

    def of(each: Equation) -> Equation:
        return replace(each, name=names[each.name]) if each.temporary else each

    other = with_values(written, change)
    return printed(replace(other, equations=tuple(map(of, other.equations))))


def respelt(text: str, draw: random.Random) -> str:
    """With operands in another order, differences as sums, and means as sums."""
    formula = formula_of(text)

    def change(node: Expr) -> Expr:
        match node:
            case Call(name="+" | "*" as sign, args=(Call(name=inner, args=(a, b)), c)) if (
                inner == sign and draw.random() < 0.5
            ):
                return Call(sign, (a, Call(sign, (b, c))))
            case Call(name="+" | "*" | "max" | "min" | "and" | "==" as sign, args=(a, b)) if draw.random() < 0.7:
                return Call(sign, (b, a))
            case Call(name="-", args=(a, b)) if draw.random() < 0.5:
                return Call("+", (Call("neg", (b,)), a))
            case Call(name="<" | "<=" as sign, args=(a, b)) if draw.random() < 0.5:
                return Call({"<": ">", "<=": ">="}[sign], (b, a))
            case Call(name="square", args=(a,)):
                return Call("**", (a, Num(2)))
            case Call(name="sigmoid", args=(a,)):
                return Call("rcp", (Call("+", (Num(1.0), Call("exp", (Call("neg", (a,)),)))),))
            case Reduce(op="mean", ranges=(each,)) if each == Range(each.name) and each.name.upper() in formula.sizes:
                return Call("/", (replace(node, op="sum"), Name(each.name.upper())))
        return node

    return printed(with_values(parse(text), change))


@pytest.mark.parametrize("number", range(0, len(TEXTS), 20))
def test_names_of_dimensions_sizes_and_stages_do_not_count(number: int) -> None:
    for text in TEXTS[number : number + 20]:
        other = renamed(text)
        assert same(formula_of(text), formula_of(other)), f"{text}\n{other}"


@pytest.mark.parametrize("number", range(0, len(TEXTS), 20))
def test_the_spelling_does_not_count(number: int) -> None:
    draw = random.Random(number)
    for text in TEXTS[number : number + 20]:
        other = respelt(text, draw)
        assert same(formula_of(text), formula_of(other)), f"{text}\n{other}"


def test_stages_do_not_count() -> None:
    """The normal form makes a stage of each reduction. It spells `logsumexp` with the maximum."""
    plain = [text for text in TEXTS if "logsumexp" not in text and "+=" not in text]
    found = [same(formula_of(text), normal(formula_of(text))) for text in plain]
    assert sum(found) / len(found) > 0.95, [text for text, each in zip(plain, found, strict=True) if not each]


def mutated(text: str, draw: random.Random) -> str:
    """With one node that is another."""
    written = parse(text)
    nodes = [node for each in written.equations for part in (*each.index, each.value) for node in walk(part)]
    chosen = draw.randrange(len(nodes))
    count = iter(range(len(nodes)))

    def change(node: Expr) -> Expr:
        if next(count) != chosen:
            return node
        match node:
            case Num(value=value) if not isinstance(value, bool):
                return Num(value + 1)
            case Call(name="+" | "-" | "*" | "/" as sign, args=args):
                return Call(draw.choice([each for each in "+-*/" if each != sign]), args)
            case Call(name="max" | "min" as sign, args=args):
                return Call({"max": "min", "min": "max"}[sign], args)
            case Call(name="<" | "<=" | ">" | ">=" as sign, args=args):
                return Call({"<": "<=", "<=": "<", ">": ">=", ">=": "<"}[sign], args)
            case Call(name="select", args=(test, a, b)):
                return Call("select", (test, b, a))
            case Call(name=name, args=(a,)) if name not in ("not", "~", "neg"):
                return Call(draw.choice(("exp", "abs", "neg", "tanh", "floor")), (a,))
            case Reduce(op=op):
                return replace(
                    node, op=draw.choice([each for each in ("sum", "max", "mean", "min", "prod") if each != op])
                )
            case Load(index=index) if len(index) > 1:
                return replace(node, index=(index[1], index[0], *index[2:]))
        return node

    return printed(with_values(written, change))


def agree(one: Formula, other: Formula) -> bool:
    sizes: Mapping[str, int] = {name: 16 if name in ("ld", "stride", "pitch") else few
                                for name, few in zip(one.sizes, FEW, strict=False)}  # fmt: skip
    arrays, numbers = drawn(one, sizes)
    ours, theirs = (evaluate(each, arrays, numbers, sizes) for each in (one, other))
    return all(np.allclose(ours[name], theirs[name], rtol=1e-3, atol=1e-4, equal_nan=True) for name in ours)


@pytest.mark.parametrize("seed", range(4))
def test_what_is_called_the_same_computes_the_same(seed: int) -> None:
    """Also of formulas that were changed at random; most changes are seen."""
    draw = random.Random(seed)
    different = 0
    for text in draw.sample(TEXTS, 150):
        other = mutated(text, draw)
        try:
            one, changed = formula_of(text), formula_of(other)
        except FormulaError:
            continue
        if not same(one, changed):
            different += 1
        elif set(one.sizes) == set(changed.sizes):
            assert agree(one, changed), f"{text}\n{other}"
    assert different > 40


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("y[i] = 2 * x[i]", "y[i] = x[i] + x[i]"),
        ("y[i] = x[i] / 2", "y[i] = 0.5 * x[i]"),
        ("y[r] = sum[c] a * x[r, c]", "y[r] = a * sum[c] x[r, c]"),
        ("y = sum[r, c] x[r, c]", "y = sum[c] sum[r] x[r, c]"),
        ("y[r] = var[c] x[r, c]", "y[r] = mean[c] (x[r, c] - m[r]) ** 2 where m[r] = mean[c] x[r, c]"),
        ("y[r] = logsumexp[c] x[r, c]", "y[r] = log(sum[c] exp(x[r, c]))"),
        ("C[i, j] = sum[k] A[i, k] * B[k, j]", "C[m, n] = sum[p] B[p, n] * A[m, p]"),
        ("y[i] = x[i] if not c[i] else 0", "y[i] = 0 if c[i] else x[i]"),
        ("y[i] = sum[k < 3] x[i + k]", "y[i] = sum[k <= 2] x[k + i]"),
        ("y[i] += x[i]", "y'[i] = x[i] + y[i]"),
        ("y[i] = max(a[i], max(b[i], c[i]))", "y[i] = max(max(c[i], a[i]), b[i])"),
        ("h[b[i]] += x[i]", "h[b[n]] += x[n]"),
    ],
)
def test_the_same(one: str, other: str) -> None:
    assert same(formula_of(one), formula_of(other))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("y[i, j] = x[i, j]", "y[i, j] = x[j, i]"),
        ("y[r] = sum[c] x[r, c]", "y[r] = mean[c] x[r, c]"),
        ("y[i] = x[i]", "x: bf16  y: f32  y[i] = x[i]"),
        ("y[i] = x[i]", "x: f32[I](s)  y[i] = x[i]"),
        ("y[i] = x[i - 1; zero]", "y[i] = x[i - 1; clamp]"),
        ("y[i] = a[i] - b[i]", "y[i] = b[i] - a[i]"),
        ("h[b[i]] += x[i]", "h[b[i]] = sum[i] x[i]"),
        ("y[r] = sum[c] x[r, c] * x[r, c]", "y[r] = (sum[c] x[r, c]) ** 2"),
        ("y = sum[i, j] x[i, j] * x[j, i]", "y = sum[i, j] x[i, j] * x[i, j]"),
        ("y[i] = sum[j <= i] x[j]", "y[i] = sum[j < i] x[j]"),
        ("y[i] = x[i] * alpha", "y[i] = x[i] * beta"),
        ("k: i32  y[i] = f32(k[i] // 2)", "k: i32  y[i] = f32(k[i]) / 2"),
        ("t: i32  y[i] = 2 * t[i] where t[i] = x[i]", "y[i] = 2 * x[i]"),
    ],
)
def test_not_the_same(one: str, other: str) -> None:
    assert not same(formula_of(one), formula_of(other))


def test_what_grows_too_large_ends() -> None:
    deep = ", ".join(f"a{n}[i] = a{n + 1}[i] * a{n + 1}[i + {n}; zero]" for n in range(40))
    formula = formula_of(f"y[i] = a0[i] where {deep}, a40[i] = x[i]")
    assert same(formula, formula) in (True, False)
