"""What the counts of two texts of one kernel differ in, in sentences."""

from __future__ import annotations

from warpwright.facts.model import Divergence, Kernel, Space
from warpwright.rules.words import number

NOTABLE = 1.05
"""Times more or fewer; a smaller difference of the counts is not said."""


def counted_changes(before: Kernel, after: Kernel) -> list[str]:
    """What the counts were and are, per kind of number that changed.

    For example: "Shared memory: 16.5 times fewer wavefronts." Counts are of the requests that were looked at in the
    kernel's first launch, so that they can be compared between two texts of one kernel.
    """
    said: list[str] = []
    for space, noun in ((Space.SHARED, "wavefronts"), (Space.GLOBAL, "sectors")):
        was, now = _transactions(before, space), _transactions(after, space)
        if was and now and max(was / now, now / was) >= NOTABLE:
            more = now > was
            factor = number(now / was if more else was / now)
            said.append(f"{space.capitalize()} memory: {factor} times {'more' if more else 'fewer'} {noun}.")
    was_split, now_split = _diverging(before), _diverging(after)
    if was_split != now_split:
        said.append(f"Branches that split every warp: {was_split} before, {now_split} after.")
    if before.shared_bytes != after.shared_bytes and None not in (before.shared_bytes, after.shared_bytes):
        said.append(f"Shared memory of a block: {before.shared_bytes} bytes become {after.shared_bytes}.")
    return said


def _transactions(kernel: Kernel, space: Space) -> float | None:
    """Sectors (global) or wavefronts (shared) of all requests looked at in the first launch; None where unknown."""
    total = 0.0
    for access in kernel.accesses:
        if access.launch == 0 and access.space is space:
            each = access.wavefronts_per_request if space is Space.SHARED else access.sectors_per_request
            if each is None:
                return None
            total += each * access.requests
    return total


def _diverging(kernel: Kernel) -> int:
    return sum(b.divergence is Divergence.EVERY_WARP and b.launch == 0 for b in kernel.branches)
