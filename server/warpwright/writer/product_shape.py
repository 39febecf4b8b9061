"""Which stages are a product of two operands, and where the elements of its arrays lie."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from itertools import permutations

from warpwright.formulas.bounds import Bounds, Polynomial, from_memory, times
from warpwright.formulas.model import Formula, Stage, Tensor
from warpwright.formulas.normal import identity, tensors_of
from warpwright.formulas.tree import Call, Expr, Load, Name, Num, Reduce, walk
from warpwright.formulas.types import TYPES
from warpwright.schedules.access import flat, offset
from warpwright.writer.partition import Group

LEFT, RIGHT = Load("left", ()), Load("right", ())
"""The operands' values, in what is done with a pair of them."""
_DEEPEST = 3
"""Dimensions summed over, of which every order is tried."""
_VANISH = frozenset({"neg", "abs", "square", "relu", "sqrt", "floor", "ceil", "round", "trunc", "sign", "popc", "conj"})


@dataclass(frozen=True, slots=True)
class Side:
    """An operand: an expression of one of the result's indices, `free`, and of the one that is reduced. `loads` are
    those of its loads that depend on both: they pass through registers into shared memory. `inner` is the index along
    which their elements are neighbours in memory: "depth", the one that is reduced, or "free"."""

    value: Expr
    loads: tuple[Load, ...]
    free: tuple[str, ...]
    inner: str

    @property
    def is_plain(self) -> bool:
        return self.value == self.loads[0]


@dataclass(frozen=True, slots=True)
class Shape:
    """`out[batch, rows, cols] = result(reduce[depth] body(left[batch, rows, depth], right[batch, depth, cols]))`, where
    each index is made up of dimensions of the formula. What lies beyond the depth counts as `padding` on both sides."""

    stage: Stage
    out: Stage
    body: Expr
    left: Side
    right: Side
    batch: tuple[str, ...]
    rows: tuple[str, ...]
    cols: tuple[str, ...]
    depth: tuple[str, ...]
    padding: float

    @property
    def reduce(self) -> Reduce:
        assert isinstance(self.stage.value, Reduce)
        return self.stage.value


def shape_of(formula: Formula, group: Group) -> Shape | str:
    """How a group is a product with what is done to each element of it, or why it is none."""
    sums = [each for each in group.stages if isinstance(each.value, Reduce)]
    if len(sums) != 1 or group.is_scatter or any(each.name in group.kept for each in sums if len(group.stages) > 1):
        return "A product is one sum, and what is done to each element of it."
    stored = [each for each in group.stages if not each.temporary or each.name in group.kept]
    if len(stored) != 1:
        return "A product has one result."
    stage, out = sums[0], stored[0]
    if (out is stage) != (len(group.stages) == 1):
        return "The sum is not the result, and is needed in memory."
    node = stage.value
    assert isinstance(node, Reduce)
    if any(each.lower is not None or each.upper is not None for each in node.ranges):
        return "A product sums over whole dimensions."
    if not isinstance(node.body, Call) or len(node.ranges) > _DEEPEST:
        return "What is summed is no product of two elements."
    places = Places(formula, tensors_of(formula))
    order = _order(places.tensors[out.name], group.dims, formula)
    loads = tuple(dict.fromkeys(each for each in walk(node.body) if isinstance(each, Load)))
    if not order:
        return "The result is one number, or not packed."
    depth = {each.name for each in node.ranges}
    free = {each: _dims_in(each) & set(order) for each in loads if _dims_in(each) & depth}
    for right, cols in free.items():
        for left, rows in free.items():
            if order[-1] in cols - rows and rows - cols:
                found = _shape(places, stage, out, order, (left, rows - cols), (right, cols - rows))
                if not isinstance(found, str):
                    return found
    return "The dimensions of the arrays are in no order that a matrix product reads."


def _shape(
    places: Places,
    stage: Stage,
    out: Stage,
    order: tuple[str, ...],
    left: tuple[Load, set[str]],
    right: tuple[Load, set[str]],
) -> Shape | str:
    """With the rows of one load and the columns of another."""
    node = stage.value
    assert isinstance(node, Reduce)
    values: dict[str, Expr] = {}
    body = _parted(node.body, left[1], right[1], values, places.formula.dims.keys())
    if body is None or len(values) != 2:
        return "What is summed is not made of one value of the row and one of the column."
    padding = _padding(node.op, body)
    if padding is None:
        return "Nothing stands for what lies beyond the end."
    rows, cols = (tuple(each for each in order if each in side[1]) for side in (left, right))
    batch = tuple(each for each in order if each not in rows + cols)
    orders = list(permutations(each.name for each in node.ranges))
    streams = [each for key in ("left", "right") for each in walk(values[key]) if isinstance(each, Load)]
    even = (each for each in orders if all(_dims_in(s).isdisjoint(each) or places.stride(s, each) for s in streams))
    depth = next(even, orders[0])
    one = _side(places, values["left"], rows, depth, left[0])
    other = _side(places, values["right"], cols, depth, right[0])
    if one is None or other is None:
        return "An operand's elements do not lie at sums of multiples of dimensions."
    return Shape(stage, out, body, one, other, batch, rows, cols, depth, padding)


def _side(places: Places, value: Expr, free: tuple[str, ...], depth: tuple[str, ...], seed: Load) -> Side | None:
    inside = [each for each in walk(value) if isinstance(each, Load)]
    loads = [each for each in dict.fromkeys(inside) if _dims_in(each) & set(free) and _dims_in(each) & set(depth)]
    loads.sort(key=lambda each: each != seed)
    if not loads or any(places.offset(each) is None for each in loads):
        return None
    inner = "depth" if places.stride(seed, depth[-1:]) == {(): 1} else "free"
    return Side(value, tuple(loads), free, inner)


