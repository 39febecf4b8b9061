"""A formula evaluated by torch, on any device: the reference beside which kernels run on a GPU.

The formula comes as the document that `warpwright.formulas.document` describes. Floating-point numbers have 64 bits
inside, whole numbers wrap around in the type of each operation. An expression is evaluated for all values of its
dimensions at once: those of the stage are the last axes, and each reduction puts its own before them. A box of values
that would need more than `MOST_ELEMENTS` is split. u64 is held as i64: its bits are right, and where its order counts
no value may be 2**63 or more.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from warpwright_harness.formula_functions import FUNCTIONS, OPERATORS, leading_zeros, ones
from warpwright_harness.formula_types import bits, bounds, cast, held, is_float, is_whole, working, wrapped

Tensor = Any
Node = list[Any]

MOST_ELEMENTS = 1 << 24
"""Of a tensor in between: 128 MiB of numbers of 64 bits."""

_TYPES = ("f64", "f32", "f16", "bf16", "f8e4m3", "f8e5m2", "bool", "c64", "c128", *(
    f"{sign}{width}" for sign in "iu" for width in (8, 16, 32, 64)))  # fmt: skip
_WRAPS = ("+", "-", "*", "**", "//", "<<", "neg", "~", "pow", "square", "abs", "fma")
_ORDERED = ("<", "<=", ">", ">=", "//", "%", "max", "min", "/", ">>")
_COMBINES = {"+": "sum", "*": "prod", "max": "amax", "min": "amin"}


class EvaluationError(Exception):
    """What cannot be evaluated: one sentence."""


def evaluate(
    document: Mapping[str, Any],
    arrays: Mapping[str, Tensor],
    scalars: Mapping[str, complex],
    sizes: Mapping[str, int],
) -> dict[str, Tensor]:
    """The outputs by name, in 64 bits, on the device of the arrays (the CPU where there are none). `arrays` are in
    logical shape. Raises EvaluationError."""
    device = next((each.device for each in arrays.values()), torch.device("cpu"))
    numbers = {
        name: cast(torch.as_tensor(scalars[name], device=device), kind) for name, kind in document["scalars"].items()
    }
    evaluator = _Evaluator(document, arrays, numbers, sizes, device)
    evaluator.extents.update((name, evaluator.number(extent)) for name, extent in document["dims"].items())
    for name, known in document["inputs"].items():
        shape = tuple(evaluator.number(each) for each in known["extents"])
        if tuple(arrays[name].shape) != shape:
            raise EvaluationError(f"{name} has the shape {tuple(arrays[name].shape)}, not {shape}.")
    results: dict[str, Tensor] = {}
    for stage in document["stages"]:
        results[stage["name"]] = evaluator.stage(stage)
        if stage["read"]:
            evaluator.done[stage["name"]] = results[stage["name"]]
    return {name: results[name] for name in document["outputs"]}


@dataclass(frozen=True)
class _Box:
    """Values of the dimensions, each along an axis of its own, how many axes there are, and where values count."""

    dims: Mapping[str, Tensor]
    rank: int
    active: Tensor | None = None

    def where(self, condition: Tensor) -> _Box:
        return replace(self, active=condition if self.active is None else self.active & condition)


@dataclass(frozen=True)
class _Evaluator:
    document: Mapping[str, Any]
    arrays: Mapping[str, Tensor]
    numbers: Mapping[str, Tensor]
    sizes: Mapping[str, int]
    device: Any
    extents: dict[str, int] = field(default_factory=dict)
    done: dict[str, Tensor] = field(default_factory=dict)

    def number(self, node: Node) -> int:
        """An extent."""
        return int(self.value(node, _Box({}, 0)))

    def full(self, value: float, kind: str) -> Tensor:
        return torch.tensor(value, dtype=working(kind), device=self.device)

    # Stages

    def stage(self, stage: Mapping[str, Any]) -> Tensor:
        kind = stage["type"]
        whole = is_whole(kind) or kind == "bool"
        shape = tuple(self.extents[each] for each in stage["dims"])
        if stage["combine"]:
            return self.scattered(stage, shape)
        result = torch.empty(shape, dtype=working(kind), device=self.device)
        for part, box in self.boxes(stage["dims"], shape):
            values = self.value(stage["value"], box)
            result[part] = cast(values, kind) if whole else held(values, kind)
        return result

    def scattered(self, stage: Mapping[str, Any], shape: tuple[int, ...]) -> Tensor:
        kind, op = stage["type"], _COMBINES[stage["combine"]]
        extents = tuple(self.number(each) for each in stage["extents"])
        if stage["keeps"]:
            result = held(self.arrays[stage["name"]], kind).clone()
        else:
            result = torch.full(extents, _identity(op, kind), dtype=working(kind), device=self.device)
        for _, box in self.boxes(stage["dims"], shape):
            where = torch.zeros((), dtype=torch.int64, device=self.device)
            for index, extent in zip(stage["index"], extents, strict=True):
                each = held(self.value(index, box), "i64")
                self.check(each, extent, stage["name"], box)
                where = where * extent + each
            values = self.value(stage["value"], box)
            values = (cast(values, kind) if is_whole(kind) else held(values, kind)).expand(shape_of(stage, box))
            flat, where = values.reshape(-1), where.expand(shape_of(stage, box)).reshape(-1)
            target = result.reshape(-1)
            if op == "sum":
                target.index_add_(0, where, flat)
            else:
                target.scatter_reduce_(0, where, flat, op)
            result = target.reshape(extents)
        return wrapped(result, kind) if is_whole(kind) else result

    def boxes(self, dims: list[str], shape: tuple[int, ...]) -> Iterator[tuple[tuple[slice, ...], _Box]]:
        steps: list[int] = []
        left = MOST_ELEMENTS
        for extent in reversed(shape):
            steps.insert(0, max(1, min(extent, left)))
            left //= max(1, extent)
        for corner in itertools.product(*(range(0, n, step) for n, step in zip(shape, steps, strict=True))):
            part = tuple(
                slice(at, min(at + step, n)) for at, step, n in zip(corner, steps, shape, strict=True)
            )  # fmt: skip
            inner = {
                name: torch.arange(each.start, each.stop, device=self.device).reshape(
                    -1, *[1] * (len(dims) - place - 1)
                )
                for place, (name, each) in enumerate(zip(dims, part, strict=True))
            }
            yield part, _Box(inner, len(dims))

    # Expressions

    def value(self, node: Node, box: _Box) -> Tensor:
        match node:
            case ["num", kind, value]:
                return self.full(value, kind)
            case ["name", _, name]:
                if name in box.dims:
                    return box.dims[name]
                return self.full(self.sizes[name], "i64") if name in self.sizes else self.numbers[name]
            case ["load", kind, name, index, outside]:
                return held(self.load(name, index, outside, kind, box), kind)
            case ["reduce", *_]:
                return self.reduce(node, box)
            case ["call", kind, name, args, operands]:
                values = self.call(name, args, kind, operands, box)
                return wrapped(values, _computed(kind)) if name in _WRAPS and is_whole(kind) else values
        raise EvaluationError(f"No expression is of the kind {node[0]}.")

    def call(self, name: str, args: list[Node], kind: str, operands: str, box: _Box) -> Tensor:
        if name == "select":
            condition = self.value(args[0], box)
            one = held(self.value(args[1], box.where(condition)), kind)
            return torch.where(condition, one, held(self.value(args[2], box.where(~condition)), kind))
        if name in ("and", "or"):
            left = self.value(args[0], box)
            right = self.value(args[1], box.where(left if name == "and" else ~left))
            return left & right if name == "and" else left | right
        values = [self.value(each, box) for each in args]
        if name in _TYPES:
            return cast(values[0], name)
        if name in ("popc", "clz"):
            return (ones if name == "popc" else leading_zeros)(values[0], bits(_computed(operands)))
        if name in ("floor", "ceil", "round", "trunc") and not values[0].dtype.is_floating_point:
            return held(values[0], kind)
        values = [held(each, operands) for each in values]
        if operands == "u64" and name in _ORDERED and any((each < 0).any() for each in values):
            raise EvaluationError("A u64 of 2**63 or more is evaluated without torch alone.")
        return (OPERATORS.get(name) or FUNCTIONS[name])(*values)

    # Loads

    def load(self, name: str, index: list[Node], outside: Any, kind: str, box: _Box) -> Tensor:
        array = self.done[name] if name in self.done else self.arrays[name]
        places = [held(self.value(each, box), "i64") for each in index]
        shape = array.shape
        if isinstance(outside, int | float):
            number = self.full(outside, kind)
            beyond = self.full(False, "bool")
            for each, extent in zip(places, shape, strict=True):
                beyond = beyond | (each < 0) | (each >= extent)
            if 0 in shape:
                return number.expand(beyond.shape)
            clipped = tuple(each.clamp(0, extent - 1) for each, extent in zip(places, shape, strict=True))
            return torch.where(beyond, number, held(array[clipped], kind))
        for place, extent in enumerate(shape):
            places[place] = self.inside(places[place], extent, outside, name, box)
        if 0 in shape:
            return torch.zeros(torch.broadcast_shapes(*(each.shape for each in places)), device=self.device)
        return array[tuple(places)] if places else array

    def inside(self, index: Tensor, extent: int, outside: str | None, name: str, box: _Box) -> Tensor:
        last = max(extent - 1, 0)
        match outside:
            case "clamp":
                return index.clamp(0, last)
            case "wrap":
                return torch.remainder(index, max(extent, 1))
            case "reflect":
                around = torch.remainder(index, max(2 * last, 1))
                return torch.minimum(around, 2 * last - around)
        self.check(index, extent, name, box)
        return index.clamp(0, last)

    def check(self, index: Tensor, extent: int, name: str, box: _Box) -> None:
        wrong = (index < 0) | (index >= extent)
        if wrong.any() and (box.active is None or (wrong & box.active).any()):
            raise EvaluationError(f"An index of {name} lies beyond its extent {extent}.")

    # Reductions

    def reduce(self, node: Node, box: _Box) -> Tensor:
        _, kind, op, ranges, body, accumulate = node
        match op:
            case "mean":
                return self.fold("sum", ranges, body, kind, box) / self.count(ranges, box)
            case "var" | "std":
                count = self.count(ranges, box)
                mean = self.fold("sum", ranges, body, kind, box) / count
                total = self.general("sum", ranges, body, kind, box, lambda x: (x - mean).square())
                return (total / count).sqrt() if op == "std" else total / count
            case "logsumexp":
                most = self.fold("max", ranges, body, kind, box)
                base = torch.where(most.isfinite(), most, 0.0)
                total = self.general("sum", ranges, body, kind, box, lambda x: (x - base).exp())
                return torch.where(most.isfinite(), base + total.log(), most)
            case "argmax" | "argmin":
                return self.place(op, ranges, body, box)
        found = self.fold(op, ranges, body, kind, box)
        return wrapped(found, accumulate or _computed(kind)) if is_whole(kind) else found

    def count(self, ranges: list[Any], box: _Box) -> Tensor:
        return self.general("sum", ranges, ["num", "i64", 1], "i64", box)

    def fold(self, op: str, ranges: list[Any], body: Node, kind: str, box: _Box) -> Tensor:
        running = self.running(op, ranges, body, kind, box)
        if running is not None:
            return running
        factors = _factors(body) if op == "sum" and not is_whole(kind) else [body]
        if len(factors) > 1:
            return self.contraction(factors, ranges, body, kind, box)
        return self.general(op, ranges, body, kind, box)

    def general(self, op: str, ranges: list[Any], body: Node, kind: str, box: _Box, change: Any = None) -> Tensor:
        nothing = self.full(_identity(op, kind), kind)
        total = nothing
        for inner, mask in self.pieces(ranges, box, [body]):
            values = held(self.value(body, inner), kind)
            values = values if change is None else change(values)
            values = values if mask is None else torch.where(mask, values, nothing)
            values = self.spread(values, ranges, inner)
            total = _FOLDS[op][1](total, _FOLDS[op][0](values.flatten(0, len(ranges) - 1)))
        return total

    def spread(self, values: Tensor, ranges: list[Any], inner: _Box) -> Tensor:
        """With the full length of the axes of `ranges`, which are the first."""
        values = values.reshape([1] * (inner.rank - values.dim()) + list(values.shape))
        lengths = [inner.dims[each[0]].shape[0] for each in reversed(ranges)]
        return values.expand(*lengths, *values.shape[len(lengths) :])

    def contraction(self, factors: list[Node], ranges: list[Any], body: Node, kind: str, box: _Box) -> Tensor:
        total = self.full(0, kind)
        for inner, mask in self.pieces(ranges, box, factors):
            values = [held(self.value(each, inner), kind) for each in factors]
            if mask is not None:
                values[0] = torch.where(mask, values[0], self.full(0, kind))
            values = [each.reshape([1] * (inner.rank - each.dim()) + list(each.shape)) for each in values]
            lengths = [inner.dims[each[0]].shape[0] for each in reversed(ranges)]
            whole = all(each.shape[axis] == length for each in values for axis, length in enumerate(lengths))
            if (mask is not None or len(values) > 2 or not whole) and not all(each.isfinite().all() for each in values):
                # 0 times what is not finite is NaN, as is the sum of infinities of either sign: what is left out must
                # not be multiplied, and nothing be added up before it is.
                return self.general("sum", ranges, body, kind, box)
            values[0] = self.spread(values[0], ranges, inner)
            operands: list[Any] = []
            for each in values:
                axes = [axis for axis in range(inner.rank) if each.shape[axis] != 1]
                operands += [each.reshape([each.shape[axis] for axis in axes]), axes]
            shape = torch.broadcast_shapes(*(each.shape for each in values))[len(ranges) :]
            kept = [axis + len(ranges) for axis, length in enumerate(shape) if length != 1]
            total = total + torch.einsum(*operands, kept).reshape(shape)
        return total

    def running(self, op: str, ranges: list[Any], body: Node, kind: str, box: _Box) -> Tensor | None:
        """`sum[j <= i] x[r, j]` as the running sum over j, read at i."""
        name, lower, upper, closed = ranges[0]
        if len(ranges) > 1 or lower is not None or upper is None or box.active is not None or op not in _RUNNING:
            return None
        used, ends = set(_names(body)) & box.dims.keys(), set(_names(upper)) & box.dims.keys()
        if not ends or used & ends or any(box.dims[each].numel() != max(box.dims[each].shape) for each in used):
            return None
        end = self.ends([name, lower, upper, closed], box)[1].clamp(min=0)
        most = int(end.max()) if end.numel() else 0
        inner = _Box(
            {**box.dims, name: torch.arange(most, device=self.device).reshape(most, *[1] * box.rank)}, box.rank + 1
        )
        if not most or self.largest([body], inner) > MOST_ELEMENTS:
            return None
        values = self.spread(held(self.value(body, inner), kind), ranges, inner)
        first = torch.full((1, *values.shape[1:]), _identity(op, kind), dtype=values.dtype, device=self.device)
        table = torch.cat([first, _RUNNING[op](values)])
        shape = torch.broadcast_shapes(end.shape, values.shape[1:])
        index = end.expand(shape).reshape(1, *shape) if shape else end.reshape(1)
        return table.expand(most + 1, *shape).gather(0, index)[0]

    def place(self, op: str, ranges: list[Any], body: Node, box: _Box) -> Tensor:
        """The lowest index of the largest or the smallest value; a NaN wins."""
        kind, fold = body[1], "max" if op == "argmax" else "min"
        kind = "i64" if kind == "bool" else kind
        nothing = self.full(_identity(fold, kind), kind)
        nowhere = torch.iinfo(torch.int64).max
        best, where = None, torch.tensor(nowhere, device=self.device)
        for inner, mask in self.pieces(ranges, box, [body]):
            values = held(self.value(body, inner), kind)
            values = self.spread(values if mask is None else torch.where(mask, values, nothing), ranges, inner)
            index = torch.zeros((), dtype=torch.int64, device=self.device)
            for each in ranges:
                index = index * self.extents[each[0]] + inner.dims[each[0]]
            top = _FOLDS[fold][0](values.flatten(0, len(ranges) - 1))
            hit = _same(values, top)
            hit = hit if mask is None else hit & mask
            found = torch.where(hit, index, nowhere).flatten(0, len(ranges) - 1).amin(0)
            if best is None:
                best, where = top, found
                continue
            better = (top.isnan() & ~best.isnan()) | (top > best if fold == "max" else top < best)
            where = torch.where(better, found, torch.where(_same(top, best), torch.minimum(where, found), where))
            best = torch.where(better, top, best)
        return torch.where(where == nowhere, 0, where)

    def ends(self, each: list[Any], box: _Box) -> tuple[Tensor, Tensor]:
        name, lower, upper, closed = each
        extent = self.extents[name]
        begin = self.full(0, "i64") if lower is None else held(self.value(lower, box), "i64")
        end = self.full(extent, "i64") if upper is None else held(self.value(upper, box), "i64")
        end = end + int(closed)
        some = begin < end if box.active is None else (begin < end) & box.active
        if (some & ((begin < 0) | (end > extent))).any():
            raise EvaluationError(f"A range of {name} reaches beyond 0 to {extent}, its extent.")
        return begin, end

    def pieces(
        self, ranges: list[Any], box: _Box, bodies: list[Node], mask: Tensor | None = None
    ) -> Iterator[tuple[_Box, Tensor | None]]:
        """Boxes with the ranges' axes before those of `box`, each with the places that belong to them (None: all)."""
        if not ranges:
            yield box, mask
            return
        lower, upper = self.ends(ranges[0], box)
        lengths = (upper - lower).clamp(min=0)
        plain = lower.numel() == upper.numel() == 1
        if box.active is not None and not plain:
            lengths = torch.where(box.active, lengths, 0)
        most = int(lengths.max()) if lengths.numel() else 0

        def within(first: int, last: int) -> tuple[_Box, Tensor | None]:
            steps = torch.arange(first, last, device=self.device).reshape(last - first, *[1] * box.rank)
            inside = None if plain else steps < lengths
            return _Box({**box.dims, ranges[0][0]: steps + lower}, box.rank + 1, box.active), inside

        one = max(self.largest(bodies, within(0, 1)[0]), lengths.numel()) if most else 1
        step = max(1, min(most, MOST_ELEMENTS // max(one, 1)))
        for first in range(0, most, step):
            inner, inside = within(first, min(first + step, most))
            part = None if inside is None or inside.all() else inside
            inner = inner if part is None else inner.where(part)
            both = part if mask is None else mask if part is None else mask & part
            yield from self.pieces(ranges[1:], inner, bodies, both)

    def largest(self, bodies: list[Node], box: _Box) -> int:
        """How many elements the largest tensor has that is needed for any of `bodies`."""
        shapes = [box.dims[name].shape for body in bodies for name in set(_names(body)) if name in box.dims]
        if len(bodies) == 1:
            return math.prod(torch.broadcast_shapes(*shapes))
        return max(self.largest([body], box) for body in bodies)


def shape_of(stage: Mapping[str, Any], box: _Box) -> list[int]:
    """How long the axes of a stage are in a box."""
    return [box.dims[each].numel() for each in stage["dims"]]


def _names(node: Any) -> Iterator[str]:
    """The names in an expression."""
    if isinstance(node, list):
        if len(node) == 3 and node[0] == "name":
            yield node[2]
            return
        for each in node:
            yield from _names(each)


def _factors(node: Node) -> list[Node]:
    if node[0] != "call" or node[2] != "*" or is_whole(node[1]) or node[1] == "bool":
        return [node]
    return [each for arg in node[3] for each in _factors(arg)]


def _computed(kind: str) -> str:
    return "i32" if is_whole(kind) and bits(kind) < 32 else kind


def _identity(op: str, kind: str) -> float:
    if op in ("max", "amax", "min", "amin"):
        low, high = (-math.inf, math.inf) if is_float(kind) else bounds(kind)
        return low if op.endswith("max") else high
    return {"sum": 0, "prod": 1, "any": 0, "all": 1}[op]


def _same(one: Tensor, other: Tensor) -> Tensor:
    return (one == other) | (one.isnan() & other.isnan())


_FOLDS: dict[str, tuple[Any, Any]] = {
    "sum": (lambda x: x.sum(0), torch.add), "prod": (lambda x: x.prod(0), torch.mul),
    "max": (lambda x: x.amax(0), torch.maximum), "min": (lambda x: x.amin(0), torch.minimum),
    "any": (lambda x: x.any(0), torch.logical_or), "all": (lambda x: x.all(0), torch.logical_and),
}  # fmt: skip
_RUNNING: dict[str, Any] = {
    "sum": lambda x: x.cumsum(0), "prod": lambda x: x.cumprod(0), "max": lambda x: x.cummax(0).values,
    "min": lambda x: x.cummin(0).values,
}  # fmt: skip
