"""Boxes of values of dimensions: where an expression is evaluated at once.

Each dimension is an axis of its own. Those of a stage are the last axes, and each reduction puts its own before them:
arrays of all depths broadcast to each other as they are.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from warpwright.formulas.numpy_types import Array

MOST_ELEMENTS = 1 << 22
"""Of an array in between: 32 MiB of numbers of 64 bits, 64 MiB of complex ones."""


@dataclass(frozen=True)
class Dim:
    """The values of a dimension in a box, along an axis of its own, which is counted from the last, -1. `first` is
    where they begin when they follow each other and depend on no other dimension."""

    values: Array
    axis: int
    first: int | None

    @property
    def last(self) -> int:
        return (self.first or 0) + int(self.values.size)


@dataclass(frozen=True)
class Box:
    """Where an expression is evaluated: the dimensions, how many axes there are, and at which places the value counts
    (None: at all). Where it does not, an index may lie anywhere."""

    dims: Mapping[str, Dim]
    rank: int
    active: Array | None = None

    def where(self, condition: Array) -> Box:
        return replace(self, active=condition if self.active is None else self.active & condition)


def boxes(dims: tuple[str, ...], shape: tuple[int, ...]) -> Iterator[tuple[tuple[slice, ...], Box]]:
    """All of a stage's places, in boxes of at most `MOST_ELEMENTS`."""
    steps: list[int] = []
    left = MOST_ELEMENTS
    for extent in reversed(shape):
        steps.insert(0, max(1, min(extent, left)))
        left //= max(1, extent)
    starts = (range(0, extent, step) for extent, step in zip(shape, steps, strict=True))
    for corner in itertools.product(*starts):
        part = tuple(
            slice(first, min(first + step, extent)) for first, step, extent in zip(corner, steps, shape, strict=True)
        )
        inner = {}
        for place, (name, each) in enumerate(zip(dims, part, strict=True)):
            behind = len(dims) - place - 1
            values = np.arange(each.start, each.stop).reshape(-1, *(1,) * behind)
            inner[name] = Dim(values, -behind - 1, each.start)
        yield part, Box(inner, len(dims))


def padded(values: Array, rank: int) -> Array:
    """With as many axes."""
    return values.reshape((1,) * (rank - values.ndim) + values.shape)


def spread(values: Array, inner: Box, box: Box) -> Array:
    """With the full length of the axes that `inner` has before those of `box`."""
    values = padded(values, inner.rank)
    added = inner.rank - box.rank
    lengths = {each.axis: each.values.shape[0] for each in inner.dims.values() if each.axis < -box.rank}
    return np.broadcast_to(values, (*(lengths[at - inner.rank] for at in range(added)), *values.shape[added:]))
