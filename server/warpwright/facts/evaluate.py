"""Expressions of one warp, lane by lane."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace

from warpwright.facts import ir
from warpwright.facts.addressing import pointer_to_local
from warpwright.facts.code import ValueCode, make_value, place_code, value_code
from warpwright.facts.lanes import each, pairwise, wrapped
from warpwright.facts.lower import Lowerer
from warpwright.facts.model import Space
from warpwright.facts.overloaded import OperatorCall, is_object
from warpwright.facts.places import (
    ChoicePlace,
    Location,
    MemoryPlace,
    field_of,
    tested,
    truth,
)
from warpwright.facts.position import Guard
from warpwright.facts.predication import NEVER, OPERATION, is_access
from warpwright.facts.types import BOOL, INT, UINT, UNKNOWN_TYPE, CType, pointer_to
from warpwright.facts.values import (
    ASSUMED,
    DATA,
    MOST_KEPT,
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
from warpwright.facts.warp_memory import WarpMemory
from warpwright.syntax.source import Span

_TRIPLE = CType("uint3", 12, 4, "struct")
_ONE = Value(1, INT)
_NOTHING = (0, 0)


@dataclass(slots=True)
class Evaluator(WarpMemory, ABC):
    """What the codes of expressions run on. Calls and statements are the subclasses'."""

    @abstractmethod
    def statement(self, node: ir.Stmt, mask: int) -> int:
        """Run a statement for the lanes of the mask; returns those that go on behind it."""

    @abstractmethod
    def call(self, node: ir.Call, mask: int) -> AnyValue:
        """The value of a call, with what its body does to memory."""

    @abstractmethod
    def called_place(self, node: ir.Call, mask: int) -> Location:
        """The place that a call names; None where the function returns no reference."""

    @abstractmethod
    def subscript(self, base: ir.Expr, index: ir.Expr, mask: int) -> Location:
        """What `object[index]` names where the object's struct has an operator for it; None elsewhere."""

    @abstractmethod
    def method(self, node: ir.Call, target: ir.Expr, mask: int) -> ir.Function | None:
        """The member function that a call on an object means; None where the struct is not in the unit."""

    @abstractmethod
    def user_function(self, node: ir.Call, mask: int) -> ir.Function | None:
        """The function of the unit that a call by name means; None where none of that name takes its arguments."""

    @abstractmethod
    def constructed(self, kind: CType, values: list[AnyValue], mask: int) -> AnyValue | None:
        """What a struct's own constructor makes; None where it has none that fits."""

    @abstractmethod
    def as_type(self, value: AnyValue, kind: CType, mask: int) -> AnyValue:
        """A struct as the type that a conversion of its own makes of it; other values as they are."""

    def any_value(self, node: ir.Expr, mask: int) -> AnyValue:
        """What an expression is worth in the lanes of the mask."""
        return value_code(node)(self, mask)

    def value(self, node: ir.Expr, mask: int) -> Value:
        value = value_code(node)(self, mask)
        return value if isinstance(value, Value) else self.scalar(value)

    def place(self, node: ir.Expr, mask: int) -> Location:
        """The place that an expression names; None for what is no place."""
        return place_code(node)(self, mask)

    def condition(self, node: ir.Expr, mask: int, statement: Span, kind: str) -> Value:
        """A condition's value, recorded as a branch."""
        self.settled = _NOTHING
        value = self.asked(self.scalar(self.any_value(node, mask)))
        if value.decided or not isinstance(node, ir.Logical):
            self.settled = _NOTHING
        if not isinstance(node, ir.Const):
            taken = truth(value) & mask if value.decided else 0
            weight, in_loop = self.request_weight, self.loop_depth > 0
            splits = self.settled != _NOTHING and any(lanes & mask and mask & ~lanes for lanes in self.settled)
            self.recorder.branch(
                node.span, statement, kind, value, taken, mask, weight, self.warp.position, in_loop, splits
            )
        return value

    def asked(self, condition: Value) -> Value:
        """A condition as far as it decides what is run."""
        return tested(condition)


