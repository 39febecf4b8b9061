"""A request drawn as an SVG image: the words of each bank with their lanes, or the sectors and what is used of them.

All text stands in filled boxes, so that the picture reads the same on a dark and on a light background: an image in a
hover does not know the editor's theme.
"""

from __future__ import annotations

import base64

from warpwright.editor.wanted import Piece, Wanted, bytes_by_sector, ranges, words_by_bank
from warpwright.facts.model import BANKS, SECTOR_BYTES, LaneAddresses, Space
from warpwright.syntax.encoding import decoded, encoded

_CELL = 14  # pixels of a word's width
_ROW = 16
_GLYPH = 5.45  # pixels of a character's width
_GAP = 4
_LABEL = 34
_FEW_SECTORS = 8  # up to here every word is drawn with its lanes
_MOST_ROWS = 12
_STYLE = (
    "text{font:9px ui-monospace,Menlo,Consolas,DejaVu Sans Mono,monospace;fill:#fff;text-anchor:middle}"
    ".h{fill:#57606a}.g{fill:#1a7f37}.b{fill:#c0392b}.n{fill:#808080;fill-opacity:.25}"
)


def lanes_image(lanes: LaneAddresses, space: Space, size: int, ideal: float | None, alt: str) -> str:
    """Markdown of the picture. Green are the words of the first `ideal` wavefronts, and sectors that are used whole or
    are no more than `ideal`; the rest is red.

    >>> same = LaneAddresses(0, (0, 0, 0), (0,) * 32)
    >>> lanes_image(same, Space.SHARED, 4, 1.0, "32 lanes")[:48]
    '![32 lanes](data:image/svg+xml;base64,PHN2ZyB4bW'
    """
    data = decoded(base64.b64encode(encoded(lanes_svg(lanes, space, size, ideal))))
    return f"![{alt}](data:image/svg+xml;base64,{data})"


def lanes_svg(lanes: LaneAddresses, space: Space, size: int, ideal: float | None) -> str:
    """The picture itself, at most some 500 pixels wide and 250 high."""
    canvas = _Canvas()
    if space is Space.SHARED:
        _draw_banks(canvas, words_by_bank(lanes.addresses, size), round(ideal or 1.0))
    else:
        wanted = bytes_by_sector(lanes.addresses, size)
        draw = _draw_sectors if len(wanted) <= _FEW_SECTORS else _draw_many_sectors
        draw(canvas, wanted, len(wanted) <= (ideal or 0.0) + 0.5)
    return canvas.svg()


