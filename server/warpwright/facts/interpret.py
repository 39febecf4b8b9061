"""Runs a kernel for one warp at a time and tells a Recorder what it sees.

Lanes run together under a mask, as on the hardware: a statement is given the lanes that are on and returns those that
go on behind it. A condition that is not known sends the same lanes down both sides and joins what they leave. A loop
is run for its first iterations; if every variable then moves by a constant per iteration, the trip count is searched
for and the interpreter jumps to a middle iteration, which counts for all that were left out, and to the last.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from warpwright.facts import ir
from warpwright.facts.intrinsics import call_intrinsic, group_method
from warpwright.facts.lower import Lowerer
from warpwright.facts.model import AccessKind, Space
from warpwright.facts.recorder import Guard, Place, Recorder
from warpwright.facts.types import BOOL, INT, UINT, UNKNOWN_TYPE, CType, pointer_to
from warpwright.facts.unit import FunctionText, Unit
from warpwright.facts.values import (
    ASSUMED,
    DATA,
    FULL,
    LANE_BITS,
    UNKNOWN,
    AnyValue,
    ArrayValue,
    Group,
    Region,
    StructValue,
    Value,
    binary,
    clone,
    convert,
    each,
    join,
    lanes,
    merge,
    offset_pointer,
    opaque,
    pairwise,
    soft,
    unknown,
    wrap,
)
from warpwright.syntax.source import Span

MAX_STEPS = 60_000
MAX_CALL_DEPTH = 12
UNDECIDED_ITERATIONS = 2
PROBES = 3
FULL_ITERATIONS = (16, 16, 8, 4)
"""Iterations that are run one by one before jumping, by depth of nesting."""
HARD_LIMIT = 40


class OutOfStepsError(Exception):
    """The budget for one warp is used up; what was recorded so far holds."""


@dataclass(slots=True)
class Frame:
    slots: list[AnyValue | Reference | None]
    returned: int = 0
    result: AnyValue | None = None


@dataclass(slots=True)
class _LoopState:
    broken: int = 0
    continued: int = 0


# Where an assignment goes.
@dataclass(frozen=True, slots=True, eq=False)
class SlotPlace:
    frame: Frame
    slot: int


@dataclass(frozen=True, slots=True, eq=False)
class FieldPlace:
    base: Location
    name: str
    type: CType


@dataclass(frozen=True, slots=True, eq=False)
class ElementPlace:
    array: ArrayValue
    index: Value


@dataclass(frozen=True, slots=True, eq=False)
class MemoryPlace:
    pointer: Value
    type: CType
    span: Span


Location = SlotPlace | FieldPlace | ElementPlace | MemoryPlace | None


@dataclass(frozen=True, slots=True, eq=False)
class Reference:
    """A slot that is another name for a place."""

    place: Location


@dataclass(frozen=True, slots=True, eq=False)
class Closure:
    function: ir.Function
    frame: Frame


@dataclass(slots=True)
class WarpContext:
    """The built-ins of one warp. `specials` maps threadIdx, blockIdx, blockDim and gridDim to three values."""

    specials: dict[str, tuple[Value, Value, Value]]
    place: Place
    mask: int


@dataclass(slots=True)
class Interpreter:
    unit: Unit
    recorder: Recorder
    warp: WarpContext
    regions: dict[str, Region] = field(default_factory=lambda: {})
    functions: dict[tuple[int, str], ir.Function] = field(default_factory=lambda: {})
    weight: float = 1.0
    steps: int = 0
    loop_depth: int = 0
    call_depth: int = 0
    guards: list[Guard] = field(default_factory=lambda: [])
    loops: list[_LoopState] = field(default_factory=lambda: [])
    frame: Frame = field(default_factory=lambda: Frame([]))
    closures: dict[int, Closure] = field(default_factory=lambda: {})

    def run(self, function: ir.Function, arguments: list[AnyValue]) -> int:
        """Run the kernel's body; returns the lanes that had not returned early."""
        self.frame = Frame([None] * max(function.slots, 1))
        for parameter, value in zip(function.parameters, arguments, strict=True):
            self.frame.slots[parameter.slot] = value
        out = self.statement(function.body, self.warp.mask)
        return out & ~self.frame.returned

    # -- statements ---------------------------------------------------------------------------------------------

    def statement(self, node: ir.Stmt, mask: int) -> int:
        if not mask:
            return 0
        self.steps += 1
        if self.steps > MAX_STEPS:
            raise OutOfStepsError
        return _STATEMENTS[type(node)](self, node, mask)

    def _block(self, node: ir.Block, mask: int) -> int:
        for child in node.body:
            mask = self.statement(child, mask)
            if not mask:
                return 0
        return mask

    def _evaluate(self, node: ir.Evaluate, mask: int) -> int:
        self.value(node.expr, mask)
        return mask

    def _declare(self, node: ir.Declare, mask: int) -> int:
        slots = self.frame.slots
        if node.slot >= len(slots):  # a lambda's own variables
            slots.extend([None] * (node.slot + 1 - len(slots)))
        kind = node.type
        if node.shared is not None:
            slots[node.slot] = self.shared_variable(node.shared)
        elif node.reference and node.init is not None:
            place = self.place(node.init, mask)
            slots[node.slot] = Reference(place) if place is not None else self.any_value(node.init, mask)
        elif kind.kind == "array":
            array = ArrayValue(kind)
            if isinstance(node.init, ir.Construct):
                element = kind.to or UNKNOWN_TYPE
                for i, item in enumerate(node.init.arguments):
                    array.elements[i] = self._converted(self.any_value(item, mask), element)
            slots[node.slot] = array
        elif node.init is None:
            slots[node.slot] = StructValue(kind, {}) if kind.kind == "struct" else unknown(kind, UNKNOWN, False)
        elif isinstance(node.init, ir.Lambda):
            self.closures[node.slot] = Closure(node.init.function, self.frame)
        else:
            value = self._converted(clone(self.any_value(node.init, mask)) or unknown(), kind)
            old = slots[node.slot]
            slots[node.slot] = value if mask == FULL or isinstance(old, Reference) else merge(old, value, mask)
        return mask

    def shared_variable(self, variable: ir.SharedVariable) -> Value:
        name = "extern __shared__" if variable.dynamic else f"{variable.name}@{variable.span.start}"
        region = self.regions.get(name)
        if region is None:
            region = self.regions[name] = Region(variable.name, Space.SHARED, variable.element)
        return Value(0, variable.type, 0, 0, False, region)

    def _if(self, node: ir.If, mask: int) -> int:
        condition = self.condition(node.condition, mask, node.span, "if")
        if not condition.decided:
            return self._both_sides(node, condition, mask)
        taken = truth(condition) & mask
        if condition.basis >= ASSUMED and taken in (0, mask):  # assumed numbers must not hide a side from view
            return self._both_sides(node, condition, mask)
        self.guards.append(Guard(node.condition.span, mask, taken, condition, False))
        out = self.statement(node.then, taken)
        if node.otherwise is not None:
            self.guards[-1] = Guard(node.condition.span, mask, mask & ~taken, condition, False)
            out |= self.statement(node.otherwise, mask & ~taken)
        else:
            out |= mask & ~taken
        self.guards.pop()
        return out

    def _both_sides(self, node: ir.If, condition: Value, mask: int) -> int:
        """The condition is not known: the same lanes go down both sides, and what they leave is joined."""
        before = [clone(v) if not isinstance(v, Reference) else v for v in self.frame.slots]
        exits = self._exits()
        self.guards.append(Guard(node.condition.span, mask, mask, condition, True))
        out = self.statement(node.then, mask)
        after_then = self.frame.slots
        exits_then = self._exits()
        self.frame.slots = before
        self._restore_exits(exits)
        out_else = self.statement(node.otherwise, mask) if node.otherwise is not None else mask
        self.guards.pop()
        if not out_else:  # only the first side goes on
            self.frame.slots = after_then
            self._restore_exits(exits if out else exits_then)
        elif out:
            self.frame.slots = _join_slots(after_then, self.frame.slots, condition)
            self._restore_exits(exits)
        else:
            self._restore_exits(exits)
        return out | out_else

    def _exits(self) -> tuple[int, list[tuple[int, int]]]:
        return self.frame.returned, [(s.broken, s.continued) for s in self.loops]

    def _restore_exits(self, exits: tuple[int, list[tuple[int, int]]]) -> None:
        self.frame.returned = exits[0]
        for state, (broken, continued) in zip(self.loops, exits[1], strict=True):
            state.broken, state.continued = broken, continued

    def _loop(self, node: ir.Loop, mask: int) -> int:
        if node.init is not None:
            mask = self.statement(node.init, mask)
        state = _LoopState()
        self.loops.append(state)
        self.loop_depth += 1
        guard_depth = len(self.guards)
        outer_weight = self.weight
        try:
            left = self._iterate(node, state, mask)
        finally:
            self.weight = outer_weight
            self.loop_depth -= 1
            self.loops.pop()
            del self.guards[guard_depth:]
        return (left | state.broken) & ~self.frame.returned

    def _iterate(self, node: ir.Loop, state: _LoopState, mask: int) -> int:
        """Returns the lanes that left by the condition."""
        active, left = mask, 0
        limit = FULL_ITERATIONS[min(self.loop_depth, len(FULL_ITERATIONS)) - 1]
        history: list[list[AnyValue | Reference | None]] = []
        undecided = 0
        iteration = 0
        last_jump = False
        while active and iteration < HARD_LIMIT:
            first_of_do = node.kind == "do" and iteration == 0
            if not first_of_do and node.condition is not None:
                condition = self.condition(node.condition, active, node.span, node.kind)
                if condition.decided:
                    taken = truth(condition) & active
                    open_end = condition.basis >= ASSUMED and condition.thread  # an assumed bound splits the block
                    self.guards.append(Guard(node.condition.span, active, taken, condition, open_end))
                    left |= active & ~taken
                    active = taken
                else:
                    self.guards.append(Guard(node.condition.span, active, active, condition, True))
                    undecided += 1
                    if undecided > UNDECIDED_ITERATIONS:
                        left |= active
                        self._forget_progress(history)
                        break
            if not active:
                break
            out = self.statement(node.body, active)
            active = (out | state.continued) & ~self.frame.returned
            state.continued = 0
            if node.step is not None and active:
                self.value(node.step, active)
            iteration += 1
            if last_jump or undecided or not active:
                continue
            history.append(list(self.frame.slots))
            if len(history) > PROBES:
                history.pop(0)
            if iteration == PROBES:
                jumped = self._jump(node, state, history, active, limit - PROBES)
                if jumped is not None:
                    active, extra_left = jumped
                    left |= extra_left
                    last_jump = True
        return left if not active else left | active

    def _jump(
        self, node: ir.Loop, state: _LoopState, history: list[list[AnyValue | Reference | None]], active: int, few: int
    ) -> tuple[int, int] | None:
        """Go to a middle and to the last iteration; None where the loop is short or does not move evenly."""
        if len(history) < PROBES or node.condition is None:
            return None
        deltas = _deltas(history)
        if deltas is None:
            return None
        remaining = self._remaining(node.condition, deltas, active)
        if remaining is None or remaining <= few:
            return None
        base = list(self.frame.slots)
        outer = self.weight
        self.frame.slots = _advance(base, deltas, remaining // 2)
        self.weight = outer * (remaining - 1)
        taken = self._decided(node, active)
        out = self.statement(node.body, taken) | state.continued
        state.continued = 0
        broken = active & ~out
        self.weight = outer
        self.frame.slots = _advance(base, deltas, remaining - 1)
        return active & ~broken if broken != active else active, 0

    def _decided(self, node: ir.Loop, active: int) -> int:
        if node.condition is None:
            return active
        condition = self.condition(node.condition, active, node.span, node.kind)
        return truth(condition) & active if condition.decided else active

    def _remaining(self, condition: ir.Expr, deltas: dict[int, int | float], active: int) -> int | None:
        """How many more iterations some lane makes; None where the condition does not tell."""
        base = list(self.frame.slots)
        enabled, self.recorder.enabled = self.recorder.enabled, False

        def goes_on(count: int) -> bool | None:
            self.frame.slots = _advance(base, deltas, count)
            value = self._scalar(self.any_value(condition, active))
            return bool(truth(value) & active) if value.decided else None

        try:
            low, high = 0, 1
            if goes_on(0) is None:
                return None
            while goes_on(high):
                low, high = high, high * 2
                if high > 1 << 24:
                    return None
            while high - low > 1:
                middle = (low + high) // 2
                if goes_on(middle):
                    low = middle
                else:
                    high = middle
            return high
        finally:
            self.recorder.enabled = enabled
            self.frame.slots = base

    def _forget_progress(self, history: list[list[AnyValue | Reference | None]]) -> None:
        """After a loop of unknown length, what it moved is known only up to its step."""
        if not history:
            return
        start = history[0]
        self.frame.slots = _join_slots(start, self.frame.slots, soft(BOOL, False))

    def _switch(self, node: ir.Switch, mask: int) -> int:
        value = self.value(node.value, mask)
        state = _LoopState()
        self.loops.append(state)
        left, on, out = mask, 0, 0
        for label, statements in node.cases:
            if value.decided and label is not None:
                match = binary("==", value, self.value(label, mask))
                hit = truth(match) & left if match.decided else left
            else:
                hit = left
            if value.decided:
                left &= ~hit
            on |= hit
            for child in statements:
                on = self.statement(child, on)
        self.loops.pop()
        if self.loops:
            self.loops[-1].continued |= state.continued
        out = on | state.broken | left
        return out & ~self.frame.returned

    def _return(self, node: ir.Return, mask: int) -> int:
        if node.value is not None:
            value = clone(self.any_value(node.value, mask)) or unknown()
            self.frame.result = value if self.frame.result is None else merge(self.frame.result, value, mask)
        self.frame.returned |= mask
        return 0

    def _break(self, _node: ir.Break, mask: int) -> int:
        if self.loops:
            self.loops[-1].broken |= mask
        return 0

    def _continue(self, _node: ir.Continue, mask: int) -> int:
        if self.loops:
            self.loops[-1].continued |= mask
        return 0

    # -- expressions --------------------------------------------------------------------------------------------

    def condition(self, node: ir.Expr, mask: int, statement: Span, kind: str) -> Value:
        """A condition's value, recorded as a branch."""
        value = self._scalar(self.any_value(node, mask))
        if not isinstance(node, ir.Const):
            taken = truth(value) & mask if value.decided else 0
            self.recorder.branch(
                node.span, statement, kind, value, taken, mask, self.weight * self.warp.place.warp_weight
                * self.warp.place.block_weight, self.warp.place, self.loop_depth > 0,
            )  # fmt: skip
        return value

    def value(self, node: ir.Expr, mask: int) -> Value:
        return self._scalar(self.any_value(node, mask))

    @staticmethod
    def _scalar(value: AnyValue) -> Value:
        if isinstance(value, Value):
            return value
        if isinstance(value, ArrayValue):  # an array that decays to a pointer
            element = value.type.to or UNKNOWN_TYPE
            return Value(0, pointer_to(element), 0, 0, False, Region("local", Space.LOCAL, element))
        return unknown(value.type if isinstance(value, StructValue) else UNKNOWN_TYPE)

    def any_value(self, node: ir.Expr, mask: int) -> AnyValue:
        self.steps += 1
        if self.steps > MAX_STEPS:
            raise OutOfStepsError
        return _EXPRESSIONS[type(node)](self, node, mask)

    def _const(self, node: ir.Const, _mask: int) -> AnyValue:
        return Value(node.value, node.type) if node.value is not None else soft(node.type, False)

    def _special(self, node: ir.Special, _mask: int) -> AnyValue:
        triple = self.warp.specials[node.name]
        if node.axis is None:
            kind = CType("uint3", 12, 4, "struct")
            return StructValue(kind, dict(zip("xyz", triple, strict=True)))
        return triple[node.axis]

    def _opaque(self, node: ir.Opaque, mask: int) -> AnyValue:
        parts = [self.any_value(part, mask) for part in node.parts]
        return opaque(UNKNOWN_TYPE, *parts) if parts else unknown()

    def _read_place(self, node: ir.Expr, mask: int) -> AnyValue:
        return self.load(self.place(node, mask), mask)

    def load(self, place: Location, mask: int) -> AnyValue:
        match place:
            case SlotPlace(frame, slot):
                value = frame.slots[slot] if slot < len(frame.slots) else None
                if isinstance(value, Reference):
                    return self.load(value.place, mask)
                return value if value is not None else unknown()
            case FieldPlace(base, name, kind):
                whole = self.load(base, mask)
                return field_of(whole, name, kind)
            case ElementPlace(array, index):
                return _array_element(array, index)
            case MemoryPlace(pointer, kind, span):
                return self.load_memory(pointer, kind, span, mask)
        return unknown()

    def load_memory(self, pointer: Value, kind: CType, span: Span, mask: int) -> AnyValue:
        if kind.kind == "array":
            return Value(pointer.data, kind, pointer.basis, pointer.soft, pointer.thread, pointer.region)
        if pointer.region is not None:
            self.touch(pointer, kind, span, AccessKind.LOAD, mask)
        if pointer.uniform:
            if kind.kind == "pointer":
                name = f"*{span.text}"
                region = self.regions.setdefault(name, Region(span.text, Space.GLOBAL, kind.to or UNKNOWN_TYPE))
                return Value(0, kind, ASSUMED, 0, pointer.thread, region)
            return soft(kind, pointer.thread)
        return unknown(kind, DATA if pointer.basis <= DATA else pointer.basis, True)

    def touch(self, pointer: Value, kind: CType, span: Span, access: AccessKind, mask: int) -> None:
        """Record a request; a struct moves field by field unless it is a vector of up to 16 bytes."""
        region = pointer.region
        if region is None or region.space is Space.LOCAL:
            return
        weight = self.weight * self.warp.place.warp_weight * self.warp.place.block_weight
        in_loop = self.loop_depth > 0
        pieces = [(0, kind.size or 0)]
        if kind.kind == "struct" and not (kind.vector and (kind.size or 0) <= 16):
            pieces = _scalar_pieces(kind)
        if kind.size is None:
            pointer = Value(None, pointer.type, UNKNOWN, 0, True, region)
            pieces = [(0, 4)]
        for start, size in pieces:
            for offset in range(start, start + size, 16):
                part = min(16, start + size - offset)
                at = shifted(pointer, offset)
                self.recorder.access(span, at, region.space, access, part, mask, weight, self.warp.place, in_loop)

    def place(self, node: ir.Expr, mask: int) -> Location:
        """The place that an expression names; None for what is no place."""
        match node:
            case ir.Var(slot=slot):
                value = self.frame.slots[slot] if slot < len(self.frame.slots) else None
                if isinstance(value, Reference):
                    return value.place
                if isinstance(value, Value) and value.region is not None and value.region.space is Space.SHARED:
                    declared_scalar = value.type.kind not in ("pointer", "array")
                    if declared_scalar:
                        return MemoryPlace(value, value.type, node.span)
                return SlotPlace(self.frame, slot)
            case ir.Global(name=name):
                return self._global_place(name, node.span)
            case ir.Index(base=base, index=index):
                return self._element_place(base, self.value(index, mask), node.span, mask)
            case ir.Deref(pointer=pointer):
                value = self.any_value(pointer, mask)
                if isinstance(value, ArrayValue):
                    return ElementPlace(value, Value(0, INT))
                scalar = self._scalar(value)
                return MemoryPlace(scalar, scalar.type.to or UNKNOWN_TYPE, node.span)
            case ir.Member(base=base, field=name, arrow=arrow):
                return self._member_place(base, name, arrow, node.span, mask)
            case ir.Cast(operand=operand) | ir.Comma(right=operand):
                return self.place(operand, mask)
            case ir.Conditional() | ir.Call() | ir.Construct() | ir.Opaque():
                return None
            case ir.Assign(target=target) | ir.Update(target=target):
                self.value(node, mask)
                return self.place(target, mask)
        return None

    def _element_place(self, base: ir.Expr, index: Value, span: Span, mask: int) -> Location:
        whole: AnyValue
        if isinstance(base, (ir.Var, ir.Index, ir.Member, ir.Deref, ir.Global)):
            inner = self.place(base, mask)
            if isinstance(inner, MemoryPlace) and inner.type.kind == "array":
                array_type = inner.type
                pointer = Value(
                    inner.pointer.data, array_type, inner.pointer.basis, inner.pointer.soft, inner.pointer.thread,
                    inner.pointer.region,
                )  # fmt: skip
                return MemoryPlace(offset_pointer(pointer, index), array_type.to or UNKNOWN_TYPE, span)
            whole = self.load(inner, mask)
        else:
            whole = self.any_value(base, mask)
        if isinstance(whole, ArrayValue):
            return ElementPlace(whole, index)
        pointer = self._scalar(whole)
        if pointer.type.kind not in ("pointer", "array") and index.type.kind == "pointer":
            pointer, index = index, pointer
        return MemoryPlace(offset_pointer(pointer, index), pointer.type.to or UNKNOWN_TYPE, span)

    def _member_place(self, base: ir.Expr, name: str, arrow: bool, span: Span, mask: int) -> Location:
        if arrow:
            pointer = self.value(base, mask)
            kind = pointer.type.to or UNKNOWN_TYPE
            inner: Location = MemoryPlace(pointer, kind, span)
        else:
            inner = self.place(base, mask)
            if inner is None:
                return None
        if isinstance(inner, MemoryPlace):
            member = inner.type.member(name)
            if member is None:
                gone = Value(None, inner.pointer.type, UNKNOWN, 0, True, inner.pointer.region)
                return MemoryPlace(gone, UNKNOWN_TYPE, span)
            offset, kind = member
            moved = shifted(inner.pointer, offset)
            moved.type = pointer_to(kind)
            return MemoryPlace(moved, kind, span)
        whole = self.load(inner, 0)
        kind = whole.type if isinstance(whole, (Value, StructValue)) else UNKNOWN_TYPE
        member = kind.member(name)
        return FieldPlace(inner, name, member[1] if member is not None else UNKNOWN_TYPE)

    def _global_place(self, name: str, span: Span) -> Location:
        variable = self.unit.variables.get(name)
        if variable is None or variable.space == "host":
            return None
        space = {"constant": Space.CONSTANT, "shared": Space.SHARED}.get(variable.space, Space.GLOBAL)
        lowerer = Lowerer(self.unit, variable.source)
        base = lowerer.type_of(variable.declaration.child_by_field_name("type"))
        inner = variable.declarator
        if inner.type == "init_declarator":
            inner = inner.child_by_field_name("declarator") or inner
        kind = lowerer.declared(base, inner)[0]
        region = self.regions.setdefault(f"::{name}", Region(name, space, kind))
        return MemoryPlace(Value(0, kind, 0, 0, False, region), kind, span)

    def _member(self, node: ir.Member, mask: int) -> AnyValue:
        place = self.place(node, mask)
        if place is not None:
            return self.load(place, mask)
        whole = self.any_value(node.base, mask)
        kind = whole.type if isinstance(whole, (Value, StructValue)) else UNKNOWN_TYPE
        member = kind.member(node.field)
        return field_of(whole, node.field, member[1] if member is not None else UNKNOWN_TYPE)

    def _global(self, node: ir.Global, mask: int) -> AnyValue:
        place = self._global_place(node.name, node.span)
        if place is not None:
            return self.load(place, mask)
        variable = self.unit.variables.get(node.name)
        if variable is not None:
            lowerer = Lowerer(self.unit, variable.source)
            kind = lowerer.type_of(variable.declaration.child_by_field_name("type"))
            return soft(kind, False)
        return soft(UNKNOWN_TYPE, False, UNKNOWN)

    def _address_of(self, node: ir.AddressOf, mask: int) -> AnyValue:
        place = self.place(node.target, mask)
        if isinstance(place, MemoryPlace):
            pointer = place.pointer
            return Value(
                pointer.data, pointer_to(place.type), pointer.basis, pointer.soft, pointer.thread, pointer.region
            )
        kind = UNKNOWN_TYPE
        if place is not None:
            value = self.load(place, 0)
            kind = value.type if isinstance(value, (Value, StructValue)) else UNKNOWN_TYPE
        return Value(0, pointer_to(kind), 0, 0, False, Region("local", Space.LOCAL, kind))

    def _unary(self, node: ir.Unary, mask: int) -> AnyValue:
        value = self.value(node.operand, mask)
        if node.op == "+":
            return value
        if node.op == "!":
            if not value.decided:
                return Value(value.data, BOOL, value.basis, value.soft, value.thread)
            return Value(each(lambda n: int(not n), value.data), BOOL, value.basis, 0, value.thread)
        if node.op == "-":
            data = each(lambda n: -n, value.data)
        else:
            data = each(lambda n: ~n if isinstance(n, int) else None, value.data)
        kind = value.type if (value.type.size or 4) >= 4 or value.type.kind == "float" else INT
        if kind.kind == "uint":
            data = each(lambda n: wrap(n, kind), data)
        return Value(data, kind, value.basis, value.soft, value.thread)

    def _update(self, node: ir.Update, mask: int) -> AnyValue:
        place = self.place(node.target, mask)
        old = self._scalar(self.load(place, mask))
        new = binary(node.op, old, Value(1, INT))
        new = Value(new.data, old.type, new.basis, new.soft, new.thread, new.region)
        self.store(place, new, mask)
        return new if node.prefix else old

    def _assign(self, node: ir.Assign, mask: int) -> AnyValue:
        value = self.any_value(node.value, mask)
        place = self.place(node.target, mask)
        if node.op:
            old = self._scalar(self.load(place, mask))
            combined = binary(node.op, old, self._scalar(value))
            value = convert(combined, old.type) if combined.region is None else combined
        elif isinstance(node.target, (ir.Index, ir.Deref)) and place is None:
            return value
        value = clone(value) or unknown()
        self.store(place, value, mask)
        return value

    def store(self, place: Location, value: AnyValue, mask: int) -> None:
        match place:
            case SlotPlace(frame, slot):
                old = frame.slots[slot] if slot < len(frame.slots) else None
                if isinstance(old, Reference):
                    self.store(old.place, value, mask)
                    return
                if isinstance(old, (Value, StructValue)):
                    value = self._converted(value, old.type)
                frame.slots[slot] = merge(old, value, mask)
            case FieldPlace(base, name, kind):
                whole = self.load(base, 0)
                if not isinstance(whole, StructValue):
                    whole_type = whole.type if isinstance(whole, Value) else UNKNOWN_TYPE
                    whole = StructValue(whole_type, {})
                fields = dict(whole.fields)
                fields[name] = merge(fields.get(name), self._converted(value, kind), mask)
                if isinstance(base, (SlotPlace, FieldPlace, ElementPlace)):
                    self._put(base, StructValue(whole.type, fields))
            case ElementPlace(array, index):
                if index.decided and isinstance(index.data, int):
                    array.elements[index.data] = merge(array.elements.get(index.data), value, mask)
                else:
                    array.elements.clear()
            case MemoryPlace(pointer, kind, span):
                if pointer.region is not None:
                    self.touch(pointer, kind, span, AccessKind.STORE, mask)

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
    def _converted(value: AnyValue, kind: CType) -> AnyValue:
        if isinstance(value, Value):
            return convert(value, kind)
        if isinstance(value, StructValue) and kind.kind == "struct" and kind.fields and not value.type.fields:
            return StructValue(kind, value.fields)
        return value

    def _binary(self, node: ir.Binary, mask: int) -> AnyValue:
        return binary(node.op, self.value(node.left, mask), self.value(node.right, mask))

    def _logical(self, node: ir.Logical, mask: int) -> AnyValue:
        left = self.value(node.left, mask)
        if left.decided:
            on = truth(left)
            needed = mask & (on if node.op == "&&" else ~on)
            if not needed and mask:
                return Value(int(node.op == "||"), BOOL, left.basis, 0, left.thread)
        else:
            needed = mask
        right = self.value(node.right, needed or mask)
        thread = left.thread or right.thread
        basis = max(left.basis, right.basis)
        if left.decided and right.decided:
            data = pairwise(
                (lambda a, b: int(bool(a) and bool(b))) if node.op == "&&" else (lambda a, b: int(bool(a) or bool(b))),
                left.data, right.data,
            )  # fmt: skip
            return Value(data, BOOL, basis, 0, thread)
        if left.uniform and right.uniform:
            return soft(BOOL, thread, max(basis, ASSUMED))
        return unknown(BOOL, max(basis, DATA), thread)

    def _conditional(self, node: ir.Conditional, mask: int) -> AnyValue:
        condition = self.value(node.condition, mask)
        if not condition.decided:
            then, otherwise = self.any_value(node.then, mask), self.any_value(node.otherwise, mask)
            return join(then, otherwise, condition) or unknown()
        on = truth(condition)
        if not mask & ~on:
            return self.any_value(node.then, mask)
        if not mask & on:
            return self.any_value(node.otherwise, mask)
        then = self.any_value(node.then, mask & on)
        otherwise = self.any_value(node.otherwise, mask & ~on)
        if isinstance(then, Value) and isinstance(otherwise, Value) and then.type is not otherwise.type:
            then = convert(then, otherwise.type) if otherwise.type.kind == "float" else then
        merged = merge(otherwise, then, on)
        if isinstance(merged, Value):
            merged = Value(
                merged.data, merged.type, max(merged.basis, condition.basis), merged.soft, True, merged.region
            )
        return merged

    def _comma(self, node: ir.Comma, mask: int) -> AnyValue:
        self.any_value(node.left, mask)
        return self.any_value(node.right, mask)

    def _cast(self, node: ir.Cast, mask: int) -> AnyValue:
        value = self.any_value(node.operand, mask)
        kind = node.type
        if isinstance(value, ArrayValue):
            return value if kind.kind != "pointer" else self._scalar(value)
        if not isinstance(value, Value):
            return value
        if kind.kind == "pointer" and value.region is not None:
            return Value(value.data, kind, value.basis, value.soft, value.thread, value.region)
        return convert(value, kind)

    def _construct(self, node: ir.Construct, mask: int) -> AnyValue:
        kind = node.type or UNKNOWN_TYPE
        values = [self.any_value(a, mask) for a in node.arguments]
        if kind.kind == "struct":
            if len(values) == 1 and isinstance(values[0], StructValue):
                return values[0]
            names = kind.fields
            if kind.name == "dim3":
                values += [Value(1, UINT)] * (3 - len(values))
            return StructValue(kind, {f[0]: self._converted(v, f[2]) for f, v in zip(names, values, strict=False)})
        if kind.kind == "array" or (node.type is None and len(values) != 1):
            array = ArrayValue(kind)
            array.elements.update(enumerate(values))
            return array
        return self._converted(values[0], kind) if values else Value(0, kind)

    def _lambda(self, node: ir.Lambda, _mask: int) -> AnyValue:
        return unknown(CType("lambda", None))

    # -- calls --------------------------------------------------------------------------------------------------

    def _call(self, node: ir.Call, mask: int) -> AnyValue:
        if isinstance(node.target, ir.Var) and node.target.slot in self.closures:
            closure = self.closures[node.target.slot]
            return self._inline(closure.function, node.arguments, mask, closure.frame)
        if isinstance(node.target, ir.Lambda):
            return self._inline(node.target.function, node.arguments, mask, self.frame)
        if node.target is not None:
            target = self.any_value(node.target, mask)
            if isinstance(target, Group):
                return group_method(self, target, node, mask)
            for argument in node.arguments:
                self.any_value(argument, mask)
            return unknown()
        texts = self.unit.functions.get(node.name)
        if texts:
            found = self._user_function(node, texts, mask)
            if found is not None:
                return self._inline(found, node.arguments, mask, None)
        return call_intrinsic(self, node, mask)

    def _user_function(self, node: ir.Call, texts: list[FunctionText], mask: int) -> ir.Function | None:
        if self.call_depth >= MAX_CALL_DEPTH:
            return None
        matching = [t for t in texts if parameter_count(t) == len(node.arguments)] or [
            t for t in texts if parameter_count(t) > len(node.arguments)
        ]
        if not matching:
            return None
        text = matching[-1]
        bindings = self._bindings(node, text, mask) if text.template else {}
        key = (text.node.id, repr(sorted((k, v if isinstance(v, int) else v.name) for k, v in bindings.items())))
        if key not in self.functions:
            self.functions[key] = Lowerer(self.unit, text.source, bindings).function(text)
        return self.functions[key]

    def _bindings(self, node: ir.Call, text: FunctionText, mask: int) -> dict[str, CType | int]:
        """Template parameters from explicit arguments, then from the types of the call's arguments."""
        out: dict[str, CType | int] = {}
        for (name, is_type, _), given in zip(text.template, node.template_arguments, strict=False):
            if isinstance(given, CType):
                if is_type:
                    out[name] = given
            elif not is_type:
                value = self.value(given, mask)
                if value.decided and isinstance(value.data, int):
                    out[name] = value.data
        open_names = {name for name, is_type, _ in text.template if is_type and name not in out}
        if open_names:
            generic = Lowerer(self.unit, text.source, out).function(text)
            enabled, self.recorder.enabled = self.recorder.enabled, False
            for parameter, argument in zip(generic.parameters, node.arguments, strict=False):
                wanted = parameter.type
                value = self.any_value(argument, mask)
                have = value.type if isinstance(value, (Value, StructValue, ArrayValue)) else UNKNOWN_TYPE
                while wanted.kind == "pointer" and wanted.to is not None and have.to is not None:
                    wanted, have = wanted.to, have.to
                label = wanted.name.replace("const ", "").strip()
                if label in open_names and have.size is not None:
                    out.setdefault(label, have)
            self.recorder.enabled = enabled
        return out

    def _inline(self, function: ir.Function, arguments: list[ir.Expr], mask: int, closure: Frame | None) -> AnyValue:
        if self.call_depth >= MAX_CALL_DEPTH:
            return unknown(function.returns)
        given: list[AnyValue | Reference] = []
        for parameter, argument in zip(function.parameters, arguments, strict=False):
            place = self.place(argument, mask) if parameter.reference else None
            if place is not None:
                given.append(Reference(place))
            else:
                value = self.any_value(argument, mask)
                given.append(self._converted(clone(value) or unknown(), parameter.type))
        outer, loops = self.frame, self.loops
        depth = len(self.guards)
        self.call_depth += 1
        if closure is not None:
            saved = closure.returned, closure.result
            if len(closure.slots) < function.slots:
                closure.slots.extend([None] * (function.slots - len(closure.slots)))
            self.frame = closure
            closure.returned, closure.result = 0, None
        else:
            saved = (0, None)
            self.frame = Frame([None] * max(function.slots, 1))
        self.loops = []
        for parameter, value in zip(function.parameters, given, strict=False):
            self.frame.slots[parameter.slot] = value
        try:
            self.statement(function.body, mask)
            result = self.frame.result
        finally:
            if closure is not None:
                closure.returned, closure.result = saved
            self.frame, self.loops = outer, loops
            del self.guards[depth:]
            self.call_depth -= 1
        if result is None:
            return unknown(function.returns)
        return self._converted(result, function.returns)


def parameter_count(text: FunctionText) -> int:
    declarator = text.node.child_by_field_name("declarator")
    while declarator is not None and declarator.type != "function_declarator":
        declarator = declarator.child_by_field_name("declarator") or (
            declarator.named_children[-1] if declarator.named_children else None
        )
    parameters = declarator.child_by_field_name("parameters") if declarator is not None else None
    return len([c for c in parameters.named_children if c.type != "comment"]) if parameters is not None else 0


def truth(value: Value) -> int:
    """The lanes in which a decided value is true, as a mask."""
    if isinstance(value.data, list):
        out = 0
        for number, bit in zip(value.data, LANE_BITS, strict=True):
            if number:
                out |= bit
        return out
    return FULL if value.data else 0


def field_of(whole: AnyValue, name: str, kind: CType) -> AnyValue:
    if isinstance(whole, StructValue):
        return whole.fields.get(name) or unknown(kind, UNKNOWN, False)
    if isinstance(whole, Value):
        if whole.uniform:
            return soft(kind, whole.thread)
        return unknown(kind, whole.basis, whole.thread)
    return unknown(kind)


def _array_element(array: ArrayValue, index: Value) -> AnyValue:
    element = array.type.to or UNKNOWN_TYPE
    if index.decided and isinstance(index.data, int):
        found = array.elements.get(index.data)
        if found is not None:
            return found
        if element.kind == "array":
            made = array.elements[index.data] = ArrayValue(element)
            return made
        return unknown(element, UNKNOWN, False)
    if element.kind == "array":
        return ArrayValue(element)
    if index.decided and isinstance(index.data, list) and array.elements:
        parts = [array.elements.get(int(n)) if n is not None else None for n in index.data]
        if all(isinstance(p, Value) and p.decided for p in parts):
            data = [lanes(p.data)[lane] for lane, p in enumerate(parts) if isinstance(p, Value)]
            basis = max(p.basis for p in parts if isinstance(p, Value))
            return Value(data, element, basis, 0, True)
    return unknown(element, DATA, True)


def shifted(pointer: Value, offset: int) -> Value:
    """The pointer `offset` bytes further."""
    data = each(lambda n: n + offset, pointer.data)
    return Value(data, pointer.type, pointer.basis, pointer.soft, pointer.thread, pointer.region)


def _scalar_pieces(kind: CType) -> list[tuple[int, int]]:
    """(byte offset, size) of what one struct is moved in."""
    out: list[tuple[int, int]] = []
    for _, offset, member in kind.fields:
        if member.kind == "struct" and not member.vector:
            out += [(offset + inner, size) for inner, size in _scalar_pieces(member)]
        elif member.kind == "array" and member.to is not None and member.to.size and member.extent:
            out += [(offset + i * member.to.size, member.to.size) for i in range(min(member.extent, 16))]
        elif member.size:
            out.append((offset, member.size))
    return sorted(set(out)) or [(0, kind.size or 0)]


def _join_slots(
    left: list[AnyValue | Reference | None], right: list[AnyValue | Reference | None], condition: Value
) -> list[AnyValue | Reference | None]:
    out: list[AnyValue | Reference | None] = []
    for i in range(max(len(left), len(right))):
        a = left[i] if i < len(left) else None
        b = right[i] if i < len(right) else None
        if isinstance(a, Reference) or isinstance(b, Reference):
            out.append(a if a is not None else b)
        else:
            out.append(join(a, b, condition))
    return out


def _deltas(history: list[list[AnyValue | Reference | None]]) -> dict[int, int | float] | None:
    """How much each slot moves per iteration; -inf marks a slot that moves unevenly and is forgotten."""
    first, second, third = history[-3:]
    out: dict[int, int | float] = {}
    for slot, (a, b, c) in enumerate(zip(first, second, third, strict=False)):
        if b is c and a is b:
            continue
        if isinstance(a, Value) and isinstance(b, Value) and isinstance(c, Value):
            if a.data is None or b.data is None or c.data is None:
                continue
            one, two = pairwise(lambda x, y: y - x, a.data, b.data), pairwise(lambda x, y: y - x, b.data, c.data)
            if isinstance(one, (int, float)) and one == two and b.region is c.region:
                out[slot] = one
            else:
                out[slot] = float("-inf")
        elif isinstance(c, (StructValue, ArrayValue)):
            continue
    return out


def _advance(
    slots: list[AnyValue | Reference | None], deltas: dict[int, int | float], count: int
) -> list[AnyValue | Reference | None]:
    """The slots `count` iterations later."""
    out = list(slots)
    for slot, delta in deltas.items():
        value = out[slot]
        if not isinstance(value, Value) or delta == 0:
            continue
        if delta == float("-inf"):
            out[slot] = unknown(value.type, UNKNOWN, value.thread)
        else:
            data = each(lambda n, d=delta: n + d * count, value.data)
            if value.type.kind == "uint":
                data = each(lambda n, k=value.type: wrap(n, k), data)
            out[slot] = Value(data, value.type, value.basis, value.soft, value.thread, value.region)
    return out


_Statement = Callable[..., int]
_Expression = Callable[..., AnyValue]

_STATEMENTS: dict[type[ir.Stmt], _Statement] = {
    ir.Block: Interpreter._block,
    ir.Evaluate: Interpreter._evaluate,
    ir.Declare: Interpreter._declare,
    ir.If: Interpreter._if,
    ir.Loop: Interpreter._loop,
    ir.Switch: Interpreter._switch,
    ir.Return: Interpreter._return,
    ir.Break: Interpreter._break,
    ir.Continue: Interpreter._continue,
}

_EXPRESSIONS: dict[type[ir.Expr], _Expression] = {
    ir.Const: Interpreter._const,
    ir.Var: Interpreter._read_place,
    ir.Global: Interpreter._global,
    ir.Special: Interpreter._special,
    ir.Unary: Interpreter._unary,
    ir.Update: Interpreter._update,
    ir.Binary: Interpreter._binary,
    ir.Logical: Interpreter._logical,
    ir.Conditional: Interpreter._conditional,
    ir.Assign: Interpreter._assign,
    ir.Comma: Interpreter._comma,
    ir.Index: Interpreter._read_place,
    ir.Deref: Interpreter._read_place,
    ir.AddressOf: Interpreter._address_of,
    ir.Member: Interpreter._member,
    ir.Cast: Interpreter._cast,
    ir.Construct: Interpreter._construct,
    ir.Call: Interpreter._call,
    ir.Lambda: Interpreter._lambda,
    ir.Opaque: Interpreter._opaque,
}
