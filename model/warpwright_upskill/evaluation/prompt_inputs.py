"""The inputs of a held-out prompt's reference: what is written of one, sizes to try, and values drawn for them.

f32[T, H]                      an array; extents are sums and products of sizes and numbers
f32   i32 < 8                  a number; one that is named as a size is that size
f32[N] > 0   f32[N] >= 0 <= 1  between bounds; without them normal numbers, some of them large
i32[N] < V   i32[N] >= -1 < V  whole numbers below V, from 0 where no least is said
i32[N] ascending < S           each at least the one before
i32[S + 1] offsets E           ascending, the first 0 and the last E: where segments begin and end
i32[N] permutation             0 to N - 1, each once
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from warpwright.formulas.numpy_types import Array, kept
from warpwright.formulas.types import TYPES, ElementType

SETS = ((7, 5, 9, 6, 4, 8, 3), (4, 6, 3, 7, 5, 9, 11), (5, 11, 8, 3, 6, 4, 7))
"""Sizes that are tried, of one set by the order in which they are named; none is the same twice in a set, since equal
ones hide what is swapped."""
_LONGER = {1: (6, 1), 2: (2, 1)}
"""By how many sizes there are: a factor and a summand, so that a vector has enough elements to reach every side."""
_FORM = re.compile(r"\s*(\w+)\s*(?:\[([^\]]*)\])?\s*(ascending|permutation|offsets\b[^<>]*)?\s*((?:[<>]=?[^<>=]+)*)")
_BOUND = re.compile(r"([<>]=?)([^<>=]+)")
_ROOM = 4.0
"""How far from its one bound a number is drawn."""


class InputError(ValueError):
    """An input that is not written in the form; the message says what is wrong."""


@dataclass(frozen=True, slots=True)
class Bound:
    sign: str
    value: ast.expr


@dataclass(frozen=True, slots=True)
class Input:
    """An array, or without `extents` a number. `last` is the end of offsets."""

    name: str
    kind: ElementType
    extents: tuple[ast.expr, ...] | None
    order: str = ""
    last: ast.expr | None = None
    bounds: tuple[Bound, ...] = ()

    @property
    def symbols(self) -> list[str]:
        """The sizes that are named, in order."""
        parts = [*(self.extents or ()), *([self.last] if self.last else []), *(each.value for each in self.bounds)]
        return [node.id for part in parts for node in ast.walk(part) if isinstance(node, ast.Name)]


def input_of(name: str, text: str) -> Input:
    """One input as it is written. Raises InputError.

    >>> made = input_of("ids", "i32[B, S + 1] >= -1 < V")
    >>> made.kind.name, made.symbols, [each.sign for each in made.bounds]
    ('i32', ['B', 'S', 'V'], ['>=', '<'])
    """
    match = _FORM.fullmatch(text)
    kind = TYPES.get(match[1]) if match else None
    if match is None or kind is None:
        raise InputError(f"{text!r} is not type[extents] with bounds, as in 'i32[N] < V'")
    extents = None if match[2] is None else tuple(_number(each) for each in match[2].split(",") if each.strip())
    order, _, last = (match[3] or "").partition(" ")
    bounds = tuple(Bound(sign, _number(value)) for sign, value in _BOUND.findall(match[4]))
    if order and (kind.kind != "integer" or not extents):
        raise InputError(f"{text!r}: {order} is of arrays of whole numbers")
    return Input(name, kind, extents, order, _number(last) if order == "offsets" else None, bounds)


def _number(text: str) -> ast.expr:
    try:
        node = ast.parse(text.strip(), mode="eval").body
        value_at(node, dict.fromkeys((each.id for each in ast.walk(node) if isinstance(each, ast.Name)), 1))
    except (SyntaxError, ValueError, ZeroDivisionError):
        raise InputError(f"{text!r} is no sum or product of sizes and numbers") from None
    return node


def value_at(node: ast.expr, sizes: Mapping[str, int]) -> float:
    """An extent or a bound as it is written, at sizes. Raises InputError for what is no sum or product."""
    match node:
        case ast.Constant(value=int() | float() as value):
            return value
        case ast.Name(id=name):
            return sizes[name]
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -value_at(operand, sizes)
        case ast.BinOp(left=left, op=op, right=right):
            one, other = value_at(left, sizes), value_at(right, sizes)
            match op:
                case ast.Add():
                    return one + other
                case ast.Sub():
                    return one - other
                case ast.Mult():
                    return one * other
                case ast.Div() | ast.FloorDiv():
                    return one // other
    raise InputError("not a sum or product")


def sizes_to_try(inputs: Sequence[Input], own: Mapping[str, Sequence[int]]) -> tuple[dict[str, int], ...]:
    """Three sets of small sizes; `own` are those that a prompt asks for, by name."""
    names = list(dict.fromkeys(name for each in inputs for name in each.symbols))
    names = [each for each in names if each not in own]
    factor, more = _LONGER.get(len(names), (1, 0))
    found = []
    for number, row in enumerate(SETS):
        sizes = {name: factor * row[at % len(row)] + more for at, name in enumerate(names)}
        found.append(sizes | {name: int(values[number % len(values)]) for name, values in own.items()})
    return tuple(found)


def values_of(inputs: Sequence[Input], sizes: Mapping[str, int], seed: int) -> dict[str, Array]:
    """A value for each input, in its type (bf16 and f8 as f32 that hold a value of the type).

    >>> made = [input_of("first", "i32[S + 1] offsets E"), input_of("E", "i32")]
    >>> values = values_of(made, {"S": 3, "E": 9}, 0)
    >>> int(values["first"][0]), int(values["first"][-1]), values["first"].shape, int(values["E"])
    (0, 9, (4,), 9)
    """
    found = {}
    for at, each in enumerate(inputs):
        random = np.random.default_rng([seed, at])
        if each.extents is None and each.name in sizes:
            found[each.name] = kept(np.asarray(sizes[each.name]), each.kind)
        else:
            found[each.name] = kept(_drawn(random, each, sizes), each.kind)
    return found


def _drawn(random: np.random.Generator, made: Input, sizes: Mapping[str, int]) -> Array:
    shape = tuple(int(value_at(each, sizes)) for each in made.extents or ())
    if min(shape, default=1) < 0:
        raise InputError(f"{made.name} has the shape {shape}")
    match made.kind.kind:
        case "bool":
            return random.random(shape) < 0.5
        case "complex":
            return random.standard_normal(shape) + 1j * random.standard_normal(shape)
        case "integer":
            return _whole(random, made, shape, sizes)
    low, high = _ends(made, sizes)
    if low is None and high is None:
        if made.extents is None:
            return np.asarray(random.uniform(0.125, 0.875))
        wide = np.where(random.random(shape) < 0.25, 6.0, 1.0)
        return np.asarray(random.standard_normal(shape) * wide)
    low = high - _ROOM if low is None and high is not None else low
    assert low is not None
    return np.asarray(random.uniform(low, low + _ROOM if high is None else high, shape))


def _whole(random: np.random.Generator, made: Input, shape: tuple[int, ...], sizes: Mapping[str, int]) -> Array:
    if made.order == "permutation":
        return random.permutation(shape[0])
    low, high = _ends(made, sizes)
    if made.order == "offsets":
        assert made.last is not None
        last = int(value_at(made.last, sizes))
        inside = np.sort(random.integers(0, last, max(shape[0] - 2, 0), endpoint=True))
        return np.concatenate([[0], inside, [last]])[: shape[0]]
    least, most = made.kind.bounds
    if low is None:
        low = 0 if high is not None and high >= 0 else max(least, -100 if made.extents else 1)
    if high is None:
        high = min(most, low + (200 if made.extents else 7))
    if high < low:
        raise InputError(f"{made.name} has no value between {low:g} and {high:g}")
    values = random.integers(int(low), int(high), shape, endpoint=True)
    return np.sort(values, axis=-1) if made.order == "ascending" else np.asarray(values)


def _ends(made: Input, sizes: Mapping[str, int]) -> tuple[float | None, float | None]:
    """The least and the greatest value. From a bound that is left out whole numbers stay 1 away, others a twentieth of
    the room that there is."""
    bounds = {each.sign: value_at(each.value, sizes) for each in made.bounds}
    lows = [value for sign, value in bounds.items() if sign.startswith(">")]
    highs = [value for sign, value in bounds.items() if sign.startswith("<")]
    low, high = max(lows, default=None), min(highs, default=None)
    room = 1.0 if low is None or high is None else high - low
    away = 1.0 if made.kind.kind == "integer" else 0.05 * room
    low = None if low is None else low + (away if ">" in bounds else 0)
    high = None if high is None else high - (away if "<" in bounds else 0)
    if low is not None and high is not None and low > high:
        raise InputError(f"{made.name} has no value between {low:g} and {high:g}")
    return low, high
