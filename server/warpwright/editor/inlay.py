"""What stands behind an access in the text of a document: how many transactions it costs where fewer would do."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from warpwright.editor.analysis import Analysis
from warpwright.editor.markdown import number, prose
from warpwright.facts.model import Access, Basis, Space
from warpwright.syntax.source import Span

_NOTABLE = 1.05
_SPACES = (Space.GLOBAL, Space.SHARED)


@dataclass(frozen=True, slots=True)
class Hint:
    """A few words behind `span`; `why` is Markdown, "" where nothing more is to be said."""

    span: Span
    words: str
    why: str


def hints(analysis: Analysis, start: int, end: int) -> Iterator[Hint]:
    """One for each wasteful access to global or shared memory that ends in bytes [start, end] of the document, in the
    order of the text. Of several launches it is of the one that wastes most."""
    worst: dict[Span, Access] = {}
    counts: dict[Span, set[str]] = {}
    for kernel in analysis.program.kernels:
        for access in kernel.accesses:
            span, excess = access.span, access.excess
            if span.path != analysis.source.path or not start <= span.end <= end or access.space not in _SPACES:
                continue
            counts.setdefault(span, set()).add(_words(access))
            if (excess or 0.0) >= _NOTABLE and (span not in worst or (worst[span].excess or 0.0) < (excess or 0.0)):
                worst[span] = access
    for span, access in sorted(worst.items(), key=lambda each: each[0].end):
        most = "up to " if len(counts[span]) > 1 else ""
        yield Hint(span, f"{most}{_words(access)}", prose(access.why))


def _words(access: Access) -> str:
    """`32 wavefronts, 1 would do`, with what the numbers rest on where it is not the text alone."""
    if access.space is Space.SHARED:
        unit, got, ideal = "wavefronts", access.wavefronts_per_request, access.ideal_wavefronts_per_request
    else:
        unit, got, ideal = "sectors", access.sectors_per_request, access.ideal_sectors_per_request
    if got is None or ideal is None:
        return ""
    basis = "" if access.basis is Basis.EXACT else f" ({access.basis.value})"
    return f"{number(got)} {unit}, {number(ideal)} would do{basis}"