@dataclass(frozen=True)
class Places:
    """Where the elements of a formula's arrays lie; what was found is kept."""

    formula: Formula
    tensors: Mapping[str, Tensor]
    offsets: dict[Load, Polynomial | None] = field(default_factory=dict)
    strides: dict[tuple[Load, tuple[str, ...]], Polynomial | None] = field(default_factory=dict)

    def offset(self, load: Load) -> Polynomial | None:
        """How many elements behind the array's start an element lies, if that is a sum of multiples of dimensions, and
        the element is there for each of their values."""
        if load not in self.offsets:
            self.offsets[load] = self._offset(load)
        return self.offsets[load]

    def _offset(self, load: Load) -> Polynomial | None:
        tensor, bounds = self.tensors.get(load.tensor), Bounds(self.formula.dims)
        if tensor is None or load.outside is not None or any(from_memory(each) for each in load.index):
            return None
        for each, extent in zip(load.index, tensor.extents, strict=True):
            is_whole = isinstance(each, Name) and self.formula.dims.get(each.name) == extent
            if not is_whole and not (bounds.at_least(each, {}) and bounds.less(each, extent)):
                return None
        found = offset(tensor, load.index)
        if found is None or any(len([each for each in key if each in self.formula.dims]) > 1 for key in found):
            return None
        return found

    def stride(self, load: Load, dims: tuple[str, ...]) -> Polynomial | None:
        """How far elements lie apart that are neighbours in an index made up of `dims`; None where that varies."""
        if (load, dims) not in self.strides:
            self.strides[load, dims] = self._stride(load, dims)
        return self.strides[load, dims]

    def _stride(self, load: Load, dims: tuple[str, ...]) -> Polynomial | None:
        whole = self.offset(load)
        count = flat(dims, self.formula.dims)
        if whole is None or count is None or not dims:
            return None
        part = {key: factor for key, factor in whole.items() if set(key) & set(dims)}
        step = {tuple(n for n in key if n != dims[-1]): factor for key, factor in part.items() if dims[-1] in key}
        return step if times(step, count) == part else None


def _order(tensor: Tensor, dims: tuple[str, ...], formula: Formula) -> tuple[str, ...] | None:
    """The result's dimensions in the order in which they lie in memory; None for an array that is not packed."""
    place = offset(tensor, tuple(map(Name, dims)))
    if tensor.strides is None:
        return dims
    return next((each for each in (dims, dims[::-1]) if flat(each, formula.dims) == place), None)


def _dims_in(node: Expr) -> set[str]:
    return {each.name for each in walk(node) if isinstance(each, Name)}


# What is done with a pair


def _parted(node: Expr, rows: set[str], cols: set[str], values: dict[str, Expr], dims: Collection[str]) -> Expr | None:
    """The expression with `LEFT` and `RIGHT` in place of what depends on the row and on the column alone, which
    `values` collects; None where there are several such values, or what depends on neither is read each time."""
    if isinstance(node, Call) and node.name == "*":
        node = _gathered(node, rows, cols)
    read = _dims_in(node)
    if read & rows and not read & cols:
        return LEFT if values.setdefault("left", node) == node else None
    if read & cols and not read & rows:
        return RIGHT if values.setdefault("right", node) == node else None
    match node:
        case Num():
            return node
        case Name(name=name) if name not in dims:
            return node
        case Call(args=args):
            parts = [_parted(each, rows, cols, values, dims) for each in args]
            found = tuple(each for each in parts if each is not None)
            return replace(node, args=found) if len(found) == len(parts) else None
    return None


def _gathered(node: Call, rows: set[str], cols: set[str]) -> Expr:
    """A product of factors as one of two: those of the row, with those of neither, and those of the column."""
    factors = _factors(node)
    right = [each for each in factors if _dims_in(each) & cols]
    left = [each for each in factors if not _dims_in(each) & cols]
    if not left or not right or any(_dims_in(each) & rows for each in right):
        return node
    return Call("*", (_product(left), _product(right)))


def _factors(node: Expr) -> list[Expr]:
    if isinstance(node, Call) and node.name == "*":
        return [each for arg in node.args for each in _factors(arg)]
    return [node]


def _product(factors: list[Expr]) -> Expr:
    total = factors[0]
    for each in factors[1:]:
        total = Call("*", (total, each))
    return total


def _padding(op: str, body: Expr) -> float | None:
    """What changes no result where both operands have it."""
    if op == "sum" and _vanishes(body):
        return 0
    if op in ("max", "min") and body in (Call("+", (LEFT, RIGHT)), Call("+", (RIGHT, LEFT))):
        return float(identity(op, TYPES["f32"]))
    return None


def _vanishes(node: Expr) -> bool:
    """Whether the expression is 0 where both operands are."""
    match node:
        case Num(value=value):
            return value == 0
        case Load():
            return True
        case Call(name="*" | "&", args=args):
            return any(map(_vanishes, args))
        case Call(name="**", args=(base, Num(value=power))):
            return power > 0 and _vanishes(base)
        case Call(name="+" | "-" | "|" | "^" | "max" | "min", args=args):
            return all(map(_vanishes, args))
        case Call(name=name, args=args) if name in _VANISH or name in TYPES:
            return all(map(_vanishes, args))
    return False


def is_product(formula: Formula, stage: Stage) -> bool:
    """Whether a stage, taken alone, is a product of two operands that is written as a matrix product."""
    if not isinstance(stage.value, Reduce) or stage.combine:
        return False
    alone = Group(stage.dims, (replace(stage, temporary=False),), frozenset())
    whole = replace(formula, tensors={**tensors_of(formula), **formula.tensors})
    return not isinstance(shape_of(whole, alone), str)
