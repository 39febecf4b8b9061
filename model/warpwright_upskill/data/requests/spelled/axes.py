"""Formulas without indices: which axes each expression has, in which order, where arrays are read whole."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from warpwright.formulas.tree import Equation, Expr, Load, Name, Reduce, children, walk


class UnsayableError(Exception):
    """What cannot be said in a notation; another one says it."""


@dataclass(frozen=True, slots=True)
class Axes:
    """The order of the dimensions of one equation: that of its result, and where arrays have others."""

    order: tuple[str, ...]

    def of(self, node: Expr) -> tuple[str, ...]:
        """The axes of an expression. Raises UnsayableError for one that needs indices."""
        match node:
            case Load():
                return self.sorted(element_dims(node))
            case Reduce(ranges=ranges, body=body):
                inner = self.of(body)
                if running := running_over(node):
                    return self.sorted([running if each == ranges[0].name else each for each in inner])
                if any(each.lower is not None or (each.upper is not None and children(each.upper)) for each in ranges):
                    raise UnsayableError("a range")
                if any(each.upper is not None and isinstance(each.upper, Name | Load) for each in ranges):
                    raise UnsayableError("a range")
                over = {each.name for each in ranges}
                if not over <= {*inner}:
                    raise UnsayableError("a dimension that nothing has")
                return tuple(each for each in inner if each not in over)
            case Name(name=name) if name in self.order:
                raise UnsayableError("a place as a number")
        return self.sorted({each for child in children(node) for each in self.of(child)})

    def sorted(self, dims: Sequence[str] | set[str]) -> tuple[str, ...]:
        return tuple(sorted(dims, key=self.order.index))


def running_over(node: Reduce) -> str:
    """The dimension that a running total ends at: i of `sum[j <= i]`; "" where it is none."""
    (each, *more) = node.ranges
    if more or each.lower is not None or not each.closed or not isinstance(each.upper, Name):
        return ""
    uses = any(isinstance(part, Name) and part.name == each.upper.name for part in walk(node.body))
    return "" if uses else each.upper.name


def element_dims(node: Load) -> tuple[str, ...]:
    """The dimensions of an element in its array's order; a gathered one has that of its index."""
    found = []
    for each in node.index:
        match each:
            case Name(name=name):
                found.append(name)
            case Load(index=(Name(name=name),), outside=None):
                found.append(name)
            case _:
                raise UnsayableError("an index that is computed")
    if len({*found}) < len(found) or node.outside is not None:
        raise UnsayableError("a diagonal")
    return tuple(found)


def axes_of(equation: Equation) -> Axes:
    """The order of the dimensions of an equation. Raises UnsayableError where a place of the result is computed."""
    order: list[str] = []
    for each in equation.index:
        if not isinstance(each, Name):
            raise UnsayableError("a place that is computed")
        order.append(each.name)
    loads = [node for node in walk(equation.value) if isinstance(node, Load) and node.index]
    for load in sorted(loads, key=lambda each: -len(each.index)):
        before = ""
        for dim in element_dims(load):
            if dim not in order:
                order.insert(order.index(before) + 1 if before else _first(order, element_dims(load)), dim)
            before = dim
    for node in walk(equation.value):
        if isinstance(node, Reduce) and any(each.name not in order for each in node.ranges):
            raise UnsayableError("a dimension that nothing has")
    found = Axes(tuple(order))
    if found.of(equation.value) != tuple(each.name for each in equation.index if isinstance(each, Name)):
        raise UnsayableError("a result that is broadcast")
    return found


def _first(order: Sequence[str], dims: Sequence[str]) -> int:
    places = [order.index(each) for each in dims if each in order]
    return min(places, default=len(order))
