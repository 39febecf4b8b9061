"""Sizes to try a formula at, and sizes to time it at: they follow from its extents alone.

What is tried is small, since faults of bounds, tails and alignment show at small sizes as at large ones. Sizes differ
from each other where they may, since equal ones hide indices that are swapped.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from warpwright.formulas.extents import at_sizes, names_in
from warpwright.formulas.inputs import NoInputsError, draws_of
from warpwright.formulas.model import Formula
from warpwright.formulas.tree import Expr, Load, Reduce, children, walk
from warpwright.formulas.types import TYPES

MOST_ELEMENTS = 1 << 18
"""Of all arrays together, where a shape is tried."""
MOST_OPERATIONS = 1 << 24
"""Of the innermost expressions, where a shape is tried."""
TIMED_BYTES = 1 << 28
"""Of all arrays together, where a shape is timed: more than the caches of any GPU hold."""
TIMED_OPERATIONS = 1 << 36
"""Of the innermost expressions, where a shape is timed: that of a matrix product at 4096."""

_TRIED: tuple[tuple[str, tuple[int, ...]], ...] = (
    ("one", (1,)),
    ("small", (3, 5, 2, 4, 7)),
    ("odd", (33, 17, 9, 5, 7)),
    ("of 4 and 2 more", (34, 66, 18, 6, 10)),
    ("of 4", (36, 20, 12, 8, 4)),
    ("tiles", (64, 128, 32, 16, 8)),
    ("beyond tiles", (65, 129, 33, 17, 9)),
    ("before tiles", (63, 127, 31, 15, 7)),
    ("middle", (100, 257, 50, 24, 11)),
)
_Fits = Callable[[Mapping[str, int]], bool]
_LONG = (1000, 4099)
_FAR = 32
"""How much longer one size is than the others, where that is timed."""


@dataclass(frozen=True, slots=True)
class Shape:
    """Sizes, and what they are an example of."""

    name: str
    sizes: Mapping[str, int] = field(default_factory=dict)


def to_try(
    formula: Formula, most_elements: int = MOST_ELEMENTS, most_operations: int = MOST_OPERATIONS
) -> tuple[Shape, ...]:
    """Shapes to compare a kernel with the reference at, the smallest first. Where one size is 0, nothing is computed
    or nothing is reduced. A formula without sizes has one shape.

    >>> from warpwright.formulas.resolve import formula_of
    >>> for shape in to_try(formula_of("y[i] = x[i]"))[:5]: print(shape.name, dict(shape.sizes))
    I is 0 {'I': 0}
    one {'I': 1}
    small {'I': 3}
    odd {'I': 33}
    of 4 and 2 more {'I': 34}
    """

    def fits(sizes: Mapping[str, int]) -> bool:
        return elements(formula, sizes) <= most_elements and operations(formula, sizes) <= most_operations

    small = _assigned(formula.sizes, (6, 5, 9, 4, 7))
    shapes = [Shape(f"{name} is 0", {**small, name: 0}) for name in formula.sizes]
    shapes += [Shape(name, _assigned(formula.sizes, values)) for name, values in _TRIED]
    shapes += [Shape(f"{name} is 1", {**small, name: 1}) for name in formula.sizes]
    shapes += [Shape(f"{name} is long", {**small, name: length}) for name in formula.sizes for length in _LONG]
    shrunk = (Shape(each.name, _shrunk(each.sizes, fits)) for each in shapes)
    return _distinct(formula, (Shape(each.name, _apart(formula, each.sizes)) for each in shrunk))


def to_time(
    formula: Formula, most_bytes: int = TIMED_BYTES, most_operations: int = TIMED_OPERATIONS
) -> tuple[Shape, ...]:
    """Shapes that fill a GPU and stay within the bounds: powers of two, such as no vector divides, and with one size
    far longer than the others.

    >>> from warpwright.formulas.resolve import formula_of
    >>> for shape in to_time(formula_of("y[i, j] = x[j, i]")): print(shape.name, dict(shape.sizes))
    even {'J': 8192, 'I': 4096}
    odd {'J': 8189, 'I': 4091}
    J is long {'J': 32768, 'I': 1024}
    I is long {'J': 1024, 'I': 32768}
    """

    def fits(sizes: Mapping[str, int]) -> bool:
        return bytes_of(formula, sizes) <= most_bytes and operations(formula, sizes) <= most_operations

    even = _grown(dict.fromkeys(formula.sizes, 1), fits)
    shapes = [Shape("even", even)]
    odd = {name: max(1, size - 3 - 2 * place) for place, (name, size) in enumerate(even.items())}
    shapes.append(Shape("odd", odd))
    if len(formula.sizes) > 1:
        for name in formula.sizes:
            start = {each: _FAR if each == name else 1 for each in formula.sizes}
            shapes.append(Shape(f"{name} is long", _grown(start, fits)))
    return _distinct(formula, shapes)


def elements(formula: Formula, sizes: Mapping[str, int]) -> int:
    """Of all arrays together, the stages' included."""
    tensors = [each.extents for each in formula.tensors.values()]
    stages = [formula.extents_of(each.name) for each in formula.stages if each.temporary]
    return sum(math.prod(at_sizes(extent, sizes) for extent in shape) for shape in [*tensors, *stages])


