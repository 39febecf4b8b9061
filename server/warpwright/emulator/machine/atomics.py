"""Atomic operations on a stretch of memory, one lane after the other where lanes name one place."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from warpwright.emulator.kinds import DTYPES
from warpwright.emulator.machine.group import Array
from warpwright.emulator.machine.memory import UNSIGNED, Stretch
from warpwright.emulator.numerics import halves


def zero(kind: str) -> Array:
    return DTYPES[kind](0)


def zeros(kind: str, size: int) -> Array:
    return np.zeros(size, dtype=DTYPES[kind])


def _increment(old: Array, limit: Array) -> Array:
    """`inc`: back to 0 behind the limit (PTX ISA, "atom")."""
    return np.where(old >= limit, zero("u4"), old + np.uint32(1))


def _decrement(old: Array, limit: Array) -> Array:
    return np.where((old == 0) | (old > limit), limit, old - np.uint32(1))


OPERATIONS: Mapping[str, Callable[..., Array]] = {
    "add": np.add,
    "min": np.minimum,
    "max": np.maximum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "exch": lambda _old, new: new,
    "cas": lambda old, compare, new: np.where(old == compare, new, old),
    "inc": _increment,
    "dec": _decrement,
    "add_f16": halves.add_f16,
    "add_f16x2": halves.pairs(halves.add_f16),
    "add_bf16": halves.add_bf16,
    "add_bf16x2": halves.pairs(halves.add_bf16, np.uint16),
}


def apply(
    stretch: Stretch, index: Array, kind: str, operation: str, operands: Sequence[Array], order: Array | None = None
) -> Array:
    """Change the elements at `index` (an array of byte places) and give what each lane found.

    Lanes that name one place take turns in `order`, a permutation of the lanes (None: in lane order): each turn is one
    step on arrays over the lanes whose turn it is, or, where more lanes than places are named, a running sum or the
    like for each place.
    """
    size = int(kind[1:])
    dtype = DTYPES[kind]
    function = OPERATIONS[operation]
    lanes = len(index)
    operands = [np.broadcast_to(operand, lanes) for operand in operands]
    by_place = np.argsort(index, kind="stable") if order is None else order[np.argsort(index[order], kind="stable")]
    places = index[by_place]
    first: Array = np.ones(lanes, dtype=bool)
    np.not_equal(places[1:], places[:-1], out=first[1:])
    starts = first.nonzero()[0]
    if len(starts) == lanes:
        old = stretch.load(index, size).view(dtype)
        stretch.store(index, size, function(old, *operands).astype(dtype, copy=False).view(UNSIGNED[size]))
        return old
    lengths = np.diff(starts, append=lanes)
    found = np.empty(lanes, dtype=dtype)
    current = stretch.load(places[starts], size).view(dtype).copy()
    if isinstance(function, np.ufunc) and len(starts) < int(lengths.max()):
        for place, (start, length) in enumerate(zip(starts, lengths, strict=True)):
            who = by_place[start : start + length]
            taken = np.concatenate([current[place : place + 1], operands[0][who].astype(dtype, copy=False)])
            passed = function.accumulate(taken, dtype=dtype)
            found[who], current[place] = passed[:-1], passed[-1]
        _leave(stretch, places, starts, by_place, found, current)
        return found
    alive = np.arange(len(starts))
    turn = 0
    while len(alive):
        who = by_place[starts[alive] + turn]
        found[who] = current[alive]
        current[alive] = function(current[alive], *(operand[who] for operand in operands))
        turn += 1
        alive = alive[lengths[alive] > turn]
    _leave(stretch, places, starts, by_place, found, current)
    return found


def _leave(stretch: Stretch, places: Array, starts: Array, by_place: Array, found: Array, current: Array) -> None:
    """Store what the last lane of each place left. What a lane before it left for a moment is a change, too."""
    word = UNSIGNED[found.itemsize]
    if stretch.is_watched:
        stretch.changes += bool((stretch.load(places, found.itemsize) != found[by_place].view(word)).any())
    stretch.store(places[starts], found.itemsize, current.view(word))
