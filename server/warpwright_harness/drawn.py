"""The values of one array, drawn on its device: each distribution asks another question, and a seed gives the same.

They are those of `warpwright.emulator.drawn`, which has their table: normal is N(0, 1); integers are -8 to 8, on which
sums and products stay exact; large has magnitudes from 1e-6 to 1e6, small from 1e-5 to 1e-3, huge from 1e10 to 1e30;
offset is N(1000, 1); special has NaN, infinities, subnormal numbers and -0 among N(0, 1), one of each at least where
there is room; threshold has the numbers that the texts compare with and others around them, ties numbers half-way
between two that rounding may give; ordered rises and then falls; equal is 1 alone. Narrow types have narrower ranges.
Whole numbers are small ones for each but large, ordered and threshold, which has numbers of the whole range, too. An
array of indices holds indices; in sentinel, below and beyond also what is none, where the original looks first.
"""

from __future__ import annotations

import torch

from warpwright_harness.buffers import ArraySpec

SENTINELS = ("sentinel", "below", "beyond")
DISTRIBUTIONS = (
    "normal", "integers", "large", "zeros", "special", "threshold",
    "small", "offset", "ties", "huge", "ordered", "equal", *SENTINELS,
)  # fmt: skip
MOST_THRESHOLD = 1e8
"""Around larger ones sums would overflow, which may depend on their order."""

SPECIAL = (float("nan"), float("inf"), float("-inf"), -0.0)
"""Among the "special" values, with denormal numbers of both signs. The largest finite numbers are not: whether a sum of
them overflows depends on its order, which an honest rewrite may change."""

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


def make_values(spec: ArraySpec, distribution: str, seed: int, device: str) -> torch.Tensor:
    """Input values; the same seed gives the same values."""
    generator = torch.Generator(device=device).manual_seed(seed)
    n = spec.scalars
    if spec.limit is not None:
        return _indices(spec, spec.limit, distribution, generator).to(spec.dtype)
    if distribution == "zeros":
        return torch.zeros(n, dtype=spec.dtype, device=device)
    if distribution == "equal":
        return torch.ones(n, dtype=spec.dtype, device=device)
    if spec.scalar == "bool":
        return torch.randint(0, 2, (n,), generator=generator, device=device).to(spec.dtype)
    if distribution == "threshold" or (distribution == "ties" and spec.is_float):
        return _among_small_ones(spec, distribution, generator)
    return _floats(spec, distribution, generator) if spec.is_float else _whole(spec, distribution, generator)


