"""How much a finding matters: which accesses a rule looks at, and the severity that an expert would accept."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from warpwright.facts.kept import kept_of_latest
from warpwright.facts.model import WARP, Access, AccessKind, Basis, Kernel, Launch, Space
from warpwright.rules.base import Severity
from warpwright.rules.words import launch_of

COUNTED = frozenset({Basis.EXACT, Basis.ASSUMED, Basis.EMULATED, Basis.MEASURED})
"""Bases whose numbers can be shown. An index read from memory is data-dependent, and nothing is said about it."""
SURE = COUNTED - {Basis.ASSUMED}
"""Bases whose numbers hold for the kernel as it is launched."""
SMALL_SHARE = 0.1
"""Share of a kernel's transactions up to which what an array's accesses have too many is not worth a warning."""
_ONE_BLOCK = 1024
_GRAVITY = (Severity.HINT, Severity.INFORMATION, Severity.WARNING, Severity.ERROR)
_OTHER_AXES = re.compile(rb"\bthreadIdx\s*\.\s*[yz]\b")
_Memory = tuple[Space, int]
_Array = tuple[Space, int, str | None, AccessKind]
_Transactions = tuple[dict[_Memory, float], dict[_Array, float]]


def worst_by_place(accesses: Iterable[Access], cost: Callable[[Access], float]) -> list[Access]:
    """One access per place in the text, of all its launches and kinds the one of the greatest cost."""
    worst: dict[tuple[str, int, int], Access] = {}
    for access in accesses:
        key = access.span.key
        if key not in worst or cost(access) > cost(worst[key]):
            worst[key] = access
    return list(worst.values())


def at_most(limit: Severity, severity: Severity) -> Severity:
    """
    >>> at_most(Severity.INFORMATION, Severity.WARNING)
    <Severity.INFORMATION: 'information'>
    """
    return min(limit, severity, key=_GRAVITY.index)


def weighed(kernel: Kernel, access: Access, severity: Severity) -> Severity:
    """The severity that an expert would accept for this access.

    - A place that runs once per thread of a launch of one block costs nanoseconds: a hint.
    - A request of a few lanes (a tail, one row of a halo) cannot cost much: a hint.
    - What is too many at this and the like accesses of the array is a small share of what the kernel moves through that
      memory: information.
    - A block shape that was assumed, in a kernel whose lanes depend on it: information.
    """
    launch = launch_of(kernel, access.launch)
    if launch is None:
        return at_most(Severity.INFORMATION, severity)
    if access.active_lanes < WARP / 8 and not access.in_loop:
        return Severity.HINT
    threads = threads_of(launch)
    if not access.in_loop and threads is not None and threads <= _ONE_BLOCK:
        return Severity.HINT
    if launch.basis is not Basis.EXACT and is_shaped(kernel, launch):
        return at_most(Severity.INFORMATION, severity)
    if wasted_share(kernel, access) < SMALL_SHARE:
        return at_most(Severity.INFORMATION, severity)
    return severity


def wasted_share(kernel: Kernel, access: Access) -> float:
    """What an access and those of its kind to the same array have too many, as a share of the transactions that the
    kernel would make in that memory if all others were ideal; accesses that were not counted are left out."""
    needed, wasted = _transactions(kernel)
    memory = (access.space, access.launch)
    wasted_here = wasted.get((*memory, access.array, access.kind), 0.0)
    return wasted_here / (needed[memory] + wasted_here) if needed.get(memory) else 1.0


@kept_of_latest
def _transactions(kernel: Kernel) -> _Transactions:
    """What a kernel needs in each memory, and what its accesses to each array have too many, for each launch."""
    needed: dict[_Memory, float] = {}
    wasted: dict[_Array, float] = {}
    for access in kernel.accesses:
        shared = access.space is Space.SHARED
        got = access.wavefronts_per_request if shared else access.sectors_per_request
        ideal = access.ideal_wavefronts_per_request if shared else access.ideal_sectors_per_request
        if got is not None and ideal is not None:
            memory, array = (access.space, access.launch), (access.space, access.launch, access.array, access.kind)
            needed[memory] = needed.get(memory, 0.0) + access.requests * ideal
            wasted[array] = wasted.get(array, 0.0) + access.requests * (got - ideal)
    return needed, wasted


@kept_of_latest
def is_small(kernel: Kernel) -> bool:
    """Whether every launch is known to be of so few threads that what each of them does costs nothing to speak of."""
    totals = [threads_of(launch) for launch in kernel.launches]
    return bool(totals) and all(total is not None and total <= _ONE_BLOCK for total in totals)


def is_shaped(kernel: Kernel, launch: Launch) -> bool:
    """Whether lanes of a warp can differ in more than threadIdx.x, so that another block shape gives other lanes."""
    if launch.block[1:] != (1, 1):
        return True
    return _OTHER_AXES.search(kernel.source.data, kernel.span.start, kernel.span.end) is not None


def threads_of(launch: Launch) -> int | None:
    """Threads of the whole launch, None where its grid or block is not known."""
    total = launch.threads
    for extent in launch.grid:
        total = total * extent if total is not None and extent is not None else None
    return total
