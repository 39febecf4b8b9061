"""Long loops over what all threads load alike, in launches of too few threads to fill a large GPU."""

from __future__ import annotations

from warpwright.facts.aliasing import loop_around
from warpwright.facts.model import WARP, Access, AccessKind, Kernel, Space
from warpwright.rewrites._limits import THREADS

MANY = 128
"""Iterations from which lanes share a loop whose elements all of them load alike."""


def walked_together(kernel: Kernel) -> list[Access]:
    """The loads of a long loop of which all lanes want one address, then the next, where lanes that shared the loop
    would load consecutive elements of all that it walks over; none where the launch has threads enough without."""
    for launch in kernel.launches:
        x, y, z = launch.grid
        if None not in (x, y, z) and (launch.threads or 0) * (x or 0) * (y or 0) * (z or 0) >= THREADS:
            return []
    loads = [a for a in kernel.accesses if a.space is Space.GLOBAL and a.in_loop]
    found: list[Access] = []
    for access in loads:
        loop = loop_around(access.span)
        together = access.addresses_per_request == 1 and access.iterations >= MANY and bool(access.loop_step)
        if loop is None or not together or access.kind is not AccessKind.LOAD:
            continue
        others = [a for a in loads if loop.start_byte <= a.span.start < loop.end_byte]
        if all(a.loop_step is not None and 0 <= a.loop_step <= max(size_of(a), 16) for a in others):
            found.append(access)
    return found


def size_of(access: Access) -> int:
    return access.structure.bytes if access.structure is not None else access.bytes


def explanation_of_few(done: str, changed: str) -> str:
    """What changes where lanes share such a loop, for the user, with what is `done` for that, and `changed` by it."""
    return (
        "Each thread went round a long loop alone, over the same elements as its neighbours, and there are too few "
        f"threads to fill a large GPU. Now {WARP} lanes share the loop of one, each every {WARP}nd iteration, and "
        f"load consecutive elements.{done} {WARP} times as many blocks are launched. Where there are "
        f"threads enough already, as {THREADS} are on a large GPU, little or nothing is gained.{changed}"
    )
