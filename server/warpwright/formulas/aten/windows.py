"""Convolutions and pooling: windows that move over an image, a signal or a volume."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from warpwright.formulas.aten.graph import Shape
from warpwright.formulas.aten.indices import ONE, ZERO, Index, add, mul, sub
from warpwright.formulas.aten.operators import operator
from warpwright.formulas.aten.pointwise import call, pointwise, select
from warpwright.formulas.aten.products import LIBRARY, in_memory
from warpwright.formulas.aten.values import Builder, NoFormulaError, Value
from warpwright.formulas.tree import Expr, Name, Num, Range, Reduce


def _each(found: Sequence[int], count: int, otherwise: int) -> list[int]:
    """A setting for each of the dimensions; one number is that of all."""
    found = list(found) or [otherwise]
    return found * count if len(found) == 1 else found


def _whole(extent: Expr) -> int:
    if not isinstance(extent, Num):
        raise NoFormulaError("the number of its channels or the size of its window is not fixed")
    return int(extent.value)


@operator("convolution.default")
def convolution(
    b: Builder,
    out: Shape,
    x: Value,
    weights: Value,
    bias: Value | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
) -> Value:
    rank = len(x.extents) - 2
    stride, padding, dilation = _each(stride, rank, 1), _each(padding, rank, 0), _each(dilation, rank, 1)
    # Each channel by itself moves little: a library has nothing to gain there.
    if b.keeps_convolutions and not (groups > 1 and groups == _whole(x.extents[1]) and not transposed):
        raise NoFormulaError(LIBRARY)
    x, weights = in_memory(b, x, f"{b.own}_in"), in_memory(b, weights, f"{b.own}_weight")
    index = b.dims(out.extents)
    taken = [each.name for each in index if isinstance(each, Name)]
    kernel = weights.extents[2:]
    per_group = Num(_whole(x.extents[1]) // groups)
    made = Num(_whole(out.extents[1]) // groups)
    c, *window = b.dims([per_group, *kernel], taken)
    n, o, *at = index
    group: Expr = ZERO if groups == 1 else o if made == ONE else call("//", o, made)
    channel = add(mul(group, per_group), c)
    condition: Expr | None = None
    places: list[Expr] = []
    for i, w, s, p, d in zip(at, window, stride, padding, dilation, strict=True):
        if not transposed:
            places.append(sub(add(mul(Num(s), i), mul(Num(d), w)), Num(p)))
            continue
        place = sub(add(i, Num(p)), mul(Num(d), w))
        if s > 1:
            whole = call("==", call("%", place, s), 0)
            condition = whole if condition is None else call("and", condition, whole)
            place = call("//", place, s)
        places.append(place)
    if transposed:
        own = c if groups == 1 else channel
        other = o if groups == 1 else sub(o, mul(group, made)) if made == ONE else call("%", o, made)
        factor = weights.at((own, ZERO if made == ONE else other, *window))
    else:
        factor = weights.at((o, c, *window))
    body = call("*", b.inside(x, (n, channel, *places), 0), factor)
    if condition is not None:
        body = select(condition, body, 0.0)
    ranges = tuple(Range(each.name) for each in (c, *window) if isinstance(each, Name))
    expr: Expr = Reduce("sum", ranges, body) if ranges else body
    found = b.stage(f"{b.own}_sum" if bias else b.own, out.extents, out.type, expr, "product", index)
    if bias is None:
        return found
    own_bias = b.reshape(bias, (out.extents[1], *[ONE] * rank))
    return pointwise(b, out, lambda e, c: call("+", e, c), found, own_bias)


def _pooled(
    b: Builder, out: Shape, x: Value, op: str, window: Sequence[int], places: Any, fill: float, name: str = ""
) -> Value:
    """A reduction of windows of the last dimensions. `places(index, window)` are where they lie."""
    x = in_memory(b, x, f"{b.own}_in")
    index = b.dims(out.extents)
    taken = [each.name for each in index if isinstance(each, Name)]
    inner = b.dims([Num(each) for each in window], taken)
    before = index[: len(index) - len(window)]
    body = b.inside(x, (*before, *places(index[len(before) :], inner)), fill)
    ranges = tuple(Range(each.name) for each in inner if isinstance(each, Name))
    expr: Expr = Reduce(op, ranges, body) if ranges else body
    return b.stage(name or b.own, out.extents, out.type, expr, "product", index)


@operator("max_pool2d_with_indices.default", "max_pool3d_with_indices.default", "max_pool2d.default")
@operator("max_pool1d.default", "max_pool3d.default")
def max_pool(
    b: Builder,
    out: Shape,
    x: Value,
    kernel_size: Sequence[int],
    stride: Sequence[int] = (),
    padding: Sequence[int] = (0,),
    dilation: Sequence[int] = (1,),
    ceil_mode: bool = False,
) -> Any:
    rank = int(b.operator[8])
    size = _each(kernel_size, rank, 1)
    steps = _each(stride, rank, 0) if stride else size
    pads, apart = _each(padding, rank, 0), _each(dilation, rank, 1)
    if 1 in b.used and "with_indices" in b.operator:
        raise NoFormulaError("the places of its maxima are read")

    def places(index: Index, inner: Index) -> Index:
        each = zip(index, inner, steps, pads, apart, strict=True)
        return tuple(sub(add(mul(Num(s), i), mul(Num(d), w)), Num(p)) for i, w, s, p, d in each)

    found = _pooled(b, out, x, "max", size, places, -math.inf)
    unused = Value(out.extents, "i64", lambda index: Num(0))
    return [found, unused] if "with_indices" in b.operator else found


@operator("avg_pool1d.default", "avg_pool2d.default", "avg_pool3d.default")
def avg_pool(
    b: Builder,
    out: Shape,
    x: Value,
    kernel_size: Sequence[int],
    stride: Sequence[int] = (),
    padding: Sequence[int] = (0,),
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Value:
    rank = int(b.operator[8])
    size = _each(kernel_size, rank, 1)
    steps = _each(stride, rank, 0) if stride else size
    pads = _each(padding, rank, 0)
    if ceil_mode:
        raise NoFormulaError("its last windows reach beyond the padding")

    def places(index: Index, inner: Index) -> Index:
        each = zip(index, inner, steps, pads, strict=True)
        return tuple(sub(add(mul(Num(s), i), w), Num(p)) for i, w, s, p in each)

    total = _pooled(b, out, x, "sum", size, places, 0, f"{b.own}_sum")
    if count_include_pad or divisor_override or not any(pads):
        divisor = float(divisor_override or math.prod(size))
        return pointwise(b, out, lambda e: call("/", e, divisor), total)

    def at(index: Index) -> Expr:
        count: Expr = Num(1)
        spatial = zip(index[-rank:], x.extents[-rank:], size, steps, pads, strict=True)
        for i, extent, k, s, p in spatial:
            first = sub(mul(Num(s), i), Num(p))
            inside = call("-", call("min", add(first, Num(k)), extent), call("max", first, 0))
            count = inside if count == Num(1) else call("*", count, inside)
        return call("/", total.at(index), call("f32", count))

    return Value(out.extents, out.type, at)


@operator("_adaptive_avg_pool2d.default", "_adaptive_avg_pool3d.default", "adaptive_avg_pool1d.default")
def adaptive_avg_pool(b: Builder, out: Shape, x: Value, output_size: Sequence[int]) -> Value:
    rank = len(output_size)
    given = [_whole(each) for each in x.extents[-rank:]]
    if any(a % o for a, o in zip(given, output_size, strict=True)):
        raise NoFormulaError("its windows have different sizes")
    size = [a // o for a, o in zip(given, output_size, strict=True)]

    def places(index: Index, inner: Index) -> Index:
        return tuple(add(mul(Num(s), i), w) for i, w, s in zip(index, inner, size, strict=True))

    total = _pooled(b, out, x, "sum", size, places, 0, f"{b.own}_sum")
    return pointwise(b, out, lambda e: call("/", e, float(math.prod(size))), total)
