"""The places that expressions name: variables, elements, members, memory behind pointers."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from warpwright.facts import ir
from warpwright.facts.code import PlaceCode, make_place, no_place, place_code, value_code
from warpwright.facts.model import Space
from warpwright.facts.places import (
    ChoicePlace,
    ElementPlace,
    FieldPlace,
    Location,
    MemoryPlace,
    Reference,
    SlotPlace,
    shifted,
    truth,
)
from warpwright.facts.types import INT, UNKNOWN_TYPE, pointer_to
from warpwright.facts.values import (
    ASSUMED,
    MOST_KEPT,
    UNKNOWN,
    AnyValue,
    ArrayValue,
    Region,
    StructValue,
    Value,
    merge,
    offset_pointer,
)
from warpwright.syntax.source import Span

if TYPE_CHECKING:
    from warpwright.facts.evaluate import Evaluator

_FIRST = Value(0, INT)
Offsets = dict[tuple[Value, Value], Value]
"""The sums of pointers and indices that were found at one place of the text."""


@make_place.register(ir.Var)
def _variable(node: ir.Var) -> PlaceCode:
    slot, name, span = node.slot, node.name, node.span

    def place(run: Evaluator, _mask: int) -> Location:
        frame = run.frame
        slots = frame.slots
        value = slots[slot] if slot < len(slots) else None
        if type(value) is Reference:
            return value.place
        if type(value) is Value and value.region is not None and value.region.space is Space.SHARED:
            declared_scalar = value.region.name == name and value.type.kind not in ("pointer", "array")
            if declared_scalar and (value.type.size is not None or value.type.fields):  # else a library's storage,
                # which is passed on by name, not read
                return MemoryPlace(value, value.type, span)
        return SlotPlace(frame, slot)

    return place


@make_place.register(ir.Global)
def _global(node: ir.Global) -> PlaceCode:
    return lambda run, _mask: run.global_place(node.name, node.span)


@make_place.register(ir.Index)
def _index(node: ir.Index) -> PlaceCode:
    base, span = node.base, node.span
    index_of = value_code(node.index)
    in_row = isinstance(base, ir.Index)
    if not isinstance(base, (ir.Var, ir.Index, ir.Member, ir.Deref, ir.Global)):
        base_value = value_code(base)

        def of_value(run: Evaluator, mask: int) -> Location:
            index = run.scalar(index_of(run, mask))
            return _element(run, base_value(run, mask), index, span, {})

        return of_value
    base_place = place_code(base)
    slot = base.slot if isinstance(base, ir.Var) else None
    known: Offsets = {}

    def of_place(run: Evaluator, mask: int) -> Location:
        if run.has_subscripts:
            found = run.subscript(base, node.index, mask)
            if found is not None:
                return found
        index = index_of(run, mask)
        if type(index) is not Value:
            index = run.scalar(index)
        if slot is not None and slot < len(run.frame.slots):
            held = run.frame.slots[slot]
            if type(held) is ArrayValue:
                return ElementPlace(held, index, span)
            if type(held) is Value and held.type.kind in ("pointer", "array"):
                return _element(run, held, index, span, known)
        inner = base_place(run, mask)
        if type(inner) is MemoryPlace and inner.type.kind == "array":
            return _of_row(run, inner, index, in_row, span, mask, known)
        whole = run.load(inner, mask)
        if type(whole) is ArrayValue:
            return ElementPlace(whole, index, span)
        return _element(run, whole, index, span, known)

    return of_place


def _of_row(
    run: Evaluator, row: MemoryPlace, index: Value, in_row: bool, span: Span, mask: int, known: Offsets
) -> Location:
    """An element of an array that lies in memory; `in_row` where that array is one itself."""
    outer, kind = row.pointer, row.type
    region = outer.region
    if in_row and region is not None and region.space is Space.SHARED and kind.extent is not None:
        run.recorder.row(region.name, index, kind.extent, mask)
    at = known.get((outer, index))
    if at is None:
        pointer = Value(outer.data, kind, outer.basis, outer.soft, outer.thread, region, outer.grain, outer.rows)
        at = _keep(known, outer, index, offset_pointer(pointer, index))
    return MemoryPlace(at, kind.to or UNKNOWN_TYPE, span)


def _element(run: Evaluator, whole: AnyValue, index: Value, span: Span, known: Offsets) -> Location:
    """An element of a thread's array, or what stands so far behind a pointer."""
    if type(whole) is ArrayValue:
        return ElementPlace(whole, index)
    pointer = whole if type(whole) is Value else run.scalar(whole)
    if pointer.type.kind not in ("pointer", "array") and index.type.kind == "pointer":
        pointer, index = index, pointer
    at = known.get((pointer, index)) or _keep(known, pointer, index, offset_pointer(pointer, index))
    return run.pointed(at, pointer.type.to or UNKNOWN_TYPE, span)


def _keep(known: Offsets, pointer: Value, index: Value, at: Value) -> Value:
    if len(known) >= MOST_KEPT:
        known.clear()
    known[pointer, index] = at
    return at


@make_place.register(ir.Piece)
def _piece(node: ir.Piece) -> PlaceCode:
    base_of, number, span = place_code(node.base), node.number, node.span

    def piece(run: Evaluator, mask: int) -> Location:
        whole = base_of(run, mask)
        held = run.load(whole, 0) if not isinstance(whole, MemoryPlace) else None
        kind = whole.type if isinstance(whole, MemoryPlace) else getattr(held, "type", UNKNOWN_TYPE)
        names = [name for name, _, _ in kind.fields if name]
        if number < len(names):
            return _member_of(run, whole, names[number], span)
        if isinstance(held, ArrayValue):
            return ElementPlace(held, Value(number, INT))
        if isinstance(whole, MemoryPlace) and kind.kind == "array":
            row = whole.pointer.holding(whole.pointer.data, kind)
            return MemoryPlace(offset_pointer(row, Value(number, INT)), kind.to or UNKNOWN_TYPE, span)
        return None

    return piece


