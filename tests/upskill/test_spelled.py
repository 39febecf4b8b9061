"""Formulas that are drawn are sound, and the words of a request say all that they must."""

from __future__ import annotations

import re
from dataclasses import replace
from random import Random

import numpy as np
import pytest
from warpwright.assist.formula_task import read_formula
from warpwright.formulas.model import Formula
from warpwright.formulas.numpy_inputs import drawn
from warpwright.formulas.numpy_reference import evaluate
from warpwright.formulas.tree import Load, Name, Reduce, walk
from warpwright_upskill.admission import refusal
from warpwright_upskill.data.render import render
from warpwright_upskill.data.requests.spelled.axes import UnsayableError
from warpwright_upskill.data.requests.spelled.frames import FRAMES
from warpwright_upskill.data.requests.spelled.notation import Notation
from warpwright_upskill.data.requests.spelled.numpy_like import Whole
from warpwright_upskill.data.requests.spelled.request import said
from warpwright_upskill.data.requests.spelled.shapes import sizes_of
from warpwright_upskill.data.requests.spelled.sketch import Sketch, sketched
from warpwright_upskill.data.spelled import examples, part
from warpwright_upskill.data.splits import side_of_sketch, sketch_pairs
from warpwright_upskill.examples import HELD_OUT, Example, Rejected

SEEDS = [f"tests/{number}" for number in range(250)]


@pytest.fixture(scope="module")
def sketches() -> list[Sketch]:
    return [sketched(seed) for seed in SEEDS]


def test_formulas_are_of_every_kind_and_read_back(sketches: list[Sketch]) -> None:
    assert {each.kind for each in sketches} == set(FRAMES)
    for each in sketches:
        assert isinstance(read_formula(each.text), Formula), each.text
    assert len({each.text for each in sketches}) > 0.95 * len(sketches)


def test_the_same_seed_gives_the_same_request() -> None:
    assert sketched("same") == sketched("same")
    one, other = (said(sketched("same"), Random(3)) for _ in range(2))
    assert one == other


def test_all_names_and_numbers_are_told(sketches: list[Sketch]) -> None:
    for each in sketches:
        for number in range(3):
            words = said(each, Random(f"{each.text}/{number}"))
            told = f"{words.comment} {words.given}".replace("\\_", "_")
            for tensor in words.formula.tensors.values():
                if tensor.role == "in":
                    assert re.search(rf"(?<![^\W_]){tensor.array}(?![^\W_])", told), (tensor, told)


def test_types_and_what_lies_outside_are_told(sketches: list[Sketch]) -> None:
    for each in sketches:
        words = said(each, Random(each.text))
        told = f"{words.comment} {words.given}"
        if re.search(r": (f16|bf16|f64)", each.text):
            assert re.search(r"half|fp16|float16|bf16|bfloat16|double|float64|fp64", told, re.I), told
        loads = [node for equation in each.written.equations for node in walk(equation.value) if isinstance(node, Load)]
        if any(node.outside is not None for node in loads):
            pattern = (
                r"zero|0 outside|0|edge|border|nearest|clamp|periodic|wrap|modulo|circular|mirror|reflect|replicate"
            )
            assert re.search(pattern, told), told
        assert "= None" not in told and "|>" not in told and "  " not in words.comment


def test_one_formula_has_several_wordings(sketches: list[Sketch]) -> None:
    for each in sketches[:40]:
        assert len({said(each, Random(f"{each.text}/{number}")).comment for number in range(30)}) > 15


def test_every_notation_is_used(sketches: list[Sketch]) -> None:
    used = {
        said(each, Random(f"{each.text}/{number}")).how.split()[0] for each in sketches[:100] for number in range(4)
    }
    assert used == {"brackets", "subscripts", "functions", "unicode", "latex", "loops", "numpy", "words"}


def test_examples_say_that_they_were_evaluated_and_have_no_kernel() -> None:
    made = part(0, 200, wordings=2, seed="part")
    assert len(made) == 400 and not any(isinstance(each, Rejected) for each in made)
    for each in made:
        assert isinstance(each, Example)
        assert (each.metrics.level, each.cuda_kernel, each.provenance.origin) == ("evaluated", "", "spelled")
        rendered = render(each)
        assert rendered is not None and rendered.answer.strip() == each.formula


