"""C's integer arithmetic."""

from __future__ import annotations

import operator
from collections.abc import Callable


def integer_operation(op: str, a: int, b: int) -> int | None:
    """What an operator of C gives for two integers that do not overflow; None where that is not defined, and for an
    operator that is none of two integers. Division and modulo truncate towards zero.

    >>> integer_operation("/", -7, 2), integer_operation("%", -7, 2), integer_operation("<", 1, 2)
    (-3, -1, 1)
    >>> integer_operation("%", 1, 0), integer_operation("<<", 1, 64), integer_operation("->", 1, 2)
    (None, None, None)
    """
    if op in ("/", "%"):
        if b == 0:
            return None
        quotient = abs(a) // abs(b)
        if (a < 0) != (b < 0):
            quotient = -quotient
        return quotient if op == "/" else a - quotient * b
    if op in ("<<", ">>"):
        if not 0 <= b < 64:
            return None
        return a << b if op == "<<" else a >> b
    operation = _PLAIN.get(op)
    return int(operation(a, b)) if operation is not None else None


_PLAIN: dict[str, Callable[[int, int], int]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "&": operator.and_, "|": operator.or_, "^": operator.xor,
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq, "!=": operator.ne,
}  # fmt: skip