def _indices(spec: ArraySpec, limit: int, distribution: str, generator: torch.Generator) -> torch.Tensor:
    n, most, device = spec.scalars, max(1, limit), generator.device
    if distribution == "equal":
        return torch.randint(0, most, (1,), generator=generator, device=device).repeat(n)
    values = torch.randint(0, most, (n,), generator=generator, device=device)
    if distribution == "ordered":
        return _up_and_down(values)
    if distribution in SENTINELS and spec.is_guarded and n:
        others = {"sentinel": (-1,), "below": (-1, -2, -(1 << 31)), "beyond": (limit, limit + 1, (1 << 31) - 1)}
        places = torch.randperm(n, generator=generator, device=device)[: max(1, n // 8)]
        values[places] = _in_turn(torch.tensor(others[distribution], device=device), len(places))
    return values


def _in_turn(values: torch.Tensor, count: int) -> torch.Tensor:
    return values.repeat(-(-count // len(values)))[:count]


def _up_and_down(values: torch.Tensor) -> torch.Tensor:
    values = values.sort().values
    return torch.cat([values[::2], values[1::2].flip(0)])


def _whole(spec: ArraySpec, distribution: str, generator: torch.Generator) -> torch.Tensor:
    least = 0 if spec.scalar.startswith("u") else -8
    is_wide = distribution in ("large", "ordered") and spec.dtype.itemsize >= 4
    most = 1 << 20 if is_wide else 8
    values = torch.randint(least, most + 1, (spec.scalars,), generator=generator, device=generator.device)
    return (_up_and_down(values) if distribution == "ordered" else values).to(spec.dtype)


def _floats(spec: ArraySpec, distribution: str, generator: torch.Generator) -> torch.Tensor:
    n, device = spec.scalars, generator.device

    def uniform() -> torch.Tensor:
        return torch.rand(n, generator=generator, device=device, dtype=torch.float64)

    if distribution == "integers":
        return torch.randint(-8, 9, (n,), generator=generator, device=device).to(spec.dtype)
    if distribution in _OF_OTHERS:
        least, most = _POWERS[distribution].get(spec.scalar, _OF_OTHERS[distribution])
        sign = torch.where(uniform() < 0.5, -1.0, 1.0)
        return (sign * torch.pow(10.0, least + uniform() * (most - least))).to(spec.dtype)
    drawn_as = torch.float64 if spec.scalar == "float64" else torch.float32
    values = torch.randn(n, generator=generator, device=device, dtype=drawn_as)
    if distribution == "offset":
        return (values.double() + _OFFSETS.get(spec.scalar, 1000.0)).to(spec.dtype)
    values = values.to(spec.dtype)
    if distribution == "ordered":
        return _up_and_down(values)
    if distribution == "special":
        at = uniform()
        tiny = torch.finfo(spec.dtype).tiny
        mixed = (*SPECIAL, tiny / 4, -tiny / 4)
        for place, value in enumerate(mixed):
            values[(at >= place * 0.01) & (at < (place + 1) * 0.01)] = value
        if n >= 4 * len(mixed):  # a hundredth of a short array may be none
            places = torch.randperm(n, generator=generator, device=device)[: len(mixed)]
            values[places] = torch.tensor(mixed, dtype=torch.float64, device=device).to(spec.dtype)
    return values


def _among_small_ones(spec: ArraySpec, distribution: str, generator: torch.Generator) -> torch.Tensor:
    """Half small numbers, half the others in turn at random places, each at least once where there is room."""
    n, device, others = spec.scalars, generator.device, sacred(spec, distribution).to(generator.device)
    if spec.is_float:
        values = torch.randn(n, generator=generator, device=device, dtype=torch.float32).to(spec.dtype)
    else:
        least = 0 if spec.scalar.startswith("u") else -8
        values = torch.randint(least, 9, (n,), generator=generator, device=device).to(spec.dtype)
        size = n // 4 * spec.dtype.itemsize
        whole = torch.randint(0, 256, (size,), generator=generator, device=device, dtype=torch.uint8)
        others = torch.cat([others, whole.view(spec.dtype)])
    if distribution == "ties":
        others = others[torch.randperm(len(others), generator=generator, device=device)]
    places = torch.randperm(n, generator=generator, device=device)[: max(n // 2, 1) if len(others) else 0]
    if len(places):
        values[places] = _in_turn(others, len(places))
    return values


def sacred(spec: ArraySpec, distribution: str) -> torch.Tensor:
    """The numbers of a distribution that may not be moved: a step beyond one makes another result right."""
    if distribution == "ties" and spec.is_float:
        return ties(spec)
    return around(spec) if distribution == "threshold" else torch.zeros(0, dtype=spec.dtype)


def around(spec: ArraySpec) -> torch.Tensor:
    """Thresholds that the type holds, with either sign, and numbers on both sides of each; of whole numbers also those
    of one bit, of all bits, and at which 24 bits and the type end (of unsigned ones the bits).

    >>> around(ArraySpec("a", "float32", 1, "in", 4, None, (1000.0,))).tolist()
    [1000.0, -1000.0, 984.375, 1015.625]
    >>> around(ArraySpec("a", "uint8", 1, "in", 4, None, (100.0, 300.0))).tolist()
    [99, 100, 101, 16, 32, 64, 128, 0, 254, 255]
    """
    given = [each for each in spec.thresholds if abs(each) <= (100.0 if spec.scalar == "float16" else MOST_THRESHOLD)]
    if spec.is_float:
        near = [each * factor for each in given for factor in (1.0, -1.0, 63 / 64, 65 / 64)]
        return torch.tensor(near, dtype=torch.float64).to(spec.dtype)
    bits_of_it = 8 * spec.dtype.itemsize
    least, most = (
        (0, 2**bits_of_it - 1) if spec.scalar.startswith("u") else (-(2 ** (bits_of_it - 1)), 2 ** (bits_of_it - 1) - 1)
    )
    least, most = max(least, -(2**53)), min(most, 2**53)
    whole = [int(each) + step for each in given if each == int(each) for step in (-1, 0, 1)]
    whole += [*(1 << bit for bit in range(4, 53)), 2**24 + 1, -1, least, most - 1, most]
    return torch.tensor([each for each in whole if least <= each <= most], dtype=torch.int64).to(spec.dtype)


def ties(spec: ArraySpec) -> torch.Tensor:
    """Numbers that times a scale, or divided by it, lie half-way between two whole ones: at the powers of two up to
    256, and at the scales that the texts have.

    >>> found = ties(ArraySpec("a", "float32", 1, "in", 4, None, scales=(10.0,))).tolist()
    >>> 0.5 in found, 2.5 / 16 in found, any(abs(each - 1.5 / 10) < 1e-8 for each in found)
    (True, True, True)
    """
    given = [abs(each) for each in spec.scales if 1e-4 <= abs(each) <= 1e6]
    steps = torch.tensor([*_STEPS, *(1.0 / each for each in given), *given], dtype=torch.float64)
    found = ((torch.tensor(_HALVES, dtype=torch.float64) + 0.5)[:, None] / steps).reshape(-1)
    return found[found.abs() <= MOST_TIE].to(spec.dtype)


def bounded(spec: ArraySpec, values: torch.Tensor) -> torch.Tensor:
    """Large numbers in the place of infinities; other inputs as they are."""
    if not spec.is_float or spec.limit is not None:
        return values
    most = 2.0**6 if spec.scalar == "float16" else 2.0**20
    return torch.where(torch.isinf(values), (values.sign() * most).to(spec.dtype), values)