# -- what names a value -----------------------------------------------------------------------------------------


@make_value.register(ir.Const)
def _const(node: ir.Const) -> ValueCode:
    value = Value(node.value, node.type) if node.value is not None else soft(node.type, False, is_open=True)

    def run_const(run: Evaluator, _mask: int) -> AnyValue:
        run.steps += 1
        return value

    return run_const


@make_value.register(ir.Special)
def _special(node: ir.Special) -> ValueCode:
    name, axis = node.name, node.axis

    def whole(run: Evaluator, _mask: int) -> AnyValue:
        run.steps += 1
        return StructValue(_TRIPLE, dict(zip("xyz", run.warp.specials[name], strict=True)))

    def one(run: Evaluator, _mask: int) -> AnyValue:
        run.steps += 1
        return run.warp.specials[name][axis or 0]

    return whole if axis is None else one


@make_value.register(ir.Var)
def _variable(node: ir.Var) -> ValueCode:
    slot, place_of = node.slot, place_code(node)

    def read(run: Evaluator, mask: int) -> AnyValue:
        run.steps += 1
        slots = run.frame.slots
        value = slots[slot] if slot < len(slots) else None
        if type(value) is Value and (value.region is None or value.region.space is not Space.SHARED):
            return value  # the most of what a kernel reads
        return run.load(place_of(run, mask), mask)

    return read


@make_value.register(ir.Index)
@make_value.register(ir.Deref)
@make_value.register(ir.Piece)
def _read(node: ir.Index | ir.Deref | ir.Piece) -> ValueCode:
    place_of = place_code(node)

    def read(run: Evaluator, mask: int) -> AnyValue:
        run.step()
        place = place_of(run, mask)
        return run.load(place, mask)

    return read


@make_value.register(ir.Member)
def _member(node: ir.Member) -> ValueCode:
    place_of, base_of, name = place_code(node), value_code(node.base), node.field

    def read(run: Evaluator, mask: int) -> AnyValue:
        run.step()
        place = place_of(run, mask)
        if place is not None:
            return run.load(place, mask)
        whole = base_of(run, mask)
        kind = whole.type if isinstance(whole, (Value, StructValue)) else UNKNOWN_TYPE
        member = kind.member(name)
        return field_of(whole, name, member[1] if member is not None else UNKNOWN_TYPE)

    return read


@make_value.register(ir.Global)
def _global(node: ir.Global) -> ValueCode:
    def read(run: Evaluator, mask: int) -> AnyValue:
        run.steps += 1
        place = run.global_place(node.name, node.span)
        if place is not None:
            return run.load(place, mask)
        variable = run.unit.variables.get(node.name)
        if variable is not None:
            lowerer = Lowerer(run.unit, variable.source)
            kind = lowerer.type_of(variable.declaration.child_by_field_name("type"))
            return soft(kind, False)
        if node.name in run.unit.functions:
            return FunctionName(node.name)
        if node.name.isupper():  # a macro of another file, or of the compiler's flags: one number for all lanes
            return soft(INT, False)
        return soft(UNKNOWN_TYPE, False, UNKNOWN)

    return read


@make_value.register(ir.AddressOf)
def _address_of(node: ir.AddressOf) -> ValueCode:
    target, place_of = node.target, place_code(node.target)

    def address(run: Evaluator, mask: int) -> AnyValue:
        run.step()
        local = pointer_to_local(run, target, mask)
        if local is not None:
            return local
        if isinstance(target, ir.Global) and target.name in run.unit.functions:
            return FunctionName(target.name)
        place = place_of(run, mask)
        if isinstance(place, ChoicePlace):
            return _address_of_choice(place)
        if isinstance(place, MemoryPlace):
            pointer = place.pointer
            return pointer.holding(pointer.data, pointer_to(place.type))
        kind = UNKNOWN_TYPE
        if place is not None:
            value = run.load(place, 0)
            kind = value.type if isinstance(value, (Value, StructValue)) else UNKNOWN_TYPE
        return Value(0, pointer_to(kind), 0, 0, False, Region("local", Space.LOCAL, kind))

    return address


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


