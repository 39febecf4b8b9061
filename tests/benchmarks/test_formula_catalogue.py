"""The catalogue of formulas holds what it says."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from formula_catalogue import Entry, catalogue
from warpwright.formulas.extents import at_sizes
from warpwright.formulas.functions import REDUCTIONS
from warpwright.formulas.numpy_inputs import drawn
from warpwright.formulas.numpy_reference import evaluate
from warpwright.formulas.parser import parse
from warpwright.formulas.printer import printed
from warpwright.formulas.resolve import formula_of
from warpwright.formulas.tree import Call, Load, Reduce, walk

ENTRIES = catalogue()


def test_there_are_formulas_of_every_kind() -> None:
    assert len(ENTRIES) >= 360
    kinds = Counter(each.kind for each in ENTRIES)
    assert len(kinds) >= 20
    assert min(kinds.values()) >= 7
    assert sum(len(each.types) >= 3 for each in ENTRIES) >= 100
    assert sum(bool(each.torch) for each in ENTRIES) >= 220


def test_names_are_distinct() -> None:
    assert not [name for name, count in Counter(each.name for each in ENTRIES).items() if count > 1]


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
def test_a_formula_resolves_in_every_type_and_size(entry: Entry) -> None:
    for text in entry.texts().values():
        assert parse(printed(parse(text))) == parse(text)
        formula = formula_of(text)
        for sizes in (entry.small, entry.odd, entry.large):
            assert set(sizes) == set(formula.sizes)
            assert all(at_sizes(each, sizes) > 0 for each in formula.dims.values())


def test_the_language_is_used_whole() -> None:
    """Every reduction, way to read outside, way to combine and layout stands in some formula."""
    formulas = [each.formula for each in ENTRIES]
    nodes = [node for formula in formulas for stage in formula.stages for node in walk(stage.value)]

    assert {node.op for node in nodes if isinstance(node, Reduce)} == set(REDUCTIONS)
    outside = {node.outside for node in nodes if isinstance(node, Load)}
    assert {"clamp", "wrap", "reflect", None} < outside
    assert {stage.combine for formula in formulas for stage in formula.stages} == {"", "+", "max", "min"}
    assert {node.name for node in nodes if isinstance(node, Call)} >= {
        "select",
        "and",
        "or",
        "not",
        "<<",
        ">>",
        "&",
        "|",
        "^",
    }


TOLERANCE = {"bf16": 2.0**-8, "f8e4m3": 2.0**-4}


@pytest.mark.parametrize("entry", [each for each in ENTRIES if each.torch], ids=lambda entry: entry.name)
def test_torch_computes_the_same(entry: Entry) -> None:
    """In float64, at small sizes."""
    torch = pytest.importorskip("torch")
    formula, sizes = entry.formula, dict(entry.small)
    arrays, numbers = drawn(formula, sizes)
    ours = evaluate(formula, arrays, numbers, sizes)
    names = {name: in_64_bits(torch.as_tensor(each)) for name, each in arrays.items()}
    results = eval(entry.torch, {"torch": torch, "F": torch.nn.functional, **names, **numbers, **sizes})
    results = results if isinstance(results, tuple) else (results,)
    assert len(results) == len(formula.outputs)
    for stage, theirs in zip(formula.outputs, results, strict=True):
        found, expected = torch.as_tensor(ours[stage.name]), in_64_bits(theirs)
        assert found.shape == expected.shape
        near = TOLERANCE.get(stage.type, 1e-6)
        same = torch.isclose(found.to(expected.dtype), expected, rtol=near, atol=1e-7, equal_nan=True)
        assert same.all(), (stage.name, found, expected)


def in_64_bits(tensor: Any) -> Any:
    """Floating-point and complex numbers in twice their bits, or in what of them has 64."""
    import torch

    wide = torch.complex128 if tensor.is_complex() else torch.float64 if tensor.is_floating_point() else tensor.dtype
    return tensor.to(wide)
