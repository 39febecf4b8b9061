"""Variables and memory of one warp: the places that expressions name, and what loading and storing them records."""

from __future__ import annotations

from dataclasses import dataclass, field

from warpwright.facts import ir
from warpwright.facts.lanes import each
from warpwright.facts.lower import Lowerer
from warpwright.facts.model import AccessKind, Dim3, Space
from warpwright.facts.places import (
    ChoicePlace,
    ElementPlace,
    FieldPlace,
    Frame,
    Location,
    MemoryPlace,
    Reference,
    SlotPlace,
    array_element,
    field_of,
    piece_width,
    shifted,
)
from warpwright.facts.position import Guard, Position
from warpwright.facts.predication import ACCESS, FIRST_LOAD, FIRST_STORE
from warpwright.facts.recorder import Recorder
from warpwright.facts.steps import OutOfStepsError
from warpwright.facts.types import INT, UNKNOWN_TYPE, CType, pointer_to
from warpwright.facts.unit import Unit
from warpwright.facts.values import (
    ASSUMED,
    DATA,
    FULL,
    UNKNOWN,
    AnyValue,
    ArrayValue,
    Region,
    StructValue,
    Value,
    convert,
    join,
    merge,
    soft,
    unknown,
)
from warpwright.syntax.source import Span

MAX_STEPS = 60_000
MOST_PIECES = 256
"""Requests that are counted of one value that is copied whole; the rest of a larger one is taken to be like them."""


@dataclass(slots=True)
class LoopState:
    broken: int = 0
    continued: int = 0
    parted: Guard | None = None  # a condition on data on which some lanes have left it or go on to its next turn


@dataclass(slots=True)
class WarpContext:
    """The built-ins of one warp. `specials` maps threadIdx, blockIdx, blockDim and gridDim to three values."""

    specials: dict[str, tuple[Value, Value, Value]]
    position: Position
    mask: int
    dynamic_bytes: int | None = None  # of shared memory, as the launch asks for
    cluster: Dim3 | None = None  # the blocks of one, where the kernel's text says so


