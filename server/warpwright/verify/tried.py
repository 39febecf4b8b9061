"""What a kernel is tried with: sizes of every remainder, and the kinds of values that may show something of it.

The values are `emulator.drawn`'s and `warpwright_harness.drawn`'s. At every size a kernel is tried with a few kinds,
and with all of them at one size that is large enough to show something and small enough to cost little.
"""

from __future__ import annotations

import random
from math import gcd, prod

from warpwright.problems.model import Array, Problem
from warpwright.problems.shapes import Shape
from warpwright.problems.types import element_type

EVERY_DISTRIBUTION = ("normal", "integers", "large", "zeros", "special")
EDGE_DISTRIBUTIONS = ("normal", "integers")
REMAINDER_DISTRIBUTIONS = ("normal",)
OF_FLOATS = ("small", "offset", "ties", "huge")
OF_ORDER = ("ordered", "equal")
SENTINELS = ("sentinel", "below", "beyond")

KINDS = (*OF_FLOATS, *OF_ORDER, *SENTINELS)
"""Kinds at which an original may be at fault, which says nothing of the candidate: those are left out alone."""

LEAST_MODULUS, MOST_MODULUS = 8, 64
_MOST_SIZES = (1024, 96, 40, 16)
"""Of one, of two, and of more symbols: the sizes of every remainder are below."""

REMAINDER_BYTES = 4 << 20


def kinds_of(problem: Problem) -> tuple[str, ...]:
    """The kinds of values that are tried at one size beside those that are tried at every one."""
    inputs = [array for array in problem.arrays if array.role != "out"]
    if not inputs:
        return ()
    floats = OF_FLOATS if any(_is_float(array) and array.values == "any" for array in inputs) else ()
    return (*floats, *OF_ORDER, *(SENTINELS if problem.guarded else ()))


def _is_float(array: Array) -> bool:
    element = element_type(array.type)
    return element is not None and "float" in element.scalar


def remainder_shapes(problem: Problem, seed: int) -> list[Shape]:
    """Sizes of every remainder by 8, or by the largest number up to 64 by which the texts take one, sizes around a
    block, and one beyond what 16 bits hold, where the program's own may be. What all known sizes have in common holds
    for these, too (see `plan.hidden_shape`).

    Each symbol takes every remainder, each time another beside the others'.
    """
    known = [shape for shape in (*problem.check, problem.own_shape) if shape]
    steps = {symbol: gcd(*(shape[symbol] for shape in known)) for symbol in problem.symbols}
    free = [symbol for symbol in problem.symbols if len({shape[symbol] for shape in known}) > 1]
    if not free:
        return []
    drawn = random.Random(seed)
    modulus, most = _modulus(problem), _MOST_SIZES[min(len(free), len(_MOST_SIZES)) - 1]
    starts = {symbol: drawn.randrange(modulus) for symbol in free}
    strides = [stride for stride in range(1, modulus) if gcd(stride, modulus) == 1]
    found: list[Shape] = []
    for turn in range(modulus):
        shape = dict(known[0])
        for place, symbol in enumerate(free):
            remainder = (starts[symbol] + turn * strides[place % len(strides)]) % modulus
            times = drawn.randrange(max(1, most // modulus))
            shape[symbol] = steps[symbol] * ((remainder + times * modulus) or modulus)
        found.append(shape)
    if len(free) == 1:
        step, own = steps[free[0]], (problem.own_shape or {}).get(free[0], 1 << 16)
        if own >= 1 << 16:
            found.append({**known[0], free[0]: ((1 << 16) // step + drawn.randrange(1, 500)) * step})
        for threads in sorted(_block_sizes(problem)):
            found += [{**known[0], free[0]: size} for size in (threads - 1, threads, threads + 1) if size > 0]
    found = [each for n, each in enumerate(found) if each not in known and each not in found[:n]]
    return [
        each
        for each in found
        if all(size % steps[symbol] == 0 for symbol, size in each.items()) and _is_small(problem, each)
    ]


def _is_small(problem: Problem, shape: Shape) -> bool:
    return 0 < problem.bytes(shape) <= REMAINDER_BYTES


def _modulus(problem: Problem) -> int:
    numbers = {int(n) + (int(n) & 1) for n in (*problem.scales, *problem.compared) if n == int(n)}
    return max((n for n in numbers if LEAST_MODULUS <= n <= MOST_MODULUS), default=LEAST_MODULUS)


def _block_sizes(problem: Problem) -> set[int]:
    sized = [shape for shape in problem.check if problem.bytes(shape)]
    return {prod(problem.case(shape).block) for shape in sized[:1]}
