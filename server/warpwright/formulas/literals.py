"""Literals as a kernel has them: `0.1` beside numbers of f32 is the f32 that is nearest to it."""

from __future__ import annotations

import math
import struct
from dataclasses import replace

from warpwright.formulas.model import Formula
from warpwright.formulas.tree import Call, Expr, Load, Num, Reduce
from warpwright.formulas.types import TYPES, ElementType, computed
from warpwright.formulas.typing_rules import as_precise, operand_type, settled, types_of


def as_computed(formula: Formula) -> Formula:
    """The formula with each literal rounded to the type that it is computed with.

    >>> from warpwright.formulas.resolve import formula_of
    >>> as_computed(formula_of("y[i] = 0.1 * x[i]")).stages[0].value.args[0]
    Num(value=0.10000000149011612)
    >>> as_computed(formula_of("x: f64[I] y[i] = (0.1 + 0.2) * x[i]")).stages[0].value.args[0].args[0]
    Num(value=0.1)
    """

    def named(name: str) -> ElementType:
        return TYPES["i64"] if name in formula.dims or name in formula.sizes else formula.type_of(name)

    type_of = types_of(named)

    def within(node: Expr, kind: ElementType) -> Expr:
        """`kind` is the type of what the expression is an operand of: that of literals alone."""
        match node:
            case Num(value=float(value)):
                return replace(node, value=single(value)) if computed(kind).digits == 24 else node
            case Load(index=index):
                return replace(node, index=tuple(within(each, TYPES["i64"]) for each in index))
            case Reduce(body=body):
                return replace(node, body=within(body, settled(type_of(node))))
            case Call(name=name, args=args):
                own = type_of(node)
                own = as_precise(node, own if own.bits else kind, kind, type_of)
                types = [type_of(each) for each in args]
                operands = operand_type(name, own, types)
                if name == "select":
                    return replace(node, args=(within(args[0], own), within(args[1], own), within(args[2], own)))
                return replace(node, args=tuple(within(e, as_precise(e, operands, own, type_of)) for e in args))
        return node

    stages = tuple(replace(each, value=within(each.value, TYPES[each.type])) for each in formula.stages)
    return replace(formula, stages=stages)


def single(value: float) -> float:
    """The nearest number of f32.

    >>> single(1e39)
    inf
    """
    try:
        return float(struct.unpack("f", struct.pack("f", value))[0])
    except OverflowError:
        return math.copysign(math.inf, value)
