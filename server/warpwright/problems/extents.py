"""The extents of arrays, from what is allocated and what the kernel reaches, and what arrays of indices may hold."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

from warpwright.problems import ranges
from warpwright.problems.expressions import (
    Binary,
    Call,
    Expression,
    ExpressionError,
    Name,
    Number,
    Value,
    evaluate,
    names,
    show,
    substitute,
)
from warpwright.problems.reach import limits_in

Try = Callable[[Expression], list[Value | None]]
"""The values of an expression at some shapes, None where it has none."""


@dataclass(frozen=True, slots=True)
class Need:
    """An array: elements that are allocated, elements that the kernel reaches, and whether its values are indices.

    `said` where the user says the extent, which then stands; `short` where its values are bytes, which index little.
    """

    name: str
    allocated: Expression | None
    reach: Expression | None
    limited: bool
    said: bool = False
    short: bool = False


@dataclass(frozen=True, slots=True)
class Settled:
    """By array: its extent, and the end of what it may hold where it holds indices."""

    extents: Mapping[str, Expression]
    limits: Mapping[str, Expression]
    enlarged: tuple[str, ...]
    unknown: tuple[str, ...]


def settle(needs: Sequence[Need], sizes: Sequence[Expression], at_shapes: Try) -> Settled:
    """Extents that hold all that the kernel reaches, and limits of the indices that keep it so.

    A limit is the largest of a few candidates (the extent of the array that is indexed, its rows, the symbols) for
    which each array that depends on it is long enough. Without one the first array's own extent is taken, and what
    depends on it is made as long as it needs.
    """
    extents: dict[str, Expression] = {}
    enlarged: list[str] = []
    for need in needs:
        if need.allocated is not None:
            extents[need.name] = need.allocated
            plain = need.reach is not None and not limits_in(need.reach)
            if plain and not need.said and not names(need.allocated) and need.reach is not None:
                longer = _longer(need.allocated, need.reach, at_shapes)
                if longer is not None:
                    extents[need.name] = longer
                    enlarged.append(need.name)
        elif need.reach is not None and not limits_in(need.reach):
            extents[need.name] = need.reach
    limits = _limits(needs, extents, sizes, at_shapes)
    values = {f"#{name}": limit for name, limit in limits.items()}
    for need in needs:
        if need.name not in extents and need.reach is not None:
            whole = ranges.normal(substitute(need.reach, values))
            if not any(name.startswith("#") for name in names(whole)):
                extents[need.name] = whole
    unknown = tuple(need.name for need in needs if need.name not in extents)
    return Settled(extents, limits, tuple(enlarged), unknown)


def _longer(allocated: Expression, reach: Expression, at_shapes: Try) -> Expression | None:
    """A constant allocation that other sizes outgrow, made to grow with them; None where it always holds them.

    At the user's own sizes, the first shape, what is allocated is taken to be right.
    """
    pairs = [(a, b) for a, b in zip(at_shapes(allocated), at_shapes(reach), strict=True) if a and b]
    return Call("max", (allocated, reach)) if any(a < b for a, b in pairs) else None


def _limits(
    needs: Sequence[Need], extents: Mapping[str, Expression], sizes: Sequence[Expression], at_shapes: Try
) -> dict[str, Expression]:
    """An end of the values of each array that is used as whole numbers in an index."""
    used = {need.name for need in needs if need.limited}
    wanted: dict[str, list[Need]] = {}
    for need in needs:
        for name in limits_in(need.reach) if need.reach is not None else ():
            if name in used:
                wanted.setdefault(name, []).append(need)
    limits: dict[str, Expression] = {}
    open_ended = [extents[need.name] for need in needs if need.reach is None and need.name in extents]
    if open_ended:  # some index has no bound: whatever else is used as a whole number may be in it
        smallest = reduce(lambda one, other: ranges.smallest(one, other) or one, dict.fromkeys(open_ended))
        limits |= dict.fromkeys(used - wanted.keys() - {need.name for need in needs if need.short}, smallest)
    for name, indexed in wanted.items():
        fixed = [need for need in indexed if need.name in extents]
        candidates = [*_candidates(name, fixed, extents), *sizes]
        if not fixed:
            own = extents.get(name)
            limits[name] = own if own is not None else sizes[0] if sizes else Number(32)
            continue
        known = {f"#{other}": limit for other, limit in limits.items()}
        fitting = [c for c in candidates if _fits(name, c, fixed, extents, known, at_shapes)]
        limits[name] = fitting[0] if fitting else Number(1)
    return limits


def _candidates(name: str, fixed: Iterable[Need], extents: Mapping[str, Expression]) -> list[Expression]:
    """Extents of the arrays that are indexed, and for `a[idx[i] * w + j]` as many as there are rows of w."""
    out: list[Expression] = []
    for need in fixed:
        extent = extents[need.name]
        out.append(extent)
        for factors, count in ranges.terms(need.reach) if need.reach is not None else ():
            if Name(f"#{name}") in factors:
                width: Expression = Number(count)
                for factor in factors:
                    if factor != Name(f"#{name}"):
                        width = Binary("*", width, factor)
                out.append(ranges.normal(Binary("/", extent, ranges.normal(width))))
    return sorted(dict.fromkeys(out), key=lambda e: len(show(e)))


def _fits(
    name: str,
    limit: Expression,
    indexed: Sequence[Need],
    extents: Mapping[str, Expression],
    known: Mapping[str, Expression],
    at_shapes: Try,
) -> bool:
    """Whether each array is long enough at the shapes where values below `limit` are put in."""
    least = [value for value in at_shapes(limit) if value is not None]
    if not least or min(least) < 1:
        return False
    for need in indexed:
        assert need.reach is not None
        others = {f"#{other}": Number(1) for other in limits_in(need.reach)}
        reach = substitute(need.reach, {**others, **known, f"#{name}": limit})
        for reached, held in zip(at_shapes(reach), at_shapes(extents[need.name]), strict=True):
            if reached is not None and held is not None and reached > held:
                return False
    return True


def evaluator(shapes: Sequence[Mapping[str, Value]]) -> Try:
    """Values at these shapes; gridDim and blockDim are among their names."""

    def at_shapes(expression: Expression) -> list[Value | None]:
        out: list[Value | None] = []
        for shape in shapes:
            try:
                out.append(evaluate(expression, shape))
            except ExpressionError:
                out.append(None)
        return out

    return at_shapes
