"""Expressions of one warp, lane by lane."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace

from warpwright.facts import ir
from warpwright.facts.lanes import each, pairwise, wrapped
from warpwright.facts.lower import Lowerer
from warpwright.facts.model import Space
from warpwright.facts.places import (
    ChoicePlace,
    Location,
    MemoryPlace,
    field_of,
    truth,
)
from warpwright.facts.predication import NEVER, OPERATION, is_access
from warpwright.facts.types import BOOL, INT, UINT, UNKNOWN_TYPE, CType, pointer_to
from warpwright.facts.values import (
    ASSUMED,
    DATA,
    UNKNOWN,
    AnyValue,
    ArrayValue,
    Closure,
    FunctionName,
    Region,
    StructValue,
    Value,
    binary,
    clone,
    convert,
    join,
    merge,
    opaque,
    soft,
    unknown,
)
from warpwright.facts.warp_memory import MAX_STEPS, OutOfStepsError, WarpMemory
from warpwright.syntax.source import Span


@dataclass(slots=True)
class Evaluator(WarpMemory):
    """Evaluates expressions. Calls and statements are the subclasses'."""

    @abstractmethod
    def statement(self, node: ir.Stmt, mask: int) -> int:
        """Run a statement for the lanes of the mask; returns those that go on behind it."""

    @abstractmethod
    def call(self, node: ir.Call, mask: int) -> AnyValue:
        """The value of a call, with what its body does to memory."""

    @abstractmethod
    def constructed(self, kind: CType, values: list[AnyValue], mask: int) -> AnyValue | None:
        """What a struct's own constructor makes; None where it has none that fits."""

    @abstractmethod
    def as_type(self, value: AnyValue, kind: CType, mask: int) -> AnyValue:
        """A struct as the type that a conversion of its own makes of it; other values as they are."""

    def _call(self, node: ir.Call, mask: int) -> AnyValue:
        return self.call(node, mask)

    def condition(self, node: ir.Expr, mask: int, statement: Span, kind: str) -> Value:
        """A condition's value, recorded as a branch."""
        self.settled = (0, 0)
        value = self.scalar(self.any_value(node, mask))
        if value.decided or not isinstance(node, ir.Logical):
            self.settled = (0, 0)
        if not isinstance(node, ir.Const):
            taken = truth(value) & mask if value.decided else 0
            weight, in_loop = self.request_weight, self.loop_depth > 0
            splits = any(lanes & mask and mask & ~lanes for lanes in self.settled)
            self.recorder.branch(
                node.span, statement, kind, value, taken, mask, weight, self.warp.position, in_loop, splits
            )
        return value

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

    def _variable(self, node: ir.Var, mask: int) -> AnyValue:
        slots = self.frame.slots
        value = slots[node.slot] if node.slot < len(slots) else None
        if isinstance(value, Value) and value.region is None:  # the most of what a kernel reads
            return value
        return self._read_place(node, mask)

    def _read_place(self, node: ir.Expr, mask: int) -> AnyValue:
        return self.load(self.place(node, mask), mask)

    def _member(self, node: ir.Member, mask: int) -> AnyValue:
        place = self.place(node, mask)
        if place is not None:
            return self.load(place, mask)
        whole = self.any_value(node.base, mask)
        kind = whole.type if isinstance(whole, (Value, StructValue)) else UNKNOWN_TYPE
        member = kind.member(node.field)
        return field_of(whole, node.field, member[1] if member is not None else UNKNOWN_TYPE)

    def _global(self, node: ir.Global, mask: int) -> AnyValue:
        place = self.global_place(node.name, node.span)
        if place is not None:
            return self.load(place, mask)
        variable = self.unit.variables.get(node.name)
        if variable is not None:
            lowerer = Lowerer(self.unit, variable.source)
            kind = lowerer.type_of(variable.declaration.child_by_field_name("type"))
            return soft(kind, False)
        if node.name in self.unit.functions:
            return FunctionName(node.name)
        return soft(UNKNOWN_TYPE, False, UNKNOWN)

    def _address_of(self, node: ir.AddressOf, mask: int) -> AnyValue:
        local = self.pointer_to_local(node.target, mask)
        if local is not None:
            return local
        if isinstance(node.target, ir.Global) and node.target.name in self.unit.functions:
            return FunctionName(node.target.name)
        place = self.place(node.target, mask)
        if isinstance(place, ChoicePlace):
            return _address_of_choice(place)
        if isinstance(place, MemoryPlace):
            pointer = place.pointer
            return pointer.holding(pointer.data, pointer_to(place.type))
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
            data = wrapped(data, kind)
        return Value(data, kind, value.basis, value.soft, value.thread)

    def _update(self, node: ir.Update, mask: int) -> AnyValue:
        place = self.place(node.target, mask)
        old = self.scalar(self.load(place, mask))
        new = binary(node.op, old, Value(1, INT))
        new = new.holding(new.data, old.type)
        self.store(place, new, mask)
        return new if node.prefix else old

    def _assign(self, node: ir.Assign, mask: int) -> AnyValue:
        value = self.any_value(node.value, mask)
        place = self.place(node.target, mask)
        if node.op:
            old = self.scalar(self.load(place, mask))
            combined = binary(node.op, old, self.scalar(value))
            value = convert(combined, old.type) if combined.region is None else combined
        elif isinstance(node.target, (ir.Index, ir.Deref)) and place is None:
            return value
        value = clone(value) or unknown()
        self.store(place, value, mask)
        return value

    def _binary(self, node: ir.Binary, mask: int) -> AnyValue:
        left, right = self.value(node.left, mask), self.value(node.right, mask)
        if left.basis or right.basis or not (left.uniform and right.uniform):
            self.cost += _operation_cost(node, left, right)
        return binary(node.op, left, right)

    def _logical(self, node: ir.Logical, mask: int) -> AnyValue:
        left = self.value(node.left, mask)
        if left.decided:
            on = truth(left)
            needed = mask & (on if node.op == "&&" else ~on)
            if not needed and mask:
                return Value(int(node.op == "||"), BOOL, left.basis, 0, left.thread)
        else:
            needed = mask
        self.recorder.flush()
        right = self.value(node.right, needed or mask)
        self.recorder.flush()
        thread = left.thread or right.thread
        basis = max(left.basis, right.basis)
        if left.decided and right.decided:
            data = pairwise(
                (lambda a, b: int(bool(a) and bool(b))) if node.op == "&&" else (lambda a, b: int(bool(a) or bool(b))),
                left.data, right.data,
            )  # fmt: skip
            return Value(data, BOOL, basis, 0, thread)
        if left.decided and node.op in ("&&", "||"):  # what one operand settles needs no other
            on = truth(left) & mask
            self.settled = (mask & ~on, 0) if node.op == "&&" else (0, on)
        if left.uniform and right.uniform:
            return soft(BOOL, thread, max(basis, ASSUMED))
        return unknown(BOOL, max(basis, DATA), thread)

    def _conditional(self, node: ir.Conditional, mask: int) -> AnyValue:
        condition = self.value(node.condition, mask)
        if self.recorder.open_sides and is_access(node.then) != is_access(node.otherwise):
            self.recorder.nests()  # of two accesses one is made, at either address; one alone is a branch
        if not condition.decided:
            then, otherwise = self.any_value(node.then, mask), self.any_value(node.otherwise, mask)
            return join(then, otherwise, condition) or unknown()
        on = truth(condition)
        if not mask & ~on:
            return self.any_value(node.then, mask)
        if not mask & on:
            return self.any_value(node.otherwise, mask)
        self.recorder.flush()
        then = self.any_value(node.then, mask & on)
        self.recorder.flush()
        otherwise = self.any_value(node.otherwise, mask & ~on)
        self.recorder.flush()
        if isinstance(then, Value) and isinstance(otherwise, Value) and then.type is not otherwise.type:
            then = convert(then, otherwise.type) if otherwise.type.kind == "float" else then
        merged = merge(otherwise, then, on)
        if isinstance(merged, Value):
            merged = Value(
                merged.data, merged.type, max(merged.basis, condition.basis), merged.soft, True, merged.region
            )
        return merged

    def chosen_place(self, node: ir.Conditional, mask: int) -> Location:
        if not (_names_place(node.then) and _names_place(node.otherwise)):
            return None
        condition = self.value(node.condition, mask)
        on = truth(condition) if condition.decided else None
        if on is not None and not mask & ~on:
            return self.place(node.then, mask)
        if on is not None and not mask & on:
            return self.place(node.otherwise, mask)
        then = self.place(node.then, mask & on if on is not None else mask)
        otherwise = self.place(node.otherwise, mask & ~on if on is not None else mask)
        for side in (then, otherwise):
            if on is None and isinstance(side, MemoryPlace):
                side.pointer = replace(side.pointer, basis=max(side.pointer.basis, ASSUMED))
        if on is None or not isinstance(then, MemoryPlace) or not isinstance(otherwise, MemoryPlace):
            return ChoicePlace(on, then, otherwise)
        if then.type != otherwise.type:
            return ChoicePlace(on, then, otherwise)
        pointer = merge(otherwise.pointer, then.pointer, on)  # one access is made, at either address
        if not isinstance(pointer, Value) or pointer.region is None:
            return ChoicePlace(on, then, otherwise)
        return MemoryPlace(replace(pointer, basis=max(pointer.basis, condition.basis)), then.type, node.span)

    def _comma(self, node: ir.Comma, mask: int) -> AnyValue:
        self.any_value(node.left, mask)
        return self.any_value(node.right, mask)

    def _cast(self, node: ir.Cast, mask: int) -> AnyValue:
        kind = node.type
        value = self.as_type(self.any_value(node.operand, mask), kind, mask)
        if isinstance(value, ArrayValue):
            return value if kind.kind != "pointer" else self.scalar(value)
        if not isinstance(value, Value):
            return value
        if kind.kind == "pointer" and value.region is not None:
            return value.holding(value.data, kind)
        return convert(value, kind)

    def _construct(self, node: ir.Construct, mask: int) -> AnyValue:
        kind = node.type or UNKNOWN_TYPE
        values = [self.any_value(a, mask) for a in node.arguments]
        if kind.kind == "struct":
            if len(values) == 1 and isinstance(values[0], StructValue):
                return values[0]
            made = self.constructed(kind, values, mask)
            if made is not None:
                return made
            names = kind.fields
            if kind.name == "dim3":
                values += [Value(1, UINT)] * (3 - len(values))
            return StructValue(kind, {f[0]: self.converted(v, f[2]) for f, v in zip(names, values, strict=False)})
        if kind.kind == "array" or (node.type is None and len(values) != 1):
            array = ArrayValue(kind)
            array.elements.update(enumerate(values))
            return array
        return self.converted(values[0], kind) if values else Value(0, kind)

    def _lambda(self, node: ir.Lambda, _mask: int) -> AnyValue:
        return Closure(node.function, self.frame)


