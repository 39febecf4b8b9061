"""What a finding is worth: the share of its kernel's time that would go with it, as far as the text tells.

The time is that of the kernel's memory transactions, which most kernels wait for. An estimate to rank findings by, as
Nsight Compute gives one for each of its rules, and no promise: a cache may pay for what is counted here.
"""

from __future__ import annotations

from warpwright.facts.kept import kept_of_latest
from warpwright.facts.model import WARP, Access, Kernel, Space

_CYCLES = {Space.GLOBAL: 1.5, Space.SHARED: 1.0}
"""Of a multiprocessor, for a sector of DRAM and for a wavefront: an H200 reads 20 bytes for each of its cycles."""


def without_excess(kernel: Kernel, access: Access) -> float | None:
    """The share that is saved where this place makes the fewest transactions that it can; None where they were not
    counted."""
    if access.joined or not access.reached or access.transactions is None:
        return None
    got, ideal = access.transactions
    return _share(kernel, access, got - ideal)


def without_repeats(kernel: Kernel, access: Access) -> float | None:
    """The share that is saved where one of the innermost loop's iterations makes this access, and no other."""
    if access.joined or not access.reached or access.transactions is None:
        return None
    return _share(kernel, access, access.transactions[0] * (1 - 1 / max(access.iterations, 1.0)))


def without_turns(kernel: Kernel, access: Access) -> float | None:
    """The share that is saved where one lane updates each address of an atomic: the others wait for their turn."""
    addresses = access.addresses_per_request
    if not addresses or not access.reached:
        return None
    waiting = min(access.active_lanes, WARP) - addresses
    time = sum(_times(kernel).get(access.launch, {}).values())
    lost = access.requests * max(waiting, 0.0)
    return lost / (time + lost) if lost else 0.0


def times_by_line(kernel: Kernel) -> dict[tuple[str, int], float]:
    """The share of the kernel's memory time that each line's accesses take, by path and line, of the launch in which it
    is largest."""
    lines = {access.span.key: (access.span.path, access.span.line) for access in kernel.accesses}
    shares: dict[tuple[str, int], float] = {}
    for places in _times(kernel).values():
        total = sum(places.values())
        of_launch: dict[tuple[str, int], float] = {}
        for place, time in places.items():
            of_launch[lines[place]] = of_launch.get(lines[place], 0.0) + (time / total if total else 0.0)
        for line, share in of_launch.items():
            shares[line] = max(shares.get(line, 0.0), share)
    return shares


def _share(kernel: Kernel, access: Access, transactions: float) -> float | None:
    time = sum(_times(kernel).get(access.launch, {}).values())
    if not time or access.space not in _CYCLES:
        return None
    busy = access.requests * (1 - access.idle if access.idle < 1 else 1)
    return min(max(busy * transactions * _CYCLES[access.space] / time, 0.0), 1.0)


@kept_of_latest
def _times(kernel: Kernel) -> dict[int, dict[tuple[str, int, int], float]]:
    """For each launch, what its places take."""
    times: dict[int, dict[tuple[str, int, int], float]] = {}
    for access in kernel.accesses:
        if access.space not in _CYCLES or access.joined:
            continue
        shared = access.space is Space.SHARED
        got = access.wavefronts_per_request if shared else access.sectors_per_request
        if got is not None:
            places = times.setdefault(access.launch, {})
            taken = access.requests * got * _CYCLES[access.space]
            places[access.span.key] = places.get(access.span.key, 0.0) + taken
    return times
