"""Device buffers with guard zones, and inputs with what is made of them."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

GUARD_BYTES = 64 << 10
POISONS = (0x7FFDA5A5, 0x3FFB5A5B)
"""Filled into outputs and guards, a different one in each of two runs; `poisons_of` draws secret ones."""

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
    `thresholds` are the numbers that the kernels' texts compare with, `scales` those by which they multiply or divide;
    `is_guarded` says that the original looks at indices before it uses them."""

    name: str
    scalar: str
    components: int
    role: str
    count: int
    limit: int | None
    thresholds: tuple[float, ...] = ()
    scales: tuple[float, ...] = ()
    is_guarded: bool = False

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
    """Floating-point inputs moved by one unit in the last place, up or down at random; others as they are.

    >>> spec, ones = ArraySpec("a", "float64", 1, "in", 64, None), torch.ones(64, dtype=torch.float64)
    >>> sorted({float(each - 1.0) / 2.0**-52 for each in perturbed(spec, ones, 1)})
    [-1.0, 1.0]
    """
    if not spec.is_float or spec.limit is not None:
        return values
    generator = torch.Generator(device=values.device).manual_seed(seed)
    step = torch.randint(0, 2, (spec.scalars,), generator=generator, device=values.device).double() * 2 - 1
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