@dataclass(slots=True)
class WarpMemory:
    unit: Unit
    recorder: Recorder
    warp: WarpContext
    starts: dict[str, Value] = field(default_factory=lambda: {})  # of arrays, by name: pointers
    functions: dict[tuple[int, str], ir.Function] = field(default_factory=lambda: {})
    weight: float = 1.0
    steps: int = 0
    limit: int = MAX_STEPS  # of the steps
    allowance: int = MAX_STEPS  # with a twelfth of it gone loops run fewer iterations, with half of it one
    cost: int = 0  # of the instructions run, see predication.LIMIT
    addressed: set[Region] = field(default_factory=set)  # global arrays used on this side already
    loop_depth: int = 0
    call_depth: int = 0
    recursions: int = 0  # runs of functions within their own runs
    running: list[ir.Function] = field(default_factory=lambda: [])
    settled: tuple[int, int] = (0, 0)  # of an undecided condition: the lanes in which it is false, and those true
    assigned: Location = None  # what the latest assignment stored to
    ending: bool = True  # behind the function that is run, the kernel ends
    last_call: bool = False  # and behind the call that is evaluated
    guards: list[Guard] = field(default_factory=lambda: [])
    loops: list[LoopState] = field(default_factory=lambda: [])
    frame: Frame = field(default_factory=lambda: Frame([]))
    kernel_frame: Frame = field(default_factory=lambda: Frame([]))  # of the kernel itself
    has_subscripts: bool = field(init=False)  # some struct of the unit has an operator []

    def __post_init__(self) -> None:
        self.has_subscripts = "operator[]" in self.unit.methods

    def step(self) -> None:
        """Count a step, and see whether there are too many: of a statement, and of an expression that may have a part
        evaluated twice, which doubles the steps each time where such parts nest. Raises OutOfStepsError."""
        self.steps += 1
        self.see_steps()

    def spend(self, count: int) -> None:
        """Count work on the text, which is done once for all warps of the kernel. Raises OutOfStepsError."""
        if not self.unit.steps.take(count):
            raise OutOfStepsError

    def see_steps(self) -> None:
        if self.steps > self.limit:
            raise OutOfStepsError

    @staticmethod
    def scalar(value: AnyValue) -> Value:
        if type(value) is Value:
            return value
        if isinstance(value, ArrayValue):  # an array that decays to a pointer
            element = value.type.to or UNKNOWN_TYPE
            value.bare = False  # it may be set through the pointer
            return Value(0, pointer_to(element), 0, 0, False, Region("local", Space.LOCAL, element))
        return unknown(value.type if isinstance(value, StructValue) else UNKNOWN_TYPE)

    def load(self, place: Location, mask: int) -> AnyValue:
        if type(place) is SlotPlace:
            slots = place.frame.slots
            value = slots[place.slot] if place.slot < len(slots) else None
            if isinstance(value, Reference):
                return self.load(value.place, mask)
            return value if value is not None else unknown()
        if type(place) is ElementPlace:
            return array_element(place.array, place.index)
        if type(place) is MemoryPlace:
            return self.load_memory(place.pointer, place.type, place.span, mask)
        if type(place) is FieldPlace:
            return field_of(self.load(place.base, mask), place.name, place.type)
        if type(place) is ChoicePlace:
            on = place.on
            first = self.load(place.then, mask & on if on is not None else mask)
            second = self.load(place.otherwise, mask & ~on if on is not None else mask)
            return (merge(second, first, on) if on is not None else join(first, second, None)) or unknown()
        return unknown()

    def load_memory(self, pointer: Value, kind: CType, span: Span, mask: int) -> AnyValue:
        if kind.kind == "array":
            return pointer.holding(pointer.data, kind)
        if pointer.region is not None:
            self.touch(pointer, kind, span, AccessKind.LOAD, mask)
        if pointer.uniform:
            if kind.kind == "pointer":
                name = f"*{span.text}"
                start = self.starts.get(name)
                if start is None:
                    region = Region(span.text, Space.GLOBAL, kind.to or UNKNOWN_TYPE)
                    start = self.starts[name] = Value(0, kind, ASSUMED, 0, pointer.thread, region)
                return Value(0, kind, ASSUMED, 0, pointer.thread, start.region)
            memory = pointer.region
            if memory is not None and memory.space is Space.CONSTANT and memory.element == kind and kind.is_integer:
                return Value(self.unit.extent, kind, ASSUMED, 0, pointer.thread, grain=1)  # set as an argument is
            local = memory is not None and memory.space is Space.LOCAL
            return unknown(kind, DATA) if local else soft(kind, pointer.thread)
        return unknown(kind, DATA if pointer.basis <= DATA else pointer.basis, True)

    @property
    def request_weight(self) -> float:
        """How many requests of the launch one request stands for, here in the loops of the sampled warp and block."""
        return self.weight * self.warp.position.warp_weight * self.warp.position.block_weight

    def touch(self, pointer: Value, kind: CType, span: Span, access: AccessKind, mask: int) -> None:
        """Record the requests that move one value of that type."""
        region = pointer.region
        if region is None or region.space is Space.LOCAL:
            return
        space, position = region.space, self.warp.position
        weight = self.weight * position.warp_weight * position.block_weight
        in_loop = self.loop_depth > 0
        self.cost += self._access_cost(region, access)
        if kind.size is None:
            pointer = Value(None, pointer.type, UNKNOWN, 0, True, region)
            self.recorder.access(span, pointer, space, access, 4, mask, weight, position, in_loop)
            return
        width = piece_width(kind, space)
        thinned = access is AccessKind.ATOMIC and self._is_thinned()
        pieces = max(1, -(-kind.size // width))
        looked_at = min(pieces, MOST_PIECES)
        weight *= pieces / looked_at
        for offset in range(0, looked_at * width, width):
            size = min(width, kind.size - offset)
            at = shifted(pointer, offset) if offset else pointer
            self.recorder.access(span, at, space, access, size, mask, weight, position, in_loop, thinned)

    def _is_thinned(self) -> bool:
        """Whether data decide which lanes come here, or the assumed numbers say that none of them does."""
        return self.warp.position.thinned or any(
            g.undecided and (not g.value.uniform or (not g.passed and g.value.thread)) for g in self.guards
        )

    def _access_cost(self, region: Region, access: AccessKind) -> int:
        """What an access adds to the instructions of the side of a condition that it stands on."""
        if region.space is not Space.GLOBAL or region in self.addressed:
            return ACCESS
        self.addressed.add(region)
        return FIRST_STORE if access is AccessKind.STORE else FIRST_LOAD

    def pointed(self, pointer: Value, kind: CType, span: Span) -> Location:
        """What a pointer points to: a variable of the thread, where it is known which, or a place in memory."""
        target = pointer.region.place if pointer.region is not None else None
        if target is None:
            return MemoryPlace(pointer, kind, span)
        whole = self.load(target, 0)
        if not isinstance(whole, ArrayValue):
            return target if pointer.data == 0 else None
        size = whole.type.to.size if whole.type.to is not None else None
        if size is None or size != kind.size or not pointer.decided:  # read as another type, or anywhere
            return ElementPlace(whole, unknown(INT))
        index = each(lambda n: int(n) // size, pointer.data)
        return ElementPlace(whole, Value(index, INT, pointer.basis, 0, pointer.thread))

    def global_place(self, name: str, span: Span) -> Location:
        variable = self.unit.variables.get(name)
        if variable is None or variable.space == "host":
            return None
        space = {"constant": Space.CONSTANT, "shared": Space.SHARED}.get(variable.space, Space.GLOBAL)
        kind = self.unit.variable_types.get(name)
        if kind is None:
            lowerer = Lowerer(self.unit, variable.source)
            base = lowerer.type_of(variable.declaration.child_by_field_name("type"))
            inner = variable.declarator
            if inner.type == "init_declarator":
                inner = inner.child_by_field_name("declarator") or inner
            kind = self.unit.variable_types[name] = lowerer.declared(base, inner)[0]
        start = self.starts.get(f"::{name}")
        if start is None:
            size = kind.size if kind.kind in ("array", "struct") else None
            start = self.starts[f"::{name}"] = Value(0, kind, 0, 0, False, Region(name, space, kind, bytes=size))
        return MemoryPlace(start, kind, span)

    def store(self, place: Location, value: AnyValue, mask: int) -> None:
        if type(place) is SlotPlace:
            slots, slot = place.frame.slots, place.slot
            old = slots[slot] if slot < len(slots) else None
            if isinstance(old, Reference):
                self.store(old.place, value, mask)
                return
            if isinstance(old, (Value, StructValue)):
                value = self.converted(value, old.type)
            slots[slot] = merge(old, value, mask)
        elif type(place) is ElementPlace:
            elements, index = place.array.elements, place.index
            if isinstance(index.data, int) and not index.soft:
                elements[index.data] = merge(elements.get(index.data), value, mask)
            else:
                elements.clear()
                place.array.bare = False
        elif type(place) is MemoryPlace:
            if place.pointer.region is not None:
                self.touch(place.pointer, place.type, place.span, AccessKind.STORE, mask)
        elif type(place) is FieldPlace:
            self._store_field(place, value, mask)
        elif type(place) is ChoicePlace:
            then, otherwise = place.then, place.otherwise
            if place.on is not None:
                self.store(then, value, mask & place.on)
                self.store(otherwise, value, mask & ~place.on)
            else:  # either keeps what it has, or not
                for side in (then, otherwise):
                    kept = None if isinstance(side, MemoryPlace) else self.load(side, 0)
                    self.store(side, join(value, kept, None) or value, mask)

    def _store_field(self, place: FieldPlace, value: AnyValue, mask: int) -> None:
        base, name = place.base, place.name
        whole = self.load(base, 0)
        if not isinstance(whole, StructValue):
            whole = StructValue(whole.type if isinstance(whole, Value) else UNKNOWN_TYPE, {})
        fields = dict(whole.fields)
        fields[name] = merge(fields.get(name), self.converted(value, place.type), mask)
        if isinstance(base, (SlotPlace, FieldPlace, ElementPlace)):
            self._put(base, StructValue(whole.type, fields))

    def _put(self, place: Location, value: AnyValue) -> None:
        """Replace a whole struct, all lanes of it."""
        match place:
            case SlotPlace(frame, slot):
                old = frame.slots[slot]
                if isinstance(old, Reference):
                    self._put(old.place, value)
                else:
                    frame.slots[slot] = value
            case FieldPlace():
                self.store(place, value, FULL)
            case ElementPlace(array, index) if index.decided and isinstance(index.data, int):
                array.elements[index.data] = value

    @staticmethod
    def converted(value: AnyValue, kind: CType) -> AnyValue:
        if type(value) is Value:
            return convert(value, kind)
        if isinstance(value, StructValue) and kind.kind == "struct" and kind.fields and not value.type.fields:
            return StructValue(kind, value.fields)
        if isinstance(value, ArrayValue) and kind.kind == "struct" and kind.fields:  # a list in braces
            made = {name: value.elements.get(i) for i, (name, _, _) in enumerate(kind.fields)}
            fields = {n: WarpMemory.converted(made[n] or Value(0, of), of) for n, _, of in kind.fields}
            return StructValue(kind, fields)
        return value
