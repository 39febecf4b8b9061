"""Accesses of different threads to one address that nothing orders, one of which writes.

Example: `tile[threadIdx.x] = x; y = tile[threadIdx.x + 1];` with a block of two warps: thread 31 reads what thread 32
writes, and nothing says which comes first.

What is kept is certain. A warp is followed from its start, and its accesses up to the next barrier are those of one
interval, which has the barriers before as its name. Two warps of a block that came through the same barriers are in an
interval together; lanes of one warp are so up to the next `__syncwarp()` or what waits for the warp's lanes like it; of
two blocks everything is together. Accesses whose address is not exact are left out, as are those under a condition that
data decide thread by thread. One that is the same for all threads of a block is taken to hold: what stands under it is
compared with itself. A warp is not followed behind calls of something that is not in the text, and loops that may wait
for a value; what stands before a fence in one and behind one in another is not compared.

Stores of one value are no race. What memory holds is made up (`trace`), so that sums of different elements differ.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from warpwright.facts.memory import Pattern
from warpwright.facts.model import WARP, AccessKind, Dim3, Race, Space
from warpwright.facts.position import Position
from warpwright.facts.progress import LoopPosition
from warpwright.facts.values import DATA, EXACT, Region, Value
from warpwright.syntax.source import Span

MOST_REQUESTS = 1500
"""Of a kernel's launch that are kept."""
MOST_WRITERS = 6
"""Threads that write one address that others are compared with."""

_TILES = tuple(1 << bits for bits in range(WARP.bit_length()))
"""Lanes of a group within a warp, the whole warp last."""

_SUMS = re.compile(r"(?:::)?atomic(?:Add|Sub|Min|Max|Inc|Dec)\b")
Scenario = tuple[Hashable, ...]
"""Conditions that are the same for the whole block, not known, and taken to hold."""


@dataclass(slots=True, eq=False)
class Use:
    """A request: the access's place and kind, the bytes of a lane, the first lane's address and the pattern of all.

    `part` counts the waits for lanes so far: of tiles of each size, and of the whole warp last. `order` is the place on
    the warp's way, `fences` count those before: since the block's last barrier, and all. `nest` are the loops around,
    each with its turn. `stored` are the lanes' values, None where they are not known. `asked`: the value is only asked
    for by a condition.
    """

    span: Span
    kind: AccessKind
    size: int
    first: int
    pattern: Pattern
    block: Dim3
    warp: int
    part: tuple[int, ...]
    order: int
    fences: tuple[int, int]
    nest: tuple[tuple[Hashable, int], ...]
    stored: Sequence[object] | None
    asked: bool

    @property
    def addresses(self) -> list[int]:
        """Of the words that its lanes move, of smaller accesses their own."""
        starts = [self.first + offset for offset in self.pattern.offsets if offset is not None]
        return starts if self.size <= 4 else [at + word for at in starts for word in range(0, self.size, 4)]

    def units(self) -> Iterator[tuple[int, int]]:
        """Each lane with the addresses of the words that it moves, of a smaller access its own."""
        first = self.first
        for lane, offset in enumerate(self.pattern.offsets):
            if offset is not None:
                for word in range(0, self.size, 4):
                    yield lane, first + offset + word


_Key = tuple[Dim3, int, int, Scenario]