@make_value.register(ir.Call)
def _call(node: ir.Call) -> ValueCode:
    def call(run: Evaluator, mask: int) -> AnyValue:
        run.step()
        return run.call(node, mask)

    return call


@make_value.register(ir.Lambda)
def _lambda(node: ir.Lambda) -> ValueCode:
    function = node.function

    def closure(run: Evaluator, _mask: int) -> AnyValue:
        run.steps += 1
        return Closure(function, run.frame)

    return closure


@make_value.register(ir.Opaque)
def _opaque(node: ir.Opaque) -> ValueCode:
    parts = [value_code(part) for part in node.parts]
    is_assembly = node.is_assembly

    def evaluate(run: Evaluator, mask: int) -> AnyValue:
        run.steps += 1
        if is_assembly:
            run.recorder.intervals.parted = True
        values = [part(run, mask) for part in parts]
        return opaque(UNKNOWN_TYPE, *values) if values else unknown()

    return evaluate


# -- what changes a variable ------------------------------------------------------------------------------------


@make_value.register(ir.Update)
def _update(node: ir.Update) -> ValueCode:
    place_of, op, prefix = place_code(node.target), node.op, node.prefix
    known: dict[Value, Value] = {}

    def update(run: Evaluator, mask: int) -> AnyValue:
        run.steps += 1
        place = place_of(run, mask)
        old = run.scalar(run.load(place, mask))
        new = known.get(old)
        if new is None:
            if len(known) >= MOST_KEPT:
                known.clear()
            new = binary(op, old, _ONE)
            new = known[old] = new.holding(new.data, old.type)
        run.store(place, new, mask)
        run.assigned = place
        return new if prefix else old

    return update


@make_value.register(ir.Assign)
def _assign(node: ir.Assign) -> ValueCode:
    value_of, place_of, op = value_code(node.value), place_code(node.target), node.op
    in_memory = isinstance(node.target, (ir.Index, ir.Deref))
    known: dict[tuple[AnyValue, AnyValue], Value] = {}

    def assign(run: Evaluator, mask: int) -> AnyValue:
        run.steps += 1
        value = value_of(run, mask)
        place = place_of(run, mask)
        if not in_memory or place is not None:
            if type(value) is not Value:
                value = clone(value) or unknown()
            run.store(place, value, mask)
        run.assigned = place
        return value

    overloaded = OperatorCall(node.span, f"{op}=", 2)

    def combine(run: Evaluator, mask: int) -> AnyValue:
        run.steps += 1
        operand = value_of(run, mask)
        place = place_of(run, mask)
        whole = run.load(place, mask)
        new = known.get((whole, operand))
        if new is None:
            made = overloaded(run, [whole, operand], mask, place) if is_object(whole) else None
            if made is not None:
                run.assigned = place
                return made
            if len(known) >= MOST_KEPT:
                known.clear()
            old, value = run.scalar(whole), run.scalar(operand)
            combined = binary(op, old, value)
            new = known[old, value] = convert(combined, old.type) if combined.region is None else combined
        run.store(place, new, mask)
        run.assigned = place
        return new

    return combine if op else assign


# -- operators --------------------------------------------------------------------------------------------------


