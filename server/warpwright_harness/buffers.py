"""Device buffers with guard zones, and the values that inputs hold."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

GUARD_BYTES = 64 << 10
POISONS = (0x7FFDA5A5, 0x3FFB5A5B)
"""Filled into outputs and guards, a different one in each of two runs; `poisons_of` draws secret ones."""

DISTRIBUTIONS = ("normal", "integers", "large", "zeros", "special", "threshold")
MOST_THRESHOLD = 1e8
"""Around larger ones sums would overflow, which may depend on their order."""
SPECIAL = (float("nan"), float("inf"), float("-inf"), -0.0)
"""Among the "special" values, with denormal numbers of both signs. The largest finite numbers are not: whether a sum of
them overflows depends on its order, which an honest rewrite may change."""

_TORCH: dict[str, Any] = {
    "float32": torch.float32, "float64": torch.float64, "float16": torch.float16, "bfloat16": torch.bfloat16,
    "bool": torch.uint8, "int8": torch.int8, "uint8": torch.uint8, "int16": torch.int16, "uint16": torch.int16,
    "int32": torch.int32, "uint32": torch.int32, "int64": torch.int64, "uint64": torch.int64,
}  # fmt: skip


def torch_type(scalar: str) -> Any:
    """The type in which torch holds a kernel's scalars; of unsigned ones the bits."""
    return _TORCH[scalar]


_ODD = 0x1E3779B97F4A7C15
_BITS: dict[int, Any] = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


@dataclass(frozen=True)
class ArraySpec:
    """One array argument at one shape: `count` elements of `components` scalars each; `limit` bounds index values.
    `thresholds` are the numbers that the kernels' texts compare with."""

    name: str
    scalar: str
    components: int
    role: str
    count: int
    limit: int | None
    thresholds: tuple[float, ...] = ()

    @property
    def dtype(self) -> Any:
        return torch_type(self.scalar)

    @property
    def scalars(self) -> int:
        return self.count * self.components

    @property
    def is_float(self) -> bool:
        return "float" in self.scalar

    @property
    def is_input(self) -> bool:
        return self.role != "out"

    @property
    def is_output(self) -> bool:
        return self.role != "in"


def poisons_of(seed: int) -> tuple[int, int]:
    """What two runs fill outputs and guards with: 32 bits each, different in every byte, so that no type's value can be
    both. The first is NaN as float and as double, the second an ordinary number as either: a kernel that tells
    memory that nobody has written from a result by looking for NaN gives itself away.

    >>> first, second = poisons_of(1)
    >>> all((first >> at) & 255 != (second >> at) & 255 for at in (0, 8, 16, 24))
    True
    """
    drawn = random.Random(seed)
    first = 0x7FFD0000 | drawn.randrange(1 << 16)
    second = drawn.choice((0x3E, 0x3F, 0x40, 0x41))
    for at in (16, 8, 0):
        second = second << 8 | drawn.choice([byte for byte in range(1, 255) if byte != (first >> at) & 255])
    return first, second


