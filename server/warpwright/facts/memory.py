"""Transactions of one warp-wide request, from the byte addresses of its lanes.

Global memory moves 32-byte sectors (CUDA C++ Best Practices Guide, "Coalesced Access to Global Memory"); shared memory
serves 32 banks of 4 bytes per wavefront (CUDA C++ Programming Guide, "Shared Memory", compute capability 5.x and
later). The passes of 8- and 16-byte accesses were measured on an H200 with Nsight Compute.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise
from math import ceil, gcd

from warpwright.facts.model import BANK_BYTES, BANKS, SECTOR_BYTES

Addresses = Sequence[int | None]
PATTERNS = 1024
"""Patterns of addresses that are kept."""
_ROW = BANKS * BANK_BYTES


@dataclass(slots=True, eq=False)
class Pattern:
    """The addresses of a request as seen from that of the first lane that is on, with what was counted of them: most
    requests of a kernel are like one before, further on."""

    offsets: tuple[int | None, ...]
    active: int  # lanes that are on
    distinct: int  # addresses
    divisor: int  # of all offsets, the greatest; 0 where all are 0
    top: int  # the greatest offset
    bottom: int  # the least
    stride: int | None  # from each lane that is on to the next, where that is one number
    by_sector: dict[tuple[int, int], int] = field(default_factory=dict)
    by_bank: dict[tuple[int, int], int] = field(default_factory=dict)

    def sectors(self, start: int, size: int) -> int:
        """See sectors(); `start` is the address of the first lane."""
        key = (start % SECTOR_BYTES, size)
        found = self.by_sector.get(key)
        if found is None:
            found = self.by_sector[key] = _sectors(self.at(key[0]), size)
        return found

    def wavefronts(self, start: int, size: int) -> int:
        """See wavefronts(); `start` is the address of the first lane."""
        key = (start % _ROW, size)
        found = self.by_bank.get(key)
        if found is None:
            found = self.by_bank[key] = _wavefronts(self.at(key[0]), size)
        return found

    def at(self, start: int) -> tuple[int | None, ...]:
        """The addresses where the first is that one."""
        return tuple([None if offset is None else start + offset for offset in self.offsets])


def placed(addresses: Addresses) -> tuple[int, Pattern]:
    """The address of the first lane that is on (0 where none is), and the pattern.

    >>> start, pattern = placed([None, 8, 12, 16])
    >>> start, pattern.offsets, pattern.active, pattern.distinct, pattern.divisor, pattern.top, pattern.stride
    (8, (None, 0, 4, 8), 3, 3, 4, 8, 4)
    """
    start = addresses[0] if addresses else 0
    if start is None:
        start = next((a for a in addresses if a is not None), 0)
    try:
        return start, _pattern(tuple([a - start for a in addresses]))  # type: ignore[operator]
    except TypeError:  # a lane that is off
        return start, _pattern(tuple([None if a is None else a - start for a in addresses]))


@lru_cache(maxsize=PATTERNS)
def _pattern(offsets: tuple[int | None, ...]) -> Pattern:
    on = [offset for offset in offsets if offset is not None]
    steps = {b - a for a, b in pairwise(on)}
    stride = steps.pop() if len(steps) == 1 else None
    return Pattern(offsets, len(on), len(set(on)), gcd(*on), max(on, default=0), min(on, default=0), stride)


def sectors(addresses: Addresses, size: int) -> int:
    """Distinct 32-byte sectors that the active lanes touch; an access of `size` bytes can straddle two.

    >>> sectors([4 * lane for lane in range(32)], 4), sectors([128 * lane for lane in range(32)], 4)
    (4, 32)
    >>> sectors([4 * lane + 4 for lane in range(32)], 4), sectors([0] * 32, 4)
    (5, 1)
    """
    start, pattern = placed(addresses)
    return pattern.sectors(start, size)


def _sectors(addresses: Addresses, size: int) -> int:
    touched = {a // SECTOR_BYTES for a in addresses if a is not None}
    if size > 1:
        touched |= {(a + size - 1) // SECTOR_BYTES for a in addresses if a is not None}
    return len(touched)


def ideal_sectors(counted: float, active: int, size: int) -> float:
    """Nsight Compute's ideal: active lanes x bytes packed densely, and never more than what was counted."""
    return min(counted, ceil(active * size / SECTOR_BYTES))


def wavefronts(addresses: Addresses, size: int) -> int:
    """Passes of shared memory for one request: lanes that want different words of one bank wait for each other.

    An 8-byte access goes in two halves of a warp, a 16-byte one in four quarters; where both lanes of every pair
    (2k, 2k+1) share an address, or are both off, two parts go at once. Lanes that are on alone keep the parts apart, as
    an H200 counts them:

    >>> wavefronts([8 * lane if lane in (3, 20) else None for lane in range(32)], 8)
    2

    >>> wavefronts([4 * lane for lane in range(32)], 4), wavefronts([128 * lane for lane in range(32)], 4)
    (1, 32)
    >>> wavefronts([0] * 32, 4), wavefronts([8 * (lane // 2) for lane in range(32)], 8)
    (1, 1)
    >>> own, pairs, one, eight = range(32), [k // 2 for k in range(32)], [0] * 32, [k % 8 for k in range(32)]
    >>> [wavefronts([16 * place for place in places], 16) for places in (own, pairs, one, eight)]
    [4, 2, 2, 4]
    >>> wavefronts([8 * (lane % 16) for lane in range(32)], 8)
    2
    """
    start, pattern = placed(addresses)
    return pattern.wavefronts(start, size)


def _wavefronts(addresses: Addresses, size: int) -> int:
    parts = max(1, size // BANK_BYTES)
    if parts > 1 and all(addresses[i] == addresses[i + 1] for i in range(0, len(addresses) - 1, 2)):
        parts = max(1, parts // 2)
    lanes = len(addresses) // parts
    total = 0
    for part in range(parts):
        banks: dict[int, set[int]] = {}
        for address in addresses[part * lanes : (part + 1) * lanes]:
            if address is not None:
                for word in range(address // BANK_BYTES, (address + size - 1) // BANK_BYTES + 1):
                    banks.setdefault(word % BANKS, set()).add(word)
        total += max(map(len, banks.values()), default=0)
    return total


def ideal_wavefronts(counted: float, active: int, size: int) -> float:
    """Nsight Compute's ideal: active lanes x bytes over 128 bytes a wavefront, never more than what was counted."""
    return min(counted, ceil(active * size / _ROW))
