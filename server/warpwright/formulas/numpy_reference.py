"""A formula evaluated by NumPy: what a kernel that is written from it must compute.

Floating-point numbers have 64 bits inside, whatever the arrays' types. Only a cast in the formula rounds, and a literal
is one of the type that it is used with. Whole numbers are exact and wrap around in the type of each operation (of 32
bits or more, as C computes) and in that of the array that they are stored in. A division of whole numbers by 0 gives 0.
Arrays come in logical shape: strides and packed structs are the caller's matter.

Over nothing, a sum is 0, a product 1, `max` and `logsumexp` -inf, `min` inf (of whole numbers the least and the largest
value), `any` false, `all` true, `argmax` and `argmin` 0, and `mean`, `var` and `std` are NaN.

An expression is evaluated for all values of its dimensions at once, each dimension an axis: those of the stage are the
last axes, and each reduction puts its own before them, so arrays broadcast to each other as they are. What a box of
values would need is measured beforehand, and it is split until no array in between is larger than `MOST_ELEMENTS`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from warpwright.formulas.bounds import polynomial
from warpwright.formulas.extents import at_sizes, names_in
from warpwright.formulas.literals import as_computed
from warpwright.formulas.model import Formula, Stage
from warpwright.formulas.numpy_boxes import MOST_ELEMENTS, Box, Dim, boxes, padded, spread
from warpwright.formulas.numpy_contraction import contracted, is_regrouped
from warpwright.formulas.numpy_functions import FUNCTIONS, OPERATORS, leading_zeros, ones
from warpwright.formulas.numpy_types import Array, cast, held, kept, wrapped
from warpwright.formulas.printer import shown
from warpwright.formulas.tree import Call, Expr, Load, Name, Num, Range, Reduce, walk
from warpwright.formulas.types import TYPES, ElementType, computed
from warpwright.formulas.typing_rules import operand_type, settled, types_of

_WRAPS = ("+", "-", "*", "**", "//", "<<", "neg", "~", "pow", "square", "abs", "fma")
_AS_THEY_ARE = ("floor", "ceil", "round", "trunc")
_FOLDS = {
    "sum": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum, "any": np.logical_or,
    "all": np.logical_and,
}  # fmt: skip
_ONE = Num(1)
_NOWHERE = np.iinfo(np.int64).max
_COMBINES = {"+": "sum", "*": "prod", "max": "max", "min": "min"}


class EvaluationError(Exception):
    """Arrays that do not fit the formula, or an index beyond its array: one sentence."""


def evaluate(
    formula: Formula,
    arrays: Mapping[str, Array],
    scalars: Mapping[str, float | complex] | None = None,
    sizes: Mapping[str, int] | None = None,
) -> dict[str, Array]:
    """The outputs by name, in 64 bits (`stored` gives them in their types). `arrays` are the inputs by name in logical
    shape; `sizes` that do not follow from their shapes must be given. Raises EvaluationError.

    >>> from warpwright.formulas.resolve import formula_of
    >>> f = formula_of("y[r] = sum[c] x[r, c] * w[c]")
    >>> evaluate(f, {"x": np.ones((2, 3)), "w": np.arange(3.0)})
    {'y': array([3., 3.])}
    """
    return Reference(formula)(arrays, scalars, sizes)


@dataclass
class Reference:
    """A formula that is evaluated again and again: what does not depend on the arrays is found out once."""

    formula: Formula

    def __post_init__(self) -> None:
        self.formula = as_computed(self.formula)
        self._type_of = types_of(self._named)

    def __call__(
        self,
        arrays: Mapping[str, Array],
        scalars: Mapping[str, float | complex] | None = None,
        sizes: Mapping[str, int] | None = None,
    ) -> dict[str, Array]:
        """As `evaluate`."""
        results = self.stages(arrays, scalars, sizes)
        return {each.name: results[each.name] for each in self.formula.outputs}

    def stages(
        self,
        arrays: Mapping[str, Array],
        scalars: Mapping[str, float | complex] | None = None,
        sizes: Mapping[str, int] | None = None,
    ) -> dict[str, Array]:
        """As `evaluated`."""
        formula = self.formula
        given = {**sizes_of(formula, arrays), **(sizes or {})}
        missing = [each for each in formula.sizes if each not in given]
        if missing:
            raise EvaluationError(f"The size {missing[0]} is not given and no array tells it.")
        handed = {**(scalars or {})}
        for name in formula.scalars:
            if name not in handed:
                raise EvaluationError(f"The number {name} is not given.")
        for tensor in formula.inputs:
            if tensor.name not in arrays:
                raise EvaluationError(f"The array {tensor.name} is not given.")
            shape = tuple(at_sizes(each, given) for each in tensor.extents)
            if tuple(np.shape(arrays[tensor.name])) != shape:
                raise EvaluationError(f"{tensor.name} has the shape {np.shape(arrays[tensor.name])}, not {shape}.")
        numbers = {name: cast(np.asarray(handed[name]), TYPES[kind]) for name, kind in formula.scalars.items()}
        extents = {name: at_sizes(extent, given) for name, extent in formula.dims.items()}
        held_arrays = {name: np.asarray(each) for name, each in arrays.items()}
        evaluator = _Evaluator(formula, held_arrays, numbers, dict(given), extents, self._type_of)
        results: dict[str, Array] = {}
        with np.errstate(all="ignore"):
            for stage in formula.stages:
                results[stage.name] = evaluator.stage(stage)
                if formula.stage(stage.name) is stage:
                    evaluator.done[stage.name] = results[stage.name]
        return results

    def _named(self, name: str) -> ElementType:
        formula = self.formula
        return TYPES["i64"] if name in formula.dims or name in formula.sizes else formula.type_of(name)


def evaluated(
    formula: Formula,
    arrays: Mapping[str, Array],
    scalars: Mapping[str, float | complex] | None = None,
    sizes: Mapping[str, int] | None = None,
) -> dict[str, Array]:
    """As `evaluate`, with the temporary stages."""
    return Reference(formula).stages(arrays, scalars, sizes)


def sizes_of(formula: Formula, arrays: Mapping[str, Array]) -> dict[str, int]:
    """The sizes that follow from the shapes of inputs.

    >>> from warpwright.formulas.resolve import formula_of
    >>> sizes_of(formula_of("y[r] = sum[first[r] <= e < first[r + 1]] a[e]"), {"first": np.zeros(5), "a": np.zeros(9)})
    {'R': 4, 'E': 9}
    """
    pairs = [
        (polynomial(extent) or {}, int(length))
        for tensor in formula.inputs
        for extent, length in zip(tensor.extents, np.shape(arrays.get(tensor.name, ())), strict=False)
    ]
    found: dict[str, int] = {}
    for _ in formula.sizes:  # each turn finds one size or ends it
        for terms, length in pairs:
            left: Counter[str] = Counter()
            constant = 0
            for key, factor in terms.items():
                unknown = [name for name in key if name not in found]
                value = factor * math.prod(found[name] for name in key if name in found)
                if unknown:
                    left["*".join(unknown)] += value
                else:
                    constant += value
            for name, factor in left.items():
                if len(left) == 1 and name in formula.sizes and factor and (length - constant) % factor == 0:
                    found[name] = (length - constant) // factor
    return found


def stored(formula: Formula, outputs: Mapping[str, Array]) -> dict[str, Array]:
    """The outputs rounded once, to their types; bf16 and f8 as f32 that hold a value of the type."""
    return {name: kept(values, formula.type_of(name)) for name, values in outputs.items()}


@dataclass(frozen=True)
class _Evaluator:
    formula: Formula
    arrays: Mapping[str, Array]
    numbers: Mapping[str, Array]
    sizes: Mapping[str, int]
    extents: Mapping[str, int]
    type_of: Callable[[Expr], ElementType]
    done: dict[str, Array] = field(default_factory=dict)

    # Stages

    def stage(self, stage: Stage) -> Array:
        kind = TYPES[stage.type]
        whole = kind.kind in ("integer", "bool")
        shape = tuple(self.extents[each] for each in stage.dims)
        if stage.combine:
            return self.scattered(stage, kind, shape)
        result = np.empty(shape, held(np.zeros(0), kind).dtype)
        for part, box in boxes(stage.dims, shape):
            values = self.value(stage.value, box)
            result[part] = cast(values, kind) if whole else held(values, kind)
        return result

    def scattered(self, stage: Stage, kind: ElementType, shape: tuple[int, ...]) -> Array:
        op = _COMBINES[stage.combine]
        extents = tuple(at_sizes(each, self.sizes) for each in self.formula.extents_of(stage.name))
        if stage.keeps:
            result = held(self.arrays[stage.name], kind).copy()
        else:
            result = np.full(extents, _identity(op, kind), held(np.zeros(0), kind).dtype)
        for _, box in boxes(stage.dims, shape):
            full = tuple(box.dims[each].values.size for each in stage.dims)
            values = self.value(stage.value, box)
            values = np.broadcast_to(cast(values, kind) if kind.kind == "integer" else held(values, kind), full)
            place = Load(stage.name, stage.index)
            index = [np.broadcast_to(each, full) for each in self.inside(place, extents, box)]
            _FOLDS[op].at(result, tuple(index), values)
        return wrapped(result, kind) if kind.kind == "integer" else result

    # Expressions

    def type(self, node: Expr) -> ElementType:
        return settled(self.type_of(node))

    def named(self, name: str) -> ElementType:
        return TYPES["i64"] if name in self.extents or name in self.sizes else self.formula.type_of(name)

    def value(self, node: Expr, box: Box) -> Array:
        """The value at each place of the box, in an array that broadcasts to it."""
        match node:
            case Num(value=value):
                return held(value, self.type(node))
            case Name(name=name):
                if name in box.dims:
                    return box.dims[name].values
                return np.asarray(self.sizes[name], np.int64) if name in self.sizes else self.numbers[name]
            case Load():
                return held(self.load(node, box), self.named(node.tensor))
            case Reduce():
                return self.reduce(node, box)
            case Call(name=name):
                values = self.call(node, box)
                kind = self.type(node)
                return wrapped(values, computed(kind)) if name in _WRAPS and kind.kind == "integer" else values

    def call(self, node: Call, box: Box) -> Array:
        name, args, kind = node.name, node.args, self.type(node)
        match name:
            case "select":
                condition = self.value(args[0], box)
                then = held(self.value(args[1], box.where(condition)), kind)
                return np.where(condition, then, held(self.value(args[2], box.where(~condition)), kind))
            case "and" | "or":
                left = self.value(args[0], box)
                right = self.value(args[1], box.where(left if name == "and" else ~left))
                return left & right if name == "and" else left | right
        values = [self.value(each, box) for each in args]
        if name in TYPES:
            return cast(values[0], kind)
        own = self.type(args[0])
        if name in ("popc", "clz"):
            return (ones if name == "popc" else leading_zeros)(values[0], computed(own).bits)
        if name in _AS_THEY_ARE and own.kind != "float":
            return held(values[0], kind)
        kind = operand_type(name, kind, [self.type(each) for each in args])
        function = OPERATORS.get(name) or FUNCTIONS[name]
        return function(*(held(each, kind) for each in values))

    # Loads

    def load(self, node: Load, box: Box) -> Array:
        array = self.done.get(node.tensor)
        if array is None:
            array = self.arrays[node.tensor]
        plain = self.sliced(node, array, box)
        if plain is not None:
            return plain
        shape = array.shape
        if isinstance(node.outside, Num):
            index = [self.value(each, box) for each in node.index]
            beyond = [(each < 0) | (each >= extent) for each, extent in zip(index, shape, strict=True)]
            out = np.asarray(False)
            for each in beyond:
                out = out | each
            number = held(held(node.outside.value, self.named(node.tensor)), self.named(node.tensor))
            if 0 in shape:
                return np.broadcast_to(number, np.broadcast_shapes(*(np.shape(each) for each in index)))
            clipped = tuple(np.clip(each, 0, extent - 1) for each, extent in zip(index, shape, strict=True))
            return np.where(out, number, held(array[clipped], self.named(node.tensor)))
        return array[tuple(self.inside(node, shape, box))] if array.size or not node.index else self.nothing(node, box)

    def nothing(self, node: Load, box: Box) -> Array:
        """What is read of an array without elements, where nothing may be read."""
        index = [self.value(each, box) for each in node.index]
        shape = np.broadcast_shapes(*(each.shape for each in index))
        counted = np.broadcast_to(True if box.active is None else box.active, np.broadcast_shapes(
            shape, () if box.active is None else box.active.shape))  # fmt: skip
        if counted.any():
            raise EvaluationError(f"{shown(node)} is read, and {node.tensor} has no elements.")
        return np.zeros(shape)

    def sliced(self, node: Load, array: Array, box: Box) -> Array | None:
        """A view, where each index is a dimension of its own that lies inside."""
        dims = [box.dims.get(each.name) if isinstance(each, Name) else None for each in node.index]
        axes = [each.axis for each in dims if each is not None and each.first is not None]
        if len(axes) < len(dims) or len(set(axes)) < len(axes):
            return None
        parts = [slice(each.first, each.last) for each in dims if each is not None]
        if any(part.stop > extent for part, extent in zip(parts, array.shape, strict=True)):
            return None
        order = sorted(range(len(axes)), key=lambda place: axes[place])
        view = array[tuple(parts)].transpose(order)
        lengths = {axes[place]: view.shape[at] for at, place in enumerate(order)}
        return view.reshape([lengths.get(axis, 1) for axis in range(min(axes, default=0), 0)])

    def inside(self, node: Load, extents: tuple[int, ...], box: Box) -> list[Array]:
        """The indices of a load, each made to lie inside as the load says, or checked where the value counts."""
        found = []
        for place, (each, extent) in enumerate(zip(node.index, extents, strict=True)):
            index = held(self.value(each, box), TYPES["i64"])
            last = max(extent - 1, 0)
            match node.outside:
                case "clamp":
                    index = np.clip(index, 0, last)
                case "wrap":
                    index = index % max(extent, 1)
                case "reflect":
                    around = index % max(2 * last, 1)
                    index = np.minimum(around, 2 * last - around)
                case _ if index.size and (index.min() < 0 or index.max() > extent - 1):
                    wrong = (index < 0) | (index >= extent)
                    counts = wrong if box.active is None else wrong & box.active
                    if counts.any():
                        value = int(np.broadcast_to(index, counts.shape)[counts][0])
                        where = f"index {place + 1} of {node.tensor}[{', '.join(map(shown, node.index))}]"
                        raise EvaluationError(f"The {where} is {value}, and the extent there is {extent}.")
                    index = np.clip(index, 0, last)
            found.append(index)
        return found

    # Reductions

    def reduce(self, node: Reduce, box: Box) -> Array:
        kind = self.type(node)
        match node.op:
            case "mean":
                return self.fold("sum", node, box, kind) / self.count(node, box)
            case "var" | "std":
                mean = self.fold("sum", node, box, kind) / self.count(node, box)
                variance = self.general("sum", node, box, kind, lambda x: np.square(x - mean)) / self.count(node, box)
                return np.sqrt(variance) if node.op == "std" else variance
            case "logsumexp":
                most = self.fold("max", node, box, kind)
                base = np.where(np.isfinite(most), most, 0.0)
                total = self.general("sum", node, box, kind, lambda x: np.exp(x - base))
                return np.where(np.isfinite(most), base + np.log(total), most)
            case "argmax" | "argmin":
                return self.place(node, box)
        found = self.fold(node.op, node, box, kind)
        if kind.kind != "integer":
            return found
        return wrapped(found, TYPES[node.accumulate] if node.accumulate else computed(kind))

    def count(self, node: Reduce, box: Box) -> Array:
        return self.general("sum", replace(node, body=_ONE), box, TYPES["i64"])

    def fold(self, op: str, node: Reduce, box: Box, kind: ElementType) -> Array:
        """The reduction in the way that needs least: as running values, as matrix products, or as it stands."""
        running = self.running(op, node, box, kind)
        if running is not None:
            return running
        factors = self.factors(node.body) if op == "sum" else [node.body]
        if len(factors) > 1:
            return self.contraction(factors, node, box, kind)
        return self.general(op, node, box, kind)

    def factors(self, node: Expr) -> list[Expr]:
        """Of a product, those that can be multiplied in any order: whole numbers must not wrap around in between."""
        if not isinstance(node, Call) or node.name != "*":
            return [node]
        one, other = node.args
        if self.type(node).kind in ("float", "complex"):
            return self.factors(one) + self.factors(other)
        return [one, other] if max(self.type(one).bits, self.type(other).bits) <= 16 else [node]

    def general(
        self, op: str, node: Reduce, box: Box, kind: ElementType, change: Callable[[Array], Array] | None = None
    ) -> Array:
        """`change` is applied to the body's values."""
        nothing = held(_identity(op, kind), kind)
        total = np.asarray(nothing)
        for inner, mask in self.pieces(node.ranges, box, [node.body]):
            values = held(self.value(node.body, inner), kind)
            if change is not None:
                values = change(values)
            if mask is not None:
                values = np.where(mask, values, nothing)
            values = spread(values, inner, box)
            total = _FOLDS[op](total, _FOLDS[op].reduce(values, axis=tuple(range(inner.rank - box.rank))))
        return total

    def contraction(self, factors: list[Expr], node: Reduce, box: Box, kind: ElementType) -> Array:
        total = np.zeros((), held(0, kind).dtype)
        for inner, mask in self.pieces(node.ranges, box, factors):
            values = [held(self.value(each, inner), kind) for each in factors]
            if mask is not None:
                values[0] = np.where(mask, values[0], held(0, kind))
            lengths = [inner.dims[each.name].values.shape[0] for each in reversed(node.ranges)]
            full = [padded(each, inner.rank) for each in values]
            if (mask is not None or is_regrouped(full, lengths)) and not all(np.isfinite(e).all() for e in values):
                # 0 times what is not finite is NaN, as is the sum of infinities of either sign: what is left out must
                # not be multiplied, and nothing be added up before it is.
                return self.general("sum", node, box, kind)
            total = total + contracted(full, lengths)
        return total

    def running(self, op: str, node: Reduce, box: Box, kind: ElementType) -> Array | None:
        """`sum[j <= i] x[r, j]` as the running sum over j, read at i."""
        each = node.ranges[0]
        if len(node.ranges) > 1 or each.lower is not None or each.upper is None or box.active is not None:
            return None
        inner_names = {name for name in names_in([node.body]) if name in box.dims}
        ends = {name for name in names_in([each.upper]) if name in box.dims}
        if not ends or ends & inner_names or any(box.dims[name].first is None for name in inner_names):
            return None
        end = self.ends(each, box)[1]
        most = int(end.max()) if end.size else 0
        if most <= 0:
            return np.asarray(held(_identity(op, kind), kind))
        dim = Dim(np.arange(most).reshape(most, *(1,) * box.rank), -box.rank - 1, 0)
        inner = Box({**box.dims, each.name: dim}, box.rank + 1)
        if self.largest([node.body], inner) > MOST_ELEMENTS:
            return None
        values = padded(held(self.value(node.body, inner), kind), inner.rank)
        values = np.broadcast_to(values, (most, *values.shape[1:]))
        first = np.full((1, *values.shape[1:]), _identity(op, kind), values.dtype)
        table = np.concatenate([first, _FOLDS[op].accumulate(values, axis=0)])
        end = np.maximum(end, 0)
        shape = np.broadcast_shapes(end.shape, values.shape[1:])
        own = [
            np.arange(length).reshape(length, *(1,) * (box.rank - 1 - axis)) if length > 1 else 0
            for axis, length in enumerate(values.shape[1:])
        ]
        return table[(np.broadcast_to(end, shape), *own)]

    def place(self, node: Reduce, box: Box) -> Array:
        """The lowest index of the largest or the smallest value; a NaN wins. Of several dimensions it is that of the
        elements in row-major order."""
        kind = self.type(node.body)
        largest = node.op == "argmax"
        nothing = held(_identity("max" if largest else "min", kind), kind)
        best: Array | None = None
        where = np.asarray(np.int64(0))
        for inner, mask in self.pieces(node.ranges, box, [node.body]):
            axes = tuple(range(inner.rank - box.rank))
            values = held(self.value(node.body, inner), kind)
            values = spread(values if mask is None else np.where(mask, values, nothing), inner, box)
            index = np.asarray(np.int64(0))
            for each in node.ranges:
                index = index * self.extents[each.name] + inner.dims[each.name].values
            top = _FOLDS["max" if largest else "min"].reduce(values, axis=axes, keepdims=True)
            hit = _same(values, top)
            place = np.where(hit if mask is None else hit & mask, index, _NOWHERE).min(axis=axes)
            top = top.reshape(top.shape[len(axes) :])
            if best is None:
                best, where = top, place
                continue
            better = (np.isnan(top) & ~np.isnan(best)) | ((top > best) if largest else (top < best))
            tied = _same(top, best)
            where = np.where(better, place, np.where(tied, np.minimum(where, place), where))
            best = np.where(better, top, best)
        return np.where(where == _NOWHERE, 0, where)

    def ends(self, each: Range, box: Box) -> tuple[Array, Array]:
        """Where a range begins and ends (without the end itself)."""
        extent = self.extents[each.name]
        lower = np.asarray(np.int64(0)) if each.lower is None else held(self.value(each.lower, box), TYPES["i64"])
        upper = np.asarray(np.int64(extent)) if each.upper is None else held(self.value(each.upper, box), TYPES["i64"])
        upper = upper + each.closed
        some = lower < upper if box.active is None else (lower < upper) & box.active
        if (some & ((lower < 0) | (upper > extent))).any():
            raise EvaluationError(f"A range of {each.name} reaches beyond 0 to {extent}, its extent.")
        return lower, upper

    def pieces(
        self, ranges: tuple[Range, ...], box: Box, bodies: list[Expr], mask: Array | None = None
    ) -> Iterator[tuple[Box, Array | None]]:
        """Boxes with the ranges' axes before those of `box`, small enough for `bodies`, each with the places that
        belong to the ranges (None: all)."""
        if not ranges:
            yield box, mask
            return
        each = ranges[0]
        lower, upper = self.ends(each, box)
        lengths = np.maximum(upper - lower, 0)
        plain = lower.size == upper.size == 1
        if box.active is not None and not plain:
            lengths = np.where(box.active, lengths, 0)
        most = int(lengths.max()) if lengths.size else 0

        def dim(first: int, last: int) -> Dim:
            steps = np.arange(first, last).reshape(last - first, *(1,) * box.rank)
            begin = int(lower.reshape(())) if plain else 0
            return Dim(steps + lower, -box.rank - 1, begin + first if plain else None)

        one = max(self.largest(bodies, self.within(box, each.name, dim(0, 1), None)), lengths.size) if most else 1
        step = max(1, min(most, MOST_ELEMENTS // max(one, 1)))
        for first in range(0, most, step):
            own = dim(first, min(first + step, most))
            steps = np.arange(first, min(first + step, most)).reshape(-1, *(1,) * box.rank)
            inside = None if plain else steps < lengths
            part = None if inside is None or inside.all() else inside
            both = part if mask is None else mask if part is None else mask & part
            yield from self.pieces(ranges[1:], self.within(box, each.name, own, part), bodies, both)

    @staticmethod
    def within(box: Box, name: str, dim: Dim, part: Array | None) -> Box:
        inner = Box({**box.dims, name: dim}, box.rank + 1, box.active)
        return inner if part is None else inner.where(part)

    def largest(self, bodies: list[Expr], box: Box) -> int:
        """How many elements the largest array has that is needed for any of `bodies`."""
        most = 1
        for node in (node for body in bodies for node in walk(body)):
            shapes = [box.dims[name].values.shape for name in names_in([node]) if name in box.dims]
            most = max(most, math.prod(np.broadcast_shapes(*shapes)))
        return most


def _identity(op: str, kind: ElementType) -> bool | int | float:
    """What changes nothing."""
    if op in ("max", "min"):
        low, high = (-math.inf, math.inf) if kind.is_float else kind.bounds
        return low if op == "max" else high
    return {"sum": 0, "prod": 1, "any": False, "all": True}[op]


def _same(one: Array, other: Array) -> Array:
    """Whether both are equal, or NaN."""
    return (one == other) | (np.isnan(one) & np.isnan(other))
