"""Whether an edit lets a kernel move fewer sectors, by the facts of the edited text."""

from __future__ import annotations

from warpwright.facts.analyze import analyze
from warpwright.facts.model import Kernel, Space
from warpwright.syntax.edits import TextEdit


def no_fewer_sectors(kernel: Kernel, edits: list[TextEdit]) -> str:
    """Why the edited kernel would not move fewer sectors of global memory; empty where it would."""
    edited = analyze(kernel.source.edited(edits)).kernel(kernel.name)
    before, after = sectors(kernel), sectors(edited) if edited is not None else None
    if before is None or after is None:
        return "How many sectors the changed kernel would move cannot be counted from the text."
    if after >= before:
        return f"It would not help: one request of each access moves {before:g} sectors now and {after:g} then."
    return ""


def sectors(kernel: Kernel) -> float | None:
    """Sectors of one request of each access to global memory, added up; None where one is not known.

    An access whose work another one does has no request of its own.
    """
    made = (a for a in kernel.accesses if a.space is Space.GLOBAL and a.launch == 0 and not a.joined)
    counts = [a.sectors_per_request for a in made]
    known = [count for count in counts if count is not None]
    return sum(known) if known and len(known) == len(counts) else None
