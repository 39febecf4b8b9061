"""The values of one array, drawn: each distribution asks another question, and the same random numbers give the same.

| distribution | floating-point numbers |
|---|---|
| normal | N(0, 1) |
| integers | -8 to 8, on which sums and products stay exact |
| large | magnitudes from 1e-6 to 1e6 |
| zeros | 0 |
| special | NaN, infinities, subnormal numbers and -0 among N(0, 1), one of each at least where there is room |
| threshold | the numbers that the texts compare with, and others a little above and below, among N(0, 1) |
| small | magnitudes from 1e-5 to 1e-3: what a difference of two numbers near 1 loses |
| offset | N(1000, 1): what a difference of two sums of squares loses |
| ties | numbers half-way between two that rounding may give, at several scales, among N(0, 1) |
| huge | magnitudes from 1e10 to 1e30, whose squares overflow |
| ordered | N(0, 1), rising in the first half and falling in the second |
| equal | 1 |

Narrow types have narrower ranges. Whole numbers are small ones for each but `large` and `threshold`, which has numbers
of the whole range, too. An array of indices holds indices: sorted where they are `ordered`, one alone where they are
`equal`; in `sentinel`, `below` and `beyond` also what is none, where the original looks before it uses them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from warpwright.emulator.numerics.halves import bf16_of_f32, f32_of_bf16

SENTINELS = ("sentinel", "below", "beyond")
DISTRIBUTIONS = (
    "normal", "integers", "large", "zeros", "special", "threshold",
    "small", "offset", "ties", "huge", "ordered", "equal", *SENTINELS,
)  # fmt: skip

DTYPES: Mapping[str, Any] = {
    "float32": np.float32, "float64": np.float64, "float16": np.float16, "bfloat16": np.uint16, "bool": np.uint8,
    "int8": np.int8, "uint8": np.uint8, "int16": np.int16, "uint16": np.uint16, "int32": np.int32,
    "uint32": np.uint32, "int64": np.int64, "uint64": np.uint64,
}  # fmt: skip

EPSILON = {"float64": 2.0**-52, "float32": 2.0**-23, "float16": 2.0**-10, "bfloat16": 2.0**-7}
"""The distance from 1 to the next number of a type."""

MOST_THRESHOLD = 1e8
"""Around larger ones sums would overflow, which may depend on their order."""

_POWERS = {
    "small": {"float16": (-4.0, -2.0), "float64": (-14.0, -6.0)},
    "large": {"float16": (-2.0, 2.0)},
    "huge": {"float16": (2.0, 4.0), "float64": (100.0, 250.0)},
}
_OF_OTHERS = {"small": (-5.0, -3.0), "large": (-6.0, 6.0), "huge": (10.0, 30.0)}
_OFFSETS = {"float16": 64.0, "bfloat16": 16.0, "float64": 1.0e6}

_HALVES = (*range(-14, 14), -128, -100, 99, 127)
_STEPS = tuple(2.0**power for power in range(9))
MOST_TIE = 1024.0
"""Few units in the last place of what is made of larger ones would hide a step."""

_PIECE = 1 << 20


@dataclass(frozen=True, slots=True)
class Asked:
    """What an array is to hold. `limit` bounds indices, and `is_guarded` says that the original looks at them before it
    uses them. The kernels' texts compare with `thresholds` and multiply or divide by `scales`."""

    scalar: str
    count: int
    limit: int | None = None
    is_guarded: bool = False
    thresholds: Sequence[float] = ()
    scales: Sequence[float] = ()


def drawn(asked: Asked, distribution: str, random: np.random.Generator) -> Any:
    """The values, of the scalar type (bfloat16 as its bits), flat."""
    scalar, count = asked.scalar, asked.count
    dtype = DTYPES[scalar]
    if asked.limit is not None:
        return _indices(asked, asked.limit, distribution, random).astype(dtype)
    if distribution == "zeros":
        return np.zeros(count, dtype=dtype)
    if distribution == "equal":
        return as_type(scalar, np.ones(count))
    if scalar == "bool":
        return random.integers(0, 2, count).astype(dtype)
    if distribution == "threshold" or (distribution == "ties" and "float" in scalar):
        return _among_small_ones(asked, distribution, random)
    if "float" not in scalar:
        return _whole(scalar, count, distribution, random)
    if distribution == "normal" and count > _PIECE:  # the same numbers, without as many doubles beside them
        values = np.empty(count, dtype=dtype)
        for start in range(0, count, _PIECE):
            values[start : start + _PIECE] = as_type(scalar, random.standard_normal(min(_PIECE, count - start)))
        return values
    return as_type(scalar, _floats(scalar, count, distribution, random))


