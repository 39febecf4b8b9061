"""Arrays of a formula on the GPU: drawn inputs, numbers of its types as memory holds them, and what lies around."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch

from warpwright_harness.formula_types import COMPLEX, bits, cast, held, is_whole, wrapped

Tensor = Any

GUARD = 256
"""Bytes before and behind each array that nothing may write."""
_FLOATS = {
    "f64": torch.float64, "f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16,
    "f8e4m3": torch.float8_e4m3fn, "f8e5m2": torch.float8_e5m2, "c64": torch.complex64, "c128": torch.complex128,
    "bool": torch.uint8,
}  # fmt: skip
_WHOLE = {8: torch.int8, 16: torch.int16, 32: torch.int32, 64: torch.int64}


def stored_type(kind: str) -> Any:
    """The type of torch whose bits memory holds; whole numbers without a sign are held as those with one."""
    return _FLOATS.get(kind) or _WHOLE[bits(kind)]


def to_memory(values: Tensor, kind: str) -> Tensor:
    """Numbers of a type, of the working type, as memory holds them."""
    if is_whole(kind):
        return wrapped(values, f"i{bits(kind)}").to(stored_type(kind))
    return values.to(stored_type(kind))


def from_memory(values: Tensor, kind: str) -> Tensor:
    """The opposite of `to_memory`."""
    if kind == "bool":
        return values != 0
    if kind.startswith("f8"):
        values = values.to(torch.float32)
    return wrapped(values, kind) if is_whole(kind) else held(values, kind)


class Memory:
    """The bytes of one array between guards, filled with one byte."""

    def __init__(self, count: int, kind: str, fill: int, device: Any) -> None:
        """Of `count` elements."""
        dtype = stored_type(kind)
        self.fill = fill
        self._length = count * dtype.itemsize
        padded = -(-self._length // GUARD) * GUARD
        self._bytes = torch.full((padded + 2 * GUARD,), fill, dtype=torch.uint8, device=device)
        self._typed = self._bytes.view(dtype)
        self._begin = GUARD // dtype.itemsize
        self.address = self._bytes.data_ptr() + GUARD

    def tensor(self, shape: Sequence[int], strides: Sequence[int], offset: int) -> Tensor:
        """A view of elements as they lie in the array."""
        return self._typed.as_strided(tuple(shape), tuple(strides), self._begin + offset)

    def bytes(self) -> Tensor:
        """Of the array."""
        return self._bytes[GUARD : GUARD + self._length]

    def is_guarded(self) -> bool:
        """Whether the bytes around the array are as they were."""
        return bool(
            (self._bytes[:GUARD] == self.fill).all() and (self._bytes[GUARD + self._length :] == self.fill).all()
        )


def drawn(draw: Sequence[Any], shape: Sequence[int], kind: str, style: str, device: Any) -> Tensor:
    """Values of a type, in the working type: as `warpwright.formulas.numpy_inputs` has them, by torch's generator."""
    how, low, high = draw
    size = tuple(shape)
    match how:
        case "truth":
            values = torch.rand(size, device=device) < 0.5
        case "whole" | "offsets":
            if not math.prod(size):
                return cast(torch.zeros(size, dtype=torch.int64, device=device), kind)
            values = torch.randint(int(low), int(high) + 1, size, device=device)
            if how == "offsets":
                values = values.sort(-1).values
                values[..., 0], values[..., -1] = int(low), int(high)
        case "between" | "apart":
            values = torch.rand(size, dtype=torch.float64, device=device) * (high - low) + low
            if how == "apart":
                values = values * (2 * torch.randint(2, size, device=device) - 1)
        case _ if kind in COMPLEX:
            values = torch.randn(size, dtype=torch.complex128, device=device) * math.sqrt(2.0)
        case _:
            values = _styled(size, style, device)
    return cast(values, kind)


def _styled(size: tuple[int, ...], style: str, device: Any) -> Tensor:
    values = torch.randn(size, dtype=torch.float64, device=device)
    picked = torch.rand(size, device=device) < 0.02
    match style:
        case "ties":
            return torch.randint(-2, 3, size, device=device).double()
        case "nan":
            return torch.where(picked, torch.nan, values)
        case "inf":
            return torch.where(picked, torch.copysign(torch.full_like(values, torch.inf), values), values)
    return values


def number(draw: Sequence[Any], kind: str) -> Any:
    """A number that is handed over."""
    return drawn(draw, (), kind, "normal", "cpu").item()
