"""What is certain of the order and the bounds of a kernel's accesses: a few warps of blocks side by side, step by step.

They are followed as the text has it: loops are run for their first iterations and then left, never jumped ahead in;
conditions on assumed sizes go as these have it. Memory holds numbers that are made up, one for each address: what is
computed of them shows whether two threads store the same, and decides nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import product
from zlib import crc32

from warpwright.facts import ir
from warpwright.facts.bounds import Extremes
from warpwright.facts.interpret import PROBES, Interpreter
from warpwright.facts.lanes import Number, each, lanes, simplify
from warpwright.facts.launches import LaunchSite
from warpwright.facts.loops import UNEVEN, advance, deltas_of
from warpwright.facts.lower import Lowerer
from warpwright.facts.meetings import BLOCK, Step
from warpwright.facts.model import (
    MAX_THREADS_PER_BLOCK,
    WARP,
    AccessKind,
    Basis,
    Dim3,
    Launch,
    MissedWait,
    OutOfBounds,
    Race,
    Space,
    UnwrittenRead,
)
from warpwright.facts.places import ElementPlace, Location, MemoryPlace, Reference, shifted
from warpwright.facts.position import Guard, Position
from warpwright.facts.predication import Sides, is_constant
from warpwright.facts.races import scenario_of
from warpwright.facts.recorder import Recorder
from warpwright.facts.steps import OutOfStepsError
from warpwright.facts.types import CType, pointer_to
from warpwright.facts.unit import FunctionText, Unit
from warpwright.facts.unwritten import BlockMemory, is_plain
from warpwright.facts.values import (
    DATA,
    EXACT,
    LANE_BITS,
    AnyValue,
    ArrayValue,
    Example,
    Region,
    StructValue,
    Value,
    offset_pointer,
)
from warpwright.facts.waits import CLUSTER, GRID, LanesWait, Waits
from warpwright.facts.warp_memory import LoopState
from warpwright.facts.warp_start import argument, warp_context
from warpwright.syntax.encoding import decoded, encoded
from warpwright.syntax.source import Span

STEPS = 5_000
"""Of all warps of one launch together."""
WARP_STEPS = 5_000
"""Of one; with a sixth of it gone its loops run fewer iterations."""
MOST_ITERATIONS = (20, 5)
"""Of a loop that moves unevenly, and with these steps gone."""
_CLUSTER = re.compile(r"\b__cluster_dims__\s*\(([^()]*)\)")
_MULTIPLIER, _TAKEN = 0x9E3779B97F4A7C15, 32
"""Fibonacci hashing: of the product with 2**64 over the golden ratio, the upper half of 64 bits."""
_NUMBERS = ("int", "uint", "float", "bool")


@dataclass(slots=True)
class TraceRecorder(Recorder):
    """Keeps the accesses in their order and counts nothing."""

    extremes: Extremes = field(default_factory=Extremes)
    own_arrays: dict[int, Region] = field(default_factory=lambda: {})  # of threads, by their objects, which are kept
    kept: list[ArrayValue] = field(default_factory=lambda: [])
    stored: Sequence[object] | None = None  # what the lanes store that are about to
    seen: int = 0
    updates: int = 0  # atomic accesses
    looks_ahead: bool = False  # in a loop's last turns, where reads are moved inside by `min` and not used
    memory: BlockMemory = field(default_factory=BlockMemory)
    bare: list[tuple[Span, str, Dim3, int, int]] = field(default_factory=lambda: [])  # of threads' own arrays, unset
    waits: Waits = field(default_factory=Waits)
    block_threads: int = 0
    waited: int = 0
    met: int = 0  # barriers of the block and of parts of it, by the warp
    unsure: bool = False  # which of the warp's waits are made

    def access(
        self, span: Span, pointer: Value, space: Space, kind: AccessKind, size: int, mask: int, weight: float,
        position: Position, in_loop: bool, thinned: bool = False,
    ) -> None:  # fmt: skip
        self.seen += 1
        self.updates += kind is AccessKind.ATOMIC
        if not self.enabled or not mask or size <= 0:
            return
        intervals = self.intervals
        where = self._placed(pointer, mask) if pointer.data is not None else None
        done = not intervals.is_doubtful and scenario_of(position) == ()
        certain = done and not (intervals.cut or intervals.guessed)
        alone = not (intervals.passed or intervals.lost or intervals.apart or self.waited)
        self.memory.access(span, kind, size, pointer, where, position, certain=certain, done=done, alone=alone)
        if where is None or pointer.basis not in (EXACT, DATA):
            return
        spare = self.looks_ahead and space is Space.GLOBAL and kind is AccessKind.LOAD
        if space in (Space.SHARED, Space.GLOBAL) and not spare:
            intervals.access(span, kind, size, pointer, where, position, self.stored)
        if not pointer.basis and intervals.is_certain:
            self.extremes.access(span, kind, size, pointer, where, position)

    def barrier(
        self, span: Span, mask: int, alive: int, weight: float, position: Position, parted: Guard | None
    ) -> None:
        self.intervals.barrier(span.key, whole=mask == alive, position=position)
        self._meet(Step(span, BLOCK, WARP, True, None), mask, alive, position)

    def lanes_wait(self, wait: LanesWait) -> None:
        intervals, position = self.intervals, wait.position
        self.waited += 1
        if wait.kind not in (GRID, CLUSTER):
            intervals.wait_for_lanes(wait.tile)
        if wait.named is None:
            return
        if scenario_of(position) != () or intervals.is_doubtful:
            self.unsure = True
        else:
            self.waits.call(position.block, position.warp, wait.span, wait.kind, wait.named, wait.mask, wait.alive)

    def reads_bare(self, span: Span, array: Region, address: int, mask: int, position: Position) -> None:
        """Lanes read an element of their own array that was never set."""
        if array.element.kind in _NUMBERS and self.intervals.is_certain and scenario_of(position) == ():
            thread = position.warp * WARP + (mask & -mask).bit_length() - 1
            self.bare.append((span, array.name, position.block, thread, address))

    def comes(self, step: Step, mask: int, alive: int, position: Position) -> None:
        self.waited += 1
        self._meet(step, mask, alive, position)
        whole = step.threads is not None and step.threads >= self.block_threads
        if whole and step.waits:
            self.intervals.barrier(step.barrier, whole=mask == alive, position=position)
        elif not whole:
            self.intervals.apart = True

    def _meet(self, step: Step, mask: int, alive: int, position: Position) -> None:
        self.met += 1
        waits, place = self.waits, (position.block, position.warp)
        waits.step(*place, step)
        parted = mask != alive and step.barrier == BLOCK
        if parted or scenario_of(position) != () or self.intervals.is_doubtful or self.intervals.lost:
            waits.pathless.add(place)


@dataclass(slots=True)
class Tracer(Interpreter):
    """Runs a kernel for one warp as far as is certain."""

    recorder: TraceRecorder
    left_early: bool = False  # the loop that is run was left before its end
    read_by_condition: bool = False  # the latest condition
    passed_before: int = 0  # barriers in front of the loop that is run

    def asked(self, condition: Value) -> Value:
        condition = super(Tracer, self).asked(condition)
        if not condition.decided or condition.basis < DATA:
            return condition
        return Example(condition.data, condition.type, condition.basis, 1, condition.thread)

    def condition(self, node: ir.Expr, mask: int, statement: Span, kind: str) -> Value:
        seen = self.recorder.seen
        self.recorder.intervals.asking += 1
        value = super(Tracer, self).condition(node, mask, statement, kind)
        self.recorder.intervals.asking -= 1
        self.read_by_condition = self.recorder.seen > seen
        return value

    def load_memory(self, pointer: Value, kind: CType, span: Span, mask: int) -> AnyValue:
        value = super(Tracer, self).load_memory(pointer, kind, span, mask)
        if not isinstance(value, Value) or value.decided or pointer.data is None:
            return value
        return self._made_up(pointer, kind) or value

    def _made_up(self, pointer: Value, kind: CType) -> AnyValue | None:
        """What memory holds there until the next barrier; None where its type is not known."""
        if kind.kind == "struct" and kind.fields:
            made = {name: self._made_up(shifted(pointer, offset), of) for name, offset, of in kind.fields}
            return StructValue(kind, {name: value for name, value in made.items() if value is not None})
        if kind.kind not in _NUMBERS or pointer.region is None:
            return None
        salt = crc32(encoded(pointer.region.name)) + 977 * self.recorder.intervals.passed
        data = each(lambda address: _number(int(address) + salt, kind), pointer.data)
        return Value(data, kind, DATA, 0, pointer.thread)

    def load(self, place: Location, mask: int) -> AnyValue:
        if type(place) is ElementPlace:
            self._element(place, AccessKind.LOAD, mask)
        return super(Tracer, self).load(place, mask)

    def _element(self, place: ElementPlace, kind: AccessKind, mask: int) -> None:
        """A subscript of a thread's own array."""
        whole, index, span = place.array.type, place.index, place.span
        if span is None or not mask or not index.decided or not whole.extent or whole.to is None or not whole.to.size:
            return
        region = self.recorder.own_arrays.get(id(place.array))
        if region is None:
            name = span.text.rsplit("[", 1)[0].strip()
            region = Region(name, Space.LOCAL, whole.to, bytes=whole.extent * whole.to.size)
            self.recorder.own_arrays[id(place.array)] = region
            self.recorder.kept.append(place.array)
        position = self.warp.position
        at = index.data
        is_bare = kind is AccessKind.LOAD and place.array.bare and index.basis == EXACT and not index.soft
        if is_bare and isinstance(at, int) and 0 <= at < whole.extent and at not in place.array.elements:
            self.recorder.reads_bare(span, region, at * whole.to.size, mask, position)
        pointer = offset_pointer(Value(0, pointer_to(whole.to), 0, 0, False, region), index)
        self.recorder.access(span, pointer, Space.LOCAL, kind, whole.to.size, mask, 1.0, position, False)

    def store(self, place: Location, value: AnyValue, mask: int) -> None:
        """Of a struct each member that is known is stored by itself, and what memory holds already is not."""
        if type(place) is ElementPlace:
            self._element(place, AccessKind.STORE, mask)
        if type(place) is not MemoryPlace:
            super(Tracer, self).store(place, value, mask)
            return
        value = self.converted(value, place.type)
        if isinstance(value, StructValue):
            for name, offset, kind in value.type.fields:
                if name in value.fields:
                    self.store(MemoryPlace(shifted(place.pointer, offset), kind, place.span), value.fields[name], mask)
            return
        stored = lanes(value.data) if isinstance(value, Value) and value.decided and value.region is None else None
        if stored is not None and place.pointer.data is not None:
            there = self._made_up(place.pointer, place.type)
            if isinstance(value, Value) and isinstance(there, Value) and there.data == value.data:
                return
        self.recorder.stored = stored
        super(Tracer, self).store(place, value, mask)
        self.recorder.stored = None

    def _hides(self, condition: Value, sides: Sides) -> bool:
        return not condition.thread

    def _most_iterations(self, thrifty: bool) -> int:
        return MOST_ITERATIONS[thrifty]

    def _may_wait(self, condition: Value) -> None:
        self.left_early = True
        if self.read_by_condition:  # for what another thread writes
            self.recorder.intervals.lost = True

    def _ends_early(self, node: ir.Loop) -> None:
        self.left_early = True
        if node.condition is None or is_constant(node.condition):  # it is left by what is not known
            self.recorder.intervals.lost = True

    def _loop(self, node: ir.Loop, mask: int) -> int:
        intervals = self.recorder.intervals
        outer, self.left_early = self.left_early, False
        before, name = list(self.frame.slots), intervals.interval
        updates, waited, met = self.recorder.updates, self.recorder.waited, self.recorder.met
        out = super(Tracer, self)._loop(node, mask)
        if self.left_early:
            slots = self.frame.slots
            for slot, value in enumerate(slots):
                if slot >= len(before) or value is not before[slot]:
                    slots[slot] = _example(value)
            intervals.cut = True
            self.recorder.unsure = self.recorder.unsure or self.recorder.waited > waited
            if self.recorder.met > met:
                self.recorder.waits.pathless.add((self.warp.position.block, self.warp.position.warp))
            intervals.lost = intervals.lost or (self.recorder.updates > updates and not _counts(node))
            if intervals.interval != name:
                intervals.interval = hash((name, node.span.key))
        self.left_early = outer
        return out

    def _iterate(self, node: ir.Loop, state: LoopState, mask: int) -> int:
        nest = self.recorder.intervals.nest
        nest.append((node.span.key, self.warp.position.loop))
        outer, self.passed_before = self.passed_before, self.recorder.intervals.passed
        left = super(Tracer, self)._iterate(node, state, mask)
        self.passed_before = outer
        nest.pop()
        return left

    def _jump(
        self, node: ir.Loop, state: LoopState, history: list[list[AnyValue | Reference | None]], active: int, few: int
    ) -> int | None:
        """Leave a loop of many iterations."""
        if len(history) < PROBES or node.condition is None:
            return None
        deltas = deltas_of([[_in_lanes(value, active) for value in slots] for slots in history])
        remaining = self._remaining(node.condition, deltas, active)
        if remaining is None or remaining <= few:
            return None
        self._look_ahead(node, state, deltas, active, remaining)
        self.left_early = True
        state.broken |= active
        return 0

    def _look_ahead(
        self, node: ir.Loop, state: LoopState, deltas: Mapping[int, int | float], active: int, remaining: int
    ) -> None:
        """Run one turn in the middle and the last one. Of what the loop changes, only what its header counts is known
        there."""
        slot = _counted(node)
        step = deltas.get(slot, UNEVEN) if slot is not None else UNEVEN
        if slot is None or step == UNEVEN:
            return
        intervals, position = self.recorder.intervals, self.warp.position.loop
        base = list(self.frame.slots)
        held = [_example(value) if at in deltas else value for at, value in enumerate(base)]
        for ahead in (remaining // 2, remaining - 1):
            slots = list(held)
            slots[slot] = advance(base, {slot: step}, ahead, self.moved)[slot]
            self.frame.slots, position.iteration = slots, PROBES + ahead
            if self._met_barrier():
                intervals.interval = hash((intervals.interval, node.span.key, ahead))
            outer, self.recorder.looks_ahead = self.recorder.looks_ahead, True
            self.statement(node.body, self._decided(node, active))
            self.recorder.looks_ahead = outer
            state.continued = 0
        self.frame.slots = base

    def _met_barrier(self) -> bool:
        """Whether a barrier was met in the loop that is run."""
        return self.recorder.intervals.passed > self.passed_before


@dataclass(frozen=True, slots=True)
class Traced:
    """What is certain to go wrong in a launch."""

    races: tuple[Race, ...] = ()
    outside: tuple[OutOfBounds, ...] = ()
    missed_waits: tuple[MissedWait, ...] = ()
    unwritten: tuple[UnwrittenRead, ...] = ()


def traced(
    unit: Unit, text: FunctionText, function: ir.Function, launch: Launch, site: LaunchSite, index: int
) -> Traced:
    block = tuple(extent or 1 for extent in launch.block)
    shape: Dim3 = (block[0], block[1], block[2])
    threads = shape[0] * shape[1] * shape[2]
    if launch.basis is not Basis.EXACT or not site.is_reached or not 0 < threads <= MAX_THREADS_PER_BLOCK:
        return Traced()
    recorder, cluster = TraceRecorder(block_threads=threads), _cluster(unit, text)
    if cluster is not None:
        recorder.waits.cluster = frozenset((x, y, z) for x, y, z in product(*map(range, cluster)))
    arguments = [argument(parameter, unit.extent, i, site) for i, parameter in enumerate(function.parameters)]
    starts: dict[str, Value] = {}
    functions: dict[tuple[int, str], ir.Function] = {}
    left = STEPS
    blocks, unwritten, warps = _blocks(launch.grid), list[UnwrittenRead](), -(-threads // WARP)
    for number, place in enumerate(blocks):
        cost, share = 0, left * 4 // 5 if number == 0 else left // (len(blocks) - number)
        recorder.memory.begin_block(place)
        for warp in _warps(warps):
            if (cost and cost > share) or unit.steps.spent:
                break
            position = Position(place, warp, 1.0, 1.0, False)
            context = replace(warp_context(shape, launch, position, 0), cluster=cluster)
            run = Tracer(unit, recorder, context, starts, functions)
            run.limit, run.allowance = WARP_STEPS, 2 * WARP_STEPS if number == 0 else WARP_STEPS // 2
            position.guards = run.guards
            _follow(run, function, arguments)
            cost += run.steps
            unit.steps.take(run.steps)
        left -= cost
        if number == 0:
            unwritten += recorder.memory.in_block(text.source, text.node, warps, index)
    unwritten += recorder.memory.in_grid(text.source, text.node, index)
    unwritten += _unset(recorder, text, index)
    outside = tuple(recorder.extremes.outside(index)) if site.is_certain else ()
    return Traced(
        tuple(recorder.intervals.races(index)), outside, tuple(recorder.waits.missed(index, warps)), tuple(unwritten)
    )


def _follow(run: Tracer, function: ir.Function, arguments: Sequence[AnyValue]) -> None:
    """Follow a warp, and note how far its way is known."""
    recorder, place = run.recorder, (run.warp.position.block, run.warp.position.warp)
    recorder.begin_warp()
    ended, recorder.unsure = False, False
    with suppress(OutOfStepsError):
        run.run(function, list(arguments))
        ended = True
    intervals = recorder.intervals
    certain = ended and not (recorder.unsure or intervals.guessed or intervals.parted)
    recorder.waits.end_warp(*place, certain=certain)
    if intervals.lost:  # at what is not in the text
        recorder.waits.pathless.add(place)
    recorder.memory.warps += certain and not (intervals.lost or intervals.apart or intervals.cut)


def _unset(recorder: TraceRecorder, text: FunctionText, launch: int) -> Iterator[UnwrittenRead]:
    """Of threads' own arrays, one for each place."""
    first = {read[0].key: read for read in reversed(recorder.bare) if is_plain(text.source, text.node, read[1])}
    for span, name, block, thread, address in first.values():
        yield UnwrittenRead(span, name, Space.LOCAL, launch, block, thread, address)


def _blocks(grid: Sequence[int | None]) -> list[Dim3]:
    """The first block, its neighbour along each axis of the grid, and the last."""
    places = [(0, 0, 0), *((int(a == 0), int(a == 1), int(a == 2)) for a in range(3))]
    inside = [p for p in places if all(i < (2 if n is None else n) for i, n in zip(p, grid, strict=True))]
    x, y, z = (0 if n is None else n - 1 for n in grid)
    return list(dict.fromkeys([*inside, (x, y, z)]))


def _cluster(unit: Unit, text: FunctionText) -> Dim3 | None:
    """The blocks of a cluster along each axis, as the kernel's attribute gives them."""
    body = text.node.child_by_field_name("body")
    head = text.source.data[text.outer.start_byte : body.start_byte] if body is not None else b""
    found = _CLUSTER.search(decoded(head))
    reader = Lowerer(unit, text.source)
    given = [reader.constant_of_text(part) for part in found[1].split(",")] if found is not None else []
    extents = [extent for extent in given if extent is not None and extent > 0]
    if not 0 < len(extents) == len(given) <= len("xyz"):
        return None
    x, y, z = (*extents, 1, 1)[:3]
    return x, y, z


def _warps(count: int) -> list[int]:
    """The warps of a block, in the order in which they are worth most."""
    return list(dict.fromkeys(w for w in (0, count - 1, 1, count // 2, 2, 4, *range(count)) if w < count))


def _example(value: AnyValue | Reference | None) -> AnyValue | Reference | None:
    """What a variable may be worth behind a loop."""
    if not isinstance(value, Value) or value.basis >= DATA:
        return value
    return Value(value.data, value.type, DATA, value.soft, value.thread, value.region)


def _in_lanes(value: AnyValue | Reference | None, mask: int) -> AnyValue | Reference | None:
    """A variable as the lanes of a mask see it: the others hold what the first of these does."""
    if not isinstance(value, Value) or not isinstance(value.data, list):
        return value
    first = value.data[(mask & -mask).bit_length() - 1]
    return value.holding(
        simplify([n if mask & bit else first for n, bit in zip(value.data, LANE_BITS, strict=True)]), value.type
    )


def _counted(node: ir.Loop) -> int | None:
    """The variable that a loop's header moves on."""
    step = node.step
    target = step.target if isinstance(step, (ir.Update, ir.Assign)) else None
    return target.slot if isinstance(target, ir.Var) else None


def _number(seed: int, kind: CType) -> Number:
    """A number that looks like chance, small enough to be an index."""
    mixed = (seed * _MULTIPLIER >> _TAKEN) & 0xFFFFFFFF
    if kind.kind == "float":
        return 1.0 + (mixed & 0xFFFFF) / (1 << 20)
    return mixed & (1 if kind.kind == "bool" else 0xFF if kind.size == 1 else 0x3FF)


def _counts(node: ir.Loop) -> bool:
    """Whether a loop ends by a condition that the numbers tell: it waits for nothing."""
    return node.kind == "for"