def _indices(asked: Asked, limit: int, distribution: str, random: np.random.Generator) -> Any:
    most, count = max(1, limit), asked.count
    if distribution == "equal":
        return np.full(count, random.integers(0, most))
    values = random.integers(0, most, count)
    if distribution == "ordered":
        return _up_and_down(values)
    if distribution in SENTINELS and asked.is_guarded and count:
        others = {"sentinel": (-1,), "below": (-1, -2, -(1 << 31)), "beyond": (limit, limit + 1, (1 << 31) - 1)}
        places = random.permutation(count)[: max(1, count // 8)]
        values[places] = np.resize(np.array(others[distribution]), len(places))
    return values


def _up_and_down(values: Any) -> Any:
    values = np.sort(values)
    return np.concatenate([values[::2], values[1::2][::-1]])


def _whole(scalar: str, count: int, distribution: str, random: np.random.Generator) -> Any:
    dtype = DTYPES[scalar]
    least = 0 if scalar.startswith("u") else -8
    is_wide = distribution in ("large", "ordered") and np.dtype(dtype).itemsize >= 4
    values = random.integers(least, (1 << 20 if is_wide else 8) + 1, count).astype(dtype)
    return _up_and_down(values) if distribution == "ordered" else values


def _floats(scalar: str, count: int, distribution: str, random: np.random.Generator) -> Any:
    if distribution == "integers":
        return random.integers(-8, 9, count).astype(np.float64)
    if distribution in _OF_OTHERS:
        least, most = _POWERS[distribution].get(scalar, _OF_OTHERS[distribution])
        signs = np.where(random.random(count) < 0.5, -1.0, 1.0)
        return signs * 10.0 ** (least + random.random(count) * (most - least))
    values = random.standard_normal(count)
    if distribution == "offset":
        return values + _OFFSETS.get(scalar, 1000.0)
    if distribution == "ordered":
        return _up_and_down(values)
    if distribution == "special":
        tiny = {"float16": 2.0**-16, "float64": 2.0**-1024}.get(scalar, 2.0**-128)
        mixed = np.array([np.nan, np.inf, -np.inf, -0.0, tiny, -tiny])
        at = random.random(count)
        for place, value in enumerate(mixed):
            values[(at >= place * 0.01) & (at < (place + 1) * 0.01)] = value
        if count >= 4 * len(mixed):  # a hundredth of a short array may be none
            values[random.permutation(count)[: len(mixed)]] = mixed
    return values


def _among_small_ones(asked: Asked, distribution: str, random: np.random.Generator) -> Any:
    """Half small numbers, half the others in turn at random places, each at least once where there is room."""
    scalar, count = asked.scalar, asked.count
    others = as_type(scalar, sacred(asked, distribution))
    if "float" in scalar:
        values = as_type(scalar, random.standard_normal(count))
    else:
        values = random.integers(0 if scalar.startswith("u") else -8, 9, count).astype(DTYPES[scalar])
        whole = np.frombuffer(random.bytes(count // 4 * values.itemsize), values.dtype)
        others = np.concatenate([others, whole])
    places = random.permutation(count)[: max(count // 2, 1) if len(others) else 0]
    values[places] = np.resize(random.permutation(others) if distribution == "ties" else others, len(places))
    return values


def sacred(asked: Asked, distribution: str) -> Any:
    """The numbers of a distribution that may not be moved, as float64: a step beyond one makes another result right."""
    if distribution == "ties":
        return ties(asked.scalar, asked.scales)
    return around(asked.scalar, asked.thresholds) if distribution == "threshold" else np.zeros(0)


def around(scalar: str, thresholds: Sequence[float]) -> Any:
    """Thresholds that the type holds, with either sign, and numbers on both sides of each; of whole numbers also those
    of one bit, of all bits, and at which 24 bits and the type end, as float64.

    >>> around("float32", [1000.0]).tolist()
    [1000.0, -1000.0, 984.375, 1015.625]
    >>> around("uint8", [100, 300]).tolist()
    [99.0, 100.0, 101.0, 16.0, 32.0, 64.0, 128.0, 0.0, 254.0, 255.0]
    """
    given = np.array([each for each in thresholds if abs(each) <= MOST_THRESHOLD], dtype=np.float64)
    if "float" in scalar:
        given = given[np.abs(given) <= (100.0 if scalar == "float16" else MOST_THRESHOLD)]
        return (given[:, None] * np.array([1.0, -1.0, 63 / 64, 65 / 64])).reshape(-1)
    kind = np.iinfo(DTYPES[scalar])
    least, most = max(kind.min, -(2**53)), min(kind.max, 2**53)  # as float64 holds them
    edges = [*(1 << bit for bit in range(4, 53)), 2**24 + 1, -1, least, most - 1, most]
    whole = np.concatenate([(given[given == np.floor(given)][:, None] + np.array([-1, 0, 1])).reshape(-1), edges])
    return whole[(whole >= least) & (whole <= most)]


def ties(scalar: str, scales: Sequence[float]) -> Any:
    """Numbers that times a scale, or divided by it, lie half-way between two whole ones, as float64: at the powers of
    two up to 256, and at the scales that the texts have.

    >>> 0.5 in ties("float32", []), 2.5 / 16 in ties("float32", []), 1.5 / 10 in ties("float32", [10.0])
    (True, True, True)
    """
    given = [abs(each) for each in scales if 1e-4 <= abs(each) <= 1e6]
    steps = np.array([*_STEPS, *(1.0 / each for each in given), *given])
    found = ((np.array(_HALVES) + 0.5)[:, None] / steps).reshape(-1)
    return found[np.abs(found) <= MOST_TIE]


def as_doubles(scalar: str, data: Any) -> Any:
    """An array as numbers: of bfloat16, which is kept as bits, their values."""
    return (f32_of_bf16(data) if scalar == "bfloat16" else data).astype(np.float64)


def as_type(scalar: str, values: Any) -> Any:
    """Numbers as an array of a scalar type: of bfloat16 its bits."""
    with np.errstate(all="ignore"):
        if scalar == "bfloat16":
            return bf16_of_f32(values.astype(np.float32))
        return values.astype(DTYPES[scalar])