def test_what_was_only_evaluated_is_checked_again_and_has_no_kernel() -> None:
    example = next(examples(sketched("admitted"), "admitted", 1))
    assert refusal(example) == ""
    assert "has a kernel" in refusal(replace(example, cuda_kernel="__global__ void f() {}"))
    assert "not finite" in refusal(replace(example, formula="y[i] = x[i] / (a[i] - a[i])"))
    compiled = replace(example, metrics=replace(example.metrics, level="correct"))
    assert "do not agree" in refusal(compiled)


def test_pairs_that_are_held_out_are_not_trained_on(sketches: list[Sketch]) -> None:
    trained = {pair for each in sketches if side_of_sketch(each) != HELD_OUT for pair in sketch_pairs(each)}
    held = [each for each in sketches if side_of_sketch(each) == HELD_OUT]
    assert 0.02 < len(held) / len(sketches) < 0.4
    assert not any(trained.issuperset(sketch_pairs(each)) for each in held)


def inputs(sketch: Sketch) -> tuple[dict[str, np.ndarray], dict[str, float], dict[str, int]]:
    sizes = dict(zip(sketch.formula.sizes, (4, 5, 3, 6, 7, 2, 8), strict=False))
    arrays, scalars = drawn(sketch.formula, sizes, 3)
    return (
        {name: np.asarray(each, float if each.dtype.kind == "f" else each.dtype) for name, each in arrays.items()},
        scalars,
        sizes,
    )


def agree(sketch: Sketch, found: dict[str, object]) -> bool:
    arrays, scalars, sizes = inputs(sketch)
    expected = evaluate(sketch.formula, arrays, scalars, sizes)
    return all(np.allclose(np.asarray(found[name], float), each, 1e-6, 1e-6) for name, each in expected.items())


def test_array_expressions_compute_what_their_formulas_do() -> None:
    checked = 0
    for number in range(900):
        sketch = sketched(f"arrays/{number}")
        whole = Whole(sizes_of(sketch).dims, Random(number))
        equations = sorted(sketch.written.equations, key=lambda each: not each.temporary)
        try:
            lines = [whole.statement(each) for each in equations]
        except UnsayableError:
            continue
        small = any(each.type in ("u8", "i8") for each in sketch.formula.tensors.values())
        if small or whole.torch or any(each.combine for each in equations):
            continue
        arrays, scalars, _ = inputs(sketch)
        names = sizes_of(sketch).symbols
        scope = {**arrays, **scalars, "np": np, "sigmoid": lambda x: 1 / (1 + np.exp(-x)), "logsumexp": logsumexp}
        scope |= {word: inputs(sketch)[2][name] for name, word in names.items()}
        exec("\n".join(lines), scope)
        assert agree(sketch, scope), (sketch.text, lines)
        checked += 1
    assert checked > 100


def logsumexp(x: np.ndarray, axis: int | tuple[int, ...]) -> np.ndarray:
    return np.log(np.sum(np.exp(x), axis=axis))


def test_expressions_with_indices_compute_what_their_formulas_do() -> None:
    checked = 0
    for number in range(600):
        sketch, chance = sketched(f"indices/{number}"), Random(number)
        (equation, *more) = sketch.written.equations
        nodes = list(walk(equation.value))
        if more or equation.combine or any(isinstance(each, Reduce) for each in nodes):
            continue
        if any(isinstance(each, Load) and each.outside for each in nodes):
            continue
        notation = Notation(sizes_of(sketch).dims, chance)
        notation.choice, notation.squared = 1, "{0}**2"
        text = notation.expr(equation.value)
        arrays, scalars, sizes = inputs(sketch)
        scope: dict[str, object] = {**SCALAR_FUNCTIONS, **arrays, **scalars}
        scope |= {word: sizes[name] for name, word in sizes_of(sketch).symbols.items()}
        expected = evaluate(sketch.formula, arrays, scalars, sizes)[equation.name]
        dims = [each.name for each in equation.index if isinstance(each, Name)]
        for place in np.ndindex(expected.shape):
            found = eval(text, scope, dict(zip(dims, place, strict=True)))
            assert np.allclose(found, expected[place], 1e-6, 1e-6), (sketch.text, text)
        checked += 1
    assert checked > 100


SCALAR_FUNCTIONS: dict[str, object] = {
    **{name: getattr(np, name) for name in ("exp", "log", "tanh", "sin", "cos", "sqrt", "floor")},
    "inf": np.inf,
    "round": np.rint,
    "clamp": np.clip,
    "relu": lambda x: max(x, 0.0),
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "rsqrt": lambda x: x**-0.5,
}
