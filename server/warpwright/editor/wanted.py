"""What the lanes of a request want: the words of each bank, or the bytes of each sector."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from warpwright.facts.memory import Addresses
from warpwright.facts.model import BANK_BYTES, BANKS, SECTOR_BYTES


@dataclass(frozen=True, slots=True)
class Piece:
    """Bytes that some lanes want; `start` and `end` (exclusive) count from the start of the word or the sector."""

    start: int
    end: int
    lanes: tuple[int, ...]


Wanted = dict[int, list[Piece]]
"""By bank: one piece for each different word that is wanted there. By sector: the pieces of it that are wanted."""


def words_by_bank(addresses: Addresses, size: int) -> Wanted:
    """The different words that a request wants of each bank; a bank serves one word at a time.

    >>> wanted = words_by_bank([0, 128, 4, 4], 4)
    >>> {bank: [piece.lanes for piece in pieces] for bank, pieces in wanted.items()}
    {0: [(0,), (1,)], 1: [(2, 3)]}
    """
    words: dict[int, list[int]] = {}
    for lane, address in enumerate(addresses):
        if address is not None:
            for word in range(address // BANK_BYTES, (address + size - 1) // BANK_BYTES + 1):
                words.setdefault(word, []).append(lane)
    banks: Wanted = {}
    for word in sorted(words):
        banks.setdefault(word % BANKS, []).append(Piece(0, BANK_BYTES, tuple(words[word])))
    return dict(sorted(banks.items()))


def bytes_by_sector(addresses: Addresses, size: int) -> Wanted:
    """What a request wants of each sector, counted from the first one that it touches.

    >>> bytes_by_sector([28, 60], 8)[1]
    [Piece(start=0, end=4, lanes=(0,)), Piece(start=28, end=32, lanes=(1,))]
    """
    wanted: dict[tuple[int, int, int], list[int]] = {}
    for lane, address in enumerate(addresses):
        at, end = (address, address + size) if address is not None else (0, 0)
        while at < end:
            sector = at // SECTOR_BYTES
            upto = min(end, (sector + 1) * SECTOR_BYTES)
            wanted.setdefault((sector, at % SECTOR_BYTES, upto - sector * SECTOR_BYTES), []).append(lane)
            at = upto
    first = min((sector for sector, _, _ in wanted), default=0)
    sectors: Wanted = {}
    for sector, start, end in sorted(wanted):
        sectors.setdefault(sector - first, []).append(Piece(start, end, tuple(wanted[sector, start, end])))
    return sectors


def ranges(numbers: Sequence[int]) -> str:
    """
    >>> ranges([0, 1, 2, 3, 8]), ranges([5]), ranges([0, 2, 4, 6]), ranges([0, 1])
    ('0-3 8', '5', '0 2 4 6', '0 1')
    """
    out: list[str] = []
    at = 0
    while at < len(numbers):
        end = at
        while end + 1 < len(numbers) and numbers[end + 1] == numbers[end] + 1:
            end += 1
        if end - at < 2:
            end = at
        out.append(str(numbers[at]) if end == at else f"{numbers[at]}-{numbers[end]}")
        at = end + 1
    return " ".join(out)
