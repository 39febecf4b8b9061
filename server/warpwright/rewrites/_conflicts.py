"""Which bank conflict a rewrite of a shared array is about."""

from __future__ import annotations

from collections.abc import Callable

from warpwright.facts.model import Access, Kernel, Space
from warpwright.rewrites._code import by_cost, overlaps
from warpwright.rewrites.base import Declined, Rewrite
from warpwright.syntax.source import Span

WORTHWHILE = 2.0
"""Wavefronts for each one needed below which a conflict is no reason to change a layout."""


def of_worst_conflict(
    kernel: Kernel, at: Span | None, name: str, cure: Callable[[Kernel, Access], Rewrite | Declined]
) -> Rewrite | Declined:
    """What `cure` makes of the dearest conflict of the kernel, or at a place, that it can be had for; else why not for
    the dearest. `name` is the rewrite's."""
    conflicts = by_cost([a for a in kernel.accesses if a.space is Space.SHARED and (a.excess or 0.0) >= WORTHWHILE])
    refusal = Declined(name, "No access to shared memory here is known to conflict.")
    for place, access in enumerate(a for a in conflicts if at is None or overlaps(a.span, at)):
        result = cure(kernel, access)
        if isinstance(result, Rewrite):
            return result
        if place == 0:
            refusal = result
    return refusal
