"""Whether an index lies in its extent, by polynomials over dimensions and sizes.

A dimension is at least 0 and at most its extent less 1; a size is at least 1, as nothing is computed where one is 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from warpwright.formulas.printer import shown
from warpwright.formulas.tree import Call, Expr, Load, Name, Num, rebuilt, walk

Polynomial = dict[tuple[str, ...], int]
"""Products of names, sorted, with their factors: `2 * i + 1` is {("i",): 2, (): 1}."""
MOST_TERMS = 64
MOST_FACTORS = 6
"""Of a product, at most: what is larger is no polynomial for us, so that proofs end."""


def polynomial(node: Expr) -> Polynomial | None:
    """The expression as a polynomial; None for one that is none.

    >>> from warpwright.formulas.parser import parse
    >>> polynomial(parse("y = (i + 1) * K - 1").equations[0].value)
    {('K', 'i'): 1, ('K',): 1, (): -1}
    """
    match node:
        case Num(value=int(value)):
            return {(): int(value)} if value else {}
        case Name(name=name):
            return {(name,): 1}
        case Call(name="neg", args=(operand,)):
            inner = polynomial(operand)
            return None if inner is None else scaled(inner, -1)
        case Call(name="+" | "-" | "*" as sign, args=(left, right)):
            one, other = polynomial(left), polynomial(right)
            if one is None or other is None:
                return None
            if sign != "*":
                return plus(one, scaled(other, 1 if sign == "+" else -1))
            product = times(one, other) if len(one) * len(other) <= MOST_TERMS else None
            return product if product is not None and all(len(key) <= MOST_FACTORS for key in product) else None
    return None


def gapped_strides(extents: Sequence[Expr], strides: tuple[Expr, ...] | None) -> tuple[Expr, ...] | None:
    """The strides of an array; None where its elements lie in order without gaps.

    >>> gapped_strides((Name("R"), Name("C")), (Name("C"), Num(1)))
    >>> gapped_strides((Name("R"), Num(4)), (Name("ld"), Num(1)))
    (Name(name='ld'), Num(value=1))
    """
    packed: Expr = Num(1)
    for extent, stride in zip(reversed(extents), reversed(strides or ()), strict=False):
        if polynomial(stride) != polynomial(packed):
            return strides
        packed = Call("*", (extent, packed))
    return None


def plus(one: Polynomial, other: Polynomial) -> Polynomial:
    total = dict(one)
    for key, factor in other.items():
        total[key] = total.get(key, 0) + factor
    return {key: factor for key, factor in total.items() if factor}


def scaled(one: Polynomial, factor: int) -> Polynomial:
    return {key: value * factor for key, value in one.items()} if factor else {}


def times(one: Polynomial, other: Polynomial) -> Polynomial:
    total: Polynomial = {}
    for key, factor in one.items():
        for key2, factor2 in other.items():
            both = tuple(sorted(key + key2))
            total[both] = total.get(both, 0) + factor * factor2
    return {key: factor for key, factor in total.items() if factor}


def highest(terms: Polynomial, extents: Mapping[str, Expr]) -> Polynomial:
    """The largest value over all dimensions, where each product of dimensions grows with all of them.

    >>> from warpwright.formulas.parser import parse
    >>> highest(polynomial(parse("y = 2 * i + k").equations[0].value), {"i": Name("N"), "k": Num(3)})
    {('N',): 2}
    """
    total: Polynomial = {}
    for key, factor in terms.items():
        dims = [name for name in key if name in extents]
        if factor < 0 and dims:
            continue
        term: Polynomial = {tuple(name for name in key if name not in extents): factor}
        for name in dims:
            term = times(term, plus(polynomial(extents[name]) or {}, {(): -1}))
        total = plus(total, term)
    return total


def expression(terms: Polynomial) -> Expr:
    """The polynomial as an expression, its constant last.

    >>> expression({(): 1, ("N",): 2})
    Call(name='+', args=(Call(name='*', args=(Num(value=2), Name(name='N'))), Num(value=1)))
    """
    total: Expr | None = None
    for key, factor in sorted(terms.items(), key=lambda each: (not each[0], each[0])):
        size = abs(factor) if total is not None else factor
        number: list[Expr] = [Num(size)] if size != 1 or not key else []
        parts: list[Expr] = [*number, *map(Name, key)]
        term = parts[0]
        for part in parts[1:]:
            term = Call("*", (term, part))
        total = term if total is None else Call("+" if factor > 0 else "-", (total, term))
    return Num(0) if total is None else total


def from_memory(node: Expr) -> bool:
    """Whether the expression holds what is read from memory."""
    return any(isinstance(each, Load) for each in walk(node))


@dataclass(frozen=True)
class Bounds:
    """What is known where an expression stands: the extents of dimensions, and polynomials that are 0 or more there."""

    extents: Mapping[str, Expr]
    known: tuple[Polynomial, ...] = ()

    def given(self, conditions: Iterable[Expr]) -> Bounds:
        """With conditions that hold; what is no comparison of polynomials tells nothing."""
        known = [each for condition in conditions for each in facts_of(condition)]
        return Bounds(self.extents, (*self.known, *known))

    def at_least(self, node: Expr, least: Polynomial) -> bool:
        """Whether `node` is proved to be `least` or more."""
        match node:
            case Call(name="select", args=(condition, then, otherwise)):
                return self.given([condition]).at_least(then, least) and self.at_least(otherwise, least)
            case Call(name="max", args=(left, right)):
                return self.at_least(left, least) or self.at_least(right, least)
            case Call(name="min", args=(left, right)):
                return self.at_least(left, least) and self.at_least(right, least)
            case Call(name="clamp", args=(_, low, high)):
                return self.at_least(low, least) and self.at_least(high, least)
            case Call(name="%", args=(_, right)) if not least:
                return self.at_least(right, {(): 1})
            case Call(name="//", args=(left, right)) if not least:
                return self.at_least(left, least) and self.at_least(right, {(): 1})
        found, within = self._polynomial(node)
        return found is not None and within.not_negative(plus(found, scaled(least, -1)))

    def less(self, node: Expr, bound: Expr) -> bool:
        """Whether `node` is proved to be less than `bound`."""
        match node:
            case Call(name="select", args=(condition, then, otherwise)):
                return self.given([condition]).less(then, bound) and self.less(otherwise, bound)
            case Call(name="max", args=(left, right)):
                return self.less(left, bound) and self.less(right, bound)
            case Call(name="min", args=(left, right)):
                return self.less(left, bound) or self.less(right, bound)
            case Call(name="clamp", args=(_, _, high)):
                return self.less(high, bound)
            case Call(name="%", args=(_, right)):
                divisor = polynomial(right)
                return divisor is not None and self._ends_by(divisor, bound)
            case Call(name="//", args=(left, Num(value=int(divisor)))) if divisor > 0:
                return self.less(left, Call("*", (bound, Num(divisor))))
            case Call(name="//", args=(left, right)):
                return self.less(left, Call("*", (bound, right)))
        found, within = self._polynomial(node)
        return found is not None and within._ends_by(plus(found, {(): 1}), bound)

    def _polynomial(self, node: Expr) -> tuple[Polynomial | None, Bounds]:
        """The expression as a polynomial in which quotients and remainders stand for dimensions of their own."""
        extents = dict(self.extents)

        def atom(each: Expr) -> Expr:
            match each:
                case Call(name="%", args=(_, divisor)) if self.at_least(divisor, {(): 1}):
                    extent = divisor
                case Call(name="//", args=(Name(name=name), Num(value=int(divisor)))) if name in self.extents:
                    whole = polynomial(self.extents[name])
                    if whole is None or divisor <= 0 or any(factor % divisor for factor in whole.values()):
                        return each
                    extent = expression({key: factor // divisor for key, factor in whole.items()})
                case _:
                    return each
            extents[shown(each)] = extent
            return Name(shown(each))

        found = polynomial(rebuilt(node, atom))
        return found, Bounds(extents, self.known)

    def _ends_by(self, end: Polynomial, bound: Expr) -> bool:
        """Whether `end` is at most `bound`."""
        most = polynomial(bound)
        return most is not None and self.not_negative(plus(most, scaled(end, -1)))

    def not_negative(self, found: Polynomial) -> bool:
        """Whether the polynomial is proved to be 0 or more: by its least value, or by that of its difference to what
        is known."""
        if self._least_is_not_negative(found):
            return True
        return any(self._least_is_not_negative(plus(found, scaled(each, -1))) for each in self.known)

    def _least_is_not_negative(self, found: Polynomial) -> bool:
        least: Polynomial = {}
        for key, factor in found.items():
            dims = [name for name in key if name in self.extents]
            if factor > 0 and dims:
                continue  # at the dimension's 0 it adds nothing
            term: Polynomial = {tuple(name for name in key if name not in self.extents): factor}
            for name in dims:
                extent = polynomial(self.extents[name])
                if extent is None:
                    return False
                term = times(term, plus(extent, {(): -1}))
            least = plus(least, term)
        # A size is at least 1: with N = 1 + n each term of n must not be negative.
        names = sorted({name for key in least for name in key})
        shifted: Polynomial = {}
        for key, factor in least.items():
            term = {(): factor}
            for name in key:
                term = times(term, {(name,): 1, (): 1})
            shifted = plus(shifted, term)
        return all(factor >= 0 for factor in shifted.values()) or (not names and sum(least.values()) >= 0)


def facts_of(condition: Expr) -> list[Polynomial]:
    """Polynomials that are 0 or more where the condition holds.

    >>> from warpwright.formulas.parser import parse
    >>> facts_of(parse("y = i > 0 and i + k < N").equations[0].value)
    [{('i',): 1, (): -1}, {('N',): 1, ('i',): -1, ('k',): -1, (): -1}]
    """
    match condition:
        case Call(name="and", args=(left, right)):
            return facts_of(left) + facts_of(right)
        case Call(name="<" | "<=" | ">" | ">=" | "==" as sign, args=(left, right)):
            one, other = polynomial(left), polynomial(right)
            if one is None or other is None:
                return []
            up, down = plus(other, scaled(one, -1)), plus(one, scaled(other, -1))
            strict: Polynomial = {(): -1}
            return {
                "<": [plus(up, strict)], "<=": [up], ">": [plus(down, strict)], ">=": [down], "==": [up, down],
            }[sign]  # fmt: skip
    return []
