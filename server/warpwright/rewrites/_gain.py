"""Whether an edit lets a kernel move fewer sectors, by the facts of the edited text."""

from __future__ import annotations

from warpwright.facts.analyze import analyze
from warpwright.facts.model import Kernel, Space
from warpwright.syntax.edits import TextEdit


def edited_kernel(kernel: Kernel, edits: list[TextEdit]) -> Kernel | None:
    """The kernel after edits of its file, with its other files, flags and launches as they are; None where it is gone.

    >>> from warpwright.syntax.source import Source
    >>> before = analyze(Source("a.cu", b"__global__ void k(int *a) { a[threadIdx.x] = 1; }")).kernels[0]
    >>> after = edited_kernel(before, [TextEdit(30, 41, "7 * threadIdx.x")])
    >>> after.accesses[0].expression if after else ""
    'a[7 * threadIdx.x]'
    """
    edited = kernel.source.edited(edits)
    program = kernel.again(edited) if kernel.again is not None else analyze(edited)
    return next((k for k in program.kernels if k.name == kernel.name and k.source.path == edited.path), None)


def no_fewer_sectors(kernel: Kernel, edits: list[TextEdit]) -> str:
    """Why the edited kernel would not move fewer sectors of global memory; empty where it would."""
    edited = edited_kernel(kernel, edits)
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
