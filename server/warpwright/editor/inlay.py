"""What stands behind an access in the text of a document: how many transactions it costs, and the fewest."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from warpwright.editor.analysis import Analysis
from warpwright.editor.markdown import prose
from warpwright.facts.model import Access, Basis, Space
from warpwright.rules.gains import times_by_line
from warpwright.rules.words import number
from warpwright.syntax.encoding import encoded
from warpwright.syntax.source import Span

_NOTABLE = 1.25
_SPACES = (Space.GLOBAL, Space.SHARED)
HOT = 0.1
"""Of a kernel's memory time, from which a line is hot."""


@dataclass(frozen=True, slots=True)
class Hint:
    """A few words behind a line of the text; `span` is empty, at the line's end. `why` is Markdown, "" where nothing
    more is to be said."""

    span: Span
    words: str
    why: str


def hints(analysis: Analysis, start: int, end: int, least: float = 0.0) -> Iterator[Hint]:
    """One for each line with a wasteful access to global or shared memory that ends in bytes [start, end] of the
    document and takes at least a share `least` of its kernel's memory time, in the order of the text. Of several
    launches it is of the one that wastes most. It stands behind the line, so that no code moves aside; of several
    accesses it names the arrays."""
    source = analysis.source
    worst: dict[Span, Access] = {}
    counts: dict[Span, set[str]] = {}
    for kernel in analysis.program.kernels:
        shares = times_by_line(kernel) if least else {}
        for access in kernel.accesses:
            span, excess = access.span, access.excess
            if least and shares.get((span.path, span.line), 0.0) < least:
                continue
            if span.path != source.path or not start <= span.end <= end or access.space not in _SPACES:
                continue
            counts.setdefault(span, set()).add(_words(access))
            if (excess or 0.0) >= _NOTABLE and (span not in worst or (worst[span].excess or 0.0) < (excess or 0.0)):
                worst[span] = access
    lines: dict[int, list[Access]] = {}
    for span, access in sorted(worst.items(), key=lambda each: each[0].end):
        lines.setdefault(source.position(span.end)[0], []).append(access)
    for line, accesses in lines.items():
        at = source.line_starts[line - 1] + len(encoded(source.line_text(line).rstrip()))
        named = [f"{access.array or access.expression}: " if len(accesses) > 1 else "" for access in accesses]
        most = ["up to " if len(counts[access.span]) > 1 else "" for access in accesses]
        words = dict.fromkeys(map("".join, zip(named, most, map(_words, accesses), strict=True)))
        why = dict.fromkeys(prose(access.why) for access in accesses if access.why)
        yield Hint(Span(source, at, at), "; ".join(words), "\n\n".join(why))


def _words(access: Access) -> str:
    """`32 wavefronts/request (ideal 1)`, with what the numbers rest on where it is not the text alone. VS Code cuts
    what is longer than 43 characters."""
    if access.transactions is None:
        return ""
    got, ideal = access.transactions
    unit = "wavefronts" if access.space is Space.SHARED else "sectors"
    basis = "" if access.basis is Basis.EXACT else f", {access.basis.value}"
    return f"{number(got)} {unit}/request (ideal {number(ideal)}){basis}"
