"""A sum of products as a matrix product, where its axes allow it."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from warpwright.formulas.numpy_types import Array


def contracted(factors: Sequence[Array], summed: Sequence[int]) -> Array:
    """The sum over the first len(summed) axes, whose lengths are `summed`, of the product of arrays that are broadcast
    to each other.

    >>> a, b = np.ones((5, 2, 1)), np.ones((5, 1, 3))
    >>> contracted([a, b], [5]).tolist()
    [[5.0, 5.0, 5.0], [5.0, 5.0, 5.0]]
    """
    rank = max(each.ndim for each in factors)
    count = len(summed)
    rank = max(rank, count)
    full = [each.reshape((1,) * (rank - each.ndim) + each.shape) for each in factors]
    shape = np.broadcast_shapes(*(each.shape for each in full))
    # What no factor depends on counts as often as the axis is long.
    repeats = math.prod(length for axis, length in enumerate(summed) if shape[axis] == 1 and length != 1)
    if len(full) == 2:
        total = _of_two(full[0], full[1], shape, count)
    else:
        operands: list[object] = []
        for each in full:
            axes = [axis for axis in range(rank) if each.shape[axis] != 1]
            operands += [each.reshape([each.shape[axis] for axis in axes]), axes]
        kept = [axis for axis in range(count, rank) if shape[axis] != 1]
        total = np.einsum(*operands, kept, optimize=True).reshape(shape[count:])
    return total * repeats if repeats != 1 else total


def is_regrouped(factors: Sequence[Array], summed: Sequence[int]) -> bool:
    """Whether `contracted` adds up some of the factors before all are multiplied."""
    return len(factors) > 2 or any(each.shape[axis] != length for each in factors for axis, length in enumerate(summed))


def _of_two(one: Array, other: Array, shape: tuple[int, ...], count: int) -> Array:
    def axes(of_one: bool, of_other: bool, first: int, last: int) -> list[int]:
        return [a for a in range(first, last) if (one.shape[a] != 1) == of_one and (other.shape[a] != 1) == of_other]

    rank = len(shape)
    one = one.sum(axis=tuple(axes(True, False, 0, count)), keepdims=True, dtype=one.dtype)
    other = other.sum(axis=tuple(axes(False, True, 0, count)), keepdims=True, dtype=other.dtype)
    summed = axes(True, True, 0, count)
    both = axes(True, True, count, rank)
    left, right = axes(True, False, count, rank), axes(False, True, count, rank)

    def lengths(which: list[int]) -> list[int]:
        return [shape[a] for a in which]

    def matrix(array: Array, rows: list[int], columns: list[int]) -> Array:
        kept = [*both, *rows, *columns]
        rest = [a for a in range(rank) if a not in kept]
        moved = array.transpose(*kept, *rest)
        return moved.reshape(*lengths(both), math.prod(lengths(rows)), math.prod(lengths(columns)))

    product = np.matmul(matrix(one, left, summed), matrix(other, summed, right))
    order = [*both, *left, *right]
    kept = [a for a in range(count, rank) if a in order]
    result = product.reshape(lengths(order)).transpose([order.index(a) for a in kept])
    return result.reshape(shape[count:])
