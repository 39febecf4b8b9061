"""The timeline of a trace as an SVG image: columns of equal time, each filled by what its time counts for."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from warpwright.timeline.host import Cause
from warpwright.timeline.shares import Shared
from warpwright.timeline.words import milliseconds

COLOURS = {
    Cause.GPU: "#1a7f37",
    Cause.COPIES: "#bf8700",
    Cause.LAUNCHES: "#c0392b",
    Cause.SYNCHRONISATION: "#8250df",
    Cause.LOADING: "#0969da",
    Cause.OPERATORS: "#1b7c83",
    Cause.PYTHON: "#6e7781",
    Cause.HOST: "#6e7781",
    Cause.SETUP: "#953800",
    Cause.RECORDING: "#d0d7de",
}
_COLUMNS = 240
_WIDTH, _HEIGHT, _TICKS = 960, 150, 6
_STYLE = "text{font:11px system-ui,sans-serif;fill:#6e7781}"


def timeline_svg(shared: Shared) -> str:
    """The picture, with the time below it and what the colours mean."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT + 50}" role="img" '
        f'aria-label="What each moment counts for"><style>{_STYLE}</style>{"".join(_drawn(shared))}</svg>'
    )


def _drawn(shared: Shared) -> Iterator[str]:
    wide = _WIDTH / _COLUMNS
    for index, column in enumerate(columns(shared)):
        bottom = float(_HEIGHT)
        for cause, colour in COLOURS.items():
            tall = column.get(cause, 0.0) * _HEIGHT
            if tall >= 0.05:
                bottom -= tall
                place = f'x="{index * wide:.1f}" y="{bottom:.1f}" width="{wide:.1f}" height="{tall:.1f}"'
                yield f'<rect {place} fill="{colour}"/>'
    for tick in range(_TICKS + 1):
        at = _WIDTH * tick / _TICKS
        anchor = "start" if tick == 0 else "end" if tick == _TICKS else "middle"
        time = milliseconds(shared.wall * tick / _TICKS)
        yield f'<text x="{at:.0f}" y="{_HEIGHT + 14}" text-anchor="{anchor}">{time}</text>'
    left = 0.0
    for cause in (each for each in COLOURS if shared.totals().get(each)):
        yield f'<rect x="{left:.0f}" y="{_HEIGHT + 28}" width="10" height="10" fill="{COLOURS[cause]}"/>'
        yield f'<text x="{left + 14:.0f}" y="{_HEIGHT + 37}">{escape(cause)}</text>'
        left += 34 + 6.5 * len(cause)


def columns(shared: Shared, count: int = _COLUMNS) -> list[dict[Cause, float]]:
    """The window in columns of equal time, each with the part of it that each cause has."""
    found: list[dict[Cause, float]] = [{} for _ in range(count)]
    for piece in shared.pieces:
        first = (piece.start - shared.start) * count // shared.wall
        last = min(count - 1, (piece.end - shared.start - 1) * count // shared.wall)
        for index in range(first, last + 1):
            start = shared.start + shared.wall * index / count
            end = shared.start + shared.wall * (index + 1) / count
            inside = max(0.0, min(piece.end, end) - max(piece.start, start))
            found[index][piece.cause] = found[index].get(piece.cause, 0.0) + inside * count / shared.wall
    return found
