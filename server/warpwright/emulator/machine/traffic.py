"""What one memory instruction moves, warp by warp, from the byte addresses of its lanes.

The counts are those of `warpwright.facts.memory`, whose sources they share, on arrays: a test compares the two.
"""

from __future__ import annotations

import numpy as np

from warpwright.emulator.machine.group import WARP, Array, Group
from warpwright.facts.model import BANK_BYTES, BANKS, SECTOR_BYTES

_ROW = BANKS * BANK_BYTES


def sectors(group: Group, addresses: Array, size: int) -> tuple[Array, Array]:
    """Sectors that each warp touches and the fewest possible; `addresses` (int64) are aligned to `size` <= 32 bytes."""
    ideal = -(-group.active * size // SECTOR_BYTES)
    if addresses.ndim == 0:
        counted: Array = np.ones(group.warps, dtype=np.int64)
    else:
        counted = _distinct(group, addresses >> 5)
    return counted, np.minimum(counted, ideal)


def wavefronts(group: Group, addresses: Array, size: int) -> tuple[Array, Array]:
    """Passes of shared memory for each warp and the fewest possible; `addresses` (int64) are aligned to `size`."""
    ideal = -(-group.active * size // _ROW)
    if addresses.ndim == 0 and (group.is_whole or size <= BANK_BYTES):
        counted: Array = np.full(group.warps, max(1, size // BANK_BYTES // 2), dtype=np.int64)
    elif addresses.ndim == 0:
        counted = _wide_passes(group, np.full(group.size, addresses), size)
    elif size <= BANK_BYTES:
        counted = passes(addresses >> 2, group.order, group.warps)
    else:
        counted = _wide_passes(group, addresses, size)
    return counted, np.minimum(counted, ideal)


def _distinct(group: Group, keys: Array) -> Array:
    """How many different keys the lanes of each warp have."""
    if group.is_whole:
        rows = keys.reshape(-1, WARP)
        steps = rows[:, 1:] - rows[:, :-1]
        if steps.size and steps.min() < 0:
            rows = np.sort(rows, axis=1)
            steps = rows[:, 1:] - rows[:, :-1]
        return np.count_nonzero(steps, axis=1) + 1
    changed: Array = np.ones(group.size, dtype=bool)
    np.not_equal(keys[1:], keys[:-1], out=changed[1:])
    changed[group.starts] = True
    falls = keys[1:] < keys[:-1]
    falls[group.starts[1:] - 1] = False
    if falls.any():
        by_key = np.lexsort((keys, group.order))
        keys = keys[by_key]
        np.not_equal(keys[1:], keys[:-1], out=changed[1:])
        changed[group.starts] = True
    return np.add.reduceat(changed, group.starts, dtype=np.int64)


def passes(words: Array, part: Array, parts: int) -> Array:
    """For each part (of a warp), the most different words that its lanes want of one bank."""
    slots = (part << 5) | (words & (BANKS - 1))
    counts = np.bincount(slots, minlength=parts * BANKS)
    if counts.max(initial=0) > 1:
        bits = max(5, int(words.max()).bit_length())
        keys = (part << bits) | words
        if parts << bits <= 1 << 32:
            keys = keys.astype(np.uint32)  # sorted much faster
        keys.sort()
        changed: Array = np.ones(len(keys), dtype=bool)
        np.not_equal(keys[1:], keys[:-1], out=changed[1:])
        different = keys[changed].astype(np.int64)
        counts = np.bincount((different >> bits << 5) | (different & (BANKS - 1)), minlength=parts * BANKS)
    most: Array = counts.reshape(parts, BANKS).max(axis=1)
    return most


def _wide_passes(group: Group, addresses: Array, size: int) -> Array:
    """An 8-byte access goes in halves of a warp and a 16-byte one in quarters, two at once where pairs agree: lanes
    2k and 2k + 1 have one address, or both are off."""
    words_each = size // BANK_BYTES
    per_warp = words_each
    previous_is_pair = (group.lane & 1 == 1) & (np.roll(group.lane, 1) == group.lane - 1)
    previous_is_pair[group.starts] = False
    agrees = previous_is_pair & (np.roll(addresses, 1) == addresses)
    in_pairs = 2 * np.add.reduceat(agrees, group.starts, dtype=np.int64) == group.active
    lanes_of_part = np.where(in_pairs, 2 * WARP // per_warp, WARP // per_warp)
    part = group.order * per_warp + group.lane // lanes_of_part[group.order]
    words = ((addresses >> 2)[:, None] + np.arange(words_each)).ravel()
    found = passes(words, np.repeat(part, words_each), group.warps * per_warp)
    total: Array = found.reshape(group.warps, per_warp).sum(axis=1)
    return total
