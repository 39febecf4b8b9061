"""What is seen while warps are interpreted, added up per place in the text."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field, replace
from math import gcd
from typing import cast

from warpwright.facts import ir
from warpwright.facts.lanes import Data, lanes
from warpwright.facts.meetings import Step
from warpwright.facts.memory import Addresses, Pattern, placed
from warpwright.facts.model import (
    BANK_BYTES,
    BANKS,
    SECTOR_BYTES,
    WARP,
    WIDEST,
    Access,
    AccessKind,
    Barrier,
    Basis,
    Branch,
    Dim3,
    DoubtfulWait,
    LaneAddresses,
    Launch,
    Space,
    Structure,
)
from warpwright.facts.position import Guard, Position
from warpwright.facts.predication import Key, Side, Sides
from warpwright.facts.races import Intervals
from warpwright.facts.requests import Requests
from warpwright.facts.results import access_fact, barrier_fact, branch_fact, without_counts
from warpwright.facts.tallies import AccessTally, BarrierVisit, BranchTally, Request, Shifts, shifts_of
from warpwright.facts.values import ASSUMED, DATA, EXACT, FULL, LANE_BITS, MOST_KEPT, Value
from warpwright.facts.waits import LanesWait
from warpwright.syntax.source import Span

NO_END = 1 << 62
"""Where the touched part of an array ends if an address is not known."""
SMALL_STRIDE = 64
"""Bytes between lanes up to which a stride is one that the text gives: what is assumed of an extent is far larger."""
TAKEN, PASSED = 1, 2
"""What a warp did at a condition: went in, or went on behind it."""


@dataclass(slots=True)
class Recorder:
    accesses: dict[Key, AccessTally] = field(default_factory=lambda: {})
    branches: dict[Key, BranchTally] = field(default_factory=lambda: {})
    barriers: dict[tuple[str, int, int], tuple[Span, list[BarrierVisit]]] = field(default_factory=lambda: {})
    warps_seen: dict[Dim3, dict[int, int]] = field(default_factory=lambda: {})  # block -> warp -> lanes at the end
    overrun: set[str] = field(default_factory=set)  # shared arrays of which an index passed its row
    reach: dict[str, int] = field(default_factory=lambda: {})  # shared array -> end of the highest byte touched
    callees: dict[ir.Call, tuple[ir.Function, list[ir.Expr]]] = field(default_factory=lambda: {})  # what calls mean
    firsts: dict[Key, tuple[int, int]] = field(default_factory=lambda: {})  # address and lanes of its first request
    drifts: dict[Key, list[int]] = field(default_factory=lambda: {})  # access -> bytes to the next block, by axis
    one_alignment: bool = False  # one block stands for all, which may be aligned otherwise
    left_out: set[str] = field(default_factory=set)  # what was not followed, in words
    open_ended: bool = False  # a loop was left before its end: what it would have touched is not known
    loops_run: int = 0
    conditions: dict[tuple[str, int, int], Sides] = field(default_factory=lambda: {})
    outcomes: dict[tuple[str, int, int], int] = field(default_factory=lambda: {})  # of a condition: TAKEN, PASSED
    forced: set[tuple[str, int, int]] = field(default_factory=set)  # conditions of which both ways are followed
    forcing: int = 0  # how many of these the interpreter stands under
    open_sides: list[Side] = field(default_factory=lambda: [])
    requests: Requests = field(default_factory=Requests)
    intervals: Intervals = field(default_factory=Intervals)
    known: dict[tuple[Value, int], tuple[int, Pattern]] = field(default_factory=lambda: {})  # of pointers, see _placed
    order: int = 0  # requests seen
    enabled: bool = True
    records_barriers: bool = True
    doubtful_waits: dict[tuple[str, int, int], DoubtfulWait] = field(default_factory=lambda: {})
    phases: dict[Hashable, int] = field(default_factory=lambda: {})  # of barrier objects: how many threads open them

    def outcome(self, span: Span, taken: bool, passed: bool) -> None:
        """A warp came to a condition and went in, or on behind it, or both."""
        key = span.key
        self.outcomes[key] = self.outcomes.get(key, 0) | TAKEN * taken | PASSED * passed

    def is_forced(self, span: Span) -> bool:
        return span.key in self.forced

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
        key = span.key
        found = self.conditions.get(key)
        if found is None:
            found = self.conditions[key] = Sides(last, otherwise=Side() if both else None)
        return found

    def row(self, name: str, index: Value, extent: int, mask: int) -> None:
        """An index into a row of `extent` elements of a shared array, by the lanes of `mask`."""
        data = index.data
        if index.basis != EXACT or data is None or name in self.overrun:
            return
        if not isinstance(data, list):
            passes = mask != 0 and not 0 <= data < extent
        elif None not in data and min(data) >= 0 and max(data) < extent:  # type: ignore[type-var,operator]
            passes = False
        else:
            used = zip(data, LANE_BITS, strict=True)
            passes = any(n is not None and mask & bit and not 0 <= n < extent for n, bit in used)
        if passes:
            self.overrun.add(name)

    def access(
        self, span: Span, pointer: Value, space: Space, kind: AccessKind, size: int, mask: int, weight: float,
        position: Position, in_loop: bool, thinned: bool = False,
    ) -> None:  # fmt: skip
        """One request of `size` bytes per lane at a pointer's addresses, by the lanes of `mask`."""
        if not self.enabled or not mask or size <= 0:
            return
        key = (span.path, span.start, span.end, kind + space)
        tally = self.accesses.get(key)
        if tally is None:
            name = pointer.region.name if pointer.region is not None else None
            tally = self.accesses[key] = AccessTally(span, name, space, kind, size, in_loop)
            tally.structure = _structure(pointer)
            if self.forced:  # no sampled warp comes here: which lanes would is assumed
                tally.basis = ASSUMED
            if pointer.type.to is not None:
                tally.type, tally.value_bytes = pointer.type.to.name, pointer.type.to.size or size
        tally.in_loop = tally.in_loop or in_loop
        tally.by_thread = tally.by_thread or pointer.thread
        tally.thinned = tally.thinned or thinned
        where = self._placed(pointer, mask) if pointer.data is not None else None
        if space is Space.SHARED and tally.array is not None:
            self._reach(tally.array, pointer, size, where)
        if self.open_sides:
            side = self.open_sides[-1]
            side.requests[key] = side.requests.get(key, 0.0) + weight
        if pointer.rows is not None and space is Space.SHARED:
            pointer = _by_banks(pointer, size, mask)
            where = self._placed(pointer, mask) if pointer.data is not None else None
        if where is None or space is Space.LOCAL:
            tally.progress.uneven = True
            tally.uncounted += weight
            tally.uncounted_basis = max(tally.uncounted_basis, pointer.basis)
            if pointer.data is not None:
                tally.basis = max(tally.basis, pointer.basis)
            return
        first, pattern = where
        if not pattern.active:
            return
        tally.progress.visit(position.loop, pointer, weight, mask)
        if key not in self.firsts and not pointer.soft:
            self.firsts[key] = (first, pattern.active)
        tally.distinct += weight * pattern.distinct
        tally.active += weight * pattern.active
        tally.seen += weight
        tally.reached = tally.reached or not self.forcing
        sampled = self.forcing or (self.one_alignment and space is Space.GLOBAL and pattern.distinct > 1)
        tally.basis = max(tally.basis, pointer.basis, ASSUMED if sampled else EXACT)
        if size > 1 and tally.misaligned is None and _is_misaligned(first, pattern, size, pointer, position.guards):
            tally.misaligned = LaneAddresses(position.warp, position.block, pattern.at(first))
        self.order += 1
        known = size
        if space is Space.SHARED and size >= BANK_BYTES:
            known = WIDEST
        elif space is Space.GLOBAL and tally.structure is not None:
            known = tally.structure.align
        request = Request(
            self.order, pointer.region, first, pattern, size, gcd(known, pointer.soft, pointer.grain), weight,
            tally, pointer, (position.warp, position.block), self._shifts(key, tally, position),
        )  # fmt: skip
        if kind is AccessKind.ATOMIC or space is Space.CONSTANT:
            self.flush()
            tally.alone.add(request, size)
            tally.together.add(request, size)
        else:
            self.requests.add(request)

    def _shifts(self, key: Key, tally: AccessTally, position: Position) -> Shifts:
        """Where the requests start that one stands for: those of other blocks and of iterations that are left out."""
        moves: list[tuple[int, int, int]] = []
        if key in self.drifts:
            by_axis = zip(self.drifts[key], position.inside, strict=False)
            moves += ((step, *place) for step, place in by_axis if place is not None)
        if position.loop.skips and tally.progress.step:
            moves.append((tally.progress.step, 0, SECTOR_BYTES))
        return shifts_of(tuple(moves)) if moves else ()

    def begin_warp(self) -> None:
        self.requests.begin_warp()
        self.intervals.begin_warp()

    def flush(self) -> bool:
        """Count the requests that wait: the code is straight only up to here. See Requests.flush."""
        return self.requests.flush()

    def branch(
        self, span: Span, statement: Span, kind: str, condition: Value, taken: int, mask: int, weight: float,
        position: Position, in_loop: bool, splits: bool = False,
    ) -> None:  # fmt: skip
        """One evaluation of a condition by a warp; `taken` are the lanes in which it is true. `splits` is set where it
        is not known and the known part of it parts the lanes."""
        if not self.enabled or not mask:
            return
        key = (span.path, span.start, span.end, kind)
        tally = self.branches.get(key)
        if tally is None:
            tally = self.branches[key] = BranchTally(span, statement, kind, in_loop)
        tally.in_loop = tally.in_loop or in_loop
        tally.evaluations += weight
        if not condition.decided:
            tally.undecided += weight
            if not condition.uniform:
                tally.undecided_varying += weight
                tally.basis = max(tally.basis, condition.basis)
            if splits:
                tally.diverging += weight
                tally.edge_only = tally.edge_only and position.edge
            return
        tally.basis = max(tally.basis, condition.basis)
        if taken and taken != mask:
            tally.diverging += weight
            tally.edge_only = tally.edge_only and position.edge

    def barrier(
        self, span: Span, mask: int, alive: int, weight: float, position: Position, parted: Guard | None
    ) -> None:
        """A warp at a block-wide barrier; `alive` are its lanes that have not ended, `parted` a condition on which some
        have left a loop or a function around."""
        if not self.enabled or not self.records_barriers:
            return
        visits = self.barriers.setdefault(span.key, (span, []))[1]
        guards = position.guards
        around = guards if parted is None else [parted, *guards]
        splitting = next((g for g in reversed(around) if g.passed != g.entered and not g.undecided), None)
        undecided = next((g for g in reversed(around) if not g.value.decided and g.value.thread), None)
        by_thread = next((g for g in reversed(guards) if g.value.thread), None)
        bounded = any(g.value.thread and g.value.basis == ASSUMED for g in guards)
        visits.append(
            BarrierVisit(position.block, position.warp, weight, mask != alive, splitting, undecided, by_thread, bounded)
        )

    def lanes_wait(self, wait: LanesWait) -> None:
        if not self.enabled or wait.named is None or wait.alive & ~wait.named or wait.tile < WARP:
            return
        guards = wait.position.guards
        around = guards if wait.parted is None else [wait.parted, *guards]
        data = next((g for g in reversed(around) if _parts_lanes(g.value)), None)
        if data is not None:
            self.doubtful_waits.setdefault(wait.span.key, DoubtfulWait(wait.span, data.span))

    def comes(self, step: Step, mask: int, alive: int, position: Position) -> None:
        """Lanes of a warp, of which `alive` have not ended, come to a barrier that a part of the block meets at."""

    def saw_whole_block(self, launch: Launch) -> bool:
        """Whether all warps of some block were run."""
        warps = -(-(launch.threads or 0) // WARP)
        return warps > 0 and any(len(seen) == warps for seen in self.warps_seen.values())

    def _placed(self, pointer: Value, mask: int) -> tuple[int, Pattern]:
        """The first address of a request and the pattern of all; a pointer that comes again has the same."""
        found = self.known.get((pointer, mask))
        if found is None:
            if len(self.known) >= MOST_KEPT:
                self.known.clear()
            found = self.known[pointer, mask] = placed(_addresses(pointer.data, mask))
        return found

    def _reach(self, array: str, pointer: Value, size: int, where: tuple[int, Pattern] | None) -> None:
        if where is None or pointer.basis != EXACT or pointer.soft:
            self.reach[array] = NO_END
            return
        first, pattern = where
        self.reach[array] = max(self.reach.get(array, 0), first + pattern.top + size)

    # -- results ------------------------------------------------------------------------------------------------

    def access_facts(self, launch: int) -> list[Access]:
        self.flush()
        for condition in self.conditions.values():
            if condition.predicated:
                for side in condition.all:
                    if side.executed:
                        for key, weight in side.requests.items():
                            self.accesses[key].idle += side.skipped * weight / side.executed
        facts = [access_fact(tally, launch) for tally in self.accesses.values()]
        own = {(f.span.path, f.span.line, f.space) for f in facts if not f.joined and f.basis is not Basis.UNKNOWN}
        return [without_counts(f) if f.joined and (f.span.path, f.span.line, f.space) in own else f for f in facts]

    def branch_facts(self, launch: int) -> list[Branch]:
        return [self._with_sides(branch_fact(tally, launch)) for tally in self.branches.values()]

    def _with_sides(self, branch: Branch) -> Branch:
        span = branch.statement
        found = self.conditions.get(span.key) if branch.kind == "if" else None
        if found is None:
            return branch
        return replace(branch, sides=tuple(side.cost for side in found.all), predicated=found.predicated)

    @property
    def barriers_are_bounded(self) -> bool:
        """A run-time number decides who reaches some barrier: an uneven one may split a block."""
        return any(visit.bounded for _, visits in self.barriers.values() for visit in visits)

    def barrier_facts(self) -> list[Barrier]:
        return [barrier_fact(span, visits, self.warps_seen) for span, visits in self.barriers.values()]


def _parts_lanes(condition: Value) -> bool:
    """Whether it is data that lanes read each for themselves, and no more than that."""
    return not condition.decided and not condition.uniform and condition.basis == DATA


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
    """The addresses by lane, None for a lane that is off or not known. A pointer's data are integers."""
    by_lane = cast("list[int | None]", lanes(data))
    if mask == FULL:
        return tuple(by_lane)
    return tuple([a if mask & bit else None for a, bit in zip(by_lane, LANE_BITS, strict=True)])


def _is_misaligned(first: int, pattern: Pattern, size: int, pointer: Value, guards: list[Guard]) -> bool:
    """Whether an address is certainly no multiple of the access's size, and no unknown condition may say so too.

    Under assumed values only a stride that no assumed extent is part of tells: of lanes 4 bytes apart not all can be at
    multiples of 16.
    """
    if pointer.basis == EXACT and not pointer.soft % size:
        misaligned = bool(first % size or pattern.divisor % size)
    else:
        stride = pattern.stride or 0
        misaligned = bool(stride % size) and abs(stride) <= SMALL_STRIDE
    return misaligned and all(guard.value.decided for guard in guards)
