"""Arrays of a formula as they lie in memory: strides, packed structs, types that NumPy has not."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np

from warpwright.formulas.extents import at_sizes, strides_at
from warpwright.formulas.model import Formula, Tensor

Array = Any

STORED = {
    "f64": "<f8", "f32": "<f4", "f16": "<f2", "bf16": "<u2", "f8e4m3": "u1", "f8e5m2": "u1", "bool": "u1", "c64": "<c8",
    "c128": "<c16", "i8": "i1", "u8": "u1", "i16": "<i2", "u16": "<u2", "i32": "<i4", "u32": "<u4", "i64": "<i8",
    "u64": "<u8",
}  # fmt: skip
"""NumPy types of the same size; of types that NumPy has not, that of the bits."""


def in_memory(
    formula: Formula, values: Mapping[str, Array], sizes: Mapping[str, int], fill: int = 0
) -> dict[str, Array]:
    """Every array that a caller hands over, flat, with `values` by tensor in logical shape. Elements of which no
    tensor tells, and those of outputs, hold the byte `fill`."""
    lengths: dict[str, int] = {}
    for each in formula.tensors.values():
        lengths[each.array] = max(lengths.get(each.array, 0), _length(each, sizes))
    held: dict[str, Array] = {
        name: np.full(count * np.dtype(STORED[kind]).itemsize, fill, np.uint8).view(STORED[kind])
        for name, count in lengths.items()
        for kind in [next(each.type for each in formula.tensors.values() if each.array == name)]
    }
    for each in formula.tensors.values():
        if each.name in values:
            held[each.array][places(each, sizes)] = to_bits(values[each.name], each.type)
    return held


def outputs_of(formula: Formula, held: Mapping[str, Array], sizes: Mapping[str, int]) -> dict[str, Array]:
    """The outputs in logical shape, as numbers."""
    names = {each.name for each in formula.outputs}
    return {each.name: _of(each, held, sizes) for each in formula.tensors.values() if each.name in names}


def as_read(
    formula: Formula, values: Mapping[str, Array], held: Mapping[str, Array], sizes: Mapping[str, int]
) -> dict[str, Array]:
    """The `values` as they are read from memory, where elements that strides put at one place are the same."""
    strided = {name: each for name, each in formula.tensors.items() if each.strides is not None and name in values}
    return {**values, **{name: _of(each, held, sizes).astype(values[name].dtype) for name, each in strided.items()}}


def _of(tensor: Tensor, held: Mapping[str, Array], sizes: Mapping[str, int]) -> Array:
    """The elements of an array in logical shape, as numbers."""
    return to_numbers(np.asarray(held[tensor.array]).view(STORED[tensor.type])[places(tensor, sizes)], tensor.type)


def places(tensor: Tensor, sizes: Mapping[str, int]) -> Array:
    """Where each element lies in its array, in elements."""
    shape = tuple(at_sizes(each, sizes) for each in tensor.extents)
    strides = strides_at(tensor, shape, sizes)
    total: Array = np.full(shape, tensor.offset, np.int64)
    for place, (extent, stride) in enumerate(zip(shape, strides, strict=True)):
        line: Array = np.arange(extent, dtype=np.int64) * stride
        total += line.reshape([-1 if other == place else 1 for other in range(len(shape))])
    return total


def _length(tensor: Tensor, sizes: Mapping[str, int]) -> int:
    where = places(tensor, sizes)
    return int(where.max()) + 1 if where.size else 0


def to_bits(values: Array, kind: str) -> Array:
    """Numbers, rounded to the type, as memory holds them.

    >>> to_bits(np.array([1.0, -2.0]), "bf16"), to_bits(np.array([1.0, 448.0]), "f8e4m3")
    (array([16256, 49152], dtype=uint16), array([ 56, 126], dtype=uint8))
    """
    values = np.asarray(values)
    if kind == "bf16":
        single = np.ascontiguousarray(values, np.float32).view(np.uint32)
        rounded = single + 0x7FFF + ((single >> 16) & 1)
        return np.where(np.isnan(values), 0x7FC0, rounded >> 16).astype(np.uint16)
    if kind.startswith("f8"):
        table = _eight_bits(kind)
        order = np.argsort(table[:128][np.isfinite(table[:128])])
        finite = table[:128][np.isfinite(table[:128])][order]
        size = np.abs(values.astype(np.float64))
        above = np.clip(np.searchsorted(finite, size), 1, len(finite) - 1)
        lower, upper = finite[above - 1], finite[above]
        up = (size - lower > upper - size) | ((size - lower == upper - size) & (above % 2 == 0))
        bits = np.where(up, above, above - 1).astype(np.uint8)
        bits = np.where(np.isnan(values), 0x7F, bits).astype(np.uint8)
        return (bits | (np.signbit(values).astype(np.uint8) << 7)).astype(np.uint8)
    with np.errstate(all="ignore"):
        return values.astype(STORED[kind])


def to_numbers(bits: Array, kind: str) -> Array:
    """What memory holds, as numbers."""
    if kind == "bf16":
        return (np.asarray(bits, np.uint32) << 16).view(np.float32)
    if kind.startswith("f8"):
        return _eight_bits(kind)[np.asarray(bits, np.uint8)]
    return np.asarray(bits).astype(bool) if kind == "bool" else np.asarray(bits)


@cache
def _eight_bits(kind: str) -> Array:
    """The value of each of the 256 patterns (OCP 8-bit floating point specification, section 5)."""
    exponent_bits = 4 if kind == "f8e4m3" else 5
    mantissa_bits = 7 - exponent_bits
    bias = (1 << exponent_bits - 1) - 1
    patterns = np.arange(256)
    sign = np.where(patterns & 0x80, -1.0, 1.0)
    exponent = (patterns >> mantissa_bits) & ((1 << exponent_bits) - 1)
    mantissa = (patterns & ((1 << mantissa_bits) - 1)) / (1 << mantissa_bits)
    values = np.where(exponent == 0, mantissa * 2.0 ** (1 - bias), (1 + mantissa) * 2.0 ** (exponent - bias))
    if kind == "f8e4m3":
        values = np.where((patterns & 0x7F) == 0x7F, np.nan, values)
    else:
        special = exponent == 31
        values = np.where(special, np.where(mantissa == 0, np.inf, np.nan), values)
    return np.asarray(sign * values, np.float64)
