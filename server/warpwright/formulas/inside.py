"""Whether what is read lies inside its array, and what is reduced inside its dimension."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from warpwright.formulas.bounds import Bounds, expression, from_memory, plus, polynomial
from warpwright.formulas.extents import names_in
from warpwright.formulas.lexer import FormulaError
from warpwright.formulas.model import Stage
from warpwright.formulas.printer import shown
from warpwright.formulas.tree import Call, Equation, Expr, Load, Name, Num, Range, Reduce, children, rebuilt, walk

Shape = Callable[[Load], tuple[Expr, ...]]
"""The extents of the array that is read."""


def clipped(each: Equation, bounds: Bounds) -> Equation:
    """What is reduced ends where its dimension ends: `sum[i - 2 <= j <= i + 2]` has fewer terms at the edges."""

    def change(node: Expr) -> Expr:
        return replace(node, ranges=tuple(map(clip, node.ranges))) if isinstance(node, Reduce) else node

    def clip(own: Range) -> Range:
        lower, upper, extent = own.lower, own.upper, bounds.extents[own.name]
        if lower is not None and not from_memory(lower) and not bounds.at_least(lower, {}):
            lower = Call("max", (lower, Num(0)), own.at)
        if upper is not None and not from_memory(upper):
            most = expression(plus(polynomial(extent) or {}, {(): -1})) if own.closed else extent
            last = upper if own.closed else Call("-", (upper, Num(1)))
            if not bounds.less(last, extent):
                upper = Call("min", (upper, most), own.at)
        return replace(own, lower=lower, upper=upper)

    return replace(each, value=rebuilt(each.value, change))


def promises(
    text: str, stages: Sequence[Stage], places: Sequence[int], shape: Shape, dims: Mapping[str, Expr], numbers: set[str]
) -> tuple[str, ...]:
    """What a caller must see to, as sentences: what is read from memory is a legal index. `places` are where the stages
    stand; `numbers` are arguments. Raises FormulaError for an index that is not proved to lie in its extent."""
    found: dict[str, None] = {}
    for stage, at in zip(stages, places, strict=True):
        for node in walk(stage.value):
            if isinstance(node, Reduce):
                found |= dict.fromkeys(_ends(node, dims))
        for part in (stage.value, *stage.index):
            for load, bounds in guarded(part, Bounds(dims)):
                found |= dict.fromkeys(_indices(text, load, shape(load), bounds, numbers))
        if stage.index:
            result = Load(stage.name, stage.index, None, at)
            cure = "keep it inside, as with clamp"
            found |= dict.fromkeys(_indices(text, result, shape(result), Bounds(dims), numbers, cure))
    return tuple(found)


def _ends(node: Reduce, dims: Mapping[str, Expr]) -> Iterator[str]:
    """Ends that are read from memory lie in the extent of the dimension."""
    for each in node.ranges:
        ends = [end for end in (each.lower, each.upper) if end is not None]
        if any(map(from_memory, ends)):
            extent = shown(dims[each.name])
            lie, as_ends = ("lies", "an end") if len(ends) == 1 else ("lie", "ends")
            yield f"{' and '.join(map(shown, ends))} {lie} in 0 to {extent}, as {as_ends} of {each.name}."


def _indices(
    text: str, load: Load, shape: tuple[Expr, ...], bounds: Bounds, numbers: set[str], cure: str = ""
) -> Iterator[str]:
    """Indices that are read from memory lie in the extents; others are proved to."""
    if load.outside is not None:
        return
    for index, extent in zip(load.index, shape, strict=True):
        if bounds.at_least(index, {}) and bounds.less(index, extent):
            continue
        if from_memory(index):
            yield f"{shown(index)} lies in 0 to {shown(extent)} - 1, as an index of {load.tensor}."
            continue
        own = [name for name in names_in([index]) if name in numbers]
        if own:
            reason = f"{own[0]} is a number that the caller hands over, so {shown(load)} may lie outside"
            hint = f"reduce over it, as in sum[{own[0]}], or say what is read outside, as in ; zero"
            raise FormulaError(text, load.at, f"{reason}: {hint}.")
        marked = f"{load.tensor}[{', '.join(map(shown, load.index))}; zero]"
        cure = cure or f"say what is read there, as in {marked}, or test it with 'if'"
        raise FormulaError(text, load.at, f"{shown(load)} may lie outside of the extent {shown(extent)}: {cure}.")


def guarded(node: Expr, bounds: Bounds) -> Iterator[tuple[Load, Bounds]]:
    """Every load, with what is known where it stands."""
    match node:
        case Call(name="select", args=(condition, then, otherwise)):
            yield from guarded(condition, bounds)
            yield from guarded(then, bounds.given([condition]))
            yield from guarded(otherwise, bounds.given([negated(condition)]))
        case Call(name="and", args=(left, right)):
            yield from guarded(left, bounds)
            yield from guarded(right, bounds.given([left]))
        case Reduce(ranges=ranges, body=body):
            for each in ranges:
                for end in (each.lower, each.upper):
                    if end is not None:
                        yield from guarded(end, bounds)
                if each.lower is not None:
                    bounds = bounds.given([Call("<=", (each.lower, Name(each.name)))])
                if each.upper is not None:
                    bounds = bounds.given([Call("<=" if each.closed else "<", (Name(each.name), each.upper))])
            yield from guarded(body, bounds)
        case Load():
            yield node, bounds
            for index in node.index:
                yield from guarded(index, bounds)
        case _:
            for child in children(node):
                yield from guarded(child, bounds)


def negated(condition: Expr) -> Expr:
    match condition:
        case Call(name="<" | "<=" | ">" | ">=" as sign, args=args):
            return Call({"<": ">=", "<=": ">", ">": "<=", ">=": "<"}[sign], args)
        case Call(name="not", args=(inner,)):
            return inner
        case Call(name="or", args=(left, right)):
            return Call("and", (negated(left), negated(right)))
    return Num(True)
