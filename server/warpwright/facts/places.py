"""Variables of a call, the places that assignments go to, and parts of values."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import compress
from typing import TYPE_CHECKING

from warpwright.facts.lanes import lanes, plus
from warpwright.facts.model import Space
from warpwright.facts.types import BOOL, UNKNOWN_TYPE, CType
from warpwright.facts.values import (
    ASSUMED,
    DATA,
    FULL,
    LANE_BITS,
    UNKNOWN,
    AnyValue,
    ArrayValue,
    StructValue,
    Value,
    soft,
    unknown,
)
from warpwright.syntax.source import Span

if TYPE_CHECKING:
    from warpwright.facts.position import Guard


@dataclass(slots=True)
class Frame:
    slots: list[AnyValue | Reference | None]
    returned: int = 0
    result: AnyValue | None = None
    jumps: dict[str, int] = field(default_factory=lambda: {})  # label -> the lanes that are on their way to it
    wants_place: bool = False  # the caller asks what the returned reference names
    place: Location = None
    left: Guard | None = None  # a condition on which some lanes have returned


# Where an assignment goes. Not frozen: one is made for each read and write, and a frozen one takes twice as long.
@dataclass(slots=True, eq=False)
class SlotPlace:
    frame: Frame
    slot: int


@dataclass(slots=True, eq=False)
class FieldPlace:
    base: Location
    name: str
    type: CType


@dataclass(slots=True, eq=False)
class ElementPlace:
    array: ArrayValue
    index: Value
    span: Span | None = None  # of a subscript in the text


@dataclass(slots=True, eq=False)
class MemoryPlace:
    pointer: Value
    type: CType
    span: Span


@dataclass(slots=True, eq=False)
class ChoicePlace:
    """What `c ? a : b` names: `then` in the lanes of `on`, `otherwise` in the others; both in all where it is None."""

    on: int | None
    then: Location
    otherwise: Location


Location = SlotPlace | FieldPlace | ElementPlace | MemoryPlace | ChoicePlace | None


@dataclass(frozen=True, slots=True, eq=False)
class Reference:
    """A slot that is another name for a place."""

    place: Location


def truth(value: Value) -> int:
    """The lanes in which a decided value is true, as a mask."""
    if isinstance(value.data, list):
        return sum(compress(LANE_BITS, value.data))
    return FULL if value.data else 0


def tested(value: Value) -> Value:
    """What a condition asks of a value: a pointer to an array is taken as valid, unless it is null."""
    region = value.region
    if region is None or value.type.kind != "pointer":
        return value
    return Value(int(not region.is_null), BOOL, value.basis if region.is_null else max(value.basis, ASSUMED))


def field_of(whole: AnyValue, name: str, kind: CType) -> AnyValue:
    if isinstance(whole, StructValue):
        return whole.fields.get(name) or unknown(kind, UNKNOWN, False)
    if isinstance(whole, Value):
        if whole.uniform:
            return soft(kind, whole.thread)
        return unknown(kind, whole.basis, whole.thread)
    return unknown(kind)


def array_element(array: ArrayValue, index: Value) -> AnyValue:
    element = array.type.to or UNKNOWN_TYPE
    if isinstance(index.data, int) and not index.soft:
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
    return Value(
        plus(pointer.data, offset) if offset else pointer.data,
        pointer.type,
        pointer.basis,
        pointer.soft,
        pointer.thread,
        pointer.region,
        pointer.grain,
        replace(pointer.rows, data=plus(pointer.rows.data, offset)) if pointer.rows is not None else None,
    )


def piece_width(kind: CType, space: Space) -> int:
    """Bytes that one request of a whole value moves per lane: a struct is copied in pieces of its alignment, of 16
    bytes at most; a shared array nvcc aligns as it likes, so that its structs of 8 k bytes move in wide pieces."""
    size = kind.size or 1
    if kind.kind != "struct":
        return min(size, 16)
    if space is Space.SHARED:
        return 16 if size % 16 == 0 else 8 if size % 8 == 0 else min(kind.align, 16)
    return max(1, min(kind.align, 16))
