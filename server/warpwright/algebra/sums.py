"""Sums of products with whole coefficients: `4 * row * n + i` is {("n", "row"): 4, ("i",): 1}.

A product is the tuple of its factors in order, () for the number alone; a factor is whatever can be compared by `==`.
No coefficient is 0, so that two sums that are equal term by term are the same mapping.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

Factor = TypeVar("Factor")
Sum = Mapping[tuple[Factor, ...], int]


def plus(left: Sum[Factor], right: Sum[Factor], times: int = 1) -> dict[tuple[Factor, ...], int]:
    """`left + times * right`.

    >>> plus({("n",): 2, (): 1}, {("n",): 1, ("m",): 3}, -2)
    {(): 1, ('m',): -6}
    """
    total = dict(left)
    for product, count in right.items():
        total[product] = total.get(product, 0) + times * count
    return {product: count for product, count in total.items() if count}


def product_of(
    left: Sum[Factor], right: Sum[Factor], order: Callable[[Factor], Any] | None = None
) -> dict[tuple[Factor, ...], int]:
    """`left * right`, the factors of each product sorted by `order`.

    >>> product_of({("n",): 1, (): 1}, {("n",): 1, (): -1})
    {('n', 'n'): 1, (): -1}
    """
    total: dict[tuple[Factor, ...], int] = {}
    for one, count in left.items():
        for other, more in right.items():
            product = tuple(sorted(one + other, key=order))  # type: ignore[type-var, arg-type]
            total[product] = total.get(product, 0) + count * more
    return {product: count for product, count in total.items() if count}


def scaled(value: Sum[Factor], by: int) -> dict[tuple[Factor, ...], int]:
    return {product: count * by for product, count in value.items() if by}


def as_number(value: Sum[Factor] | None) -> int | None:
    """The number that a sum is; None where it depends on something.

    >>> as_number({(): 3}), as_number({}), as_number({("n",): 1})
    (3, 0, None)
    """
    return value.get((), 0) if value is not None and all(not product for product in value) else None


def symbols(value: Sum[Factor]) -> set[Factor]:
    """What a sum depends on."""
    return {factor for product in value for factor in product}


def coefficient(value: Sum[Factor], of: Factor) -> int | None:
    """The number by which a sum grows with a factor; None where that is no number.

    >>> coefficient({("i",): 4, ("n", "row"): 1}, "i"), coefficient({("i", "n"): 1}, "i")
    (4, None)
    """
    products = [product for product in value if of in product]
    return 0 if not products else value[(of,)] if products == [(of,)] else None
