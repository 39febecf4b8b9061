"""Numbers of a formula's types in torch: how they are held while they are computed with, and what a cast makes of
them. What each means is said in docs/formulas.md."""

from __future__ import annotations

from typing import Any

import torch

Tensor = Any

FLOATS = {
    "f64": (53, -1074, 1.7976931348623157e308), "f32": (24, -149, 3.4028234663852886e38), "f16": (11, -24, 65504.0),
    "bf16": (8, -133, 3.3895313892515355e38), "f8e4m3": (4, -9, 448.0), "f8e5m2": (3, -16, 57344.0),
}  # fmt: skip
"""By name: digits, the power of two that is the least number above 0, and the largest number."""
COMPLEX = ("c64", "c128")


def is_float(kind: str) -> bool:
    return kind in FLOATS


def is_whole(kind: str) -> bool:
    return kind[0] in "iu"


def bits(kind: str) -> int:
    """Of an integer type."""
    return int(kind[1:])


def bounds(kind: str) -> tuple[int, int]:
    """The least and the largest value of an integer type; u64 ends where i64 does, as which torch holds it."""
    if kind == "bool":
        return 0, 1
    if kind[0] == "i":
        return -(1 << (bits(kind) - 1)), (1 << (bits(kind) - 1)) - 1
    return 0, (1 << min(63, bits(kind))) - 1


def working(kind: str) -> Any:
    """The type of torch in which values are held."""
    if is_float(kind):
        return torch.float64
    return torch.complex128 if kind in COMPLEX else torch.bool if kind == "bool" else torch.int64


def held(values: Tensor, kind: str) -> Tensor:
    """The values in the working type."""
    return values.to(working(kind))


def wrapped(values: Tensor, kind: str) -> Tensor:
    """Whole numbers modulo 2 to the bits of a type."""
    if not is_whole(kind) or bits(kind) == 64:
        return held(values, kind)
    low, _ = bounds(kind)
    return ((values.to(torch.int64) - low) & ((1 << bits(kind)) - 1)) + low


def cast(values: Tensor, kind: str) -> Tensor:
    """As by a cast of CUDA C++: to whole numbers towards zero, to the nearest value of the type beyond it, 0 of NaN."""
    if kind == "bool":
        return values != 0
    if not is_whole(kind):
        return rounded(held(values, kind), kind)
    if not values.dtype.is_floating_point:
        return wrapped(held(values, kind), kind)
    low, high = bounds(kind)
    above, below = values >= float(high), values <= float(low)
    whole = torch.where(above | below | values.isnan(), 0.0, values.trunc()).to(torch.int64)
    return torch.where(above, high, torch.where(below, low, whole))


def rounded(values: Tensor, kind: str) -> Tensor:
    """The nearest value of a type, of two the even one; beyond an f8 type its largest value."""
    if kind in COMPLEX:
        return values if kind == "c128" else values.to(torch.complex64).to(torch.complex128)
    if kind == "f64":
        return values
    if kind == "f32":
        return values.to(torch.float32).to(torch.float64)
    digits, least, largest = FLOATS[kind]
    _, exponent = torch.frexp(torch.where(values.isfinite(), values, 1.0))
    last = (exponent.to(torch.int64) - digits).clamp(min=least)
    near = (values * _two_to(-last)).round() * _two_to(last)
    near = torch.where(values.isfinite(), near, values)
    if kind.startswith("f8"):
        return near.clamp(-largest, largest)
    return torch.where(near.abs() > largest, torch.copysign(torch.full_like(near, torch.inf), near), near)


def _two_to(power: Tensor) -> Tensor:
    """Exactly, from the bits: of powers of normal numbers, as those of `last` are but for the largest f64."""
    return ((power.clamp(-1022, 1023) + 1023) << 52).view(torch.float64)
