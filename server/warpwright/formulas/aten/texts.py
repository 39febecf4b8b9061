"""The text of a part: declarations, equations, short names for dimensions."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from warpwright.formulas.aten.indices import ONE, same
from warpwright.formulas.aten.parts import loads
from warpwright.formulas.aten.values import Builder, Made
from warpwright.formulas.bounds import Bounds, from_memory
from warpwright.formulas.inside import guarded
from warpwright.formulas.printer import printed
from warpwright.formulas.tree import (
    Call,
    Declaration,
    Equation,
    Expr,
    Load,
    Name,
    Num,
    Range,
    Reduce,
    Written,
    rebuilt,
    walk,
)  # fmt: skip

LETTERS = "ijklmnpqrstuvwabcdefgh"


@dataclass(frozen=True, slots=True)
class Array:
    """`name` in the formula is `array` of the plan, with these extents."""

    name: str
    array: str
    extents: tuple[Expr, ...]
    type: str


def text_of(stages: Sequence[Made], b: Builder, outside: set[str]) -> tuple[str, tuple[Array, ...], tuple[Array, ...]]:
    """The formula of stages, what it reads and what it writes. What is read in other parts is in `outside`, or among
    the loads of other stages."""
    own = {each.name for each in stages}
    read_elsewhere = {
        b.aliases[load.tensor][0] if load.tensor in b.aliases else load.tensor
        for each in b.stages.values()
        if each.name not in own
        for load in loads(each)
    } | {b.aliases[load.tensor][0] for each in stages for load in loads(each) if load.tensor in b.aliases}
    written = {each.name for each in stages if each.name in outside | read_elsewhere or each.kind == "scatter"}
    names = _array_names(stages, b)
    arrays: dict[str, Array] = {}
    declarations: list[Declaration] = []
    for each in stages:
        for load in loads(each):
            if load.tensor in own or load.tensor in arrays:
                continue
            base, extents = b.under(load.tensor)
            shape = b.arrays[base]
            kept = tuple(e for e in extents if e != ONE)
            strides: tuple[Expr, ...] = ()
            if shape.strides is not None:
                strides = tuple(s for s, e in zip(shape.strides, extents, strict=True) if e != ONE)
            arrays[load.tensor] = Array(names[load.tensor], base, kept, shape.type)
            declarations.append(Declaration(names[load.tensor], shape.type, kept, strides))
    reads = tuple(arrays.values())
    results = {name for each in stages if each.name in written and each.kind != "scatter" for name in each.dims}
    known = results | {
        index.name
        for each in stages
        for load in loads(each)
        if load.tensor in arrays and load.outside is None
        for index, extent in zip(load.index, arrays[load.tensor].extents, strict=True)
        if isinstance(index, Name) and same(b.extents[index.name], extent)
    }
    writes: list[Array] = []
    for each in stages:
        extents = each.extents or tuple(b.extents[name] for name in each.dims)
        if each.name in written:
            writes.append(Array(each.name, each.name, extents, each.type))
        if each.name in written or not known.issuperset(each.dims):
            declarations.append(Declaration(each.name, each.type, extents))
    dims = _letters(stages, b, {each.name for each in reads} | own)
    equations = []
    for each in stages:
        value = _partly(_proved(each.value, b), results, b)
        index = tuple(_partly(_proved(e, b), results, b) for e in each.index) or tuple(map(Name, each.dims))
        value, *rest = (_renamed(e, dims, names, known, b) for e in (value, *index))
        equations.append(Equation(each.name, tuple(rest), value, temporary=each.name not in written))
    return printed(Written(tuple(equations), tuple(declarations))), reads, tuple(writes)


def _array_names(stages: Sequence[Made], b: Builder) -> dict[str, str]:
    """The name of each array that is loaded; one that is read under several extents has a name for each."""
    found: dict[str, str] = {}
    own = {each.name for each in stages}
    taken = set(own)
    for tensor in dict.fromkeys(load.tensor for each in stages for load in loads(each)):
        base = b.aliases[tensor][0] if tensor in b.aliases else tensor
        if tensor in own:
            found[tensor] = tensor
            continue
        name = base if base not in taken else next(f"{base}_{n}" for n in range(2, 1000) if f"{base}_{n}" not in taken)
        taken.add(name)
        found[tensor] = name
    return found


def _letters(stages: Sequence[Made], b: Builder, taken: set[str]) -> dict[str, str]:
    used: list[str] = []
    for each in reversed(stages):
        used += each.dims
    for each in stages:
        used += [r.name for n in walk(each.value) if isinstance(n, Reduce) for r in n.ranges]
        used += [n.name for n in walk(each.value) if isinstance(n, Name) and n.name in b.extents]
    sizes = {n.name for name in used for n in walk(b.extents[name]) if isinstance(n, Name)}
    free = iter([*LETTERS, *(f"{a}{n}" for n in range(2, 10) for a in LETTERS)])
    return {name: next(e for e in free if e not in taken and e not in sizes) for name in dict.fromkeys(used)}


def _proved(node: Expr, b: Builder) -> Expr:
    """With `clamp` at loads whose index lies inside, as torch checked, but is not proved to."""
    numbered = _numbered(node)
    unproved = {load.at for load, bounds in guarded(numbered, Bounds(b.extents)) if not _is_inside(load, bounds, b)}
    return rebuilt(
        numbered,
        lambda e: replace(e, outside="clamp" if e.at in unproved else e.outside, at=-1) if isinstance(e, Load) else e,
    )


def _partly(node: Expr, results: set[str], b: Builder) -> Expr:
    """With `0 + k` where a dimension runs over a part of an array: a plain k would have the extent of the whole."""

    def change(each: Expr) -> Expr:
        if not isinstance(each, Load):
            return each
        kept = [e for e in b.under(each.tensor)[1] if e != ONE]
        index = (
            Call("+", (Num(0), i))
            if isinstance(i, Name) and i.name in b.extents and i.name not in results and not same(b.extents[i.name], e)
            else i
            for i, e in zip(each.index, kept, strict=True)
        )
        return replace(each, index=tuple(index))

    return rebuilt(node, change)


def _numbered(node: Expr) -> Expr:
    count = itertools.count()
    return rebuilt(node, lambda e: replace(e, at=next(count)) if isinstance(e, Load) else e)


def _is_inside(load: Load, bounds: Bounds, b: Builder) -> bool:
    if load.outside is not None:
        return True
    kept = [each for each in b.under(load.tensor)[1] if each != ONE]
    return all(
        from_memory(index) or (bounds.at_least(index, {}) and bounds.less(index, extent))
        for index, extent in zip(load.index, kept, strict=True)
    )


def _renamed(node: Expr, dims: Mapping[str, str], names: Mapping[str, str], known: set[str], b: Builder) -> Expr:
    def ranged(each: Range) -> Range:
        upper = each.upper if each.upper is not None or each.name in known else b.extents[each.name]
        lower = each.lower and change_all(each.lower)
        return replace(each, name=dims[each.name], lower=lower, upper=upper and change_all(upper))

    def change(each: Expr) -> Expr:
        match each:
            case Name(name=name) if name in dims:
                return Name(dims[name])
            case Load(tensor=tensor):
                return replace(each, tensor=names.get(tensor, tensor))
            case Reduce(ranges=ranges):
                return replace(each, ranges=tuple(map(ranged, ranges)))
        return each

    def change_all(each: Expr) -> Expr:
        return rebuilt(each, lambda e: Name(dims[e.name]) if isinstance(e, Name) and e.name in dims else e)

    return rebuilt(node, change)
