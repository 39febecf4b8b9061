"""Numbers as the reference holds them, and as a type of a formula stores them.

Inside, a floating-point number has 64 bits, a complex one 128, a whole number 64 (u64 without a sign). What a narrower
type makes of a value is `cast` (where a formula says so, and where a whole number is stored) and `rounded` (what a
kernel that computes without error would leave in an array).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from warpwright.formulas.types import ElementType

Array = Any
"""A NumPy array."""

_SMALLEST = {"f16": -24, "bf16": -133, "f8e4m3": -9, "f8e5m2": -16}
"""The power of two that is the least number above 0, by type."""
_KEPT = {"f64": np.float64, "f32": np.float32, "f16": np.float16, "c64": np.complex64, "c128": np.complex128}


def working(kind: ElementType) -> Any:
    """The NumPy type in which values of `kind` are held while they are computed with."""
    if kind.kind == "integer":
        return np.uint64 if kind.name == "u64" else np.int64
    return {"bool": np.bool_, "float": np.float64, "complex": np.complex128}[kind.kind]


def held(values: Array, kind: ElementType) -> Array:
    """The values in the working type of `kind`; whole numbers modulo 2**64, as C converts them."""
    return np.asarray(values).astype(working(kind), copy=False)


def wrapped(values: Array, kind: ElementType) -> Array:
    """Whole numbers modulo 2 to the bits of `kind`.

    >>> from warpwright.formulas.types import TYPES
    >>> wrapped(np.array([127, 128, -129]), TYPES["i8"]).tolist()
    [127, -128, 127]
    """
    if kind.kind != "integer" or kind.bits == 64:
        return held(values, kind)
    values = np.asarray(values).astype(np.int64, copy=False)
    low, _ = kind.bounds
    return ((values - low) & ((1 << kind.bits) - 1)) + low


def cast(values: Array, kind: ElementType) -> Array:
    """The values converted as by a cast of CUDA C++. A floating-point number becomes whole towards zero; beyond the
    type it becomes the nearest value of it and NaN becomes 0, as the GPU's conversions have it. To a floating-point
    type it is `rounded`. Whole numbers wrap around.

    >>> from warpwright.formulas.types import TYPES
    >>> cast(np.array([-1.9, 300.0, np.nan]), TYPES["u8"]).tolist()
    [0, 255, 0]
    """
    values = np.asarray(values)
    if kind.kind == "bool":
        return values != 0
    if kind.kind != "integer":
        return rounded(held(values, kind), kind)
    if values.dtype.kind != "f":
        return wrapped(held(values, kind), kind)
    low, high = kind.bounds
    # 2**63 is the nearest number of 64 bits to the largest i64, so what reaches it is set apart.
    above, below = values >= float(high), values <= float(low)
    inside = np.where(above | below | np.isnan(values), 0.0, np.trunc(values))
    whole = inside.astype(working(kind))
    return np.where(above, working(kind)(high), np.where(below, working(kind)(low), whole))


def rounded(values: Array, kind: ElementType) -> Array:
    """The nearest value of `kind`, of two the even one. Beyond the largest value is infinity; of an f8 type the
    largest value itself (CUDA's `__NV_SATFINITE`).

    >>> from warpwright.formulas.types import TYPES
    >>> rounded(np.array([1.00390625, 1e39]), TYPES["bf16"]).tolist()
    [1.0, inf]
    >>> rounded(np.array([17.0, 19.0, 1000.0, -np.inf]), TYPES["f8e4m3"]).tolist()
    [16.0, 20.0, 448.0, -448.0]
    """
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        if kind.kind == "complex":
            return values if kind.bits == 128 else values.astype(np.complex64).astype(np.complex128)
        if kind.name == "f64":
            return values
        if kind.name in ("f32", "f16"):
            return values.astype(_KEPT[kind.name]).astype(np.float64)
        _, exponent = np.frexp(values)
        last = np.maximum(exponent - kind.digits, _SMALLEST[kind.name])
        near = np.ldexp(np.rint(np.ldexp(values, -last)), last)
        near = np.where(np.isfinite(values), near, values)
        if kind.bits == 8:
            return np.clip(near, -kind.largest, kind.largest)
        return np.where(np.abs(near) > kind.largest, np.copysign(np.inf, near), near)


def kept(values: Array, kind: ElementType) -> Array:
    """The values as an array of `kind`. NumPy has no bf16 and no f8: these are f32 that hold a value of the type.

    >>> from warpwright.formulas.types import TYPES
    >>> kept(np.array([1 / 3]), TYPES["f16"])
    array([0.3333], dtype=float16)
    """
    if kind.kind == "bool":
        return np.asarray(values).astype(np.bool_)
    if kind.kind == "integer":
        return cast(values, kind).astype(f"{'i' if kind.signed else 'u'}{kind.bits // 8}")
    return rounded(held(values, kind), kind).astype(_KEPT.get(kind.name, np.float32))