@dataclass(slots=True)
class Intervals:
    """The requests of each interval: those of a block to an array."""

    uses: dict[_Key, list[Use]] = field(default_factory=lambda: {})
    arrays: dict[int, Region] = field(default_factory=lambda: {})
    picks: dict[_Key, list[Use]] = field(default_factory=lambda: {})  # at elements that data choose
    interval: int = 0
    part: tuple[int, ...] = (0,) * len(_TILES)
    order: int = 0
    fences: tuple[int, int] = (0, 0)
    passed: int = 0  # barriers
    apart: bool = False  # the warp met some of the block's others, and what that orders is not followed
    lost: bool = False  # what the warp does from here on is not followed
    parted: bool = False  # whether the warp comes further than this is not known
    guessed: bool = False  # what its variables hold may follow from a number that is assumed
    cut: bool = False  # or from a loop that was left early, or a condition that is taken to hold
    doubts: int = 0  # conditions within expressions that do not say for certain what is run
    asking: int = 0  # conditions that are being evaluated
    nest: list[tuple[Hashable, LoopPosition]] = field(default_factory=lambda: [])  # the loops around

    def begin_warp(self) -> None:
        self.interval = self.order = self.passed = self.doubts = self.asking = 0
        self.part = (0,) * len(_TILES)
        self.fences = 0, 0
        self.apart = self.lost = self.parted = self.guessed = self.cut = False
        self.nest = []

    @property
    def is_doubtful(self) -> bool:
        """Whether the warp may not do what is run now."""
        return self.parted or self.doubts > 0

    @property
    def is_certain(self) -> bool:
        """Whether the warp is sure to do what is run now, with what its variables hold."""
        return not (self.is_doubtful or self.lost or self.apart or self.guessed or self.cut)

    def leaves(self, condition: Value) -> None:
        """One side of a condition that is not known goes no further: which threads go on is not known, unless all of
        the block do the same."""
        self.parted = self.parted or condition.thread or not condition.uniform
        self.cut = True

    def barrier(self, name: Hashable, *, whole: bool, position: Position) -> None:
        """The warp is at a barrier that all threads of the block meet at; `whole` where all of its lanes are."""
        self.lost = self.lost or not whole or scenario_of(position) is None
        self.interval = hash((self.interval, name))
        self.passed += 1
        self.fences = 0, self.fences[1]
        self.wait_for_lanes(WARP)

    def fence(self) -> None:
        """What the warp did is visible to others before what it does: a flag may tell them so."""
        self.fences = self.fences[0] + 1, self.fences[1] + 1

    def wait_for_lanes(self, tile: int) -> None:
        """The warp is where the lanes of each tile wait for each other."""
        self.part = tuple(count + (size == tile) for size, count in zip(_TILES, self.part, strict=True))

    def access(
        self,
        span: Span,
        kind: AccessKind,
        size: int,
        pointer: Value,
        where: tuple[int, Pattern],
        position: Position,
        stored: Sequence[object] | None,
    ) -> None:
        """A request of the warp to shared or global memory."""
        self.order += 1
        if self.lost or self.apart or self.is_doubtful or pointer.region is None or self.order > MOST_REQUESTS:
            return
        scenario = scenario_of(position)
        chosen = pointer.basis == DATA and pointer.region.space is Space.SHARED
        if (pointer.basis != EXACT and not chosen) or pointer.soft or scenario is None:
            return
        # Arrays of one name and type in two functions are equal, and not one: an array is told by its object.
        key = (position.block, id(pointer.region), self.interval, scenario)
        self.arrays[id(pointer.region)] = pointer.region
        nest = tuple((loop, at.iteration) for loop, at in self.nest)
        uses = self.picks if chosen else self.uses
        uses.setdefault(key, []).append(
            Use(span, kind, size, *where, position.block, position.warp, self.part, self.order, self.fences, nest,
                stored, self.asking > 0)
        )  # fmt: skip

    def _of_chosen(self, launch: int) -> Iterator[Race]:
        """Of elements that data choose, in a shared array that several warps store to as a whole: whichever it is, it
        has a writer. An example of the data must meet one of another warp: each warp may have a part of its own."""
        for key, picks in self.picks.items():
            whole = self.arrays.get(key[1])
            stores = [use for use in self.uses.get(key, ()) if use.kind is AccessKind.STORE]
            writers = {word: (use, lane) for use in stores for lane, word in use.units()}
            if whole is None or not whole.bytes or not writers.keys() >= set(range(0, whole.bytes, 4)):
                continue
            for pick in {pick.span.start: pick for pick in picks}.values():
                for lane, word in pick.units():
                    use, writer = writers.get(word, (pick, lane))
                    if use.warp != pick.warp:
                        yield _race(whole, (use, writer, word), (pick, lane, word), launch)
                        break

    def races(self, launch: int) -> Iterator[Race]:
        """One for each pair of places, of different warps where there is such a pair."""
        found: dict[frozenset[Hashable], Race] = {}
        for race in self._all(launch):
            key = frozenset((race.write.key, race.other.key))
            if key not in found or (found[key].in_warp and not race.in_warp):
                found[key] = race
        yield from found.values()

    def _all(self, launch: int) -> Iterator[Race]:
        yield from self._of_chosen(launch)
        across: dict[int, list[Use]] = {}
        for (_, array, _, scenario), uses in self.uses.items():
            region = self.arrays[array]
            for write, other in _meeting(uses, _in_block):
                yield _race(region, write, other, launch)
            if region.space is Space.GLOBAL and not scenario:
                across.setdefault(array, []).extend(uses)
        for array, uses in across.items():
            if len({use.block for use in uses}) > 1:
                for write, other in _meeting(uses, _in_grid):
                    yield _race(self.arrays[array], write, other, launch)


def scenario_of(position: Position) -> Scenario | None:
    """The conditions that are taken to hold; None where one is not known and parts the threads of a block."""
    held: dict[Hashable, None] = {}
    for guard in position.guards:
        if guard.undecided:
            if guard.value.thread or not guard.value.uniform:
                return None
            held[guard.span.key, guard.otherwise] = None
    return tuple(held)


def _in_block(one: Use, lane: int, other: Use, with_lane: int) -> bool:
    """Whether nothing orders two lanes' requests of an interval: they are in one warp ordered by a wait of a tile that
    has both."""
    if one.warp != other.warp:
        return one.fences[0] == other.fences[0]
    apart = (lane ^ with_lane).bit_length()
    return one.part[apart:] == other.part[apart:]


def _in_grid(one: Use, _lane: int, other: Use, _with_lane: int) -> bool:
    return one.block != other.block and one.fences[1] == other.fences[1]


_Thread = tuple[Use, int, int]
"""A lane's part in a request, with its address."""