@make_value.register(ir.Unary)
def _unary(node: ir.Unary) -> ValueCode:
    operand_of, op = value_code(node.operand), node.op
    overloaded = OperatorCall(node.span, op, 1)

    def unary(run: Evaluator, mask: int) -> AnyValue:
        run.steps += 1
        operand = operand_of(run, mask)
        made = overloaded(run, [operand], mask) if is_object(operand) else None
        if made is not None:
            return made
        value = run.scalar(operand)
        if op == "+":
            return value
        if op == "!":
            value = tested(value)
            if not value.decided:
                return Value(value.data, BOOL, value.basis, value.soft, value.thread)
            return Value(each(lambda n: int(not n), value.data), BOOL, value.basis, 0, value.thread)
        if op == "-":
            data = each(lambda n: -n, value.data)
        else:
            data = each(lambda n: ~n if isinstance(n, int) else None, value.data)
        kind = value.type if (value.type.size or 4) >= 4 or value.type.kind == "float" else INT
        if kind.kind == "uint":
            data = wrapped(data, kind)
        return Value(data, kind, value.basis, value.soft, value.thread)

    return unary


@make_value.register(ir.Binary)
def _binary(node: ir.Binary) -> ValueCode:
    left_of, right_of, op = value_code(node.left), value_code(node.right), node.op
    divides, by_literal = op in ("/", "%"), isinstance(node.right, ir.Const)
    overloaded = OperatorCall(node.span, op, 2)
    known: dict[tuple[AnyValue, AnyValue], tuple[Value, int]] = {}

    def operate(run: Evaluator, mask: int) -> AnyValue:
        run.steps += 1
        left, right = left_of(run, mask), right_of(run, mask)
        found = known.get((left, right))
        if found is None:
            made = overloaded(run, [left, right], mask) if is_object(left) or is_object(right) else None
            if made is not None:
                return made
            left, right = run.scalar(left), run.scalar(right)
            cost = 0
            if left.basis or right.basis or not (left.uniform and right.uniform):
                long = divides and (not by_literal or "float" in (left.type.kind, right.type.kind))
                cost = NEVER if long else OPERATION  # a division is a call or a long sequence
            if len(known) >= MOST_KEPT:
                known.clear()
            found = known[left, right] = (binary(op, left, right), cost)
        run.cost += found[1]
        return found[0]

    return operate


def _calls(node: ir.Expr) -> bool:
    """Whether an operand is a call, negated or compared."""
    match node:
        case ir.Unary(operand=inner):
            return _calls(inner)
        case ir.Binary(left=left, right=right) | ir.Logical(left=left, right=right):
            return _calls(left) or _calls(right)
    return isinstance(node, ir.Call)


@make_value.register(ir.Logical)
def _logical(node: ir.Logical) -> ValueCode:
    left_of, right_of, is_and = value_code(node.left), value_code(node.right), node.op == "&&"
    calls = _calls(node.right)

    def combine(run: Evaluator, mask: int) -> AnyValue:
        run.steps += 1
        left = tested(run.scalar(left_of(run, mask)))
        asked = run.asked(left)
        if asked.decided:
            on = truth(left)
            needed = mask & (on if is_and else ~on)
            if not needed and mask:
                return Value(int(not is_and), BOOL, left.basis, 0, left.thread)
        else:
            needed = mask
        run.recorder.flush()
        doubtful = not asked.decided
        if left.basis >= ASSUMED:
            run.recorder.intervals.guessed = True
        run.recorder.intervals.doubts += doubtful
        if calls:  # what is called may wait
            run.guards.append(Guard(node.left.span, mask, needed, left, doubtful))
        right = tested(run.scalar(right_of(run, needed or mask)))
        if calls:
            run.guards.pop()
        run.recorder.intervals.doubts -= doubtful
        run.recorder.flush()
        thread = left.thread or right.thread
        basis = max(left.basis, right.basis)
        if left.decided and right.decided:
            data = pairwise(
                (lambda a, b: int(bool(a) and bool(b))) if is_and else (lambda a, b: int(bool(a) or bool(b))),
                left.data, right.data,
            )  # fmt: skip
            return Value(data, BOOL, basis, 0, thread)
        if left.decided:  # what one operand settles needs no other
            on = truth(left) & mask
            run.settled = (mask & ~on, 0) if is_and else (0, on)
        if left.uniform and right.uniform:
            return soft(BOOL, thread, max(basis, ASSUMED))
        return unknown(BOOL, max(basis, DATA), thread)

    return combine


