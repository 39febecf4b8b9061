"""Numbers in the 32 lanes of a warp: one number where all lanes agree, a list of 32 where they do not.

A lane whose number is not known holds None; None for all of it means that nothing is known. Most of an analysis is
spent here, so lists go through `map` with a C function wherever that gives what C++ says, and lane by lane where it
does not: where a lane is not known, and for what Python's operator does otherwise (division rounds down, not towards
zero).
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable
from itertools import repeat

from warpwright.facts.model import WARP
from warpwright.facts.types import CType

Number = int | float
Data = Number | list[Number | None] | None
Operation = Callable[[Number, Number], Number | None]

_LARGEST = 1 << 256
"""No integer of a program is larger; what squares itself in a loop would go on for ever."""
_ONLY_INT = {int}


def simplify(data: list[Number | None]) -> Data:
    """One number where all lanes agree."""
    first = data[0]
    if first is None or (first != data[-1] and first is not data[-1]):
        return data
    return first if data.count(first) == WARP else data


def lanes(data: Data) -> list[Number | None]:
    return data if isinstance(data, list) else [data] * WARP


def each(operation: Callable[[Number], Number | None], data: Data) -> Data:
    if data is None:
        return None
    if isinstance(data, list):
        return simplify([None if n is None else operation(n) for n in data])
    return operation(data)


def pairwise(operation: Operation, left: Data, right: Data) -> Data:
    if left is None or right is None:
        return None
    if isinstance(left, list):
        if isinstance(right, list):
            return simplify(
                [None if a is None or b is None else operation(a, b) for a, b in zip(left, right, strict=True)]
            )
        return simplify([None if a is None else operation(a, right) for a in left])
    if isinstance(right, list):
        return simplify([None if b is None else operation(left, b) for b in right])
    return operation(left, right)


def plus(data: Data, offset: int | float) -> Data:
    """Every lane moved by the same distance.

    >>> plus([None, *range(31)], 4)[:3], plus(1, 4)
    ([None, 4, 5], 5)
    """
    if isinstance(data, list):
        try:
            return [n + offset for n in data]  # type: ignore[operator]
        except TypeError:
            return [None if n is None else n + offset for n in data]
    return None if data is None else data + offset


def integers(data: Data) -> Data:
    """Every lane as an integer, rounded towards zero.

    >>> integers(2.5), integers([1.5, *range(31)])[:2]
    (2, [1, 0])
    """
    if isinstance(data, int) or (isinstance(data, list) and set(map(type, data)) == _ONLY_INT):
        return data
    return each(lambda n: int(n) if math.isfinite(n) else None, data)


def difference(left: Data, right: Data) -> Data:
    """right - left, lane by lane."""
    return compute("-", right, left)


def wrap(number: Number, kind: CType) -> Number:
    """A number as that type holds it: modulo 2 to its width; of 64 bits, signed ones are left alone."""
    if kind.kind == "float":
        return float(number)
    if kind.kind in ("int", "uint", "bool"):
        if isinstance(number, float):
            if not math.isfinite(number):
                return 0
            number = int(number)
        if kind.kind == "bool":
            return int(number != 0)
        bits = 8 * (kind.size or 4)
        if kind.kind == "uint":
            return number & ((1 << bits) - 1)
        if bits <= 32:
            number &= (1 << bits) - 1
            return number - (1 << bits) if number >> (bits - 1) else number
    return number


def wrapped(data: Data, kind: CType) -> Data:
    """Every lane as that type holds it.

    >>> from warpwright.facts.types import UINT
    >>> wrapped([-1, *range(31)], UINT)[:2], wrapped(2.5, UINT)
    ([4294967295, 0], 2)
    """
    if isinstance(data, list) and kind.kind == "uint" and set(map(type, data)) == _ONLY_INT:
        most = (1 << 8 * (kind.size or 4)) - 1
        fits = min(data) >= 0 and max(data) <= most  # type: ignore[type-var,operator]
        return simplify(data if fits else [n & most for n in data])  # type: ignore[operator]
    return each(lambda n: wrap(n, kind), data)


def _divide(a: Number, b: Number) -> Number | None:
    if b == 0:
        return None
    if isinstance(a, float) or isinstance(b, float):
        return a / b
    quotient = abs(a) // abs(b)  # C truncates towards zero
    return quotient if (a >= 0) == (b > 0) else -quotient


def _modulo(a: Number, b: Number) -> Number | None:
    if b == 0 or isinstance(a, float) or isinstance(b, float):
        return None
    quotient = _divide(a, b)
    return None if quotient is None else a - int(quotient) * b


def _shift_left(a: Number, b: Number) -> Number | None:
    return a << b if isinstance(a, int) and isinstance(b, int) and 0 <= b < 64 else None


def _shift_right(a: Number, b: Number) -> Number | None:
    return a >> b if isinstance(a, int) and isinstance(b, int) and 0 <= b < 64 else None


def _bits(operation: Callable[[int, int], int]) -> Operation:
    return lambda a, b: operation(a, b) if isinstance(a, int) and isinstance(b, int) else None


def _truth(operation: Callable[[Number, Number], bool]) -> Operation:
    return lambda a, b: int(operation(a, b))


ARITHMETIC: dict[str, Operation] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": _divide, "%": _modulo, "<<": _shift_left,
    ">>": _shift_right, "&": _bits(operator.and_), "|": _bits(operator.or_), "^": _bits(operator.xor),
}  # fmt: skip
COMPARISONS: dict[str, Operation] = {
    "<": _truth(operator.lt), "<=": _truth(operator.le), ">": _truth(operator.gt), ">=": _truth(operator.ge),
    "==": _truth(operator.eq), "!=": _truth(operator.ne),
}  # fmt: skip
OPERATIONS = {**ARITHMETIC, **COMPARISONS}
_GROWING = {"*", "<<"}

_Lanewise = Callable[..., Number]
_ANY: dict[str, _Lanewise] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "&": operator.and_, "|": operator.or_, "^": operator.xor,
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
"""Right for any operands, and a TypeError for a lane that is not known."""
_BY_POSITIVE: dict[str, _Lanewise] = {
    "/": operator.floordiv, "%": operator.mod, "<<": operator.lshift, ">>": operator.rshift,
}  # fmt: skip
"""Right for integers that are not negative on the left, and a positive one on the right, of shifts below 64."""


def compute(op: str, left: Data, right: Data) -> Data:
    """C's `left op right` lane by lane, in numbers without a type: a comparison gives 0 or 1.

    >>> compute("/", [-3, *range(31)], 2)[:4], compute("<", 1, [None, *range(31)])[:4]
    ([-1, 0, 0, 1], [None, 0, 0, 1])

    Raises OverflowError where an integer is too large for the float that it meets.
    """
    if left is None or right is None:
        return None
    if isinstance(left, list) or isinstance(right, list):
        found = _by_lists(op, left, right)
    else:
        found = OPERATIONS[op](left, right)
    return found if op not in _GROWING or _is_bounded(found) else None


def _by_lists(op: str, left: Number | list[Number | None], right: Number | list[Number | None]) -> Data:
    fast = _ANY.get(op)
    if fast is None and isinstance(right, int) and right > 0 and isinstance(left, list) and _all_natural(left):
        fast = _BY_POSITIVE.get(op) if right < 64 or op in ("/", "%") else None
    if fast is not None:
        lefts: Iterable[Number | None] = left if isinstance(left, list) else repeat(left)
        rights: Iterable[Number | None] = right if isinstance(right, list) else repeat(right)
        try:
            numbers = map(fast, lefts, rights)
            return simplify(list(map(int, numbers)) if op in COMPARISONS else list(numbers))
        except TypeError:
            pass  # a lane that is not known
    return pairwise(OPERATIONS[op], left, right)


def _all_natural(data: list[Number | None]) -> bool:
    return set(map(type, data)) == _ONLY_INT and min(data) >= 0  # type: ignore[type-var,operator]


def _is_bounded(data: Data) -> bool:
    if isinstance(data, list):
        try:
            if max(data) < _LARGEST and min(data) > -_LARGEST:  # type: ignore[type-var,operator]
                return True
        except TypeError:
            pass  # a lane that is not known
        return all(map(_is_bounded, data))
    return data is None or isinstance(data, float) or -_LARGEST < data < _LARGEST