class _Canvas:
    """Boxes with text in them, and how far they reach."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self.width = self.height = 0.0

    def box(self, x: float, y: float, width: float, height: float, kind: str, text: str = "") -> None:
        place = f'x="{x + 0.5:g}" y="{y + 0.5:g}" width="{width - 1:g}" height="{height - 1:g}"'
        self.parts.append(f'<rect class="{kind}" {place} rx="1.5"/>')
        if text:
            fit = f' textLength="{width - 2:g}" lengthAdjust="spacingAndGlyphs"' if len(text) * _GLYPH > width else ""
            self.parts.append(f'<text x="{x + width / 2:g}" y="{y + height / 2 + 3.2:g}"{fit}>{text}</text>')
        self.width, self.height = max(self.width, x + width), max(self.height, y + height)

    def svg(self) -> str:
        size = f'width="{self.width:g}" height="{self.height:g}"'
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" {size}><style>{_STYLE}</style>' + "".join(self.parts) + "</svg>"
        )


def _draw_banks(canvas: _Canvas, wanted: Wanted, ideal: int) -> None:
    """Banks as columns with their words below; where few banks have many words, as rows with their words behind."""
    depth = max((len(pieces) for pieces in wanted.values()), default=0)
    if depth <= len(wanted):
        canvas.box(0, 0, _LABEL, _ROW, "h", "bank")
        for bank in range(BANKS):
            x = _LABEL + bank * _CELL
            canvas.box(x, 0, _CELL, _ROW, "h", str(bank))
            pieces = wanted.get(bank, [])
            if not pieces:
                canvas.box(x, _ROW, _CELL, _ROW, "n")
            for row, (piece, text) in enumerate(_fitting(pieces, _MOST_ROWS)):
                canvas.box(x, (row + 1) * _ROW, _CELL, _ROW, "g" if row < ideal else "b", text or _lanes(piece))
        return
    for row, (bank, pieces) in enumerate(wanted.items()):
        canvas.box(0, row * (_ROW + 2), _LABEL + 10, _ROW, "h", f"bank {bank}")
        for column, (piece, text) in enumerate(_fitting(pieces, BANKS)):
            x = _LABEL + 12 + column * _CELL
            kind = "g" if column < ideal else "b"
            canvas.box(x, row * (_ROW + 2), _CELL, _ROW, kind, text or _lanes(piece))


def _fitting(pieces: list[Piece], most: int) -> list[tuple[Piece, str]]:
    """So many pieces as there is room for; the last then says how many are left out."""
    if len(pieces) <= most:
        return [(piece, "") for piece in pieces]
    return [(piece, "") for piece in pieces[: most - 1]] + [(pieces[most - 1], f"+{len(pieces) - most + 1}")]


def _draw_sectors(canvas: _Canvas, wanted: Wanted, is_ideal: bool) -> None:
    """Four sectors a row, each a heading over its bytes."""
    scale = _CELL / 4
    width = SECTOR_BYTES * scale
    for index, (sector, pieces) in enumerate(wanted.items()):
        x, y = index % 4 * (width + _GAP), index // 4 * (2 * _ROW + _GAP)
        canvas.box(x, y, width, _ROW, "h", f"sector {sector}")
        canvas.box(x, y + _ROW, width, _ROW, "n")
        kind = "g" if is_ideal or _is_whole(pieces) else "b"
        for start, end, lanes in _cells(pieces):
            canvas.box(x + start * scale, y + _ROW, (end - start) * scale, _ROW, kind, lanes)


def _cells(pieces: list[Piece]) -> list[tuple[int, int, str]]:
    """(start, end, lanes) of what is drawn of a sector: pieces of less than a word as the word that they are in."""
    words: dict[tuple[int, int], set[int]] = {}
    for piece in pieces:
        narrow = piece.end - piece.start < 4
        start = piece.start // 4 * 4 if narrow else piece.start
        end = max(start + 4, -(-piece.end // 4) * 4) if narrow else piece.end
        words.setdefault((start, end), set()).update(piece.lanes)
    return [(start, end, _lanes(Piece(start, end, tuple(sorted(at))))) for (start, end), at in sorted(words.items())]


def _draw_many_sectors(canvas: _Canvas, wanted: Wanted, is_ideal: bool) -> None:
    """Eight sectors a row: the lanes, and below them which of the bytes they use."""
    width, scale = 52, 52 / SECTOR_BYTES
    for index, pieces in enumerate(wanted.values()):
        x, y = index % 8 * (width + _GAP), index // 8 * (_ROW + 8 + _GAP)
        lanes = sorted({lane for piece in pieces for lane in piece.lanes})
        text = ranges(lanes)
        canvas.box(x, y, width, _ROW, "h", text if len(text) <= 9 else f"{len(lanes)} lanes")
        canvas.box(x, y + _ROW, width, 8, "n")
        kind = "g" if is_ideal or _is_whole(pieces) else "b"
        for piece in pieces:
            canvas.box(x + piece.start * scale, y + _ROW, max(2.0, (piece.end - piece.start) * scale), 8, kind)


def _is_whole(pieces: list[Piece]) -> bool:
    return len({byte for piece in pieces for byte in range(piece.start, piece.end)}) == SECTOR_BYTES


def _lanes(piece: Piece) -> str:
    """The lane of a piece, or how many there are."""
    return str(piece.lanes[0]) if len(piece.lanes) == 1 else f"×{len(piece.lanes)}"