@make_value.register(ir.Conditional)
def _conditional(node: ir.Conditional) -> ValueCode:
    condition_of = value_code(node.condition)
    then_of, otherwise_of = value_code(node.then), value_code(node.otherwise)
    one_access = is_access(node.then) != is_access(node.otherwise)

    def choose(run: Evaluator, mask: int) -> AnyValue:
        run.steps += 1
        condition = run.asked(run.scalar(condition_of(run, mask)))
        if one_access and run.recorder.open_sides:
            run.recorder.nests()  # of two accesses one is made, at either address; one alone is a branch
        if not condition.decided:
            run.recorder.intervals.doubts += 1
            then, otherwise = then_of(run, mask), otherwise_of(run, mask)
            run.recorder.intervals.doubts -= 1
            return join(then, otherwise, condition) or unknown()
        on = truth(condition)
        if condition.basis >= ASSUMED:
            run.recorder.intervals.guessed = True
        if not mask & ~on or not mask & on:
            chosen = (otherwise_of if mask & ~on else then_of)(run, mask)
            if not isinstance(chosen, Value) or chosen.basis >= condition.basis:
                return chosen
            return replace(chosen, basis=condition.basis)
        run.recorder.flush()
        then = then_of(run, mask & on)
        run.recorder.flush()
        otherwise = otherwise_of(run, mask & ~on)
        run.recorder.flush()
        if isinstance(then, Value) and isinstance(otherwise, Value) and then.type is not otherwise.type:
            then = convert(then, otherwise.type) if otherwise.type.kind == "float" else then
        merged = merge(otherwise, then, on)
        if isinstance(merged, Value):
            basis = max(merged.basis, condition.basis)
            merged = Value(merged.data, merged.type, basis, merged.soft, True, merged.region)
        return merged

    return choose


@make_value.register(ir.Comma)
def _comma(node: ir.Comma) -> ValueCode:
    left_of, right_of = value_code(node.left), value_code(node.right)

    def both(run: Evaluator, mask: int) -> AnyValue:
        run.steps += 1
        left_of(run, mask)
        return right_of(run, mask)

    return both


# -- types ------------------------------------------------------------------------------------------------------


@make_value.register(ir.Cast)
def _cast(node: ir.Cast) -> ValueCode:
    kind, operand_of = node.type, value_code(node.operand)
    is_pointer = kind.kind == "pointer"

    def cast(run: Evaluator, mask: int) -> AnyValue:
        run.steps += 1
        value = run.as_type(operand_of(run, mask), kind, mask)
        if isinstance(value, ArrayValue):
            return run.scalar(value) if is_pointer else value
        if not isinstance(value, Value):
            return value
        if is_pointer and value.region is not None:
            return value.holding(value.data, kind)
        return convert(value, kind)

    return cast


@make_value.register(ir.Construct)
def _construct(node: ir.Construct) -> ValueCode:
    kind = node.type or UNKNOWN_TYPE
    arguments = [value_code(argument) for argument in node.arguments]
    is_array = kind.kind == "array" or (node.type is None and len(arguments) != 1)

    def construct(run: Evaluator, mask: int) -> AnyValue:
        run.steps += 1
        values = [argument(run, mask) for argument in arguments]
        if kind.kind == "struct":
            if len(values) == 1 and isinstance(values[0], StructValue):
                return values[0]
            made = run.constructed(kind, values, mask)
            if made is not None:
                return made
            if kind.name == "dim3":
                values += [Value(1, UINT)] * (3 - len(values))
            fields = zip(kind.fields, values, strict=False)
            return StructValue(kind, {name: run.converted(value, of) for (name, _, of), value in fields})
        if is_array:
            array = ArrayValue(kind)
            array.elements.update(enumerate(values))
            return array
        return run.converted(values[0], kind) if values else Value(0, kind)

    return construct
