"""Arithmetic on dimensions that 32 bits may not hold: a kernel's index is an int where that reaches all elements of its
arrays, and `i * 1103515245` counts in 64 bits all the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from warpwright.formulas.bounds import Bounds, polynomial
from warpwright.formulas.model import Formula, Stage
from warpwright.formulas.tree import Call, Expr, Load, Name, Num, Reduce, product, walk
from warpwright.formulas.types import TYPES, ElementType, computed
from warpwright.formulas.typing_rules import settled, types_of

MOST = 2**31 - 1


def with_wide_products(formula: Formula) -> Formula:
    """The formula with a cast to 64 bits wherever 32 might not hold the values of arithmetic on dimensions."""

    def named(name: str) -> ElementType:
        return TYPES["i64"] if name in formula.dims or name in formula.sizes else formula.type_of(name)

    type_of = types_of(named)
    return replace(formula, stages=tuple(_widened(formula, each, type_of) for each in formula.stages))


def _widened(formula: Formula, stage: Stage, type_of: Callable[[Expr], ElementType]) -> Stage:
    bounds = Bounds(formula.dims)
    counts = [product(list(formula.extents_of(each))) for each in _arrays_of(formula, stage)]

    kind = TYPES[stage.type]
    few = kind.kind == "integer" and kind.bits <= 32

    def of_value(node: Expr, few: bool = False) -> Expr:
        """`few`: only the lower 32 bits are kept, which overflow does not change."""
        match node:
            case Load(index=index):
                return replace(node, index=tuple(map(of_index, index)))
            case Reduce(body=body):
                return replace(node, body=of_value(body, few and node.op == "sum"))
            case Call(name="+" | "-" | "*" | "<<" as name, args=args) if is_counted(node):
                if _fits(node, bounds, counts):
                    return node
                args = tuple(of_value(each, few) for each in args)
                needs = name in ("*", "<<") or any(isinstance(each, Load) for each in walk(node))
                return replace(
                    node, args=args if few or not needs or any(map(is_wide, args)) else _with_a_wide_one(args)
                )
            case Call(args=args):
                return replace(node, args=tuple(map(of_value, args)))
        return node

    def of_index(node: Expr) -> Expr:
        """What is inside of an array has an index that fits; what that is computed from need not."""
        if isinstance(node, Call) and node.name in ("+", "-", "*", "neg"):
            return replace(node, args=tuple(map(of_index, node.args)))
        return of_value(node)

    def is_counted(node: Expr) -> bool:
        return computed(settled(type_of(node))).name == "i64"

    def is_wide(node: Expr) -> bool:
        """Whether it has 64 bits in C++."""
        match node:
            case Num(value=value):
                return abs(value) > MOST
            case Name():
                return node.name in formula.scalars and TYPES[formula.scalars[node.name]].bits == 64
            case Call(name="i64"):
                return True
            case Call(name="+" | "-" | "*" | "<<" | "neg", args=args):
                return any(map(is_wide, args))
            case Call(name="select", args=(_, one, other)):
                return is_wide(one) or is_wide(other)
        return settled(type_of(node)).bits == 64

    return replace(stage, value=of_value(stage.value, few), index=tuple(map(of_index, stage.index)))


def _arrays_of(formula: Formula, stage: Stage) -> set[str]:
    """The stage and all that it is computed from."""
    found = {stage.name, *(each.tensor for each in formula.loads(stage.value))}
    for earlier in reversed(formula.stages[: formula.stages.index(stage)]):
        if earlier.name in found:
            found |= {each.tensor for each in formula.loads(earlier.value)}
    return found


def _fits(node: Expr, bounds: Bounds, counts: Sequence[Expr]) -> bool:
    """Whether it is a constant or counts elements of an array."""
    found = polynomial(node)
    if found is not None and not any(found):
        return abs(found.get((), 0)) <= MOST
    return bounds.at_least(node, {}) and any(bounds.less(node, Call("+", (each, Num(1)))) for each in counts)


def _with_a_wide_one(args: tuple[Expr, ...]) -> tuple[Expr, ...]:
    """With a cast of the first operand, or of the number among them."""
    place = next((n for n, each in enumerate(args) if isinstance(each, Num)), 0)
    return tuple(Call("i64", (each,)) if n == place else each for n, each in enumerate(args))
