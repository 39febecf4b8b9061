"""Values and sizes at which the conditions in the texts go both ways: around the numbers that either compares with."""

from __future__ import annotations

from dataclasses import replace
from math import gcd

from warpwright.problems.expressions import Value
from warpwright.problems.model import Array, Problem
from warpwright.problems.shapes import Shape
from warpwright.problems.types import element_type

THRESHOLD = "threshold"
"""The distribution that has them: see `emulator.values` and `warpwright_harness.buffers`."""
MOST_SHAPES = 4
MOST_SIZE = 1 << 20
MOST_BYTES = 16 << 20
MOST_VALUE = 1e8
"""Numbers beyond would make sums overflow, which may depend on their order."""


def with_thresholds(original: Problem, candidate: Problem) -> Problem:
    """The original's problem with the numbers of both texts, those of the candidate alone first."""

    def joined(theirs: tuple[Value, ...], ours: tuple[Value, ...]) -> tuple[Value, ...]:
        return (*(number for number in theirs if number not in ours), *ours)

    return replace(
        original,
        compared=joined(candidate.compared, original.compared),
        scales=joined(candidate.scales, original.scales),
    )


def threshold_values(problem: Problem) -> tuple[float, ...]:
    """The numbers that values can lie around."""
    return tuple(float(number) for number in problem.compared if abs(number) <= MOST_VALUE)


def scale_values(problem: Problem) -> tuple[float, ...]:
    """The numbers by which values may be multiplied or divided."""
    return tuple(float(number) for number in problem.scales if abs(number) <= MOST_VALUE)


def has_threshold_values(problem: Problem) -> bool:
    """Whether the distribution shows what no other does: around a threshold, or in large whole numbers."""

    def is_whole(array: Array) -> bool:
        element = element_type(array.type)
        return element is not None and element.scalar != "bool" and "float" not in element.scalar

    inputs = [array for array in problem.arrays if array.role != "out" and array.values == "any"]
    return bool(inputs) and (bool(threshold_values(problem)) or any(map(is_whole, inputs)))


def threshold_shapes(problem: Problem) -> list[Shape]:
    """Sizes of just a threshold and of one more, where an index reaches it: one size at a time, the others small.

    What all known sizes of a symbol have in common holds for these, too: they are multiples of the same number, and a
    size that is always the same stays.
    """
    known = [shape for shape in (*problem.check, problem.own_shape) if shape]
    small = min((s for s in known if min(s.values(), default=0) > 1), key=lambda s: sorted(s.values()), default=None)
    sizes = [int(n) for n in problem.compared if n == int(n) and 1 < n <= MOST_SIZE]
    found: list[Shape] = []
    for size in sizes:
        for symbol in problem.symbols if small is not None else ():
            tried = {shape[symbol] for shape in known}
            step = gcd(*tried)
            for asked in (size + 1, size):
                shape = {**(small or {}), symbol: -(-asked // step) * step}
                is_new = len(tried) > 1 and shape not in known and shape not in found
                if is_new and len(found) < MOST_SHAPES and 0 < problem.bytes(shape) <= MOST_BYTES:
                    found.append(shape)
    return found
