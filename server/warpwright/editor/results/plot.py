"""The speedups of verified candidates as a drawing: one after the other, on a logarithmic scale, with their intervals.

It has no style of its own and no inline one, so that a page may forbid these: classes say what is what.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

from warpwright.editor.results.candidates import Candidate

_LEFT, _RIGHT, _TOP, _HEIGHT = 62.0, 16.0, 12.0, 170.0
_STRIP = 34.0
_STEP = 44.0
_LEAST_WIDTH = 560.0
_LEAST_SPAN = (0.5, 2.0)
_RADIUS = 5.0


def plot(candidates: Sequence[Candidate]) -> str:
    """An SVG: above, what was measured (filled) or predicted (hollow); in a strip below, what was refuted or has
    no speedup."""
    width = max(_LEAST_WIDTH, _LEFT + _RIGHT + _STEP * len(candidates))
    height = _TOP + _HEIGHT + _STRIP + 22
    axis = _Axis.over(candidates)
    parts = [*_grid(axis, width), *_strip(width)]
    for candidate in candidates:
        parts += _mark(candidate, _LEFT + _STEP * (candidate.number - 0.5), axis)
    return (
        f'<svg class="plot" viewBox="0 0 {width:g} {height:g}" width="{width:g}" height="{height:g}" role="img" '
        f'aria-label="Speedup of each verified candidate">{"".join(parts)}</svg>'
    )


@dataclass(frozen=True, slots=True)
class _Axis:
    """Speedups on paper: powers of two are equally far apart."""

    low: float
    high: float

    @classmethod
    def over(cls, candidates: Sequence[Candidate]) -> _Axis:
        seen = [value for candidate in candidates for value in _values(candidate)]
        low, high = min([*seen, _LEAST_SPAN[0]]), max([*seen, _LEAST_SPAN[1]])
        return cls(2.0 ** math.floor(math.log2(low)), 2.0 ** math.ceil(math.log2(high)))

    def y(self, speedup: float) -> float:
        share = (math.log2(speedup) - math.log2(self.low)) / (math.log2(self.high) - math.log2(self.low))
        return _TOP + _HEIGHT * (1 - share)

    def ticks(self) -> list[float]:
        """Powers of two, at most nine of them."""
        first, last = round(math.log2(self.low)), round(math.log2(self.high))
        step = -(-(last - first) // 8)
        return [2.0**power for power in range(first, last + 1) if power % step == 0]


def _values(candidate: Candidate) -> Iterator[float]:
    if candidate.speedup:
        yield candidate.speedup
        yield from (value for value in candidate.ci95 or () if value > 0)
    elif candidate.predicted and candidate.tone != "bad":
        yield candidate.predicted


def _grid(axis: _Axis, width: float) -> Iterator[str]:
    for tick in axis.ticks():
        y, kind = axis.y(tick), " one" if tick == 1 else ""
        yield f'<line class="grid{kind}" x1="{_LEFT:g}" y1="{y:.1f}" x2="{width - _RIGHT:g}" y2="{y:.1f}"/>'
        yield f'<text class="tick" x="{_LEFT - 8:g}" y="{y + 4:.1f}" text-anchor="end">{tick:g}x</text>'


def _strip(width: float) -> Iterator[str]:
    y = _TOP + _HEIGHT + 8
    yield f'<rect class="strip" x="{_LEFT:g}" y="{y:g}" width="{width - _LEFT - _RIGHT:g}" height="{_STRIP - 10:g}"/>'
    yield f'<text class="tick" x="{_LEFT - 8:g}" y="{y + 16:g}" text-anchor="end">untimed</text>'


def _mark(candidate: Candidate, x: float, axis: _Axis) -> Iterator[str]:
    said = escape(f"{candidate.number}. {candidate.goal}, {candidate.what}: {candidate.badge}")
    yield f'<g class="candidate {candidate.tone}" data-number="{candidate.number}"><title>{said}</title>'
    if candidate.speedup:
        y = axis.y(candidate.speedup)
        if candidate.ci95 is not None and min(candidate.ci95) > 0:
            low, high = (axis.y(value) for value in candidate.ci95)
            caps = "".join(f"M{x - 4:g} {end:.1f}h8" for end in (low, high))
            yield f'<path class="interval" d="M{x:g} {low:.1f}V{high:.1f}{caps}"/>'
        yield f'<circle class="measured" cx="{x:g}" cy="{y:.1f}" r="{_RADIUS:g}"/>'
    elif candidate.predicted and candidate.tone != "bad":
        y = axis.y(candidate.predicted)
        yield f'<circle class="predicted" cx="{x:g}" cy="{y:.1f}" r="{_RADIUS:g}"/>'
    else:
        sign = {"good": "✓", "bad": "✗"}.get(candidate.tone, "?")
        yield f'<text class="sign" x="{x:g}" y="{_TOP + _HEIGHT + 25:g}" text-anchor="middle">{sign}</text>'
    below = _TOP + _HEIGHT + _STRIP + 14
    yield f'<text class="tick" x="{x:g}" y="{below:g}" text-anchor="middle">{candidate.number}</text></g>'
