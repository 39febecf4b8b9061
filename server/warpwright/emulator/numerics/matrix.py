"""Matrix products of a warp: which lane holds which element, and the sums (PTX ISA, "Warp-level matrix instructions").

A fragment is an array (registers, warps, 32 lanes) of 32-bit words. f16, bf16, tf32 and 8-bit products are exact in
float64 and in 64-bit integers. The hardware adds them in an order and with a truncation that no document gives, so a
result of floats agrees with it to the precision of float32 (2^-23 of the largest term), not bit for bit; a result of
integers is exact.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from warpwright.emulator.numerics.halves import f16_of, f32_of_bf16, f32_of_f16
from warpwright.emulator.numerics.lanes import Lanes

WARP = 32

BITS: Mapping[str, int] = {
    "f16": 16, "bf16": 16, "tf32": 32, "u8": 8, "s8": 8, "f64": 64, "f32": 32, "s32": 32,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Shape:
    """A product of an m x k and a k x n matrix."""

    m: int
    n: int
    k: int


@cache
def places(matrix: str, shape: Shape, bits: int) -> tuple[Any, Any]:
    """Row and column of each element of a lane of `mma`: arrays (32 lanes, elements), in the order of its registers.

    `matrix` is "a", "b" or "c" (also d). Lane 4g + t of an 8 x 4 arrangement holds, of a and c, rows g and g + 8; a
    register holds 32 / `bits` neighbours along k.

    >>> rows, columns = places("a", Shape(16, 8, 16), 16)
    >>> [(int(r), int(c)) for r, c in zip(rows[5], columns[5])]
    [(1, 2), (1, 3), (9, 2), (9, 3), (1, 10), (1, 11), (9, 10), (9, 11)]
    """
    lane = np.arange(WARP)
    group, thread = lane >> 2, lane & 3
    rows, columns = [], []
    if matrix == "c":
        for row in range(0, shape.m, 8):
            for element in range(2):
                rows.append(group + row)
                columns.append(2 * thread + element)
        return np.stack(rows, axis=1), np.stack(columns, axis=1)
    each = max(1, 32 // bits)
    for start in range(0, shape.k, 4 * each):
        for row in range(0, shape.m, 8) if matrix == "a" else (0,):
            for element in range(each):
                along = start + each * thread + element
                rows.append(group + row if matrix == "a" else along)
                columns.append(along if matrix == "a" else group)
    return np.stack(rows, axis=1), np.stack(columns, axis=1)


def elements(words: Lanes, type_name: str) -> Lanes:
    """The numbers in registers: (registers, warps, 32) words to (warps, 32, elements) of float64 or int64."""
    stacked = np.moveaxis(words, 0, 2)
    bits = BITS[type_name]
    if bits == 64:
        return stacked.view(np.float64)
    parts = [(stacked >> np.uint32(shift)) & np.uint32((1 << bits) - 1) for shift in range(0, 32, bits)]
    flat = np.stack(parts, axis=3).reshape(*stacked.shape[:2], -1)
    match type_name:
        case "f16":
            return f32_of_f16(flat.astype(np.uint16).view(np.float16)).astype(np.float64)
        case "bf16":
            return f32_of_bf16(flat.astype(np.uint16)).astype(np.float64)
        case "tf32":
            return (flat & np.uint32(0xFFFFE000)).view(np.float32).astype(np.float64)
        case "f32":
            return flat.view(np.float32).astype(np.float64)
        case "s8":
            return flat.astype(np.uint8).view(np.int8).astype(np.int64)
        case "s32":
            return flat.view(np.int32).astype(np.int64)
    return flat.astype(np.int64)


def words(numbers: Lanes, type_name: str) -> Lanes:
    """The registers for (warps, 32, elements) numbers: the inverse of `elements`, rounded to the type."""
    if type_name == "f64":
        return np.moveaxis(numbers.view(np.uint64), 2, 0)
    if type_name == "s32":
        return np.moveaxis(numbers.astype(np.int64).astype(np.int32).view(np.uint32), 2, 0)
    if type_name == "f32":
        return np.moveaxis(numbers.astype(np.float32).view(np.uint32), 2, 0)
    halves = f16_of(numbers).view(np.uint16).astype(np.uint32)
    return np.moveaxis(halves[:, :, 0::2] | (halves[:, :, 1::2] << np.uint32(16)), 2, 0)


def multiply_add(
    shape: Shape, types: tuple[str, str, str, str], a: Lanes, b: Lanes, c: Lanes, saturate: bool = False
) -> Lanes:
    """`mma`: d = a b + c, fragments in and out; `types` are those of d, a, b and c."""
    of_d, of_a, of_b, of_c = types
    left = _matrix(elements(a, of_a), places("a", shape, BITS[of_a]), shape.m, shape.k)
    right = _matrix(elements(b, of_b), places("b", shape, BITS[of_b]), shape.k, shape.n)
    rows, columns = places("c", shape, 32)
    total = elements(c, of_c) + np.matmul(left, right)[:, rows, columns]
    return words(_saturated(total) if saturate else total, of_d)


def _matrix(numbers: Lanes, where: tuple[Any, Any], rows: int, columns: int) -> Lanes:
    whole = np.zeros((len(numbers), rows, columns), dtype=numbers.dtype)
    whole[:, where[0], where[1]] = numbers
    return whole


def _saturated(total: Lanes) -> Lanes:
    return np.clip(total, -(1 << 31), (1 << 31) - 1)


# wmma: which lane holds which element is not for programs to know, only that a, b and accumulators are each the same
# everywhere. Here element e of a matrix (row by row) is in the slots e, e + size, ... of the warp, lane by lane.


def fragment(matrix: str, shape: Shape) -> tuple[int, int]:
    """Rows and columns of the matrix "a", "b", "c" or "d" of a wmma shape."""
    return {"a": (shape.m, shape.k), "b": (shape.k, shape.n)}.get(matrix, (shape.m, shape.n))


def wmma_places(matrix: str, shape: Shape, slots: int) -> tuple[Any, Any]:
    """Row and column of each of a lane's `slots` elements: arrays (32, slots).

    >>> rows, columns = wmma_places("c", Shape(16, 16, 16), 8)
    >>> int(rows[3, 2]), int(columns[3, 2])
    (1, 10)
    """
    rows, columns = fragment(matrix, shape)
    numbers: Lanes = np.arange(WARP * slots).reshape(WARP, slots) % (rows * columns)
    return numbers // columns, numbers % columns


def wmma_multiply_add(
    shape: Shape, types: tuple[str, str, str, str], a: Lanes, b: Lanes, c: Lanes, saturate: bool = False
) -> Lanes:
    """`wmma.mma`: d = a b + c on wmma's fragments."""
    of_d, of_a, of_b, of_c = types
    parts = []
    for name, given, type_name in (("a", a, of_a), ("b", b, of_b), ("c", c, of_c)):
        numbers = elements(given, type_name)
        rows, columns = fragment(name, shape)
        parts.append(_matrix(numbers, wmma_places(name, shape, numbers.shape[2]), rows, columns))
    total = parts[2] + np.matmul(parts[0], parts[1])
    size_d = shape.m * shape.n // WARP
    rows, columns = wmma_places("d", shape, size_d)
    found = total[:, rows, columns]
    return words(_saturated(found) if saturate else found, of_d)
