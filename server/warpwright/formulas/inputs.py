"""How each input of a formula is drawn, so that it is legal and its result says something.

What is an index lies in the array that it is an index of, ends of ranges are in order, and what a function takes only
in part (a root, a logarithm, a divisor) is drawn from there. The rest is drawn as normal numbers. This says what is
drawn; `numpy_inputs` draws.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from warpwright.formulas.bounds import polynomial
from warpwright.formulas.extents import at_sizes
from warpwright.formulas.model import Formula
from warpwright.formulas.tree import Call, Expr, Load, Name, Num, Range, Reduce, children, rebuilt, walk
from warpwright.formulas.types import TYPES, ElementType

Kind = Literal["normal", "between", "apart", "whole", "offsets", "truth"]
"""Normal numbers; evenly between `low` and `high`; likewise with either sign; whole numbers from `low` to `high`; whole
numbers in order of which the first is `low` and the last is `high`; truth values."""

POSITIVE, UNIT, ABOVE_ONE = (0.25, 4.0), (-0.9, 0.9), (1.0, 4.0)
_DOMAINS = {
    **dict.fromkeys(("sqrt", "rsqrt", "log", "log2", "log10", "log1p", "lgamma"), POSITIVE),
    **dict.fromkeys(("asin", "acos", "atanh"), UNIT),
    "acosh": ABOVE_ONE,
}
_NEVER_NEGATIVE = ("exp", "exp2", "square", "abs", "sigmoid", "hypot", "softplus", "cosh")
_Give = Callable[..., None]
_BEYOND = 3
"""How far an index goes beyond its extent, where the formula says what is read there."""


class NoInputsError(Exception):
    """No index lies in an array without elements."""


@dataclass(frozen=True, slots=True)
class Draw:
    """How one array or number is drawn; `low` and `high` are both drawn."""

    kind: Kind
    low: float = 0.0
    high: float = 1.0


def draws_of(formula: Formula, sizes: Mapping[str, int]) -> dict[str, Draw]:
    """How each input and each number of a formula is drawn. Raises NoInputsError.

    >>> from warpwright.formulas.resolve import formula_of
    >>> f = formula_of("y[r] = sqrt(v[r]) * sum[first[r] <= e < first[r + 1]] x[ids[e]]")
    >>> for name, draw in draws_of(f, {"R": 3, "E": 9, "x_size": 5}).items(): print(name, draw)
    v Draw(kind='between', low=0.25, high=4.0)
    first Draw(kind='offsets', low=0, high=9)
    x Draw(kind='normal', low=0.0, high=1.0)
    ids Draw(kind='whole', low=0, high=4)
    """
    found = {each.name: _plain(TYPES[each.type], array=True) for each in formula.inputs}
    found |= {name: _plain(TYPES[kind], array=False) for name, kind in formula.scalars.items()}
    for stage in formula.stages:
        for node in (each for part in (stage.value, *stage.index) for each in walk(part)):
            for name, draw in _of_node(formula, node):
                if name in found:
                    found[name] = _both(found[name], draw)
    found |= _indices(formula, sizes, found)
    return found


def _plain(kind: ElementType, *, array: bool) -> Draw:
    match kind.kind:
        case "bool":
            return Draw("truth")
        case "integer":
            low, high = kind.bounds
            return Draw("whole", max(low, -100), min(high, 100)) if array else Draw("whole", 1, 8)
    return Draw("normal") if array else Draw("between", 0.125, 0.875)


def _both(one: Draw, other: Draw) -> Draw:
    """Legal for two functions: `log(p / (1 - p))` takes positive numbers below 1."""
    if one.kind == "between" and other.kind == "apart":
        return one
    if one.kind != "between" or other.kind != "between" or max(one.low, other.low) >= min(one.high, other.high):
        return other
    return Draw("between", max(one.low, other.low), min(one.high, other.high))


# Domains of functions


def _of_node(formula: Formula, node: Expr) -> Iterator[tuple[str, Draw]]:
    match node:
        case Call(name=name, args=(inner,)) if name in _DOMAINS:
            yield from _within(formula, inner, Draw("between", *_DOMAINS[name]), frozenset())
        case Call(name="rcp", args=(divisor,)) | Call(name="/" | "//" | "%" | "fmod", args=(_, divisor)):
            for name, draw in _within(formula, divisor, Draw("apart", *POSITIVE), frozenset()):
                whole = _type(formula, name).kind == "integer"
                yield name, Draw("whole", 1, 9) if whole else draw
        case Call(name="**" | "pow", args=(base, exponent)) if not isinstance(exponent, Num) or isinstance(
            exponent.value, float
        ):
            yield from _within(formula, base, Draw("between", *POSITIVE), frozenset())
        case Call(name="<<" | ">>", args=(_, count)):
            for name, _ in _within(formula, count, Draw("whole", 0, 7), frozenset()):
                yield name, Draw("whole", 0, 7)
        case Call(name="uniform" | "normal", args=(Name(name=seed), _)):
            yield seed, Draw("whole", 0, 2**62)


def _type(formula: Formula, name: str) -> ElementType:
    return formula.type_of(name)


def _within(formula: Formula, node: Expr, draw: Draw, seen: frozenset[str]) -> Iterator[tuple[str, Draw]]:
    """What must be drawn so that the expression lies there; a sum of positive numbers is positive, and so on."""
    match node:
        case Load(tensor=tensor):
            stage = formula.stage(tensor)
            if stage is None:
                if _type(formula, tensor).kind in ("float", "integer"):
                    yield tensor, draw if _type(formula, tensor).is_float else Draw("whole", 1, 9)
            elif tensor not in seen:
                yield from _within(formula, stage.value, draw, seen | {tensor})
        case Name(name=name) if name in formula.scalars and formula.scalars[name].startswith(("f", "b")):
            yield name, Draw("between", 0.125, 0.875)
        case Call(name="*", args=(one, other)) if one == other:
            return
        case Call(name=name) if name in _NEVER_NEGATIVE:
            return
        case Call(name="+" | "*" | "/" | "max" | "min" | "fma", args=args):
            each = Draw("between", abs(draw.low), draw.high) if draw.kind == "apart" else draw
            for inner in args:
                yield from _within(formula, inner, each, seen)
        case Call(name="-", args=(Num(value=value), inner)) if value > 0:
            yield from _within(formula, inner, Draw("between", value / 8, value * 7 / 8), seen)
        case Call(name="neg", args=(inner,)) if draw.kind == "apart" or draw.low < 0:
            yield from _within(formula, inner, draw, seen)
        case Call(name="select", args=(_, then, otherwise)):
            yield from _within(formula, then, draw, seen)
            yield from _within(formula, otherwise, draw, seen)
        case Call(name=name, args=(inner,)) if name in TYPES:
            yield from _within(formula, inner, draw, seen)
        case Reduce(op="sum" | "mean" | "max" | "min" | "prod", body=body):
            each = Draw("between", abs(draw.low), draw.high) if draw.kind == "apart" else draw
            yield from _within(formula, body, each, seen)


# Indices and ends of ranges


def _indices(formula: Formula, sizes: Mapping[str, int], known: Mapping[str, Draw]) -> dict[str, Draw]:
    found: dict[str, Draw] = {}

    def give(name: str, low: int, high: int, kind: Kind = "whole") -> None:
        before = found.get(name)
        if before is not None:
            low, high = max(low, int(before.low)), min(high, int(before.high))
            kind = "offsets" if "offsets" in (kind, before.kind) else "whole"
        found[name] = Draw(kind, low, high)

    for stage in formula.stages:
        for node in (each for part in (stage.value, *stage.index) for each in walk(part)):
            if isinstance(node, Load):
                extents = [at_sizes(each, sizes) for each in formula.extents_of(node.tensor)]
                some = all(at_sizes(formula.dims[name], sizes) for name in stage.dims)
                if isinstance(node.outside, str) and 0 in extents and some:
                    raise NoInputsError(f"{node.tensor} has no elements, and one that is not inside is read.")
                for index, extent in zip(node.index, extents, strict=True):
                    beyond = 0 if node.outside is None else _BEYOND
                    _of_index(formula, sizes, index, (-beyond, extent - 1 + beyond), give)
            elif isinstance(node, Reduce):
                for each in node.ranges:
                    _of_range(formula, sizes, each, give)
        if stage.index:
            extents = [at_sizes(each, sizes) for each in formula.extents_of(stage.name)]
            for index, extent in zip(stage.index, extents, strict=True):
                _of_index(formula, sizes, index, (0, extent - 1), give)
    for name, draw in found.items():
        count = math.prod(at_sizes(each, sizes) for each in formula.extents_of(name)) if name in known else 0
        if draw.low > draw.high and count:
            raise NoInputsError(f"No value of {name} is an index: what it is an index of has too few elements.")
    return {name: draw for name, draw in found.items() if name in known}


def _of_range(formula: Formula, sizes: Mapping[str, int], each: Range, give: _Give) -> None:
    extent = at_sizes(formula.dims[each.name], sizes)
    lower, upper = _memory(each.lower), _memory(each.upper)
    if lower and upper and lower == upper:
        give(lower, 0, extent, "offsets")
        return
    if each.lower is not None:
        _of_index(formula, sizes, each.lower, (0, extent), give)
    if each.upper is not None:
        _of_index(formula, sizes, each.upper, (-1 if each.closed else 0, extent - each.closed), give)


def _memory(node: Expr | None) -> str:
    """The array of which an expression is an element."""
    return node.tensor if isinstance(node, Load) else ""


def _of_index(formula: Formula, sizes: Mapping[str, int], index: Expr, within: tuple[int, int], give: _Give) -> None:
    """What is read from memory in an index, so that the index lies within: `2 * ids[t] + k` for every k."""
    loads = {node.tensor: node for node in _outermost(index)}
    if len(loads) != 1:
        return
    (name,) = loads
    terms = polynomial(rebuilt(index, lambda each: Name("?") if isinstance(each, Load) else each))
    if terms is None or any("?" in key and key != ("?",) for key in terms) or terms.get(("?",), 0) == 0:
        return
    factor, least, most = terms[("?",)], 0, 0
    for key, value in terms.items():
        if key == ("?",):
            continue
        dims = [each for each in key if each in formula.dims]
        if any(each not in formula.dims and each not in sizes for each in key):
            return
        largest = value * math.prod(sizes[each] for each in key if each not in formula.dims)
        largest *= math.prod(at_sizes(formula.dims[each], sizes) - 1 for each in dims)
        least += min(largest, 0) if dims else largest
        most += max(largest, 0) if dims else largest
    low, high = within[0] - least, within[1] - most
    ends = (-(-low // factor), high // factor) if factor > 0 else (-(high // -factor), -low // -factor)
    give(name, *ends)


def _outermost(node: Expr) -> Iterator[Load]:
    if isinstance(node, Load):
        yield node
        return
    for child in children(node):
        yield from _outermost(child)


def makes_indices(formula: Formula) -> bool:
    """Whether some index is a fraction made whole: of what is not finite it would be any number."""
    nodes = [node for stage in formula.stages for part in (stage.value, *stage.index) for node in walk(part)]
    used = [index for node in nodes if isinstance(node, Load) for index in node.index]
    used += [index for stage in formula.stages for index in stage.index]
    stages = {each.name: each.value for each in formula.stages}
    seen: set[str] = set()
    while used:
        for node in walk(used.pop()):
            if isinstance(node, Call) and node.name in TYPES and TYPES[node.name].kind == "integer":
                return True
            if isinstance(node, Load) and node.tensor in stages and node.tensor not in seen:
                seen.add(node.tensor)
                used.append(stages[node.tensor])
    return False