@make_place.register(ir.Deref)
def _deref(node: ir.Deref) -> PlaceCode:
    pointer_of, span = value_code(node.pointer), node.span

    def place(run: Evaluator, mask: int) -> Location:
        value = pointer_of(run, mask)
        if isinstance(value, ArrayValue):
            return ElementPlace(value, _FIRST)
        scalar = run.scalar(value)
        return run.pointed(scalar, scalar.type.to or UNKNOWN_TYPE, span)

    return place


@make_place.register(ir.Member)
def _member(node: ir.Member) -> PlaceCode:
    name, span = node.field, node.span
    if node.arrow:
        pointer_of = value_code(node.base)

        def behind(run: Evaluator, mask: int) -> Location:
            pointer = run.scalar(pointer_of(run, mask))
            return _member_of(run, run.pointed(pointer, pointer.type.to or UNKNOWN_TYPE, span), name, span)

        return behind
    base_place = place_code(node.base)
    return lambda run, mask: _member_of(run, base_place(run, mask), name, span)


def _member_of(run: Evaluator, whole_place: Location, name: str, span: Span) -> Location:
    if whole_place is None:
        return None
    if type(whole_place) is ChoicePlace:
        then, otherwise = whole_place.then, whole_place.otherwise
        return ChoicePlace(whole_place.on, _member_of(run, then, name, span), _member_of(run, otherwise, name, span))
    if type(whole_place) is MemoryPlace:
        pointer = whole_place.pointer
        member = whole_place.type.member(name)
        if member is None:
            return MemoryPlace(Value(None, pointer.type, UNKNOWN, 0, True, pointer.region), UNKNOWN_TYPE, span)
        offset, kind = member
        moved = shifted(pointer, offset)
        moved.type = pointer_to(kind)
        return MemoryPlace(moved, kind, span)
    whole = run.load(whole_place, 0)
    member = whole.type.member(name) if isinstance(whole, (Value, StructValue)) else None
    return FieldPlace(whole_place, name, member[1] if member is not None else UNKNOWN_TYPE)


@make_place.register(ir.Cast)
def _cast(node: ir.Cast) -> PlaceCode:
    return place_code(node.operand)


@make_place.register(ir.Comma)
def _comma(node: ir.Comma) -> PlaceCode:
    left_of, right_place = value_code(node.left), place_code(node.right)

    def place(run: Evaluator, mask: int) -> Location:
        left_of(run, mask)
        return right_place(run, mask)

    return place


@make_place.register(ir.Conditional)
def _choice(node: ir.Conditional) -> PlaceCode:
    """The place that `c ? a : b` names; None where one of the two is none."""
    condition_of, span = value_code(node.condition), node.span
    then_place, otherwise_place = place_code(node.then), place_code(node.otherwise)

    def choose(run: Evaluator, mask: int) -> Location:
        condition = run.asked(run.scalar(condition_of(run, mask)))
        on = truth(condition) if condition.decided else None
        if on is not None and not mask & ~on:
            return then_place(run, mask)
        if on is not None and not mask & on:
            return otherwise_place(run, mask)
        then = then_place(run, mask & on if on is not None else mask)
        otherwise = otherwise_place(run, mask & ~on if on is not None else mask)
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
        return MemoryPlace(replace(pointer, basis=max(pointer.basis, condition.basis)), then.type, span)

    return choose if _names_place(node) else no_place


def _names_place(node: ir.Expr) -> bool:
    """Whether an expression is a place whatever its parts are worth: `c ? x : 1` is none."""
    if isinstance(node, ir.Conditional):
        return _names_place(node.then) and _names_place(node.otherwise)
    return isinstance(node, (ir.Var, ir.Global, ir.Index, ir.Deref, ir.Member))


@make_place.register(ir.Call)
def _call(node: ir.Call) -> PlaceCode:
    return lambda run, mask: run.called_place(node, mask)


@make_place.register(ir.Assign)
@make_place.register(ir.Update)
def _assigned(node: ir.Assign | ir.Update) -> PlaceCode:
    """What is assigned names its target, once it is done. The target is evaluated once: `----x` is no more than two."""
    value_of = value_code(node)

    def place(run: Evaluator, mask: int) -> Location:
        value_of(run, mask)
        return run.assigned

    return place


def pointer_to_local(run: Evaluator, node: ir.Expr, mask: int) -> Value | None:
    """The address of a variable of the thread, of one of its elements or of an array; None for anything else."""
    offset: Value | None = None
    if isinstance(node, ir.Index):
        base = run.place(node.base, mask)
        if not isinstance(base, (SlotPlace, FieldPlace)) or not isinstance(run.load(base, 0), ArrayValue):
            return None
        offset, node = run.value(node.index, mask), node.base
    target = run.place(node, mask)
    if not isinstance(target, (SlotPlace, FieldPlace)):
        return None
    whole = run.load(target, 0)
    kind = whole.type if isinstance(whole, (Value, StructValue, ArrayValue)) else UNKNOWN_TYPE
    if isinstance(whole, ArrayValue):
        kind = kind.to or UNKNOWN_TYPE
    pointer = Value(0, pointer_to(kind), 0, 0, False, Region("local", Space.LOCAL, kind, target))
    return offset_pointer(pointer, offset) if offset is not None else pointer
