"""A request drawn as text: which bank, or which sector, each lane of the warp touches."""

from __future__ import annotations

from warpwright.facts.model import BANK_BYTES, BANKS, SECTOR_BYTES, LaneAddresses, Space

_ROW = 16


def lanes_picture(lanes: LaneAddresses, space: Space) -> str:
    """Two rows of 16 lanes, each over the bank or the sector of its first byte. Sectors count from the first touched.

    >>> by_row = LaneAddresses(0, (32, 8, 1), tuple(4 * lane if lane < 20 else None for lane in range(32)))
    >>> print(lanes_picture(by_row, Space.GLOBAL))
    lane    0  1  2  3  4  5  6  7  8  9 10 11 12 13 14 15
    sector  0  0  0  0  0  0  0  0  1  1  1  1  1  1  1  1
    lane   16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31
    sector  2  2  2  2  -  -  -  -  -  -  -  -  -  -  -  -
    """
    name = "bank" if space is Space.SHARED else "sector"
    places = _places(lanes.addresses, space)
    cells = ["-" if place is None else str(place) for place in places]
    width = max(2, *(len(cell) for cell in cells))
    label = len(name)
    rows: list[str] = []
    for start in range(0, len(cells), _ROW):
        numbers = (f"{lane:>{width}}" for lane in range(start, min(start + _ROW, len(cells))))
        rows.append(f"{'lane':<{label}} " + " ".join(numbers))
        rows.append(f"{name:<{label}} " + " ".join(f"{cell:>{width}}" for cell in cells[start : start + _ROW]))
    return "\n".join(rows)


def _places(addresses: tuple[int | None, ...], space: Space) -> list[int | None]:
    if space is Space.SHARED:
        return [None if address is None else address // BANK_BYTES % BANKS for address in addresses]
    sectors = [None if address is None else address // SECTOR_BYTES for address in addresses]
    first = min((sector for sector in sectors if sector is not None), default=0)
    return [None if sector is None else sector - first for sector in sectors]
