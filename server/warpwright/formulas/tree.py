"""A formula as it is written: expressions, equations, declarations.

`at` is where a node begins in the text, in characters; it is no part of what a node is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

Outside = Literal["clamp", "wrap", "reflect"]
"""How an index beyond an extent is read: as the nearest one, modulo the extent, or mirrored at the last element."""


@dataclass(frozen=True, slots=True, eq=False)
class Num:
    """A literal. 2 is a whole number, 2.0 none: the first takes part in arithmetic of integers.

    >>> Num(2) == Num(2.0), Num(1) == Num(True), Num(float("nan")) == Num(float("nan"))
    (False, False, True)
    """

    value: int | float
    at: int = field(default=-1, compare=False, repr=False)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Num) and self._written == other._written

    def __hash__(self) -> int:
        return hash(self._written)

    @property
    def _written(self) -> str:
        return repr(self.value)


@dataclass(frozen=True, slots=True)
class Name:
    """A dimension or an extent as a number, or an argument that is one number."""

    name: str
    at: int = field(default=-1, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Load:
    """An element of a tensor or a stage: `x[i - 1; zero]`, or of the new value of an array, `x'[i]`. `outside` says
    what is read beyond the extents: None where no index may lie there, a number, or one of `Outside`."""

    tensor: str
    index: tuple[Expr, ...] = ()
    outside: Outside | Num | None = None
    at: int = field(default=-1, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Call:
    """A function, an operator under its sign, "neg", "not", "~", "select" (condition, then, otherwise) or a type as a
    cast."""

    name: str
    args: tuple[Expr, ...]
    at: int = field(default=-1, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Range:
    """A dimension that is reduced: `k`, `k < 3`, `j <= i` (`closed`), `j >= i`, `first[r] <= e < first[r + 1]`."""

    name: str
    lower: Expr | None = None
    upper: Expr | None = None
    closed: bool = False
    at: int = field(default=-1, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Reduce:
    """`sum:f64[r, c] body`. `accumulate` is the type in which is added up, "" where the rules decide."""

    op: str
    ranges: tuple[Range, ...]
    body: Expr
    accumulate: str = ""
    at: int = field(default=-1, compare=False, repr=False)


Expr = Num | Name | Load | Call | Reduce


@dataclass(frozen=True, slots=True)
class Equation:
    """`name[index] = value`. `combine` is the sign before `=` where the value meets what is there: "+", "*", "max" or
    "min". `primed` is the new value of an array that is also read: `x'[i] = ...`."""

    name: str
    index: tuple[Expr, ...]
    value: Expr
    combine: str = ""
    primed: bool = False
    temporary: bool = False
    at: int = field(default=-1, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Declaration:
    """`x: bf16[R, C](ld, 1)`; `layout` is "row", "column" or "channels_last" where no strides are given. `fields` are
    those of a packed struct, `p: f32[N]{x, y, z}`. Without extents (None) it is a scalar, or a tensor whose extents
    its indices tell."""

    name: str
    type: str
    extents: tuple[Expr, ...] | None = None
    strides: tuple[Expr, ...] = ()
    layout: str = "row"
    fields: tuple[str, ...] = ()
    at: int = field(default=-1, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Written:
    """A formula as it was written."""

    equations: tuple[Equation, ...]
    declarations: tuple[Declaration, ...] = ()


def children(node: Expr) -> tuple[Expr, ...]:
    """The expressions directly below."""
    match node:
        case Load(index=index):
            return index
        case Call(args=args):
            return args
        case Reduce(ranges=ranges, body=body):
            ends = (end for each in ranges for end in (each.lower, each.upper) if end is not None)
            return (*ends, body)
        case _:
            return ()


def walk(node: Expr) -> Iterator[Expr]:
    """The expression and all below it, outermost first."""
    yield node
    for child in children(node):
        yield from walk(child)


def height(node: Expr) -> int:
    """How many expressions stand in each other, at most; of one that is too deep for `walk`, too.

    >>> height(Call("+", (Name("i"), Num(1))))
    2
    """
    deepest, level = 0, [node]
    while level:
        deepest += 1
        level = [child for each in level for child in children(each)]
    return deepest


def rebuilt(node: Expr, change: Callable[[Expr], Expr]) -> Expr:
    """The expression with `change` applied to every node, innermost first.

    >>> rebuilt(Call("+", (Name("i"), Num(1))), lambda each: Num(7) if isinstance(each, Name) else each)
    Call(name='+', args=(Num(value=7), Num(value=1)))
    """
    match node:
        case Load(index=index) if index:
            node = replace(node, index=tuple(rebuilt(each, change) for each in index))
        case Call(args=args):
            node = replace(node, args=tuple(rebuilt(each, change) for each in args))
        case Reduce(ranges=ranges, body=body):
            node = replace(node, ranges=tuple(_range(each, change) for each in ranges), body=rebuilt(body, change))
    return change(node)


def _range(each: Range, change: Callable[[Expr], Expr]) -> Range:
    lower = None if each.lower is None else rebuilt(each.lower, change)
    upper = None if each.upper is None else rebuilt(each.upper, change)
    return replace(each, lower=lower, upper=upper)


def product(factors: Sequence[Expr]) -> Expr:
    """The product, without factors of 1.

    >>> product([Num(1), Name("R"), Name("C")])
    Call(name='*', args=(Name(name='R'), Name(name='C')))
    """
    left = [each for each in factors if each != Num(1)]
    if not left:
        return Num(1)
    total = left[0]
    for each in left[1:]:
        total = Call("*", (total, each))
    return total
