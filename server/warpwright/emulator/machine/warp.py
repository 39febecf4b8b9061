"""What lanes of a warp tell each other: shuffles, votes, matches and reductions.

Lanes of a warp that are not in the group take no part; a lane that reads from one of them gets its own value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from warpwright.emulator.machine.group import WARP, Array, Group

_ONE = np.uint32(1)


def shuffle(group: Group, kind: str, value: Array, distance: Array, clamp: Array) -> tuple[Array, Array, Array | None]:
    """Each lane's value from the lane that `kind` ("up", "down", "bfly", "idx") names, whether that is in range, and,
    where lanes are absent, the lane that each reads from which is, -1 for none.

    `value` is uint32. `clamp` packs the last lane and the mask of a segment (PTX ISA, "shfl.sync").
    """
    lane = group.lane
    b = np.broadcast_to(distance, group.size).astype(np.int64) & 31
    c = np.broadcast_to(clamp, group.size).astype(np.int64)
    limit, segment = c & 31, (c >> 8) & 31
    most = (lane & segment) | (limit & ~segment)
    least = lane & segment
    match kind:
        case "up":
            source = lane - b
            inside = source >= most
        case "down":
            source = lane + b
            inside = source <= most
        case "bfly":
            source = lane ^ b
            inside = source <= most
        case _:
            source = least | (b & ~segment)
            inside = source <= most
    source = np.where(inside, source, lane)
    if group.is_whole:
        return _among_whole_warps(value, source), inside, None
    own = group.order * WARP
    table = np.zeros(group.warps * WARP, dtype=value.dtype)
    there: Array = np.zeros(group.warps * WARP, dtype=bool)
    table[own + lane] = value
    there[own + lane] = True
    is_there = there[own + source]
    return np.where(is_there, table[own + source], value), inside, np.where(is_there, -1, source)


def _among_whole_warps(value: Array, source: Array) -> Array:
    if value.ndim == 0:
        return value
    return np.take_along_axis(value.reshape(-1, WARP), source.reshape(-1, WARP), axis=1).ravel()


def ballot(group: Group, predicate: Array) -> Array:
    """For each lane the 32 bits of its warp's predicates, those of absent lanes 0."""
    bits = np.where(predicate, _ONE << group.lane.astype(np.uint32), np.uint32(0))
    return np.bitwise_or.reduceat(bits, group.starts)[group.order]


def present(group: Group) -> Array:
    """For each lane the mask of the lanes of its warp that are here (`activemask`)."""
    return ballot(group, np.bool_(True))


def vote(group: Group, kind: str, predicate: Array, members: Array) -> Array:
    """`vote.sync`: "all", "any", "uni" or "ballot" among the lanes of the member mask."""
    here = present(group) & members
    yes = ballot(group, predicate) & members
    if kind == "ballot":
        return yes
    if kind == "any":
        return yes != 0
    if kind == "all":
        return yes == here
    return (yes == here) | (yes == 0)


def match_any(group: Group, value: Array, members: Array) -> Array:
    """The mask of the lanes in the member mask that have this lane's value (`match.any.sync`)."""
    keys = np.broadcast_to(value, group.size)
    order = np.lexsort((keys, group.order))
    first: Array = np.ones(group.size, dtype=bool)
    sorted_keys, sorted_warps = keys[order], group.order[order]
    first[1:] = (sorted_keys[1:] != sorted_keys[:-1]) | (sorted_warps[1:] != sorted_warps[:-1])
    starts = first.nonzero()[0]
    bits = (_ONE << group.lane.astype(np.uint32))[order]
    masks = np.bitwise_or.reduceat(bits, starts)
    out: Array = np.empty(group.size, dtype=np.uint32)
    out[order] = np.repeat(masks, np.diff(starts, append=group.size))
    return out & members


def match_all(group: Group, value: Array, members: Array) -> tuple[Array, Array]:
    """The member mask where all its lanes have one value, else 0; and whether they do (`match.all.sync`)."""
    same = match_any(group, value, members)
    here = present(group) & members
    agree = same == here
    return np.where(agree, here, np.uint32(0)), agree


_REDUCTIONS: Mapping[str, Callable[..., Array]] = {
    "add": np.add.reduceat,
    "min": np.minimum.reduceat,
    "max": np.maximum.reduceat,
    "and": np.bitwise_and.reduceat,
    "or": np.bitwise_or.reduceat,
    "xor": np.bitwise_xor.reduceat,
}


def reduce(group: Group, kind: str, value: Array, members: Array) -> Array:
    """`redux.sync` over the lanes of the member mask: each warp's lanes get one result."""
    keys = np.broadcast_to(members, group.size)
    values = np.broadcast_to(value, group.size)
    order = np.lexsort((keys, group.order))
    first: Array = np.ones(group.size, dtype=bool)
    first[1:] = (keys[order][1:] != keys[order][:-1]) | (np.diff(group.order[order]) != 0)
    starts = first.nonzero()[0]
    results = _REDUCTIONS[kind](values[order], starts, dtype=values.dtype)
    out: Array = np.empty(group.size, dtype=values.dtype)
    out[order] = np.repeat(results, np.diff(starts, append=group.size))
    return out
