"""Going ahead in a loop: how its variables move per iteration, and where they stand later."""

from __future__ import annotations

from warpwright.facts.lanes import difference, plus, wrapped
from warpwright.facts.places import Reference
from warpwright.facts.values import (
    UNKNOWN,
    AnyValue,
    Value,
    join,
    unknown,
)

Slots = list[AnyValue | Reference | None]
UNEVEN = float("-inf")


def join_slots(left: Slots, right: Slots, condition: Value) -> Slots:
    out: Slots = []
    for i in range(max(len(left), len(right))):
        a = left[i] if i < len(left) else None
        b = right[i] if i < len(right) else None
        if a is b:
            out.append(a)
        elif isinstance(a, Reference) or isinstance(b, Reference):
            out.append(a if a is not None else b)
        else:
            out.append(join(a, b, condition))
    return out


def deltas_of(history: list[Slots]) -> dict[int, int | float]:
    """How much each slot moves per iteration; -inf marks a slot that moves unevenly and is forgotten."""
    first, second, third = history[-3:]
    out: dict[int, int | float] = {}
    for slot, (a, b, c) in enumerate(zip(first, second, third, strict=False)):
        if b is c and a is b:
            continue
        if isinstance(a, Value) and isinstance(b, Value) and isinstance(c, Value):
            if a.data is None or b.data is None or c.data is None:
                continue
            one, two = difference(a.data, b.data), difference(b.data, c.data)
            if isinstance(one, (int, float)) and one == two and b.region is c.region:
                out[slot] = one
            else:
                out[slot] = UNEVEN
    return out


Moved = dict[tuple[Value, int | float], Value]


def advance(slots: Slots, deltas: dict[int, int | float], count: int, known: Moved) -> Slots:
    """The slots `count` iterations later. `known` keeps what was moved: the same loop is jumped through again."""
    out = list(slots)
    for slot, delta in deltas.items():
        value = out[slot]
        if not isinstance(value, Value) or delta == 0:
            continue
        if delta == UNEVEN:
            out[slot] = unknown(value.type, UNKNOWN, value.thread)
        else:
            by = delta * count
            moved = known.get((value, by))
            out[slot] = moved if moved is not None else known.setdefault((value, by), _moved(value, by))
    return out


def _moved(value: Value, by: int | float) -> Value:
    kind = value.type
    data = plus(value.data, by)
    if kind.kind == "uint":
        data = wrapped(data, kind)
    return value.holding(data, kind)
