"""A formula of fixed extents as one of any sizes, which can be tried at small ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from warpwright.formulas.lexer import FormulaError
from warpwright.formulas.model import Formula
from warpwright.formulas.parser import parse
from warpwright.formulas.printer import printed
from warpwright.formulas.resolve import formula_of
from warpwright.formulas.tree import Call, Expr, Load, Name, Num, Reduce, Written, rebuilt

_COMPARED = ("<", "<=", ">", ">=", "==", "!=")
KEPT = 128
"""Up to here the extent of neighbours in memory stays a number: kernels hold so much in registers."""


def loosened(formula: Formula, names: Mapping[int, str]) -> tuple[Formula, dict[str, int]]:
    """The formula with names for its extents, and the sizes at which it is the same. An extent stays a number where
    the formula holds for no other: where what is read is proved to lie inside by that number.

    >>> found, sizes = loosened(formula_of("x: f16[8, 512], y[r] = sum[c] x[r, c] / x[r, 3]"), {8: "R", 512: "C"})
    >>> found.text, sizes
    ('x: f16[R, 512]\\ny[r] = sum[c] x[r, c] / x[r, 3]', {'R': 8})
    """
    written = parse(formula.text)
    extents = [each.extents for each in written.declarations if each.extents]
    numbers = {one.value for each in extents for one in each if isinstance(one, Num)}
    inner = {each[-1].value for each in extents if isinstance(each[-1], Num)}
    sizes: dict[str, int] = {}
    for number in sorted(numbers & names.keys(), reverse=True):
        if number in inner and number <= KEPT:
            continue
        looser = _renamed(written, int(number), Name(names[int(number)]))
        try:
            formula = formula_of(printed(looser))
        except FormulaError:
            continue
        written = looser
        sizes[names[int(number)]] = int(number)
    return formula, sizes


def _renamed(written: Written, number: int, name: Name) -> Written:
    """With the name for the number where it is an extent, and in indices, ranges and comparisons."""

    def everywhere(node: Expr) -> Expr:
        return name if node == Num(number) else node

    def change(node: Expr) -> Expr:
        match node:
            case Load(index=index):
                return replace(node, index=tuple(rebuilt(each, everywhere) for each in index))
            case Call(name=sign, args=args) if sign in _COMPARED:
                return replace(node, args=tuple(everywhere(each) for each in args))
            case Reduce(ranges=ranges):
                return replace(
                    node,
                    ranges=tuple(
                        replace(
                            each,
                            lower=None if each.lower is None else rebuilt(each.lower, everywhere),
                            upper=None if each.upper is None else rebuilt(each.upper, everywhere),
                        )
                        for each in ranges
                    ),
                )
        return node

    equations = tuple(
        replace(
            each,
            index=tuple(rebuilt(one, everywhere) for one in each.index),
            value=rebuilt(each.value, change),
        )
        for each in written.equations
    )
    declarations = tuple(
        each if each.extents is None else replace(each, extents=tuple(map(everywhere, each.extents)))
        for each in written.declarations
    )
    return Written(equations, declarations)
