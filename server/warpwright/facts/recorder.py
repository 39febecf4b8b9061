"""What is seen while warps are interpreted, added up per place in the text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from math import gcd
from typing import cast

from warpwright.facts import ir
from warpwright.facts.lanes import Data, integers, lanes
from warpwright.facts.memory import ideal_sectors, ideal_wavefronts, sectors, wavefronts
from warpwright.facts.merging import PENDING, WIDEST, Addresses, Pending, chains
from warpwright.facts.model import (
    ASSUMED_EXTENT,
    BANK_BYTES,
    BANKS,
    SECTOR_BYTES,
    WARP,
    Access,
    AccessKind,
    Barrier,
    Basis,
    Branch,
    Dim3,
    Divergence,
    LaneAddresses,
    Launch,
    Space,
    Structure,
)
from warpwright.facts.predication import Key, Side, Sides
from warpwright.facts.progress import LoopPosition, Progress
from warpwright.facts.values import ASSUMED, BASES, DATA, EXACT, FULL, LANE_BITS, UNKNOWN, Value
from warpwright.syntax.source import Span

NO_END = 1 << 62
"""Where the touched part of an array ends if an address is not known."""
SMALL_STRIDE = 64
"""Bytes between lanes up to which a stride is one that the text gives: what is assumed of an extent is far larger."""
TAKEN, PASSED = 1, 2
"""What a warp did at a condition: went in, or went on behind it."""
EDGE_SHARE = 0.5
"""A branch that splits more of the warps than this is no matter of the edge, whatever the block."""


@dataclass(slots=True)
class _Counts:
    """Requests and what they move, added up. `widths` maps the bytes of a lane's access to how many requests had it."""

    requests: float = 0.0
    counted: float = 0.0
    ideal: float = 0.0
    widths: dict[int, float] = field(default_factory=lambda: {})
    worst: float = -1.0
    worst_lanes: LaneAddresses | None = None
    worst_width: int = 0

    def add(self, request: _Request, width: int) -> None:
        """Add a request of `width` bytes per lane."""
        addresses, weight, space = request.addresses, request.weight, request.tally.space
        active = WARP - addresses.count(None)
        if space is Space.SHARED:
            count: float = wavefronts(addresses, width)
            ideal = ideal_wavefronts(count, active, width)
        elif space is Space.CONSTANT:
            count, ideal = len(set(addresses) - {None}), 1
        else:
            count = _aligned_on_average(addresses, width, request.pointer.soft)
            ideal = ideal_sectors(count, active, width)
        self.requests += weight
        self.counted += weight * count
        self.ideal += weight * ideal
        self.widths[width] = self.widths.get(width, 0.0) + weight
        if count / ideal > self.worst:
            self.worst = count / ideal
            self.worst_lanes = LaneAddresses(*request.place, addresses)
            self.worst_width = width


@dataclass(slots=True)
class _AccessTally:
    """What is known of one access. Its requests are counted as the text has them and as the compiler merges them."""

    span: Span
    array: str | None
    space: Space
    kind: AccessKind
    size: int
    in_loop: bool
    basis: int = 0
    idle: float = 0.0  # requests of warps in which a predicate holds for no lane
    uncounted: float = 0.0
    uncounted_basis: int = 0
    active: float = 0.0
    seen: float = 0.0
    alone: _Counts = field(default_factory=_Counts)
    together: _Counts = field(default_factory=_Counts)
    leads: list[_AccessTally] = field(default_factory=lambda: [])  # the accesses that do this one's work too
    led: _Counts = field(default_factory=_Counts)  # the requests that do so
    partners: dict[int, int] = field(default_factory=lambda: {})  # merged with it -> bytes from it to this one
    steady: int = WIDEST  # bytes by which its first addresses in the warps differ: what is wider is not merged
    distinct: float = 0.0
    misaligned: LaneAddresses | None = None
    structure: Structure | None = None
    value_bytes: int = 0
    progress: Progress = field(default_factory=Progress)
    type: str = ""
    by_thread: bool = False
    thinned: bool = False

    @property
    def counts(self) -> _Counts:
        apart = not self._is_steady or not all(lead._is_steady for lead in self.leads)
        return self.alone if apart else self.together

    @property
    def _is_steady(self) -> bool:
        return max(self.together.widths, default=0) <= max(self.size, self.steady)


@dataclass(frozen=True, slots=True, eq=False)
class _Request(Pending):
    """A request that waits for what the compiler may make of it and its neighbours."""

    tally: _AccessTally
    pointer: Value
    place: tuple[int, Dim3]


