"""What would raise a kernel's occupancy: the nearest step of each resource, in numbers and in words."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from warpwright.facts.occupancy import MAX_THREADS_PER_BLOCK, WARP, Occupancy, occupancy

REGISTERS_LEFT = 3 / 4
"""Share of its registers that a thread has to keep: with fewer, the compiler spills what it has no room for."""
SHARED_LEFT = 1 / 2
"""Share of its shared memory that a block has to keep; what has to give up more is another kernel."""
THREADS_FACTOR = 4
"""How many times larger or smaller a block may become."""
SIZES = tuple(WARP * warps for warps in (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28, 32))
"""Blocks that are looked at: those that people write."""


@dataclass(frozen=True, slots=True)
class Footprint:
    """What a launch takes: registers and threads as launched, shared memory static and dynamic, in bytes.

    `carveout` is the percent of the L1 cache that the host lets be shared memory, `most_threads` the largest block that
    the kernel is compiled for (`__launch_bounds__`).
    """

    arch: str
    registers: int
    shared_bytes: int
    threads: int
    barriers: int = 0
    carveout: int = 100
    most_threads: int = MAX_THREADS_PER_BLOCK

    @property
    def occupancy(self) -> Occupancy:
        """Raises ValueError as `occupancy` does."""
        return occupancy(self.arch, self.registers, self.shared_bytes, self.threads, self.barriers, self.carveout)


@dataclass(frozen=True, slots=True)
class Lift:
    """A change after which more warps are resident: at most so many registers per thread, bytes of shared memory per
    block, exactly so many threads per block, or that the host lets all of the L1 cache be shared memory; None for what
    stays. All that are given are needed together."""

    occupancy: Occupancy
    registers: int | None = None
    shared_bytes: int | None = None
    threads: int | None = None
    carveout: int | None = None


def lifts(now: Footprint) -> Iterator[Lift]:
    """The steps within reach: of registers and shared memory the smallest that lets another block in, and the block
    size that holds most warps. Nothing where the launch is refused, or all warps are resident.

    A block of another size is taken to need shared memory as it does now or in proportion, whichever leaves fewer
    warps. Raises ValueError as `occupancy` does.

    >>> [lift_words(Footprint("sm_90", 66, 0, 256), lift) for lift in lifts(Footprint("sm_90", 66, 0, 256))]
    ['2 registers fewer per thread (64) give 37.5 -> 50 %', 'blocks of 128 threads give 37.5 -> 43.75 %']
    >>> [lift_words(Footprint("sm_90", 32, 0, 32), lift) for lift in lifts(Footprint("sm_90", 32, 0, 32))]
    ['blocks of 64 threads give 50 -> 100 %']
    >>> list(lifts(Footprint("sm_90", 32, 0, 256)))
    []
    """
    before = now.occupancy
    if not before.blocks or before.fraction >= 1:
        return
    whole = replace(now, carveout=100).occupancy
    if whole.warps > before.warps:
        yield Lift(whole, carveout=100)
        return
    for step in (_another_block(now, before), _other_block(now, before)):
        if step is not None:
            yield step


def _another_block(now: Footprint, before: Occupancy) -> Lift | None:
    """The fewest registers and the least shared memory to give up for one more block of the same size."""
    registers = shared = None
    wanted = before.blocks + 1
    if _below(before.limits.registers, wanted):
        registers = _most(now.registers, lambda n: replace(now, registers=n).occupancy.limits.registers, wanted)
        if registers is None or registers < REGISTERS_LEFT * now.registers:
            return None
    if _below(before.limits.shared_memory, wanted):
        shared = _most(now.shared_bytes, lambda n: replace(now, shared_bytes=n).occupancy.limits.shared_memory, wanted)
        if shared is None or shared < SHARED_LEFT * now.shared_bytes:
            return None
    if registers is None and shared is None:
        return None
    after = replace(
        now,
        registers=now.registers if registers is None else registers,
        shared_bytes=now.shared_bytes if shared is None else shared,
    ).occupancy
    return Lift(after, registers, shared) if after.blocks >= wanted else None


def _other_block(now: Footprint, before: Occupancy) -> Lift | None:
    """The block of whole warps that holds most warps; of equals a power of two, then the one nearest to the present."""
    own = -(-now.threads // WARP) * WARP
    found: list[tuple[tuple[float, bool, float], Lift]] = []
    for threads in SIZES:
        if threads == own or threads > now.most_threads or not 1 / THREADS_FACTOR <= threads / own <= THREADS_FACTOR:
            continue
        same, scaled = now.shared_bytes, -(-now.shared_bytes * threads // now.threads)
        after = min(
            (replace(now, shared_bytes=shared, threads=threads).occupancy for shared in {same, scaled}),
            key=lambda each: each.warps,
        )
        if after.warps > before.warps:
            uneven = threads & (threads - 1) != 0
            distance = max(threads / own, own / threads)
            found.append(((-after.fraction, uneven, distance), Lift(after, threads=threads)))
    return min(found, key=lambda each: each[0])[1] if found else None


def _below(limit: int | None, wanted: int) -> bool:
    return limit is not None and limit < wanted


def _most(now: int, fits: Callable[[int], int | None], wanted: int) -> int | None:
    """The largest number below `now` with which so many blocks fit: fewer always fit where more do."""
    low, high = 0, now  # `low` fits if anything does, `high` does not
    if _below(fits(low), wanted):
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if _below(fits(middle), wanted) else (middle, high)
    return low


def lift_words(now: Footprint, lift: Lift) -> str:
    """What a step takes and gives.

    >>> now = Footprint("sm_90", 38, 16928, 512)
    >>> lift_words(now, Lift(occupancy("sm_90", 32, 16000, 512), 32, 16000))
    '6 registers fewer per thread (32) and 928 bytes less shared memory per block (15.6 KB) give 75 -> 100 %'
    """
    parts = []
    if lift.registers is not None:
        fewer = now.registers - lift.registers
        parts.append(f"{fewer} register{'s' if fewer > 1 else ''} fewer per thread ({lift.registers})")
    if lift.shared_bytes is not None:
        less = now.shared_bytes - lift.shared_bytes
        parts.append(f"{size_words(less)} less shared memory per block ({size_words(lift.shared_bytes)})")
    if lift.threads is not None:
        parts.append(f"blocks of {lift.threads} threads")
    if lift.carveout is not None:
        parts.append("no preference of the host for L1 cache over shared memory")
    single = len(parts) == 1 and lift.threads is None and lift.registers in (None, now.registers - 1)
    before, after = percent(now.occupancy.fraction), percent(lift.occupancy.fraction)
    return f"{' and '.join(parts)} {'gives' if single else 'give'} {before} -> {after} %"


def cause_words(now: Footprint) -> str:
    """What keeps more blocks out: the resources that run out together.

    >>> cause_words(Footprint("sm_90", 66, 0, 256))
    '66 registers per thread allow 3 blocks of 256 threads'
    >>> cause_words(Footprint("sm_90", 40, 34 << 10, 256))
    '40 registers per thread and 34 KB of shared memory per block allow 6 blocks of 256 threads'
    >>> cause_words(Footprint("sm_90", 16, 0, 32))
    'it holds 32 blocks, here of 1 warp'
    >>> cause_words(Footprint("sm_90", 16, 0, 640))
    '3 blocks of 640 threads fit, and the rest has no room for another'
    """
    occupied = now.occupancy
    blocks = f"{occupied.blocks} block{'s' if occupied.blocks != 1 else ''}"
    taken = {
        "registers": f"{now.registers} registers per thread",
        "shared memory": f"{size_words(now.shared_bytes)} of shared memory per block",
        "barriers": f"{now.barriers} barriers per block",
    }
    parts = [words for name, words in taken.items() if name in occupied.limiters]
    if now.carveout < 100 and "shared memory" in occupied.limiters:
        parts.append("the host's preference for L1 cache")
    if parts:
        return f"{' and '.join(parts)} allow {blocks} of {now.threads} threads"
    if "blocks" in occupied.limiters:
        warps = -(-now.threads // WARP)
        return f"it holds {blocks}, here of {warps} warp{'s' if warps != 1 else ''}"
    return f"{blocks} of {now.threads} threads fit, and the rest has no room for another"


def percent(fraction: float) -> str:
    """
    >>> percent(0.625), percent(0.0625), percent(1 / 3), percent(1.0)
    ('62.5', '6.25', '33.33', '100')
    """
    return f"{100 * fraction:.2f}".rstrip("0").rstrip(".")


def size_words(count: int) -> str:
    """
    >>> size_words(49152), size_words(100), size_words(5000)
    ('48 KB', '100 bytes', '4.9 KB')
    """
    if count < 1024:
        return f"{count} byte{'s' if count != 1 else ''}"
    return f"{count // 1024} KB" if count % 1024 == 0 else f"{count / 1024:.1f} KB"
