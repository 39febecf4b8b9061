"""What stands in expressions, and expressions as sums of terms and products of factors."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from warpwright.formulas.tree import Call, Expr, Load, Name, Num, rebuilt, walk

Terms = list[tuple[int, Expr]]
"""What is added up, each with its sign."""
LEAST, NOTHING = Num(-math.inf), Num(0.0)


def loads_in(node: Expr) -> list[Load]:
    """Every load in the expression."""
    return [each for each in walk(node) if isinstance(each, Load)]


def names_in(node: Expr) -> set[str]:
    """Every dimension, size and number that the expression names."""
    return {each.name for each in walk(node) if isinstance(each, Name)}


def with_names(node: Expr, names: Mapping[str, Expr]) -> Expr:
    """The expression with others in place of its names."""
    return rebuilt(node, lambda each: names.get(each.name, each) if isinstance(each, Name) else each)


def factors(node: Expr) -> tuple[list[Expr], list[Expr]]:
    """What a product multiplies, and what it divides by.

    >>> from warpwright.formulas.parser import parse
    >>> [len(each) for each in factors(parse("y = a * b / (c * d / e)").equations[0].value)]
    [3, 2]
    """
    match node:
        case Call(name="*" | "/" as sign, args=(left, right)):
            above, below = factors(left)
            over, under = factors(right)
            return ([*above, *over], [*below, *under]) if sign == "*" else ([*above, *under], [*below, *over])
    return [node], []


def product_of(above: Sequence[Expr], below: Sequence[Expr]) -> Expr:
    """The product of some factors, divided by that of others; what is in both is left out."""
    left, under = [each for each in above if not _is(each, 1)], [each for each in below if not _is(each, 1)]
    for each in [*under]:
        if each in left:
            left.remove(each)
            under.remove(each)
    total = left[0] if left else Num(1.0)
    for each in left[1:]:
        total = Call("*", (total, each))
    divisor = under[0] if under else None
    for each in under[1:]:
        divisor = Call("*", (divisor, each)) if divisor is not None else each
    return total if divisor is None else Call("/", (total, divisor))


def sum_of(terms: Terms) -> Expr:
    """The sum; it begins with a term that is added, if there is one."""
    total: Expr | None = None
    for sign, term in sorted(terms, key=lambda each: -each[0]):
        if total is None:
            total = term if sign > 0 else Call("neg", (term,))
        else:
            total = Call("+" if sign > 0 else "-", (total, term))
    return NOTHING if total is None else total


def terms_of(node: Expr, is_fixed: Callable[[Expr], bool]) -> tuple[Terms, list[Expr]]:
    """What a sum adds up, and conditions without which it is -inf. Products are multiplied out where that sets what a
    row has gathered free from what is not fixed; elsewhere it would only round more."""
    conditions: list[Expr] = []
    return [*_terms(node, 1, is_fixed, conditions)], conditions


def _terms(
    node: Expr, sign: int, is_fixed: Callable[[Expr], bool], conditions: list[Expr]
) -> Iterator[tuple[int, Expr]]:
    match node:
        case Call(name="+" | "-" as name, args=(left, right)):
            yield from _terms(left, sign, is_fixed, conditions)
            yield from _terms(right, sign if name == "+" else -sign, is_fixed, conditions)
        case Call(name="neg", args=(inner,)):
            yield from _terms(inner, -sign, is_fixed, conditions)
        case Call(name="f32", args=(inner,)) if not isinstance(inner, Num):
            yield from _terms(inner, sign, is_fixed, conditions)
        case Call(name="select", args=(test, value, other)) if sign > 0 and is_least(other) and not is_fixed(node):
            conditions.append(test)
            yield from _terms(value, sign, is_fixed, conditions)
        case Call(name="select", args=(test, other, value)) if sign > 0 and is_least(other) and not is_fixed(node):
            conditions.append(Call("not", (test,)))
            yield from _terms(value, sign, is_fixed, conditions)
        case Call(name="*" | "/") if not is_fixed(node):
            yield from _multiplied_out(node, sign, is_fixed, conditions)
        case Num(value=value) if value == 0:
            return
        case _:
            yield sign, node


def _multiplied_out(
    node: Expr, sign: int, is_fixed: Callable[[Expr], bool], conditions: list[Expr]
) -> Iterator[tuple[int, Expr]]:
    above, below = factors(node)
    moving = [each for each in above if not is_fixed(each)]
    if len(moving) != 1 or not all(map(is_fixed, below)):
        yield sign, node
        return
    own: list[Expr] = []
    found = [*_terms(moving[0], 1, is_fixed, own)]
    others = [each for each in above if each is not moving[0]]
    is_positive = all(isinstance(each, Num) and each.value > 0 for each in (*others, *below))
    is_apart = any(is_fixed(each) and any(e.tensor.startswith("@") for e in loads_in(each)) for _, each in found)
    if (own and not is_positive) or not (own or is_apart):
        yield sign, node
        return
    conditions += own
    for one, term in found:
        yield sign * one, product_of([*others, term], below)


def simplified(node: Expr) -> Expr:
    """Without what a quotient cancels; what an exponent cancels becomes a factor of its own, as exp(m - m) is 1 or no
    number.

    >>> from warpwright.formulas.parser import parse
    >>> from warpwright.formulas.printer import shown
    >>> shown(simplified(parse("y = a * exp(m - m) / (b * exp(n - m + m))").equations[0].value))
    'a / (b * exp(n))'
    """
    return rebuilt(node, _simpler)


def _simpler(node: Expr) -> Expr:
    match node:
        case Call(name="exp" | "exp2" as name, args=(power,)):
            terms, _ = terms_of(power, lambda each: True)
            left: Terms = []
            equal: list[Expr] = []
            for sign, term in terms:
                if (-sign, term) in left:
                    left.remove((-sign, term))
                    equal.append(Call(name, (Call("-", (term, term)),)))
                else:
                    left.append((sign, term))
            return product_of([*([Call(name, (sum_of(left),))] if left else []), *equal], [])
        case Call(name="*" | "/"):
            return product_of(*factors(node))
    return node


def of_equals(node: Expr) -> Expr | None:
    """x of exp(x - x)."""
    match node:
        case Call(name="exp" | "exp2", args=(Call(name="-", args=(one, other)),)) if one == other:
            return one
    return None


def without_terms(node: Expr, total: str, some: Load) -> Expr:
    """What a sum divides its terms by is asked for only where it has terms: over nothing it is 0. `total` names what is
    multiplied by `some` where that matters.

    >>> from warpwright.formulas.parser import parse
    >>> from warpwright.formulas.printer import shown
    >>> value = parse("y[i] = t[i] * some[i] / b + c").equations[0].value
    >>> shown(without_terms(value, "t", Load("some", (Name("i"),))))
    't[i] * (1.0 / b if some[i] else 0.0) + c'
    """
    above, below = factors(node)
    if len(above) > 1 and some in above:
        totals = [each for each in above if total in (load.tensor for load in loads_in(each))]
        rest = product_of([each for each in above if each not in (*totals, some)], below)
        return product_of([*totals, Call("select", (some, rest, Num(0.0)))], [])
    if isinstance(node, Call):
        return replace(node, args=tuple(without_terms(each, total, some) for each in node.args))
    return node


def is_least(node: Expr) -> bool:
    """Whether it is -inf."""
    match node:
        case Num(value=value):
            return value == -math.inf
        case Call(name="neg", args=(Num(value=value),)):
            return value == math.inf
        case Call(name="f32", args=(inner,)):
            return is_least(inner)
    return False


def _is(node: Expr, value: float) -> bool:
    return isinstance(node, Num) and node.value == value