@dataclass(slots=True)
class _BranchTally:
    span: Span
    statement: Span
    kind: str
    in_loop: bool
    evaluations: float = 0.0
    diverging: float = 0.0
    undecided: float = 0.0
    undecided_varying: float = 0.0
    edge_only: bool = True
    basis: int = 0


@dataclass(frozen=True, slots=True)
class Guard:
    """A condition under which the interpreter stands: the lanes that entered and those that passed."""

    span: Span
    entered: int
    passed: int
    value: Value
    undecided: bool


@dataclass(slots=True)
class _BarrierVisit:
    block: Dim3
    warp: int
    weight: float
    partial: bool
    guard: Guard | None
    undecided: Guard | None
    thread_guard: Guard | None
    bounded: bool  # a run-time number decides which threads come here


@dataclass(slots=True)
class Place:
    """Where the interpreter stands: the block and warp, and for how many others like it they count."""

    block: Dim3
    warp: int
    warp_weight: float
    block_weight: float
    edge: bool  # the block is the last along an axis of its grid
    loop: LoopPosition = field(default_factory=LoopPosition)
    thinned: bool = False  # some lanes have left on a condition on data
    guards: list[Guard] = field(default_factory=lambda: [])  # the conditions around the statement that is run


@dataclass(slots=True)
class Recorder:
    accesses: dict[Key, _AccessTally] = field(default_factory=lambda: {})
    branches: dict[Key, _BranchTally] = field(default_factory=lambda: {})
    barriers: dict[Key, tuple[Span, list[_BarrierVisit]]] = field(default_factory=lambda: {})
    warps_seen: dict[Dim3, dict[int, int]] = field(default_factory=lambda: {})  # block -> warp -> lanes at the end
    overrun: set[str] = field(default_factory=set)  # shared arrays of which an index passed its row
    reach: dict[str, int] = field(default_factory=lambda: {})  # shared array -> end of the highest byte touched
    callees: dict[ir.Call, tuple[ir.Function, list[ir.Expr]]] = field(default_factory=lambda: {})  # what calls mean
    open_ended: bool = False  # a loop was left before its end: what it would have touched is not known
    loops_run: int = 0
    conditions: dict[tuple[str, int, int], Sides] = field(default_factory=lambda: {})
    outcomes: dict[tuple[str, int, int], int] = field(default_factory=lambda: {})  # of a condition: TAKEN, PASSED
    forced: set[tuple[str, int, int]] = field(default_factory=set)  # conditions of which both ways are followed
    forcing: int = 0  # how many of these the interpreter stands under
    open_sides: list[Side] = field(default_factory=lambda: [])
    waiting: dict[Space, list[_Request]] = field(default_factory=lambda: {Space.GLOBAL: [], Space.SHARED: []})
    order: int = 0
    looks: dict[int, int] = field(default_factory=lambda: {})  # of this warp: tally -> pieces of straight code seen
    starts: dict[tuple[int, int], int] = field(default_factory=lambda: {})  # tally, piece -> bytes past 16 k
    unrolled: bool = False  # requests of one place became one, as of successive iterations
    enabled: bool = True
    records_barriers: bool = True

    def outcome(self, span: Span, taken: bool, passed: bool) -> None:
        """A warp came to a condition and went in, or on behind it, or both."""
        key = (span.path, span.start, span.end)
        self.outcomes[key] = self.outcomes.get(key, 0) | TAKEN * taken | PASSED * passed

    def is_forced(self, span: Span) -> bool:
        return (span.path, span.start, span.end) in self.forced

    @property
    def unexplored(self) -> set[tuple[str, int, int]]:
        """Conditions of which the sampled warps saw one outcome alone."""
        return {key for key, seen in self.outcomes.items() if seen != TAKEN | PASSED} - self.forced

    def nests(self) -> None:
        """The side of a condition that is run holds a condition of its own over accesses."""
        if self.open_sides:
            self.open_sides[-1].nests = True

    def sides(self, span: Span, last: bool, both: bool) -> Sides:
        """The two sides of a condition; without `both`, there is nothing on the second."""
        key = (span.path, span.start, span.end)
        found = self.conditions.get(key)
        if found is None:
            found = self.conditions[key] = Sides(last, otherwise=Side() if both else None)
        return found

    def row(self, name: str, index: Value, extent: int, mask: int) -> None:
        """An index into a row of `extent` elements of a shared array, by the lanes of `mask`."""
        if index.basis == EXACT and index.data is not None and name not in self.overrun:
            used = zip(lanes(index.data), LANE_BITS, strict=True)
            if any(n is not None and mask & bit and not 0 <= n < extent for n, bit in used):
                self.overrun.add(name)

    def access(
        self, span: Span, pointer: Value, space: Space, kind: AccessKind, size: int, mask: int, weight: float,
        place: Place, in_loop: bool, thinned: bool = False,
    ) -> None:  # fmt: skip
        """One request of `size` bytes per lane at a pointer's addresses, by the lanes of `mask`."""
        if not self.enabled or not mask or size <= 0:
            return
        key = (span.path, span.start, span.end, kind + space)
        tally = self.accesses.get(key)
        if tally is None:
            name = pointer.region.name if pointer.region is not None else None
            tally = self.accesses[key] = _AccessTally(span, name, space, kind, size, in_loop)
            tally.structure = _structure(pointer)
            if pointer.type.to is not None:
                tally.type, tally.value_bytes = pointer.type.to.name, pointer.type.to.size or size
        tally.in_loop = tally.in_loop or in_loop
        tally.by_thread = tally.by_thread or pointer.thread
        tally.thinned = tally.thinned or thinned
        if space is Space.SHARED and tally.array is not None:
            self._reach(tally.array, pointer, size, mask)
        if self.open_sides:
            side = self.open_sides[-1]
            side.requests[key] = side.requests.get(key, 0.0) + weight
        if pointer.rows is not None and space is Space.SHARED:
            pointer = _by_banks(pointer, size, mask)
        if pointer.data is None or space is Space.LOCAL:
            tally.progress.uneven = True
            tally.uncounted += weight
            tally.uncounted_basis = max(tally.uncounted_basis, pointer.basis)
            if pointer.data is not None:
                tally.basis = max(tally.basis, pointer.basis)
            return
        addresses = _addresses(pointer.data, mask)
        active = WARP - addresses.count(None)
        if not active:
            return
        tally.progress.visit(place.loop, pointer, weight)
        distinct = len(set(addresses)) - (active < WARP)
        tally.distinct += weight * distinct
        tally.active += weight * active
        tally.seen += weight
        tally.basis = max(tally.basis, pointer.basis, ASSUMED if self.forcing else EXACT)
        if size > 1 and tally.misaligned is None and _is_misaligned(addresses, size, pointer, place.guards):
            tally.misaligned = LaneAddresses(place.warp, place.block, addresses)
        self.order += 1
        known = size
        if space is Space.SHARED and size >= BANK_BYTES:
            known = WIDEST
        elif space is Space.GLOBAL and tally.structure is not None:
            known = tally.structure.align
        request = _Request(
            self.order, pointer.region, addresses, size, gcd(known, pointer.soft, pointer.grain), weight,
            tally, pointer, (place.warp, place.block),
        )  # fmt: skip
        if kind is AccessKind.ATOMIC or space is Space.CONSTANT:
            self.flush()
            tally.alone.add(request, size)
            tally.together.add(request, size)
        else:
            self._queue(request)

    def _queue(self, request: _Request) -> None:
        """Let a request wait with others of its space and kind; what it finds in a register it does not need."""
        tally = request.tally
        waiting = self.waiting[tally.space]
        if tally.kind is AccessKind.LOAD and not request.pointer.soft:
            kept = next((w for w in reversed(waiting) if w.region is request.region and request.is_at(w, 0)), None)
            if kept is not None and kept.size == request.size:
                if kept.tally is not tally:
                    tally.led.add(kept, kept.size)
                    if kept.tally not in tally.leads:
                        tally.leads.append(kept.tally)
                return
        if waiting and (waiting[-1].tally.kind is not tally.kind or len(waiting) >= PENDING):
            self._flush(tally.space)
        self.waiting[tally.space].append(request)

    def begin_warp(self) -> None:
        self.looks.clear()

    def flush(self) -> None:
        """Count what waits: the code is straight only up to here."""
        for space, waiting in self.waiting.items():
            if waiting:
                self._flush(space)

    def _flush(self, space: Space) -> None:
        waiting, self.waiting[space] = self.waiting[space], []
        firsts: dict[int, _Request] = {}
        for request in waiting:
            request.tally.alone.add(request, request.size)
            firsts.setdefault(id(request.tally), request)
        for request in firsts.values():
            self._compare_start(request)
            for partner, distance in request.tally.partners.items():
                if partner in firsts and request.first - firsts[partner].first != distance:
                    request.tally.steady = 0  # they were neighbours by chance
        loads = waiting[0].tally.kind is AccessKind.LOAD
        for width, requests in chains(waiting, fill=loads):
            pick = min if loads else max  # a load is done where the first stood, a store where the last did
            lead = pick(requests, key=lambda request: request.order)
            start = requests[0]
            if len(requests) == 1:
                lead.tally.together.add(lead, width)
                continue
            merged = replace(lead, addresses=start.addresses, pointer=start.pointer)
            lead.tally.together.add(merged, width)
            self._merged(merged, width, requests, firsts)

    def _compare_start(self, request: _Request) -> None:
        """Learn from the warps how the first of an access's requests is aligned wherever it runs."""
        tally = request.tally
        number = self.looks[id(tally)] = self.looks.get(id(tally), 0) + 1
        start = request.first % WIDEST
        apart = abs(self.starts.setdefault((id(tally), number), start) - start)
        if apart:
            tally.steady = min(tally.steady, apart & -apart)

    def _merged(self, merged: _Request, width: int, requests: list[_Request], firsts: Mapping[int, _Request]) -> None:
        """Note who does whose work; `firsts` are the first requests of each tally of this piece of code."""
        lead = merged.tally
        for tally in {id(request.tally): request.tally for request in requests}.values():
            if tally is not lead:
                tally.led.add(merged, width)
                if lead not in tally.leads:
                    tally.leads.append(lead)
                lead.partners.setdefault(id(tally), firsts[id(lead)].first - firsts[id(tally)].first)
        if sum(request.tally is lead for request in requests) > 1:
            self.unrolled = True

    def branch(
        self, span: Span, statement: Span, kind: str, condition: Value, taken: int, mask: int, weight: float,
        place: Place, in_loop: bool, splits: bool = False,
    ) -> None:  # fmt: skip
        """One evaluation of a condition by a warp; `taken` are the lanes in which it is true. `splits` is set where it
        is not known and the known part of it parts the lanes."""
        if not self.enabled or not mask:
            return
        key = (span.path, span.start, span.end, kind)
        tally = self.branches.get(key)
        if tally is None:
            tally = self.branches[key] = _BranchTally(span, statement, kind, in_loop)
        tally.in_loop = tally.in_loop or in_loop
        tally.evaluations += weight
        if not condition.decided:
            tally.undecided += weight
            if not condition.uniform:
                tally.undecided_varying += weight
                tally.basis = max(tally.basis, condition.basis)
            if splits:
                tally.diverging += weight
                tally.edge_only = tally.edge_only and place.edge
            return
        tally.basis = max(tally.basis, condition.basis)
        if taken and taken != mask:
            tally.diverging += weight
            tally.edge_only = tally.edge_only and place.edge

    def barrier(self, span: Span, mask: int, alive: int, weight: float, place: Place, guards: list[Guard]) -> None:
        """A warp at a block-wide barrier; `alive` are its lanes that have not returned."""
        if not self.enabled or not self.records_barriers:
            return
        key = (span.path, span.start, span.end, "barrier")
        visits = self.barriers.setdefault(key, (span, []))[1]
        splitting = next((g for g in reversed(guards) if g.passed != g.entered and not g.undecided), None)
        undecided = next((g for g in reversed(guards) if not g.value.decided and g.value.thread), None)
        by_thread = next((g for g in reversed(guards) if g.value.thread), None)
        bounded = any(g.value.thread and g.value.basis == ASSUMED for g in guards)
        visits.append(
            _BarrierVisit(place.block, place.warp, weight, mask != alive, splitting, undecided, by_thread, bounded)
        )

    def saw_whole_block(self, launch: Launch) -> bool:
        """Whether all warps of some block were run."""
        warps = -(-(launch.threads or 0) // WARP)
        return warps > 0 and any(len(seen) == warps for seen in self.warps_seen.values())

    def _reach(self, array: str, pointer: Value, size: int, mask: int) -> None:
        if pointer.data is None or pointer.basis != EXACT or pointer.soft:
            self.reach[array] = NO_END
            return
        data = pointer.data
        top = data if not isinstance(data, list) else max(
            (n for n, bit in zip(data, LANE_BITS, strict=True) if mask & bit and n is not None), default=0
        )  # fmt: skip
        self.reach[array] = max(self.reach.get(array, 0), int(top) + size)

    # -- results ------------------------------------------------------------------------------------------------

    def access_facts(self, launch: int) -> list[Access]:
        self.flush()
        for condition in self.conditions.values():
            if condition.predicated:
                for side in condition.all:
                    if side.executed:
                        for key, weight in side.requests.items():
                            self.accesses[key].idle += side.skipped * weight / side.executed
        facts = [_access_fact(tally, launch) for tally in self.accesses.values()]
        own = {(f.span.path, f.span.line, f.space) for f in facts if not f.joined and f.basis is not Basis.UNKNOWN}
        return [_uncounted(f) if f.joined and (f.span.path, f.span.line, f.space) in own else f for f in facts]

    def branch_facts(self, launch: int) -> list[Branch]:
        return [self._with_sides(_branch_fact(tally, launch)) for tally in self.branches.values()]

    def _with_sides(self, branch: Branch) -> Branch:
        span = branch.statement
        found = self.conditions.get((span.path, span.start, span.end)) if branch.kind == "if" else None
        if found is None:
            return branch
        return replace(branch, sides=tuple(side.cost for side in found.all), predicated=found.predicated)

    @property
    def barriers_are_bounded(self) -> bool:
        """A run-time number decides who reaches some barrier: an uneven one may split a block."""
        return any(visit.bounded for _, visits in self.barriers.values() for visit in visits)

    def barrier_facts(self) -> list[Barrier]:
        return [self._barrier_fact(span, visits) for span, visits in self.barriers.values()]

    def _barrier_fact(self, span: Span, visits: list[_BarrierVisit]) -> Barrier:
        partial = next((v for v in visits if v.partial), None)
        if partial is not None and partial.undecided is None:
            guard = partial.guard
            where = guard.span if guard is not None else None
            return Barrier(span, _oneline(span.text), True, Basis.EXACT, where, "lanes of one warp disagree")
        missed = self._missed_by_a_warp(visits)
        if missed is not None and missed.undecided is None and missed.thread_guard is not None:
            return Barrier(
                span, _oneline(span.text), True, Basis.EXACT, missed.thread_guard.span, "warps of one block disagree"
            )
        data = next((v.undecided for v in visits if v.undecided is not None), None)
        if data is not None:
            reason = "the condition depends on data that can differ between threads"
            return Barrier(span, _oneline(span.text), True, Basis.DATA_DEPENDENT, data.span, reason)
        return Barrier(span, _oneline(span.text), False, Basis.EXACT, None, "all threads of the block reach it")

    def _missed_by_a_warp(self, visits: list[_BarrierVisit]) -> _BarrierVisit | None:
        """A visit that another warp of the same block, still running, did not make as often."""
        for block in {v.block for v in visits}:
            total: dict[int, float] = {}
            for visit in visits:
                if visit.block == block:
                    total[visit.warp] = total.get(visit.warp, 0.0) + visit.weight
            counts = {total.get(warp, 0.0) for warp, mask in self.warps_seen.get(block, {}).items() if mask}
            if len(counts) > 1:
                return next(v for v in visits if v.block == block)
        return None


def _aligned_on_average(addresses: Sequence[int | None], size: int, step: int) -> float:
    """Sectors of one request whose start is known only up to multiples of `step` bytes: the mean over alignments."""
    if not step or step % SECTOR_BYTES == 0:
        return float(sectors(addresses, size))
    shifts = sorted({(k * step) % SECTOR_BYTES for k in range(SECTOR_BYTES)})
    total = 0
    for shift in shifts:
        total += sectors([None if a is None else a + shift for a in addresses], size)
    return total / len(shifts)


def _by_banks(pointer: Value, size: int, mask: int) -> Value:
    """A shared address that is known up to rows of all banks, with the lanes on banks of their own: whatever the rows
    are, the count is that of one row."""
    rows = pointer.rows
    if rows is None or rows.step % (BANKS * BANK_BYTES) or size != BANK_BYTES:
        return pointer
    banks = [a // BANK_BYTES % BANKS for a in _addresses(rows.data, mask) if a is not None]
    if len(set(banks)) < len(banks):
        return pointer
    return Value(rows.data, pointer.type, rows.basis, 1, pointer.thread, pointer.region)


def _structure(pointer: Value) -> Structure | None:
    element = pointer.region.element if pointer.region is not None else None
    while element is not None and element.kind == "array":
        element = element.to
    if element is None or element.kind != "struct" or not element.size:
        return None
    return Structure(element.name, element.size, element.align)


def _addresses(data: Data, mask: int) -> Addresses:
    """The addresses by lane, None for a lane that is off or not known."""
    by_lane = cast("list[int | None]", lanes(integers(data)))
    if mask == FULL:
        return tuple(by_lane)
    return tuple([a if mask & bit else None for a, bit in zip(by_lane, LANE_BITS, strict=True)])


def _is_misaligned(addresses: Addresses, size: int, pointer: Value, guards: list[Guard]) -> bool:
    """Whether an address is certainly no multiple of the access's size, and no unknown condition may say so too.

    Under assumed values only a stride that no assumed extent is part of tells: of lanes 4 bytes apart not all can be at
    multiples of 16.
    """
    if not all(guard.value.decided for guard in guards):
        return False
    if pointer.basis == EXACT and not pointer.soft % size:
        return any(a is not None and a % size for a in addresses)
    if pointer.uniform:
        return False
    steps = {b - a for a, b in pairwise(a for a in addresses if a is not None)}
    return len(steps) == 1 and any(step % size and abs(step) <= SMALL_STRIDE for step in steps)


def _access_fact(tally: _AccessTally, launch: int) -> Access:
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
        expression=_oneline(tally.span.text),
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
        lanes=tally.alone.worst_lanes,
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
    )


def _uncounted(access: Access) -> Access:
    """The access without counts: its line has a request of its own, and these belong to another line's."""
    return replace(
        access, sectors_per_request=None, ideal_sectors_per_request=None, wavefronts_per_request=None,
        ideal_wavefronts_per_request=None,
    )  # fmt: skip


def _why(tally: _AccessTally, counts: _Counts, answered: bool) -> str:
    if tally.space is Space.LOCAL:
        return "local memory"
    if not answered:
        if BASES[max(tally.uncounted_basis, DATA)] is Basis.DATA_DEPENDENT:
            return "the address is read from memory"
        return "the address could not be followed"
    if counts.worst_lanes is None:
        return ""
    why = describe(counts.worst_lanes.addresses, counts.worst_width, tally.space, tally.basis == ASSUMED)
    if counts is tally.led:
        return f"{why}; done by the access in line {tally.leads[0].span.line}"
    if max(counts.widths) > tally.size:
        why += f"; neighbouring accesses are merged into one of {max(counts.widths)} bytes"
    idle = tally.idle / (counts.requests + tally.idle)
    return f"{why}; a predicate leaves no lane on in {idle:.0%} of the requests" if idle >= 0.005 else why


def describe(addresses: tuple[int | None, ...], size: int, space: Space, assumed: bool = False) -> str:
    """The pattern of a request's addresses in words; `assumed` where a value in them is not in the text.

    >>> describe(tuple(128 * lane for lane in range(32)), 4, Space.SHARED)
    'neighbouring lanes are 32 elements (128 bytes) apart: all on one bank'
    >>> describe(tuple(4 * lane for lane in range(32)), 4, Space.GLOBAL)
    'neighbouring lanes are adjacent'
    """
    on = [a for a in addresses if a is not None]
    steps = {b - a for a, b in pairwise(on)}
    if len(on) < 2:
        return "one lane is active"
    if steps == {0}:
        return "all lanes share one address"
    if steps == {size}:
        start = "" if space is Space.SHARED or on[0] % SECTOR_BYTES == 0 else ", but do not start at a 32-byte sector"
        return f"neighbouring lanes are adjacent{start}"
    words = {(a // 4) % 32 for a in on}
    bank = "" if space is not Space.SHARED else ": all on one bank" if len(words) == 1 else f": on {len(words)} banks"
    if len(steps) == 1:
        step = steps.pop()
        if assumed and step % (ASSUMED_EXTENT * size) == 0:
            return f"neighbouring lanes are a run-time distance apart (counted for {abs(step) // size} elements){bank}"
        unit = f"{abs(step) // size} elements ({abs(step)} bytes)" if step % size == 0 else f"{abs(step)} bytes"
        return f"neighbouring lanes are {unit} apart{bank}"
    distinct = len(set(on))
    if distinct < len(on):
        return f"{len(on)} lanes want {distinct} different addresses{bank}"
    return f"the lanes' addresses follow no single stride{bank}"


def _branch_fact(tally: _BranchTally, launch: int) -> Branch:
    share = tally.diverging / tally.evaluations if tally.evaluations else 0.0
    condition = _oneline(tally.span.text)
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


def _oneline(text: str) -> str:
    return " ".join(text.split())
