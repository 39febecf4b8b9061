"""Indices of views: sums and products that are kept short, quotients and remainders that are carried out where the
ranges of the dimensions tell how."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from warpwright.formulas.bounds import Bounds, Polynomial, expression, plus, polynomial
from warpwright.formulas.tree import Call, Expr, Num

ZERO = Num(0)
ONE = Num(1)
Index = tuple[Expr, ...]


def short(node: Expr) -> Expr:
    """An index with like terms brought together.

    >>> from warpwright.formulas.printer import shown
    >>> from warpwright.formulas.tree import Name
    >>> shown(add(Name("i"), Num(0))), shown(sub(add(Name("i"), Num(3)), Num(1)))
    ('i', 'i + 2')
    """
    found = polynomial(node)
    return node if found is None else expression(found)


def add(one: Expr, other: Expr) -> Expr:
    return other if one == ZERO else one if other == ZERO else short(Call("+", (one, other)))


def sub(one: Expr, other: Expr) -> Expr:
    return one if other == ZERO else short(Call("-", (one, other)))


def mul(one: Expr, other: Expr) -> Expr:
    return (
        ZERO
        if ZERO in (one, other)
        else other
        if one == ONE
        else one
        if other == ONE
        else short(Call("*", (one, other)))
    )


def product(factors: Sequence[Expr]) -> Expr:
    """The product of extents.

    >>> product([Num(2), Num(3)])
    Num(value=6)
    """
    total: Expr = ONE
    for each in factors:
        total = mul(total, each)
    return total


def same(one: Expr, other: Expr) -> bool:
    """Whether two extents are one."""
    return one == other or (polynomial(one) is not None and polynomial(one) == polynomial(other))


def divided(node: Expr, by: Expr, extents: Mapping[str, Expr]) -> tuple[Expr, Expr]:
    """Quotient and remainder of an index that is 0 or more.

    >>> from warpwright.formulas.printer import shown
    >>> from warpwright.formulas.tree import Name
    >>> extents = {"i": Num(4), "j": Num(8)}
    >>> [shown(each) for each in divided(add(mul(Name("i"), Num(8)), Name("j")), Num(8), extents)]
    ['i', 'j']
    >>> [shown(each) for each in divided(Name("j"), Num(2), extents)]
    ['j // 2', 'j % 2']
    """
    if by == ONE:
        return node, ZERO
    terms, divisor = polynomial(node), polynomial(by)
    bounds = Bounds(extents)
    if terms is not None and divisor is not None and len(divisor) == 1:
        ((names, factor),) = divisor.items()
        whole: Polynomial = {}
        rest: Polynomial = {}
        for key, value in terms.items():
            quotient = _without(key, names)
            if quotient is None or value % factor:
                rest = plus(rest, {key: value})
            else:
                whole = plus(whole, {quotient: value // factor})
        left = expression(rest)
        if bounds.at_least(left, {}) and bounds.less(left, by):
            return expression(whole), left
        if whole and bounds.at_least(left, {}):
            high, low = Call("//", (left, by)), Call("%", (left, by))
            return Call("+", (expression(whole), high)), low
    return Call("//", (node, by)), Call("%", (node, by))


def _without(key: tuple[str, ...], names: tuple[str, ...]) -> tuple[str, ...] | None:
    left = list(key)
    for name in names:
        if name not in left:
            return None
        left.remove(name)
    return tuple(left)


def reshaped(index: Index, new: Index, old: Index, extents: Mapping[str, Expr]) -> Index | None:
    """The index into an array of the extents `old` that an index into the same elements with the extents `new` means;
    None where the extents do not match.

    >>> from warpwright.formulas.printer import shown
    >>> from warpwright.formulas.tree import Name
    >>> extents = {"i": Num(4), "j": Num(8)}
    >>> [shown(e) for e in reshaped((Name("i"), Name("j")), (Num(4), Num(8)), (Num(32),), extents)]
    ['8 * i + j']
    >>> [shown(e) for e in reshaped((Name("j"),), (Num(8),), (Num(2), Num(4)), extents)]
    ['j // 4', 'j % 4']
    """
    found: list[Expr] = []
    groups = _groups(new, old)
    if groups is None:
        return None
    for ours, theirs in groups:
        place: Expr = ZERO
        for number in ours:
            place = add(mul(place, new[number]), index[number])
        parts: list[Expr] = []
        for number in reversed(theirs[1:]):
            place, part = divided(place, old[number], extents)
            parts.append(part)
        found += [place, *reversed(parts)] if theirs else []
    return tuple(found)


def _groups(new: Index, old: Index) -> list[tuple[list[int], list[int]]] | None:
    """Runs of places of both that hold equally many elements, as short as they can be."""
    groups: list[tuple[list[int], list[int]]] = []
    i = j = 0
    while i < len(new) or j < len(old):
        ours, theirs = list(range(i, min(i + 1, len(new)))), list(range(j, min(j + 1, len(old))))
        i, j = i + len(ours), j + len(theirs)
        while not same(one := product([new[k] for k in ours]), two := product([old[k] for k in theirs])):
            if i < len(new) and (j == len(old) or _is_less(one, two)):
                ours.append(i)
                i += 1
            elif j < len(old):
                theirs.append(j)
                j += 1
            else:
                return None
        if not theirs and groups:
            groups[-1][0].extend(ours)
        elif not ours and groups:
            groups[-1][1].extend(theirs)
        else:
            groups.append((ours, theirs))
    return groups


def _is_less(one: Expr, other: Expr) -> bool:
    return Bounds({}).less(one, other) or not Bounds({}).less(other, one)