class Buffer:
    """`spec.count` elements on `device` between two guard zones of GUARD_BYTES, and what fills the last word of four
    bytes behind them."""

    def __init__(self, spec: ArraySpec, device: str) -> None:
        self.spec = spec
        self.bytes = spec.scalars * spec.dtype.itemsize
        words = -(-self.bytes // 4)
        self._raw = torch.empty(GUARD_BYTES + 4 * words + GUARD_BYTES, dtype=torch.uint8, device=device)
        self.data = self._raw[GUARD_BYTES : GUARD_BYTES + self.bytes].view(spec.dtype)
        whole, zone = self._raw.view(torch.int32), GUARD_BYTES // 4
        self.zones = (whole[:zone], whole[zone + words :])
        self.last_word = whole[zone + words - 1] if self.bytes % 4 else None

    @property
    def address(self) -> int:
        return int(self._raw.data_ptr()) + GUARD_BYTES

    def fill(self, poison: int, values: torch.Tensor | None) -> None:
        """Poison everything; an input then holds its values."""
        if values is None or self.bytes < GUARD_BYTES:
            self._raw.view(torch.int32).fill_(poison)
        else:
            for zone in self.zones if self.last_word is None else (*self.zones, self.last_word):
                zone.fill_(poison)
        if values is not None:
            self.data.copy_(values)

    def poisoned(self, poison: int) -> torch.Tensor:
        """Per scalar: whether all its bytes are still the poison's."""
        whole = self._raw.view(torch.int32)
        reference = torch.full_like(whole, poison).view(torch.uint8)[GUARD_BYTES : GUARD_BYTES + self.bytes]
        return bits(self.data) == bits(reference.view(self.spec.dtype))


def guards_broken(buffers: Sequence[Buffer], poison: int) -> torch.Tensor:
    """Of each buffer whether the memory around its data is not the poison's any more: booleans on its device, which
    nobody waited for."""
    if not buffers:
        return torch.zeros(0, dtype=torch.bool)
    zones = torch.stack([zone for buffer in buffers for zone in buffer.zones])
    broken = (zones != poison).any(dim=1).view(-1, 2).any(dim=1)
    for place, buffer in enumerate(buffers):
        if buffer.last_word is not None:
            behind = -1 << 8 * (buffer.bytes % 4)  # little-endian: the upper bytes of the word
            broken[place] |= ((buffer.last_word ^ poison) & behind) != 0
    return broken


def bits(tensor: torch.Tensor) -> torch.Tensor:
    """The same memory as whole numbers, so that NaN equals itself."""
    return tensor.view(_BITS[tensor.element_size()])


def make_values(spec: ArraySpec, distribution: str, seed: int, device: str) -> torch.Tensor:
    """Input values; the same seed gives the same values.

    normal: N(0, 1). integers: -8 to 8, on which sums and products stay exact. large: magnitudes from 1e-6 to 1e6.
    zeros. special: N(0, 1) with NaN, infinities, denormals and -0 among it, one of each at least where there
    is room. threshold: N(0, 1) with the spec's thresholds and numbers around them. Whole-number types take small
    numbers for each but large and threshold, which has numbers of the whole range, too; arrays of indices always
    take indices.
    """
    generator = torch.Generator(device=device).manual_seed(seed)
    n = spec.scalars

    def uniform() -> torch.Tensor:
        return torch.rand(n, generator=generator, device=device, dtype=torch.float64)

    if spec.limit is not None:
        return torch.randint(0, max(1, spec.limit), (n,), generator=generator, device=device).to(spec.dtype)
    if distribution == "zeros":
        return torch.zeros(n, dtype=spec.dtype, device=device)
    if spec.scalar == "bool":
        return torch.randint(0, 2, (n,), generator=generator, device=device).to(spec.dtype)
    if distribution == "threshold":
        return _around_thresholds(spec, generator)
    if not spec.is_float:
        least = 0 if spec.scalar.startswith("u") else -8
        most = 8 if distribution != "large" or spec.dtype.itemsize < 4 else 1 << 20
        return torch.randint(least, most + 1, (n,), generator=generator, device=device).to(spec.dtype)
    if distribution == "integers":
        return torch.randint(-8, 9, (n,), generator=generator, device=device).to(spec.dtype)
    if distribution == "large":
        reach = 6.0 if spec.scalar in ("float32", "float64", "bfloat16") else 2.0
        sign = torch.where(uniform() < 0.5, -1.0, 1.0)
        return (sign * torch.pow(10.0, (uniform() * 2 - 1) * reach)).to(spec.dtype)
    values = torch.randn(n, generator=generator, device=device, dtype=torch.float32).to(spec.dtype)
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


def _around_thresholds(spec: ArraySpec, generator: torch.Generator) -> torch.Tensor:
    """Half small numbers, half the others in turn at random places, each at least once where there is room."""
    n, device, others = spec.scalars, generator.device, around(spec).to(generator.device)
    if spec.is_float:
        values = torch.randn(n, generator=generator, device=device, dtype=torch.float32).to(spec.dtype)
    else:
        least = 0 if spec.scalar.startswith("u") else -8
        values = torch.randint(least, 9, (n,), generator=generator, device=device).to(spec.dtype)
        size = n // 4 * spec.dtype.itemsize
        whole = torch.randint(0, 256, (size,), generator=generator, device=device, dtype=torch.uint8)
        others = torch.cat([others, whole.view(spec.dtype)])
    places = torch.randperm(n, generator=generator, device=device)[: max(n // 2, 1) if len(others) else 0]
    if len(places):
        values[places] = others.repeat(-(-len(places) // len(others)))[: len(places)]
    return values


def around(spec: ArraySpec) -> torch.Tensor:
    """Thresholds that the type holds, with either sign, and numbers on both sides of each; of whole numbers also those
    at which 24 bits and the type end (of unsigned ones the bits).

    >>> around(ArraySpec("a", "float32", 1, "in", 4, None, (1000.0,))).tolist()
    [1000.0, -1000.0, 984.375, 1015.625]
    >>> around(ArraySpec("a", "uint8", 1, "in", 4, None, (100.0, 300.0))).tolist()
    [99, 100, 101, 0, 254, 255]
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
    whole += [2**23, 2**24, 2**24 + 1, least, most - 1, most]
    return torch.tensor([each for each in whole if least <= each <= most], dtype=torch.int64).to(spec.dtype)


def fingerprint(values: torch.Tensor) -> torch.Tensor:
    """64 bits that another content, or the same in another order, all but surely has not: one number on its device,
    which nobody waited for."""
    flat = bits(values.reshape(-1))
    words = flat.view(torch.int64) if flat.numel() * flat.element_size() % 8 == 0 else flat.to(torch.int64)
    factors = torch.arange(1, 2 * words.numel() + 1, 2, device=words.device).mul_(_ODD)  # odd: no bit of a word is lost
    return (words ^ factors).mul_(factors).sum()


class Inputs(dict[str, torch.Tensor]):
    """The values of a case's inputs by name, with the fingerprint that each had when it was made: on the host, where no
    kernel can reach."""

    def __init__(self, values: Mapping[str, torch.Tensor]) -> None:
        super().__init__(values)
        marks = [fingerprint(tensor) for tensor in values.values()]
        self.prints: dict[str, int] = dict(zip(values, torch.stack(marks).tolist() if marks else [], strict=True))


def perturbed(spec: ArraySpec, values: torch.Tensor, seed: int) -> torch.Tensor:
    """Floating-point inputs moved by one unit in the last place, up or down at random; others as they are."""
    if not spec.is_float or spec.limit is not None:
        return values
    generator = torch.Generator(device=values.device).manual_seed(seed)
    step = torch.randint(0, 2, (spec.scalars,), generator=generator, device=values.device) * 2 - 1
    epsilon = torch.finfo(spec.dtype).eps
    return (values.double() * (1.0 + epsilon * step)).to(spec.dtype)


def scaled(spec: ArraySpec, values: torch.Tensor, factor: float) -> torch.Tensor:
    """Floating-point inputs times a factor; others as they are."""
    if not spec.is_float or spec.limit is not None:
        return values
    return (values.double() * factor).to(spec.dtype)


def coarser(spec: ArraySpec, values: torch.Tensor) -> torch.Tensor:
    """Inputs rounded to the next lower precision that hardware offers: float64 to float32, float32 to TF32 (10 bits of
    mantissa, to nearest, ties away from zero), float16 to bfloat16."""
    if not spec.is_float or spec.limit is not None or spec.scalar == "bfloat16":
        return values
    if spec.scalar == "float32":
        rounded = ((bits(values) + 0x1000) & ~0x1FFF).view(torch.float32)
        return torch.where(torch.isfinite(values), rounded, values)
    return values.to(torch.float32 if spec.scalar == "float64" else torch.bfloat16).to(spec.dtype)
