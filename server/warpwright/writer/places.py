"""Where a row or a pack begins, in C++ and as conditions."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from warpwright.formulas.bounds import Polynomial, expression, polynomial, times
from warpwright.formulas.extents import at_sizes, is_constant
from warpwright.formulas.tree import Call, Expr, Load, Name, Num, product, rebuilt, walk
from warpwright.formulas.types import TYPES
from warpwright.schedules.access import flat, steps
from warpwright.writer.expressions import PRODUCT, Expressions


def base_expression(
    base: Polynomial, rows: Sequence[str], row: str, extents: Mapping[str, Expr], length: Expr, loads: Iterable[Load]
) -> Expr:
    """A base as an expression: `row * length` where it is that of a packed array, else a sum of products that begin
    with a dimension, so that they are computed in its type."""
    if not base:
        return Num(0)
    number, size = flat(rows, extents), polynomial(length)
    if rows and number is not None and size is not None and base == times(number, size):
        return product([Name(row), length])
    total: Expr | None = None
    for key, factor in sorted(base.items(), key=lambda each: (not each[0], each[0])):
        moving = sorted(key, key=lambda name: not (name in extents or name.startswith("@")))
        parts: list[Expr] = [Name(name) for name in moving]
        term: Expr = parts[0] if parts else Num(abs(factor))
        for part in parts[1:]:
            term = Call("*", (term, part))
        if parts and abs(factor) != 1:
            term = Call("*", (term, Num(abs(factor))))
        sign = "+" if factor > 0 else "-"
        total = (Call("neg", (term,)) if factor < 0 else term) if total is None else Call(sign, (total, term))
    opaque = {f"@{load}": load for load in loads}
    return rebuilt(total or Num(0), lambda each: opaque.get(each.name, each) if isinstance(each, Name) else each)


def length_of(length: Expr) -> Polynomial:
    """The length of a row as a polynomial."""
    found = polynomial(length)
    assert found is not None
    return found


def inner_loads(load: Load) -> list[Load]:
    """Loads in the index of one."""
    return [node for part in load.index for node in walk(part) if isinstance(node, Load)]


def divisible(base: Polynomial, sizes: Sequence[str], by: int) -> list[Expr] | None:
    """Conditions under which each pack of `by` elements begins at a multiple of `by`; None where none make it so."""
    found: list[Expr] = []
    if by == 1:
        return found
    for step in steps(base, sizes):
        if all(factor % by == 0 for factor in step.values()):
            continue
        if all(not key for key in step):
            return None
        found.append(Call("==", (Call("%", (expression(step), Num(by))), Num(0))))
    return found


def packed(
    moved: Iterable[tuple[str, str, Polynomial]], lengths: Sequence[Expr], sizes: Sequence[str], vector: int
) -> tuple[list[Expr], dict[str, int]] | None:
    """When packs begin where one may in all rows of some lengths, of arrays with types and bases: conditions, and at a
    multiple of how many bytes each array begins; None for never."""
    moved, found = list(moved), list[Expr]()
    rows = [{("@row", *key): factor for key, factor in length_of(each).items()} for each in lengths]
    for base in (*rows, *(base for _, _, base in moved)):
        more = divisible(base, sizes, vector)
        if more is None:
            return None
        found += more
    aligned = {array: min(16, vector * TYPES[kind].bits // 8) for array, kind, _ in moved} if vector > 1 else {}
    return found, aligned


def coordinate(expressions: Expressions, dims: Sequence[str], extents: Mapping[str, Expr], flat: str, dim: str) -> str:
    """One of the dimensions, of a number over all of them."""
    place = dims.index(dim)
    behind = product([extents[each] for each in dims[place + 1 :]])
    whole = flat if behind == Num(1) else f"{flat} / {expressions.of(behind, PRODUCT + 1)}"
    wrap = f" % {expressions.of(extents[dim], PRODUCT + 1)}" if place else ""
    return whole[1:-1] if whole == flat and not wrap and flat.startswith("(") else f"{whole}{wrap}"


def coordinates(
    expressions: Expressions,
    dims: Sequence[str],
    extents: Mapping[str, Expr],
    flat: str,
    text: str,
    kind: str = "Index",
) -> list[str]:
    """Those of the dimensions that a text names, of a number over all of them; none where that is the dimension."""
    return [
        f"const {kind} {dim} = {coordinate(expressions, dims, extents, flat, dim)};"
        for dim in dims
        if dim != flat and re.search(rf"\b{dim}\b", text)
    ]


def unique(conditions: Iterable[Expr]) -> tuple[Expr, ...]:
    """Each condition once, without those that follow from another: sizes are at least 1 where they are tested, so that
    a product has no factor beyond its own limit.

    >>> unique([Call("<=", (Name("C"), Num(9))), Call("<=", (Call("*", (Name("R"), Name("C"))), Num(7)))])
    (Call(name='<=', args=(Call(name='*', args=(Name(name='R'), Name(name='C'))), Num(value=7))),)
    >>> counts = (Call("*", (Name("R"), Name("C"))), Name("C"))
    >>> whole, row = (Call("==", (Call("%", (each, Num(4))), Num(0))) for each in counts)
    >>> unique([whole, row]) == (row,)
    True
    """
    found = [each for each in dict.fromkeys(conditions) if not (is_constant(each) and at_sizes(each, {}))]
    return tuple(each for each in found if not any(_follows(each, other) for other in found if other is not each))


def _follows(one: Expr, other: Expr) -> bool:
    """Whether a limit follows from another one, or that a product is divisible because one of its factors is."""
    product_, factor_ = _multiple(one), _multiple(other)
    if product_ is not None and factor_ is not None:
        (names, by), (some, same) = product_, factor_
        return by == same and names != some and not Counter(some) - Counter(names)
    looser, stricter = _limit(one), _limit(other)
    if looser is None or stricter is None or looser == stricter or stricter[1] > looser[1]:
        return False
    left = dict(stricter[0])
    for names, factor in looser[0].items():
        larger = next((each for each in left if left[each] >= factor and not Counter(names) - Counter(each)), None)
        if larger is None:
            return False
        del left[larger]
    return True


def _multiple(condition: Expr) -> tuple[tuple[str, ...], int] | None:
    """Of `R * C % 4 == 0`: the names that are multiplied, and 4."""
    match condition:
        case Call(name="==", args=(Call(name="%", args=(whole, Num(value=int(by)))), Num(value=0))):
            match list((polynomial(whole) or {}).items()):
                case [(names, 1)]:
                    return names, by
    return None


def _limit(condition: Expr) -> tuple[Polynomial, int] | None:
    """Of `2 * R * C + 1 <= 100`: the products with their factors, and the limit of their sum, 99."""
    match condition:
        case Call(name="<=", args=(sum_, Num(value=int(limit)))):
            terms = polynomial(sum_)
            if terms and all(factor > 0 for names, factor in terms.items() if names):
                rest = terms.pop((), 0)
                return terms, limit - rest
    return None
