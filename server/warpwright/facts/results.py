"""From tallies to facts: counts per request, rounded, with what they rest on and why, in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from warpwright.facts.model import (
    ASSUMED_EXTENT,
    BANK_BYTES,
    BANKS,
    SECTOR_BYTES,
    WARP,
    Access,
    Barrier,
    Basis,
    Branch,
    Dim3,
    Divergence,
    Space,
)
from warpwright.facts.tallies import AccessTally, BarrierVisit, BranchTally, Counts
from warpwright.facts.values import ASSUMED, BASES, DATA, UNKNOWN
from warpwright.syntax.source import Span

EDGE_SHARE = 0.5
"""A branch that splits more of the warps than this is no matter of the edge, whatever the block."""

WarpsSeen = Mapping[Dim3, Mapping[int, int]]
"""By block and warp: the lanes that were left at the end of the kernel."""


def access_fact(tally: AccessTally, launch: int) -> Access:
    joined = not tally.counts.requests and tally.led.requests > 0
    counts = tally.led if joined else tally.counts
    answered = tally.seen > 0 and tally.seen >= tally.uncounted
    basis = BASES[tally.basis if answered else max(tally.uncounted_basis, DATA if tally.uncounted else UNKNOWN)]
    if tally.space is Space.LOCAL:
        basis = BASES[tally.basis]
    requests = counts.requests + tally.idle
    moves = answered and counts.requests > 0 and tally.space in (Space.GLOBAL, Space.SHARED)
    per_request = round(counts.counted / requests, 3) if moves else None
    ideal = round(counts.ideal / requests, 3) if moves else None
    shared = tally.space is Space.SHARED
    return Access(
        span=tally.span,
        expression=tally.span.one_line,
        array=tally.array,
        launch=launch,
        space=tally.space,
        kind=tally.kind,
        bytes=tally.size if joined else max(counts.widths, key=lambda width: counts.widths[width], default=tally.size),
        basis=basis,
        active_lanes=round(tally.active / tally.seen, 2) if answered else float(WARP),
        requests=0 if joined else round(requests) if answered else max(1, round(tally.uncounted)),
        sectors_per_request=None if shared else per_request,
        ideal_sectors_per_request=None if shared else ideal,
        wavefronts_per_request=per_request if shared else None,
        ideal_wavefronts_per_request=ideal if shared else None,
        why=_why(tally, counts, answered),
        joined=joined,
        lanes=tally.alone.worst_lanes if joined else counts.worst_lanes,
        in_loop=tally.in_loop,
        idle=round(tally.idle / requests, 4) if moves else 0.0,
        addresses_per_request=round(tally.distinct / tally.seen, 3) if answered else None,
        iterations=round(tally.progress.iterations(tally.seen), 3),
        loop_step=tally.progress.step,
        misaligned=tally.misaligned,
        structure=tally.structure,
        value_bytes=tally.value_bytes,
        type=tally.type,
        by_thread=tally.by_thread,
        thinned=tally.thinned,
        reached=tally.reached,
    )


def without_counts(access: Access) -> Access:
    """The access without counts: its line has a request of its own, and these belong to another line's."""
    return replace(
        access, sectors_per_request=None, ideal_sectors_per_request=None, wavefronts_per_request=None,
        ideal_wavefronts_per_request=None,
    )  # fmt: skip


def _why(tally: AccessTally, counts: Counts, answered: bool) -> str:
    if tally.space is Space.LOCAL:
        return "local memory"
    if not answered:
        if BASES[max(tally.uncounted_basis, DATA)] is Basis.DATA_DEPENDENT:
            return "the address is read from memory"
        return "the address could not be evaluated"
    if counts.worst_lanes is None:
        return ""
    why = describe(counts.worst_lanes.addresses, counts.worst_width, tally.space, tally.basis == ASSUMED)
    if counts is tally.led:
        return f"{why}; served by the access in line {tally.leads[0].span.line}"
    if max(counts.widths) > tally.size:
        why += f"; adjacent accesses are vectorized into one of {max(counts.widths)} bytes"
    idle = tally.idle / (counts.requests + tally.idle)
    return f"{why}; {idle:.0%} of requests are fully predicated off" if idle >= 0.005 else why


