"""Which elements of a row are read at all: what stands behind `c <= i` alone need not be fetched beyond i."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from warpwright.formulas.model import Stage
from warpwright.formulas.tree import Call, Expr, Load, Name, Reduce, walk
from warpwright.schedules.access import varies


def limit(stages: Iterable[Stage], loads: Collection[Load], cols: Sequence[str]) -> Call | None:
    """A comparison `c <= e` or `c < e`, with e the same for all of a row, behind which each of the loads stands
    everywhere."""
    found: list[Call | None] = []
    for stage in stages:
        found += _behind(stage.value, loads, cols, None)
    return found[0] if found and all(each == found[0] for each in found) else None


def _behind(node: Expr, loads: Collection[Load], cols: Sequence[str], now: Call | None) -> Iterator[Call | None]:
    match node:
        case Load():
            if node in loads:
                yield now
        case Reduce(body=body):
            yield from _behind(body, loads, cols, now)
        case Call(name="select", args=(condition, value, other)):
            yield from _behind(condition, loads, cols, now)
            yield from _behind(value, loads, cols, now or _limiting(condition, cols))
            yield from _behind(other, loads, cols, now)
        case Call(args=args):
            for each in args:
                yield from _behind(each, loads, cols, now)


def _limiting(condition: Expr, cols: Sequence[str]) -> Call | None:
    match condition:
        case Call(name="and", args=(left, right)):
            return _limiting(left, cols) or _limiting(right, cols)
        case Call(name="<=" | "<", args=(Name(name=name), bound)) if [name] == list(cols):
            is_known = not any(isinstance(each, Load) for each in walk(bound)) and not varies([bound], cols)
            return condition if is_known else None
    return None
