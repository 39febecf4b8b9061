"""A request drawn as text: which lanes want which words of which bank, or which sectors."""

from __future__ import annotations

from itertools import groupby

from warpwright.editor.wanted import Wanted, bytes_by_sector, ranges, words_by_bank
from warpwright.facts.model import LaneAddresses, Space

_ROWS = 16
_LANES = 52  # characters of a row's list of lanes


def lanes_picture(lanes: LaneAddresses, space: Space, size: int) -> str:
    """A line for each bank with its words, or for each sector, and the lanes that want them; like ones on one line.

    `size` is how many bytes each lane wants. Sectors count from the first touched; a bar shows which eighths of a
    sector are used.

    >>> column = LaneAddresses(0, (0, 0, 0), tuple(128 * lane for lane in range(32)))
    >>> print(lanes_picture(column, Space.SHARED, 4))
    bank  words  lanes
    0        32  0-31
    >>> row = LaneAddresses(0, (0, 0, 0), tuple(4 * lane if lane < 20 else None for lane in range(32)))
    >>> print(lanes_picture(row, Space.GLOBAL, 4))
    sector  used      lanes
    0       ########  0-7
    1       ########  8-15
    2       ####....  16-19
    >>> apart = LaneAddresses(0, (0, 0, 0), tuple(64 * lane for lane in range(3)))
    >>> print(lanes_picture(apart, Space.GLOBAL, 4))
    sector  used      lanes
    0       #.......  0
    2       #.......  1
    4       #.......  2
    """
    if space is Space.SHARED:
        return _banks(words_by_bank(lanes.addresses, size))
    return _sectors(bytes_by_sector(lanes.addresses, size))


def _banks(wanted: Wanted) -> str:
    rows: list[tuple[str, str, str]] = []
    depth = {bank: len(pieces) for bank, pieces in wanted.items()}
    for words, group in groupby(wanted, key=lambda bank: depth[bank]):
        banks = list(group)
        lanes = sorted({lane for bank in banks for piece in wanted[bank] for lane in piece.lanes})
        rows.append((ranges(banks) if len(banks) > 2 else " ".join(map(str, banks)), str(words), ranges(lanes)))
    rows = _merged(rows)
    width = max(4, *(len(banks) for banks, _, _ in rows)) if rows else 4
    lines = [f"{'bank':<{width}}  words  lanes", *(f"{b:<{width}}  {w:>5}  {_cut(ls)}" for b, w, ls in rows)]
    return "\n".join(_shortened(lines))


def _merged(rows: list[tuple[str, str, str]]) -> list[tuple[str, str, str]]:
    """Banks that alternate, such as every second one, make one row for each number of words."""
    if len(rows) <= _ROWS:
        return rows
    by_words: dict[str, list[tuple[str, str, str]]] = {}
    for row in rows:
        by_words.setdefault(row[1], []).append(row)
    return [
        (_cut(" ".join(banks for banks, _, _ in group), 24), words, " ".join(lanes for _, _, lanes in group))
        for words, group in by_words.items()
    ]


def _sectors(wanted: Wanted) -> str:
    width = max(6, *(len(str(sector)) for sector in wanted)) if wanted else 6
    lines = [f"{'sector':<{width}}  used      lanes"]
    for sector, pieces in wanted.items():
        used = {byte // 4 for piece in pieces for byte in range(piece.start, piece.end)}
        bar = "".join("#" if word in used else "." for word in range(8))
        lanes = sorted({lane for piece in pieces for lane in piece.lanes})
        lines.append(f"{sector:<{width}}  {bar}  {_cut(ranges(lanes))}")
    return "\n".join(_shortened(lines))


def _shortened(lines: list[str]) -> list[str]:
    """The heading and as many rows as a hover has room for: the first ones, and the last."""
    if len(lines) <= _ROWS + 1:
        return lines
    return [*lines[:_ROWS], f"... {len(lines) - _ROWS - 1} more like these ...", lines[-1]]


def _cut(text: str, width: int = _LANES) -> str:
    return text if len(text) <= width else text[: width - 1].rsplit(" ", 1)[0] + " …"