def describe(addresses: tuple[int | None, ...], size: int, space: Space, assumed: bool = False) -> str:
    """The pattern of a request's addresses in words; `assumed` where a value in them is not in the text.

    >>> describe(tuple(128 * lane for lane in range(32)), 4, Space.SHARED)
    'lane stride 32 elements (128 B): all on one bank'
    >>> describe(tuple(4 * lane for lane in range(32)), 4, Space.GLOBAL)
    'consecutive lanes are contiguous'
    """
    on = [a for a in addresses if a is not None]
    steps = {b - a for a, b in pairwise(on)}
    if len(on) < 2:
        return "one lane is active"
    if steps == {0}:
        return "all lanes share one address"
    if steps == {-size}:
        return "consecutive lanes are contiguous, in reverse"
    if steps == {size}:
        start = "" if space is Space.SHARED or on[0] % SECTOR_BYTES == 0 else ", but not sector-aligned"
        return f"consecutive lanes are contiguous{start}"
    words = {(a + byte) // BANK_BYTES % BANKS for a in on for byte in range(0, size, BANK_BYTES)}
    bank = "" if space is not Space.SHARED else ": all on one bank" if len(words) == 1 else f": on {len(words)} banks"
    if len(steps) == 1:
        step = steps.pop()
        if assumed and step % (ASSUMED_EXTENT * size) == 0:
            return f"lane stride is a run-time value (assumed {abs(step) // size} elements){bank}"
        unit = f"{abs(step) // size} elements ({abs(step)} B)" if step % size == 0 else f"{abs(step)} B"
        return f"lane stride {unit}{bank}"
    distinct = len(set(on))
    if distinct < len(on):
        return f"{distinct} distinct addresses for {len(on)} lanes{bank}"
    return f"irregular lane addresses{bank}"


def branch_fact(tally: BranchTally, launch: int) -> Branch:
    share = tally.diverging / tally.evaluations if tally.evaluations else 0.0
    condition = tally.span.one_line
    if tally.undecided_varying > tally.evaluations / 2:
        kind = Divergence.DATA_DEPENDENT if tally.basis <= DATA else Divergence.UNKNOWN
        why = "it depends on data that can differ from lane to lane"
        if tally.diverging:
            why = f"{share:.0%} of the evaluations split a warp whatever the data: {why}"
        return Branch(
            tally.span, tally.statement, tally.kind, condition, launch, kind,
            round(share, 4) if tally.diverging else None, tally.in_loop, why,
        )  # fmt: skip
    if not tally.diverging:
        divergence, why = Divergence.UNIFORM, "all lanes of a warp agree"
    elif tally.edge_only and share < EDGE_SHARE:
        divergence, why = Divergence.BOUNDARY, f"only warps at the edge of the data split ({share:.1%})"
    elif share > 0.999:
        divergence, why = Divergence.EVERY_WARP, "every warp splits"
    else:
        divergence, why = Divergence.PARTIAL, f"{share:.0%} of the evaluations split a warp"
    assumed = " (under assumed values)" if tally.basis == ASSUMED and tally.diverging else ""
    return Branch(
        tally.span, tally.statement, tally.kind, condition, launch, divergence, round(share, 4), tally.in_loop,
        why + assumed,
    )  # fmt: skip


def barrier_fact(span: Span, visits: Sequence[BarrierVisit], seen: WarpsSeen) -> Barrier:
    partial = next((v for v in visits if v.partial), None)
    if partial is not None and partial.undecided is None:
        guard = partial.guard
        where = guard.span if guard is not None else None
        return Barrier(span, span.one_line, True, Basis.EXACT, where, "lanes of one warp disagree")
    missed = _missed_by_a_warp(visits, seen)
    if missed is not None and missed.undecided is None and missed.thread_guard is not None:
        return Barrier(span, span.one_line, True, Basis.EXACT, missed.thread_guard.span, "warps of one block disagree")
    data = next((v.undecided for v in visits if v.undecided is not None), None)
    if data is not None:
        reason = "the condition depends on data that can differ between threads"
        basis = Basis.DATA_DEPENDENT if data.value.basis == DATA else Basis.UNKNOWN
        return Barrier(span, span.one_line, True, basis, data.span, reason)
    return Barrier(span, span.one_line, False, Basis.EXACT, None, "all threads of the block reach it")


def _missed_by_a_warp(visits: Sequence[BarrierVisit], seen: WarpsSeen) -> BarrierVisit | None:
    """A visit that another warp of the same block, still running, did not make as often."""
    for block in {v.block for v in visits}:
        total: dict[int, float] = {}
        for visit in visits:
            if visit.block == block:
                total[visit.warp] = total.get(visit.warp, 0.0) + visit.weight
        counts = {total.get(warp, 0.0) for warp, mask in seen.get(block, {}).items() if mask}
        if len(counts) > 1:
            return next(v for v in visits if v.block == block)
    return None
