"""Draws the inputs of a formula."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import numpy as np

from warpwright.formulas.extents import at_sizes
from warpwright.formulas.inputs import Draw, draws_of
from warpwright.formulas.model import Formula
from warpwright.formulas.numpy_types import Array, kept
from warpwright.formulas.types import TYPES, ElementType

Style = Literal["normal", "ties", "nan", "inf", "huge", "zeros"]
"""Numbers as they are; few different ones, so that many are equal; some of them NaN, or infinite of either sign; near
the largest that can be squared; all 0. Indices, and what a function takes only in part, are legal in all styles."""


def drawn(
    formula: Formula, sizes: Mapping[str, int], seed: int = 0, style: Style = "normal"
) -> tuple[dict[str, Array], dict[str, int | float]]:
    """The arrays of a formula in logical shape, and its numbers. bf16 and f8 come as f32 that hold a value of the type.
    Raises inputs.NoInputsError.

    >>> from warpwright.formulas.resolve import formula_of
    >>> arrays, scalars = drawn(formula_of("y[t] = a * x[ids[t]]"), {"T": 4, "x_size": 3})
    >>> sorted(arrays), arrays["x"].dtype.name, bool((arrays["ids"] < 3).all()), list(scalars)
    (['ids', 'x'], 'float32', True, ['a'])
    """
    random = np.random.default_rng(seed)
    draws = draws_of(formula, sizes)
    arrays = {}
    for tensor in formula.inputs:
        shape = tuple(at_sizes(each, sizes) for each in tensor.extents)
        kind = TYPES[tensor.type]
        arrays[tensor.name] = kept(_array(random, draws[tensor.name], shape, kind, style), kind)
    scalars = {
        name: kept(_array(random, draws[name], (), TYPES[kind], "normal"), TYPES[kind]).item()
        for name, kind in formula.scalars.items()
    }
    return arrays, scalars


def _array(random: np.random.Generator, draw: Draw, shape: tuple[int, ...], kind: ElementType, style: Style) -> Array:
    match draw.kind:
        case "truth":
            return np.asarray(random.random(shape) < 0.5)
        case "whole":
            if 0 in shape:
                return np.zeros(shape, np.int64)
            return np.asarray(random.integers(int(draw.low), int(draw.high), shape, np.int64, endpoint=True))
        case "offsets":
            values = np.sort(random.integers(int(draw.low), int(draw.high), shape, np.int64, endpoint=True), axis=-1)
            if values.size:
                values[..., 0] = draw.low
                values[..., -1] = draw.high
            return values
        case "between":
            return np.asarray(random.uniform(draw.low, draw.high, shape))
        case "apart":
            return np.asarray(random.uniform(draw.low, draw.high, shape) * random.choice((-1.0, 1.0), shape))
    if kind.kind == "complex":
        return random.standard_normal(shape) + 1j * random.standard_normal(shape)
    return _styled(random, shape, kind, style)


def _styled(random: np.random.Generator, shape: tuple[int, ...], kind: ElementType, style: Style) -> Array:
    values = np.asarray(random.standard_normal(shape))
    match style:
        case "ties":
            return np.asarray(random.integers(-2, 3, shape).astype(np.float64))
        case "nan":
            return np.where(random.random(shape) < 0.02, np.nan, values)
        case "inf":
            return np.where(random.random(shape) < 0.02, np.copysign(np.inf, values), values)
        case "huge":
            return values * kind.largest**0.5 / 8
        case "zeros":
            return values * 0
    return values