def _meeting(uses: Iterable[Use], meets: Callable[[Use, int, Use, int], bool]) -> Iterator[tuple[_Thread, _Thread]]:
    """One pair of threads for each two places that race."""
    writers: dict[int, list[tuple[Use, int]]] = {}
    own: _Own | None = None  # made where it is asked for: most requests meet no other's
    uses = list(uses)
    if all(use.kind is AccessKind.LOAD for use in uses) or all(use.kind is AccessKind.ATOMIC for use in uses):
        return
    for use in uses:
        if use.kind is AccessKind.LOAD:
            continue
        for lane, address in use.units():
            at = writers.setdefault(address, [])
            if len(at) < MOST_WRITERS:
                at.append((use, lane))
    seen: set[tuple[int, int, bool]] = set()
    for use in uses:
        if writers.keys().isdisjoint(use.addresses):
            continue
        for lane, address in use.units():
            for write, writer in writers.get(address, ()):
                in_warp = write.warp == use.warp and write.block == use.block
                if (write.span.start, use.span.start, in_warp) in seen or not meets(write, writer, use, lane):
                    continue
                if writer == lane and in_warp:
                    continue
                if use.kind is AccessKind.LOAD:
                    own = own or _own(uses)
                    races = _is_decided_by_order(use, lane, address, write, own)
                else:
                    races = _writes_other(use, lane, write, writer)
                if races:
                    seen.add((write.span.start, use.span.start, in_warp))
                    seen.add((use.span.start, write.span.start, in_warp))
                    yield (write, writer, address), (use, lane, address)


@dataclass(slots=True)
class _Own:
    """Where a thread or a warp first stores to an address, and where a thread last updates it atomically."""

    by_thread: dict[tuple[Dim3, int, int, int], int] = field(default_factory=lambda: {})
    by_warp: dict[tuple[Dim3, int, int], int] = field(default_factory=lambda: {})
    updated: dict[tuple[Dim3, int, int, int], int] = field(default_factory=lambda: {})


def _own(uses: Iterable[Use]) -> _Own:
    own = _Own()
    for use in uses:
        for lane, address in use.units() if use.kind is not AccessKind.LOAD else ():
            if use.kind is AccessKind.STORE:
                own.by_thread.setdefault((use.block, use.warp, lane, address), use.order)
                own.by_warp.setdefault((use.block, use.warp, address), use.order)
            else:
                own.updated[use.block, use.warp, lane, address] = use.order
    return own


def _is_decided_by_order(use: Use, lane: int, address: int, write: Use, own: _Own) -> bool:
    """Whether what a load reads depends on which comes first: it or another thread's write.

    What the thread has written itself before, or against another warp any lane of its own, it may read: then the
    other's write may be of the same value. What a thread reads before it updates it atomically is a first guess, and
    what a condition asks of a flag that is only ever set to one value decides nothing. Of what atomics write, a
    condition is only judged that asks for a sum or an extreme behind the thread's own part of it.
    """
    in_warp = write.warp == use.warp and write.block == use.block
    thread = (use.block, use.warp, lane, address)
    first = own.by_thread.get(thread) if in_warp else own.by_warp.get((use.block, use.warp, address))
    if first is not None and first < use.order:
        return False
    if write.kind is AccessKind.ATOMIC:
        updated = own.updated.get(thread, 0)
        return (
            updated <= use.order
            if not use.asked
            else 0 < updated < use.order and _SUMS.match(write.span.text) is not None
        )
    return not (use.asked and write.stored is not None and len(set(write.stored)) == 1)


def _writes_other(use: Use, lane: int, write: Use, writer: int) -> bool:
    """Whether two writes leave what comes last: an atomic one and a plain one, or two of different values."""
    if use.kind is not write.kind:
        return True
    if use.kind is AccessKind.ATOMIC or use.stored is None or write.stored is None:
        return False
    one, other = use.stored[lane], write.stored[writer]
    return one is not None and other is not None and one != other


def _turns(one: Use, other: Use) -> tuple[int, int] | None:
    """The iterations of the outermost loop of both that differ."""
    for (loop, turn), (same, later) in zip(one.nest, other.nest, strict=False):
        if loop != same:
            return None
        if turn != later:
            return turn, later
    return None


def _rank(use: Use) -> tuple[int, int]:
    return (AccessKind.STORE, AccessKind.ATOMIC, AccessKind.LOAD).index(use.kind), use.span.start


def _race(region: Region, write: _Thread, other: _Thread, launch: int) -> Race:
    """The race of two threads, the first of which writes; of two that do, one that stores, and what stands first."""
    if _rank(other[0]) < _rank(write[0]):
        write, other = other, write
    (first, writer, address), (second, lane, _) = write, other
    same_block = first.block == second.block
    return Race(
        array=region.name,
        space=region.space,
        write=first.span,
        other=second.span,
        kind=second.kind,
        by=first.kind,
        launch=launch,
        threads=(first.warp * WARP + writer, second.warp * WARP + lane),
        blocks=(first.block, second.block),
        turns=_turns(first, second),
        address=address,
        in_warp=same_block and first.warp == second.warp,
        at_once=first is second,
    )
