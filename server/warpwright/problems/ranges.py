"""Whole numbers between symbolic bounds, such as 0 to n - 1.

A bound is an expression over sizes, each of which is at least 1. It is kept as a sum of products, so that
`(gridDim.x - 1) * blockDim.x + blockDim.x - 1` is `gridDim.x * blockDim.x - 1`. No bound is an answer: None.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache, reduce

from warpwright.algebra.sums import plus, product_of
from warpwright.problems.expressions import (
    Binary,
    Call,
    Conditional,
    Expression,
    Name,
    Number,
    Unary,
    show,
)

_MOST_TERMS = 24
_LONGEST = 400
"""Characters of a bound that is worth keeping: a longer one says nothing to a reader and costs time."""
Terms = tuple[tuple[tuple[Expression, ...], int], ...]
"""Products of factors with their coefficients; the constant has no factors."""


@dataclass(frozen=True, slots=True)
class Range:
    """From `low` to `high`, both included; None where nothing bounds it on that side."""

    low: Expression | None = None
    high: Expression | None = None

    @property
    def is_point(self) -> bool:
        return self.low is not None and self.low == self.high


UNBOUNDED = Range()
ZERO, ONE = Number(0), Number(1)


def point(value: Expression) -> Range:
    return Range(value, value)


@lru_cache(maxsize=1 << 14)
def terms(expression: Expression) -> Terms:
    """The sum of products that an expression is."""
    match expression:
        case Number(int() as value):
            return (((), value),) if value else ()
        case Unary("-", operand):
            return tuple((factors, -count) for factors, count in terms(operand))
        case Binary("+" | "-" as sign, left, right):
            return _summed(terms(left), terms(right), 1 if sign == "+" else -1)
        case Binary("*", left, right):
            one, other = terms(left), terms(right)
            if len(one) * len(other) > _MOST_TERMS:
                return (((expression,), 1),)
            return tuple(product_of(dict(one), dict(other), show).items())
        case Binary("<<", left, Number(int() as shift)) if 0 <= shift < 32:
            return terms(Binary("*", left, Number(1 << shift)))
        case Binary("/", left, right):
            return _divided(normal(left), normal(right))
        case Binary(operator, left, right):
            return (((Binary(operator, normal(left), normal(right)),), 1),)
        case Call(function, arguments):
            return (((Call(function, tuple(map(normal, arguments))),), 1),)
        case Conditional(condition, then, otherwise):
            return (((Conditional(normal(condition), normal(then), normal(otherwise)),), 1),)
        case _:
            return (((expression,), 1),)


def _summed(left: Terms, right: Terms, sign: int) -> Terms:
    return tuple(plus(dict(left), dict(right), sign).items())


def _divided(left: Expression, right: Expression) -> Terms:
    """A quotient, rounded down: the divisor is taken out of the terms that have it, `(h * w - 1) / w` is `h - 1`."""
    if right == ZERO:
        return (((Binary("/", left, right),), 1),)
    parts = terms(left)
    if isinstance(left, Number) and isinstance(right, Number) and isinstance(left.value, int):
        return terms(Number(int(left.value // right.value)))
    if isinstance(right, Number) and isinstance(right.value, int) and right.value > 0:
        whole = [(factors, count // right.value) for factors, count in parts if factors and count % right.value == 0]
        constant = next((count for factors, count in parts if not factors), 0)
        if len(whole) == sum(1 for factors, _ in parts if factors):
            return _summed(tuple(whole), terms(Number(constant // right.value)), 1)
    elif isinstance(right, Name):
        taken = [(_without(factors, right), count) for factors, count in parts if right in factors]
        rest = [(factors, count) for factors, count in parts if right not in factors]
        if taken and not rest:
            return tuple(taken)
        if taken and rest == [((), -1)]:
            return _summed(tuple(taken), terms(ONE), -1)
    return (((Binary("/", left, right),), 1),)


def _without(factors: tuple[Expression, ...], factor: Expression) -> tuple[Expression, ...]:
    at = factors.index(factor)
    return factors[:at] + factors[at + 1 :]


@lru_cache(maxsize=1 << 14)
def normal(expression: Expression) -> Expression:
    """The expression as a sum of products.

    >>> from warpwright.problems.expressions import parse
    >>> show(normal(parse("(g - 1) * b + b - 1"))), show(normal(parse("2 * (w - 1) + 2"))), show(normal(parse("b - a")))
    ('b * g - 1', '2 * w', 'b - a')
    """
    parts = sorted(terms(expression), key=lambda part: (not part[0], part[1] < 0))
    total: Expression | None = None
    for factors, count in parts:
        product = _product(factors, abs(count))
        if total is None:
            total = product if count > 0 else _product(factors, count)
        else:
            total = Binary("+" if count > 0 else "-", total, product)
    return total if total is not None else ZERO


def _product(factors: tuple[Expression, ...], count: int) -> Expression:
    if not factors:
        return Number(count)
    whole = factors if count == 1 else (Number(count), *factors)
    return reduce(lambda a, b: Binary("*", a, b), whole)


def never_less(left: Expression, right: Expression) -> bool:
    """Whether `left >= right` for all sizes of at least 1, as far as it shows.

    >>> from warpwright.problems.expressions import parse
    >>> never_less(parse("n * m"), ONE), never_less(parse("n + 2"), parse("n")), never_less(parse("n"), parse("m"))
    (True, True, False)
    """
    if left == right or right in _smaller(left) or left in _larger(right):
        return True
    least = 0
    for factors, count in _summed(terms(left), terms(right), -1):
        if factors and count < 0:
            return False
        least += count if all(isinstance(f, Name) for f in factors) else 0
    return least >= 0


def _smaller(expression: Expression) -> Iterator[Expression]:
    """Parts that a maximum is never less than."""
    if isinstance(expression, Call) and expression.function == "max":
        for argument in expression.arguments:
            yield argument
            yield from _smaller(argument)


def _larger(expression: Expression) -> Iterator[Expression]:
    """Parts that a minimum, a quotient or a part is never more than."""
    match expression:
        case Call("min", arguments):
            for argument in arguments:
                yield argument
                yield from _larger(argument)
        case Binary("/" | ">>", left, Number()) | Binary("/", left, Name()):
            yield left
            yield from _larger(left)


def largest(left: Expression | None, right: Expression | None) -> Expression | None:
    """The larger of two upper bounds; None where one is none, or where it would be too long to say."""
    if left is None or right is None:
        return None
    if never_less(left, right):
        return left
    if never_less(right, left):
        return right
    return short(Call("max", (left, right)))


def smallest(left: Expression | None, right: Expression | None) -> Expression | None:
    """The smaller of two upper bounds, either of which will do; None where there is none."""
    if left is None or right is None:
        return right if left is None else left
    if never_less(left, right):
        return right
    if never_less(right, left):
        return left
    return short(Call("min", (left, right)))


def least(left: Expression | None, right: Expression | None) -> Expression | None:
    """The smaller of two lower bounds; None where one is none."""
    if left is None or right is None:
        return None
    return right if never_less(left, right) else left if never_less(right, left) else None


def short(expression: Expression) -> Expression | None:
    expression = normal(expression)
    return expression if len(show(expression)) <= _LONGEST else None


def join(left: Range, right: Range) -> Range:
    if left == right:
        return left
    return Range(least(left.low, right.low), largest(left.high, right.high))


@lru_cache(maxsize=16384)
def combine(operator: str, left: Expression | None, right: Expression | None) -> Expression | None:
    if left is None or right is None:
        return None
    return short(Binary(operator, left, right))


def is_natural(value: Range) -> bool:
    """Whether it is never negative, as far as it shows."""
    return value.low is not None and never_less(value.low, ZERO)


def add(left: Range, right: Range) -> Range:
    return Range(combine("+", left.low, right.low), combine("+", left.high, right.high))


def subtract(left: Range, right: Range) -> Range:
    """What is taken away is at least 0 where nothing bounds it: a run-time offset the other way needs a guard."""
    low = right.low if right.low is not None else ZERO
    return Range(combine("-", left.low, right.high), combine("-", left.high, low))


def multiply(left: Range, right: Range) -> Range:
    if is_natural(left) and is_natural(right):
        return Range(combine("*", left.low, right.low), combine("*", left.high, right.high))
    for one, other in ((left, right), (right, left)):
        if one.is_point and isinstance(one.low, Number):
            ends = combine("*", one.low, other.low), combine("*", one.low, other.high)
            return Range(*ends) if one.low.value >= 0 else Range(ends[1], ends[0])
    return Range(None, combine("*", left.high, right.high))


def divide(left: Range, right: Range) -> Range:
    divisor = right.low if right.low is not None and right.is_point else None
    if divisor is None or divisor == ZERO:
        return Range(ZERO if is_natural(left) and is_natural(right) else None, left.high)
    return Range(
        ZERO if is_natural(left) else None if left.low is None else combine("/", left.low, divisor),
        combine("/", left.high, divisor),
    )


def modulo(left: Range, right: Range) -> Range:
    high = combine("-", right.high, ONE)
    if left.high is not None and high is not None and never_less(high, left.high):
        high = left.high
    return Range(ZERO if is_natural(left) else None, high)


def shift(operator: str, left: Range, right: Range) -> Range:
    if right.is_point and isinstance(right.low, Number) and 0 <= right.low.value < 32:
        factor = point(Number(1 << int(right.low.value)))
        return multiply(left, factor) if operator == "<<" else divide(left, factor)
    if operator == ">>":
        return Range(ZERO if is_natural(left) else None, left.high)
    return Range(None, short(Binary("<<", left.high, right.high)) if left.high and right.high else None)


def masked(left: Range, right: Range) -> Range:
    """`a & b`: no more than either that is not negative."""
    bounds = [side.high for side in (left, right) if is_natural(side)]
    high = smallest(*bounds) if len(bounds) == 2 else bounds[0] if bounds else None
    return Range(ZERO if bounds else None, high)


def either(left: Range, right: Range) -> Range:
    """`a | b` and `a ^ b` of numbers that are not negative: no more than their sum."""
    if is_natural(left) and is_natural(right):
        return Range(ZERO, combine("+", left.high, right.high))
    return UNBOUNDED