def _names_place(node: ir.Expr) -> bool:
    """Whether an expression is a place whatever its parts are worth: `c ? x : 1` is none."""
    if isinstance(node, ir.Conditional):
        return _names_place(node.then) and _names_place(node.otherwise)
    return isinstance(node, (ir.Var, ir.Global, ir.Index, ir.Deref, ir.Member))


def _address_of_choice(place: ChoicePlace) -> AnyValue:
    """`&(c ? a : b)`, of places in memory."""
    sides = (place.then, place.otherwise)
    first, second = (
        side.pointer.holding(side.pointer.data, pointer_to(side.type)) if isinstance(side, MemoryPlace) else None
        for side in sides
    )
    if first is None or second is None:
        return unknown()
    return (merge(second, first, place.on) if place.on is not None else join(first, second, None)) or unknown()


def _operation_cost(node: ir.Binary, left: Value, right: Value) -> int:
    """What an operation adds to the side of a condition that it stands on; a division is a call or a long sequence."""
    floating = "float" in (left.type.kind, right.type.kind)
    if node.op in ("/", "%") and (floating or not isinstance(node.right, ir.Const)):
        return NEVER
    return OPERATION


_Expression = Callable[..., AnyValue]

_EXPRESSIONS: dict[type[ir.Expr], _Expression] = {
    ir.Const: Evaluator._const,
    ir.Var: Evaluator._variable,
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
