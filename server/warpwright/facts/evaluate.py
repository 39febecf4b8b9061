"""Expressions, assignments and calls of one warp; the statements around them are interpret.py's."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field

from warpwright.facts import ir
from warpwright.facts.intrinsics import call_intrinsic, group_method
from warpwright.facts.lower import Lowerer
from warpwright.facts.model import AccessKind, Space
from warpwright.facts.places import (
    Closure,
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
    truth,
)
from warpwright.facts.recorder import Guard, Place, Recorder
from warpwright.facts.types import BOOL, INT, UINT, UNKNOWN_TYPE, CType, pointer_to
from warpwright.facts.unit import FunctionText, Unit
from warpwright.facts.values import (
    ASSUMED,
    DATA,
    FULL,
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


class OutOfStepsError(Exception):
    """The budget for one warp is used up; what was recorded so far holds."""


@dataclass(slots=True)
class LoopState:
    broken: int = 0
    continued: int = 0


@dataclass(slots=True)
class WarpContext:
    """The built-ins of one warp. `specials` maps threadIdx, blockIdx, blockDim and gridDim to three values."""

    specials: dict[str, tuple[Value, Value, Value]]
    place: Place
    mask: int


@dataclass(slots=True)
class Evaluator(ABC):
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
    loops: list[LoopState] = field(default_factory=lambda: [])
    frame: Frame = field(default_factory=lambda: Frame([]))
    closures: dict[int, Closure] = field(default_factory=lambda: {})

    @abstractmethod
    def statement(self, node: ir.Stmt, mask: int) -> int:
        """Run a statement for the lanes of the mask; returns those that go on behind it."""

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
                return array_element(array, index)
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
        """Record the requests that move one value of that type."""
        region = pointer.region
        if region is None or region.space is Space.LOCAL:
            return
        weight = self.weight * self.warp.place.warp_weight * self.warp.place.block_weight
        in_loop = self.loop_depth > 0
        if kind.size is None:
            pointer = Value(None, pointer.type, UNKNOWN, 0, True, region)
            self.recorder.access(span, pointer, region.space, access, 4, mask, weight, self.warp.place, in_loop)
            return
        width = piece_width(kind, region.space)
        for offset in range(0, kind.size, width):
            size = min(width, kind.size - offset)
            at = shifted(pointer, offset)
            self.recorder.access(span, at, region.space, access, size, mask, weight, self.warp.place, in_loop)

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
            method = self._method(node, node.target, mask)
            if method is not None:
                return self._inline(method, [node.target, *node.arguments], mask, None)
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

    def _method(self, node: ir.Call, target: ir.Expr, mask: int) -> ir.Function | None:
        """The member function that a call on an object means, by the struct's name and the number of arguments."""
        methods = self.unit.methods.get(node.name)
        if not methods or self.call_depth >= MAX_CALL_DEPTH:
            return None
        place = self.place(target, mask)
        whole = place if isinstance(place, MemoryPlace) else self.load(place, 0)
        owner = whole.type.name if isinstance(whole, (MemoryPlace, Value, StructValue)) else ""
        for text in methods:
            if text.owner == owner and parameter_count(text) == len(node.arguments):
                key = (text.node.id, "")
                if key not in self.functions:
                    self.functions[key] = Lowerer(self.unit, text.source).function(text)
                return self.functions[key]
        return None

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
                passed = self.any_value(argument, mask)
                have = passed.type if isinstance(passed, (Value, StructValue, ArrayValue)) else UNKNOWN_TYPE
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
        for parameter, bound in zip(function.parameters, given, strict=False):
            self.frame.slots[parameter.slot] = bound
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


_Expression = Callable[..., AnyValue]

_EXPRESSIONS: dict[type[ir.Expr], _Expression] = {
    ir.Const: Evaluator._const,
    ir.Var: Evaluator._read_place,
    ir.Global: Evaluator._global,
    ir.Special: Evaluator._special,
    ir.Unary: Evaluator._unary,
    ir.Update: Evaluator._update,
    ir.Binary: Evaluator._binary,
    ir.Logical: Evaluator._logical,
    ir.Conditional: Evaluator._conditional,
    ir.Assign: Evaluator._assign,
    ir.Comma: Evaluator._comma,
    ir.Index: Evaluator._read_place,
    ir.Deref: Evaluator._read_place,
    ir.AddressOf: Evaluator._address_of,
    ir.Member: Evaluator._member,
    ir.Cast: Evaluator._cast,
    ir.Construct: Evaluator._construct,
    ir.Call: Evaluator._call,
    ir.Lambda: Evaluator._lambda,
    ir.Opaque: Evaluator._opaque,
}
