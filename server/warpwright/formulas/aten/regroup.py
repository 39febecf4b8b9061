"""Dimensions as the views of a graph want them: one that is only read by quotient and remainder becomes two, and those
that are only read as one place in memory become one. Rows of `x[i, j // 16, j % 16]` are rows of `x[i, p, q]`.

All extents concerned are fixed numbers: of others nobody knows that they divide.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

from warpwright.formulas.aten.graph import Shape
from warpwright.formulas.aten.indices import divided, short
from warpwright.formulas.aten.values import Builder, Made
from warpwright.formulas.bounds import expression, plus, polynomial
from warpwright.formulas.tree import Call, Expr, Load, Name, Num, Range, Reduce, walk


def regrouped(stages: Sequence[Made], b: Builder) -> tuple[Sequence[Made], Builder]:
    """The stages of a part over other dimensions, and a builder that knows their extents. What they write is the same
    in memory, so that other parts go on reading it as before."""
    if any(each.index for each in stages):
        return stages, b
    while (found := _quotient(stages, b)) is not None:
        stages = _split(stages, b, *found)
    while (pair := _pair(stages, b)) is not None:
        stages = _joined(stages, b, *pair)
    shapes = {each.name: Shape(tuple(b.extents[name] for name in each.dims), each.type) for each in stages}
    return stages, replace(b, arrays={**b.arrays, **shapes})


def _ranges(stages: Sequence[Made]) -> Iterator[Range]:
    for stage in stages:
        for node in walk(stage.value):
            if isinstance(node, Reduce):
                yield from node.ranges


def _fixed(name: str, b: Builder) -> int | None:
    extent = b.extents.get(name)
    return extent.value if isinstance(extent, Num) and isinstance(extent.value, int) else None


def _is_bounded(name: str, stages: Sequence[Made]) -> bool:
    """Whether a range over it has ends of its own, or the ends of a range hang on it."""
    for each in _ranges(stages):
        ends = [end for end in (each.lower, each.upper) if end is not None]
        if ends and (each.name == name or any(node == Name(name) for end in ends for node in walk(end))):
            return True
    return False


def _fresh(extents: Sequence[int], stages: Sequence[Made], b: Builder) -> list[str]:
    taken = [name for each in stages for name in each.dims] + [each.name for each in _ranges(stages)]
    made = b.dims([Num(each) for each in extents], taken)
    return [each.name for each in made if isinstance(each, Name)]


# One dimension into two


def _quotient(stages: Sequence[Made], b: Builder) -> tuple[str, int] | None:
    """A dimension, and by what alone it is divided."""
    divisors: dict[str, set[int]] = {}
    for stage in stages:
        for node in walk(stage.value):
            match node:
                case Call(name="//" | "%", args=(Name(name=name), Num(value=int(divisor)))):
                    divisors.setdefault(name, set()).add(divisor)
    for name, found in divisors.items():
        extent, (divisor, *others) = _fixed(name, b), found
        if extent is None or others or not 1 < divisor < extent or extent % divisor:
            continue
        if not _is_bounded(name, stages):
            return name, divisor
    return None


def _split(stages: Sequence[Made], b: Builder, dim: str, divisor: int) -> list[Made]:
    extent = _fixed(dim, b)
    assert extent is not None
    high, low = _fresh((extent // divisor, divisor), stages, b)
    whole = short(Call("+", (Call("*", (Name(high), Num(divisor))), Name(low))))
    own = {each.name: each.dims for each in stages}

    def both(name: str) -> tuple[str, ...]:
        return (high, low) if name == dim else (name,)

    def changed(node: Expr) -> Expr:
        match node:
            case Call(name="//", args=(Name(name=name), Num())) if name == dim:
                return Name(high)
            case Call(name="%", args=(Name(name=name), Num())) if name == dim:
                return Name(low)
            case Name(name=name) if name == dim:
                return whole
            case Load(tensor=tensor, index=index) if dim in own.get(tensor, ()):
                found: list[Expr] = []
                for place, each in zip(own[tensor], index, strict=True):
                    new = short(changed(each))
                    if place != dim:
                        found.append(new)
                    else:
                        found += [Name(high), Name(low)] if new == whole else divided(new, Num(divisor), b.extents)
                return replace(node, index=tuple(found))
            case Load(index=index):
                return replace(node, index=tuple(short(changed(each)) for each in index))
        return _inside(node, changed, lambda each: [replace(each, name=name) for name in both(each.name)])

    return [
        replace(each, dims=tuple(name for dim_ in each.dims for name in both(dim_)), value=changed(each.value))
        for each in stages
    ]


def _inside(node: Expr, changed: Callable[[Expr], Expr], ranged: Callable[[Range], list[Range]]) -> Expr:
    match node:
        case Call(args=args):
            return replace(node, args=tuple(map(changed, args)))
        case Reduce(ranges=ranges, body=body):
            new = [
                replace(one, lower=one.lower and changed(one.lower), upper=one.upper and changed(one.upper))
                for each in ranges
                for one in ranged(each)
            ]
            return replace(node, ranges=tuple(new), body=changed(body))
    return node


# Two dimensions into one


def _pair(stages: Sequence[Made], b: Builder) -> tuple[str, str] | None:
    """Two dimensions, side by side wherever they stand, that are only read as one place."""
    lists = [each.dims for each in stages]
    lists += [
        tuple(each.name for each in node.ranges)
        for stage in stages
        for node in walk(stage.value)
        if isinstance(node, Reduce)
    ]
    for names in lists:
        for outer, inner in pairwise(names):
            fixed = _fixed(outer, b) is not None and _fixed(inner, b) is not None
            if not fixed or _is_bounded(outer, stages) or _is_bounded(inner, stages):
                continue
            beside = all(_beside(each, outer, inner) for each in lists)
            if beside and all(_is_one_place(each.value, outer, inner, stages, b) for each in stages):
                return outer, inner
    return None


def _beside(names: Sequence[str], outer: str, inner: str) -> bool:
    if outer not in names and inner not in names:
        return True
    return outer in names and inner in names and names.index(inner) == names.index(outer) + 1


def _is_one_place(node: Expr, outer: str, inner: str, stages: Sequence[Made], b: Builder) -> bool:
    """Whether the dimensions stand only in indices, and there as `k * (extent of inner * outer + inner)`."""
    own = {each.name: each.dims for each in stages}
    match node:
        case Name(name=name):
            return name not in (outer, inner)
        case Call(args=args):
            return all(_is_one_place(each, outer, inner, stages, b) for each in args)
        case Reduce(body=body):
            return _is_one_place(body, outer, inner, stages, b)
        case Load(tensor=tensor, index=index):
            return all(
                each == Name(place) if place in (outer, inner) else _coefficient(each, outer, inner, b) is not None
                for each, place in zip(index, own.get(tensor, [""] * len(index)), strict=True)
            )
    return True


def _coefficient(index: Expr, outer: str, inner: str, b: Builder) -> int | None:
    """The k; 0 where neither stands in the index, None where they stand there in another way."""
    names = {node.name for node in walk(index) if isinstance(node, Name)}
    if not names & {outer, inner}:
        return 0
    terms = polynomial(index)
    extent = _fixed(inner, b)
    if terms is None or extent is None:
        return None
    if any(len(key) > 1 for key in terms if outer in key or inner in key):
        return None
    k = terms.get((inner,), 0)
    return k if k and terms.get((outer,), 0) == k * extent else None


def _joined(stages: Sequence[Made], b: Builder, outer: str, inner: str) -> list[Made]:
    sizes = (_fixed(outer, b), _fixed(inner, b))
    assert sizes[0] is not None
    assert sizes[1] is not None
    (name,) = _fresh((sizes[0] * sizes[1],), stages, b)
    own = {each.name: each.dims for each in stages}

    def one(names: Sequence[str]) -> tuple[str, ...]:
        return tuple(name if each == outer else each for each in names if each != inner)

    def ranged(each: Range) -> list[Range]:
        return [] if each.name == inner else [replace(each, name=name) if each.name == outer else each]

    def place(each: Expr) -> Expr:
        k = _coefficient(each, outer, inner, b)
        terms = polynomial(each)
        if not k or terms is None:
            return each
        left = {key: value for key, value in terms.items() if key not in ((outer,), (inner,))}
        return expression(plus(left, {(name,): k}))

    def changed(node: Expr) -> Expr:
        match node:
            case Load(tensor=tensor, index=index):
                dims = own.get(tensor, [""] * len(index))
                kept = [(each, at) for each, at in zip(index, dims, strict=True) if at != inner]
                return replace(node, index=tuple(Name(name) if at == outer else place(each) for each, at in kept))
        return _inside(node, changed, ranged)

    return [replace(each, dims=one(each.dims), value=changed(each.value)) for each in stages]
