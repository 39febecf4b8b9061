"""Where an array's elements lie along the dimensions that threads run over."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from warpwright.formulas.bounds import Bounds, Polynomial, from_memory, plus, polynomial, scaled, times
from warpwright.formulas.model import Tensor
from warpwright.formulas.tree import Expr, Load, Name, rebuilt, walk


def flat(dims: Sequence[str], extents: Mapping[str, Expr]) -> Polynomial | None:
    """The number of an element among those of `dims`, the last of which runs fastest.

    >>> flat(("r", "c"), {"r": Name("R"), "c": Name("C")})
    {('C', 'r'): 1, ('c',): 1}
    """
    total: Polynomial = {}
    for each in dims:
        extent = polynomial(extents[each])
        if extent is None:
            return None
        total = plus(times(total, extent), {(each,): 1})
    return total


def offset(tensor: Tensor, index: Sequence[Expr]) -> Polynomial | None:
    """How many elements behind the array's start an element lies; what is read from memory stands as a name of its
    own, `@` and the load."""
    places = [polynomial(rebuilt(each, _opaque)) for each in index]
    total: Polynomial = {}
    if tensor.strides is None:
        for place, extent in zip(places, tensor.extents, strict=True):
            size = polynomial(extent)
            if place is None or size is None:
                return None
            total = plus(times(total, size), place)
    else:
        for place, stride in zip(places, tensor.strides, strict=True):
            step = polynomial(stride)
            if place is None or step is None:
                return None
            total = plus(total, times(place, step))
    return plus(total, {(): tensor.offset} if tensor.offset else {})


def _opaque(node: Expr) -> Expr:
    return Name(f"@{node}") if isinstance(node, Load) else node


def along(tensor: Tensor, load: Load, inner: Sequence[str], extents: Mapping[str, Expr]) -> Polynomial | None:
    """Where the first element lies, if elements side by side in the dimensions `inner` lie side by side in memory; None
    where they do not, or where an element that is not asked for may lie outside of the array: what stands behind a
    condition is read for all elements, once it is read by packs."""
    bounds = Bounds(extents)
    for each, extent in zip(load.index, tensor.extents, strict=True):
        if not from_memory(each) and not (bounds.at_least(each, {}) and bounds.less(each, extent)):
            return None
    whole, own = offset(tensor, load.index), flat(inner, extents)
    if whole is None or own is None or load.outside is not None or varies(load.index, inner, loads_only=True):
        return None
    base = plus(whole, scaled(own, -1))
    return None if any(name in inner for key in base for name in key) else base


def varies(parts: Iterable[Expr], inner: Sequence[str], *, loads_only: bool = False) -> bool:
    """Whether expressions (or only what they read from memory) depend on one of the dimensions."""
    for node in (node for part in parts for node in walk(part)):
        if isinstance(node, Load) and loads_only and varies(node.index, inner):
            return True
        if isinstance(node, Name) and not loads_only and node.name in inner:
            return True
    return False


def steps(base: Polynomial, sizes: Iterable[str]) -> list[Polynomial]:
    """The factors of the dimensions in a base, and what of it depends on none: a pack is aligned where all are
    divisible.

    >>> steps({("C", "r"): 1, ("C", "H", "n"): 2}, ["C", "H"])
    [{('C',): 1}, {('C', 'H'): 2}]
    """
    known = set(sizes)
    groups: dict[tuple[str, ...], Polynomial] = {}
    for key, factor in base.items():
        moving = tuple(name for name in key if name not in known)
        rest = tuple(name for name in key if name in known)
        groups[moving] = plus(groups.get(moving, {}), {rest: factor})
    return list(groups.values())
