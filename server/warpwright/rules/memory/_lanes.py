"""How the lanes of a request lie to each other, and what else of the bytes between them a kernel uses."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from itertools import pairwise
from math import ceil

from warpwright.facts.kept import kept_of_latest
from warpwright.facts.model import SECTOR_BYTES, WIDEST, Access, AccessKind, Kernel, LaneAddresses, Space

SMALL_STRUCTURE = 64
"""Bytes of a structure that stays in the L1 cache while a lane walks over it."""
LARGEST = 1 << 16
"""Bytes of one value that are looked at."""
MOST_BESIDE = 64
"""Accesses before and behind one that are looked at together with it."""


def stride(lanes: LaneAddresses | None) -> int | None:
    """Bytes from each lane's address to the next lane's; None where that differs, or a lane between is off.

    >>> stride(LaneAddresses(0, (0, 0, 0), (None, 64, 76, 88)))
    12
    """
    on = [(lane, a) for lane, a in enumerate(lanes.addresses) if a is not None] if lanes is not None else []
    if len(on) < 2 or on[-1][0] - on[0][0] != len(on) - 1:
        return None
    steps = {b - a for (_, a), (_, b) in pairwise(on)}
    return steps.pop() if len(steps) == 1 else None


def walks_on(access: Access) -> bool:
    """Whether each lane goes along consecutive elements in a loop, and starts in the sector where the lane before did
    or the next: what is moved for one iteration is still in the L1 cache for the others."""
    apart = stride(access.lanes)
    return (
        apart is not None
        and access.loop_step == access.bytes
        and abs(apart) <= SECTOR_BYTES
        and access.kind is AccessKind.LOAD
    )


def first_address(access: Access) -> int | None:
    """The address of the first lane that is on."""
    return next((a for a in access.lanes.addresses if a is not None), None) if access.lanes is not None else None


def steps_over_structures(access: Access) -> bool:
    """Whether consecutive lanes use neighbouring structures of an array, a part of each at a time.

    Not where each lane walks over an array in a large structure: that is as if each lane walked over a row.
    """
    structure = access.structure
    if structure is None or access.bytes >= structure.bytes or stride(access.lanes) != structure.bytes:
        return False
    return not access.loop_step or structure.bytes <= SMALL_STRUCTURE


def beside(kernel: Kernel, access: Access) -> list[Access]:
    """The accesses to the same array by the same warp, the access itself among them; of very many the nearest ones."""
    if access.lanes is None:
        return []
    groups, places = _groups(kernel)
    group = groups[_group(access, access.lanes)]
    at = places[id(access)]
    return group[max(0, at - MOST_BESIDE) : at + MOST_BESIDE]


_Groups = tuple[dict[Hashable, list[Access]], dict[int, int]]


@kept_of_latest
def _groups(kernel: Kernel) -> _Groups:
    """A kernel's accesses by array and warp, and where in its group each stands, by its id."""
    found: dict[Hashable, list[Access]] = {}
    places: dict[int, int] = {}
    for access in kernel.accesses:
        if access.lanes is not None:
            group = found.setdefault(_group(access, access.lanes), [])
            places[id(access)] = len(group)
            group.append(access)
    return found, places


def _group(access: Access, lanes: LaneAddresses) -> Hashable:
    return access.array, access.launch, access.space, lanes.warp, lanes.block


def used_offsets(accesses: Iterable[Access], period: int, base: int) -> set[int]:
    """Which bytes of every `period`, counted from address `base`, these accesses use in a lane."""
    used: set[int] = set()
    for access in accesses:
        first = first_address(access)
        if first is not None and stride(access.lanes) == period:
            step = access.loop_step or period
            times = min(round(access.iterations), max(1, period // abs(step)))
            starts = range(first - base, first - base + times * step, step)
            used |= {
                (start + byte) % period for start in starts for byte in range(min(period, LARGEST, access.value_bytes))
            }
    return used


def elements_of_a_lane(kernel: Kernel, access: Access) -> list[Access]:
    """The accesses that together use all of a small piece of memory in each lane, element by element.

    Example: `a[4 * i]` to `a[4 * i + 3]`, 16 bytes in each lane. Empty where the lanes are further apart than the
    widest access, or something between them is not used.
    """
    step = stride(access.lanes)
    if access.space is not Space.GLOBAL or access.structure is not None or step is None:
        return []
    if step not in (4, 8, WIDEST) or access.bytes >= step:
        return []
    same = [
        a
        for a in beside(kernel, access)
        if a.kind is access.kind
        and a.bytes == access.bytes
        and a.active_lanes == access.active_lanes
        and stride(a.lanes) == step
        and (a.sectors_per_request or 0.0) <= ceil(a.active_lanes * step / SECTOR_BYTES)
    ]
    firsts = {first: a for a in same if (first := first_address(a)) is not None}
    start = min(firsts, default=1)
    wanted = [start + offset for offset in range(0, step, access.bytes)]
    if start % step or any(first not in firsts for first in wanted):
        return []
    return [firsts[first] for first in wanted]