def bytes_of(formula: Formula, sizes: Mapping[str, int]) -> int:
    """Of the arrays that a caller hands over."""
    return sum(
        math.prod(at_sizes(extent, sizes) for extent in each.extents) * TYPES[each.type].bits // 8
        for each in formula.tensors.values()
    )


def operations(formula: Formula, sizes: Mapping[str, int]) -> int:
    """How often the innermost expressions are computed, where a reduction whose elements do not depend on a dimension
    is not repeated for it: running values need one step each. The parts of a dimension that data divide count once in
    all.

    >>> from warpwright.formulas.resolve import formula_of
    >>> operations(formula_of("c[i, j] = sum[k] a[i, k] * b[k, j]"), {"I": 10, "K": 20, "J": 30})
    6300
    """
    extents = {name: at_sizes(extent, sizes) for name, extent in formula.dims.items()}
    total = 0
    for stage in formula.stages:
        total += math.prod(extents[name] for name in stage.dims)
        for part in (stage.value, *stage.index):
            total += sum(_reduced(part, frozenset(stage.dims), extents))
    return total


def _reduced(node: Expr, scope: frozenset[str], extents: Mapping[str, int]) -> Iterator[int]:
    if not isinstance(node, Reduce):
        for child in children(node):
            yield from _reduced(child, scope, extents)
        return
    names = {each.name for each in node.ranges}
    used = {name for name in names_in([node.body]) if name in scope} | names
    count = math.prod(extents[name] for name in used)
    for each in node.ranges:
        ends = [end for end in (each.lower, each.upper) if end is not None]
        if any(isinstance(inner, Load) for end in ends for inner in walk(end)):
            divided = [name for name in names_in(ends) if name in used - names]
            count //= max(1, math.prod(extents[name] for name in divided))
    yield count
    yield from _reduced(node.body, scope | names, extents)


def _assigned(names: tuple[str, ...], values: tuple[int, ...]) -> dict[str, int]:
    return {name: values[place % len(values)] for place, name in enumerate(names)}


def _shrunk(sizes: Mapping[str, int], fits: _Fits) -> dict[str, int]:
    """With the largest sizes made smaller, each by a multiple of 4, so that what it leaves there stays."""
    found = dict(sizes)
    while not fits(found) and max(found.values(), default=0) > 4:
        name = max(found, key=lambda each: found[each])
        found[name] -= max(4, found[name] // 8 * 4)
    return found


def _apart(formula: Formula, sizes: Mapping[str, int]) -> dict[str, int]:
    """With strides of which nothing else tells such that no two elements lie at one place: a row and some more."""
    found = dict(sizes)
    told = set(names_in([*formula.dims.values(), *(e for t in formula.tensors.values() for e in t.extents)]))
    for tensor in formula.tensors.values():
        span = 1
        strides = [] if tensor.strides is None else list(zip(tensor.strides[::-1], tensor.extents[::-1], strict=True))
        # Those that are told first, then the others from the last one: each leaves room for all before it.
        for stride, extent in sorted(strides, key=lambda each: not told.issuperset(names_in([each[0]]))):
            for name in names_in([stride]):
                if name not in told:
                    found[name] = max(1, span) + found[name] % 4
                    told.add(name)
            span += max(0, at_sizes(extent, found) - 1) * at_sizes(stride, found)
    return found


def _grown(sizes: dict[str, int], fits: _Fits) -> dict[str, int]:
    """With sizes doubled in turn as long as they fit."""
    found = dict(sizes)
    open_to = list(found)
    while open_to:
        name = min(open_to, key=lambda each: found[each] / sizes[each])
        if found[name] < 1 << 30 and fits({**found, name: found[name] * 2}):
            found[name] *= 2
        else:
            open_to.remove(name)
    return found


def _distinct(formula: Formula, shapes: Iterable[Shape]) -> tuple[Shape, ...]:
    """Each sizes once, without those that leave an extent below 0 or an index that nothing can be."""
    found: dict[tuple[tuple[str, int], ...], Shape] = {}
    for each in shapes:
        extents = [*formula.dims.values(), *(e for tensor in formula.tensors.values() for e in tensor.extents)]
        if any(at_sizes(extent, each.sizes) < 0 for extent in extents):
            continue
        try:
            draws_of(formula, each.sizes)
        except NoInputsError:
            continue
        found.setdefault(tuple(each.sizes.items()), each)
    return tuple(found.values())
