"""Operators that reduce rows: sums, extremes, softmax and normalisations."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from warpwright.formulas.aten.graph import Shape
from warpwright.formulas.aten.indices import ONE, Index, product
from warpwright.formulas.aten.operators import operator
from warpwright.formulas.aten.pointwise import call, pointwise, truth
from warpwright.formulas.aten.values import Builder, NoFormulaError, Value, broadcast, weight
from warpwright.formulas.bounds import Bounds
from warpwright.formulas.tree import Expr, Name, Num, Range, Reduce


def _places(x: Value, dim: Any) -> list[int]:
    if dim is None or dim == []:
        return list(range(len(x.extents)))
    found = [dim] if isinstance(dim, int) else list(dim)
    return sorted(each % len(x.extents) for each in found) if x.extents else []


def _not_empty(x: Value, dims: Any) -> None:
    if any(x.extents[n] == Num(0) for n in _places(x, dims)):
        raise NoFormulaError("it reduces nothing")


@operator("sum.dim_IntList", "sum.default", "prod.dim_int", "prod.default", "amax.default", "amin.default")
@operator("mean.dim", "mean.default")
def reduced(b: Builder, out: Shape, x: Value, dim: Any = None, keepdim: bool = False, **_: Any) -> Value:
    name = b.operator.split(".")[0]
    op = {"amax": "max", "amin": "min"}.get(name, name)
    if op in ("max", "min"):
        _not_empty(x, dim)
    return b.reduce(op, x, _places(x, dim), out.type, keep=keepdim)


@operator("any.dim", "any.dims", "any.default", "all.dim", "all.dims", "all.default")
def quantified(b: Builder, out: Shape, x: Value, dim: Any = None, keepdim: bool = False) -> Value:
    op = b.operator.split(".")[0]
    return b.reduce(op, x, _places(x, dim), "bool", keep=keepdim, body=lambda e: e if x.type == "bool" else truth(e))


@operator("max.default", "min.default")
def extreme(b: Builder, out: Shape, x: Value) -> Value:
    _not_empty(x, None)
    return b.reduce(b.operator.split(".")[0], x, _places(x, None), out.type)


@operator("max.dim", "min.dim")
def extreme_with_place(b: Builder, out: Shape, x: Value, dim: int, keepdim: bool = False) -> list[Value]:
    op = b.operator.split(".")[0]
    _not_empty(x, dim)
    found = [b.reduce(op, x, [dim], out.type, keep=keepdim) if 0 in b.used else _unused(out)]
    places = b.results[1]
    index = b.reduce(f"arg{op}", x, [dim], "i64", keep=keepdim, name=f"{b.own}_index") if 1 in b.used else None
    return [*found, index or _unused(places)]


def _unused(shape: Shape) -> Value:
    return Value(shape.extents, shape.type, lambda index: Num(0))


@operator("argmax.default", "argmin.default")
def place_of_extreme(b: Builder, out: Shape, x: Value, dim: int | None = None, keepdim: bool = False) -> Value:
    if dim is None:
        x = b.reshape(x, (product(x.extents),))
    return b.reduce(b.operator.split(".")[0], x, [dim or 0], "i64", keep=keepdim)


@operator("logsumexp.default")
def logsumexp(b: Builder, out: Shape, x: Value, dim: Any, keepdim: bool = False) -> Value:
    return b.reduce("logsumexp", x, _places(x, dim), out.type, keep=keepdim)


@operator("var.correction", "var.dim", "std.correction")
def spread(
    b: Builder, out: Shape, x: Value, dim: Any = None, unbiased: bool = True, keepdim: bool = False, **named: Any
) -> Value:
    correction = named.get("correction", 1 if unbiased in (True, None) else 0)
    found = _spread(b, out, x, _places(x, dim), 1 if correction is None else correction, keepdim)
    return pointwise(b, out, lambda v: call("sqrt", v), found) if b.operator.startswith("std") else found


@operator("var_mean.correction")
def var_mean(
    b: Builder, out: Shape, x: Value, dim: Any = None, *, correction: Any = 1, keepdim: bool = False
) -> list[Value]:
    places = _places(x, dim)
    variance = _spread(b, out, x, places, 1 if correction is None else correction, keepdim)
    return [variance, b.reduce("mean", x, places, out.type, keep=keepdim, name=f"{b.own}_mean")]


def _spread(b: Builder, out: Shape, x: Value, places: list[int], correction: float, keep: bool) -> Value:
    """The variance with the divisor of torch: the count less `correction`."""
    made = b.reduce("var", x, places, out.type, keep=keep, name=f"{b.own}_var")
    count = product([x.extents[n] for n in places])
    if not correction:
        return made
    if not isinstance(count, Num):
        by = call("/", call(out.type, count), call(out.type, call("-", count, int(correction))))
        return pointwise(b, out, lambda v: call("*", v, by), made)
    if count.value <= correction:
        return pointwise(b, out, lambda v: Num(math.nan), made)
    return pointwise(b, out, lambda v: call("*", v, count.value / (count.value - correction)), made)


@operator("linalg_vector_norm.default", "norm.ScalarOpt_dim", "norm.Scalar")
def vector_norm(
    b: Builder, out: Shape, x: Value, ord: float = 2, dim: Any = None, keepdim: bool = False, **_: Any
) -> Value:
    places = _places(x, dim)
    if ord in (math.inf, -math.inf):
        _not_empty(x, dim)
        op = "max" if ord > 0 else "min"
        return b.reduce(op, x, places, out.type, keep=keepdim, body=lambda e: call("abs", e))
    if ord == 0:
        body = lambda e: call(out.type, call("!=", e, 0))  # noqa: E731
        return b.reduce("sum", x, places, out.type, keep=keepdim, body=body)
    if ord == 1:
        return b.reduce("sum", x, places, out.type, keep=keepdim, body=lambda e: call("abs", e))
    square = ord == 2
    body = (lambda e: call("square", e)) if square else (lambda e: call("pow", call("abs", e), ord))
    total = b.reduce("sum", x, places, out.type, keep=keepdim, body=body, name=f"{b.own}_sum")
    root = (lambda e: call("sqrt", e)) if square else (lambda e: call("pow", e, 1 / ord))
    return pointwise(b, out, root, total)


# Scans


@operator("cumsum.default", "cumprod.default")
def scan(b: Builder, out: Shape, x: Value, dim: int, **_: Any) -> Value:
    if not x.extents:
        return x
    x = settled(b, x)
    dim %= len(x.extents)
    index = b.dims(out.extents)
    if out.extents[dim] == ONE:
        return x
    taken = [each.name for each in index if isinstance(each, Name)]
    (inner,) = b.dims([out.extents[dim]], taken)
    assert isinstance(inner, Name)
    body = x.at((*index[:dim], inner, *index[dim + 1 :]))
    op = "sum" if b.operator.startswith("cumsum") else "prod"
    return b.stage(
        b.own, out.extents, out.type, Reduce(op, (Range(inner.name, None, index[dim], True),), body), "scan", index
    )


# Softmax and normalisations


def settled(b: Builder, x: Value, name: str = "") -> Value:
    """A value that is read more than once: named where it is more than a move."""
    if weight(x.at(b.dims(x.extents))) > 0:
        x = b.named(x, name or f"{b.own}_in")
    return replace(x, origin=None) if x.name else x


@operator("_softmax.default", "softmax.int")
def softmax(b: Builder, out: Shape, x: Value, dim: int, *_: Any) -> Value:
    if not x.extents:
        return Value((), out.type, lambda index: Num(1.0))
    x = settled(b, x)
    most = b.reduce("max", x, [dim], out.type, keep=True, name=f"{b.own}_max")
    shifted = pointwise(b, Shape(x.extents, out.type), lambda e, m: call("exp", call("-", e, m)), x, most)
    total = b.reduce("sum", shifted, [dim], out.type, keep=True, name=f"{b.own}_sum")
    return pointwise(b, out, lambda e, m, s: call("/", call("exp", call("-", e, m)), s), x, most, total)


@operator("_log_softmax.default", "log_softmax.int")
def log_softmax(b: Builder, out: Shape, x: Value, dim: int, *_: Any) -> Value:
    if not x.extents:
        return Value((), out.type, lambda index: Num(0.0))
    x = settled(b, x)
    total = b.reduce("logsumexp", x, [dim], out.type, keep=True, name=f"{b.own}_lse")
    return pointwise(b, out, lambda e, t: call("-", e, t), x, total)


def _moments(b: Builder, x: Value, over: Sequence[int], eps: float) -> tuple[Value, Value, Value]:
    """Mean, variance and the reciprocal of the deviation, with extents of 1 where is reduced."""
    kind = "f64" if x.type == "f64" else "f32"
    mean = b.reduce("mean", x, over, kind, keep=True, name=f"{b.own}_mean")
    variance = b.reduce("var", x, over, kind, keep=True, name=f"{b.own}_var")
    shape = Shape(mean.extents, kind)
    return mean, variance, pointwise(b, shape, lambda v: call("rsqrt", call("+", v, eps)), variance)


def _normalised(b: Builder, out: Shape, x: Value, mean: Value, rstd: Value, scale: Any, shift: Any) -> Value:
    def element(e: Expr, m: Expr, r: Expr, *rest: Expr) -> Expr:
        found = call("*", call("-", e, m), r)
        parts = iter(rest)
        if scale is not None:
            found = call("*", found, next(parts))
        return call("+", found, next(parts)) if shift is not None else found

    more = [each for each in (scale, shift) if each is not None]
    return pointwise(b, Shape(x.extents, out.type), element, x, mean, rstd, *more)


@operator("native_layer_norm.default")
def layer_norm(
    b: Builder, out: Shape, x: Value, normalized_shape: Sequence[int], scale: Any, shift: Any, eps: float
) -> list[Value]:
    x = settled(b, x)
    over = list(range(len(x.extents) - len(normalized_shape), len(x.extents)))
    mean, _, rstd = _moments(b, x, over, eps)
    return [_normalised(b, out, x, mean, rstd, scale, shift), mean, rstd]


@operator("_fused_rms_norm.default", "rms_norm.default")
def rms_norm(
    b: Builder, out: Shape, x: Value, normalized_shape: Sequence[int], scale: Any = None, eps: float | None = None
) -> Any:
    x = settled(b, x)
    over = list(range(len(x.extents) - len(normalized_shape), len(x.extents)))
    mean = b.reduce("mean", x, over, "f32", keep=True, name=f"{b.own}_square", body=lambda e: call("square", e))
    least = eps if eps is not None else 2.0**-23
    rstd = pointwise(b, Shape(mean.extents, "f32"), lambda v: call("rsqrt", call("+", v, least)), mean)
    more = [] if scale is None else [scale]
    product_of = lambda e, r, *s: call("*", call("*", e, r), *s) if s else call("*", e, r)  # noqa: E731
    found = pointwise(b, out, product_of, x, rstd, *more)
    return [found, rstd] if b.operator.startswith("_fused") else found


@operator("native_group_norm.default")
def group_norm(
    b: Builder, out: Shape, x: Value, scale: Any, shift: Any, n: Any, c: Any, inner: Any, groups: int, eps: float
) -> list[Value]:
    each = Num(int(x.extents[1].value) // groups) if isinstance(x.extents[1], Num) else None
    if each is None:
        raise NoFormulaError("the number of its channels is not fixed")
    grouped: Index = (x.extents[0], Num(groups), each, product(x.extents[2:]))
    apart = b.reshape(b.named(x, f"{b.own}_in"), grouped)
    mean, _, rstd = _moments(b, apart, [2, 3], eps)
    own = (Num(groups), each, ONE)
    scale, shift = (None if e is None else b.reshape(e, own) for e in (scale, shift))
    found = _normalised(b, Shape(grouped, out.type), apart, mean, rstd, scale, shift)
    ends = (x.extents[0], Num(groups))
    return [b.reshape(found, out.extents), b.reshape(mean, ends), b.reshape(rstd, ends)]


@operator("_native_batch_norm_legit_functional.default", "_native_batch_norm_legit.no_stats")
@operator("_native_batch_norm_legit_no_training.default", "_batch_norm_with_update_functional.default")
def batch_norm(b: Builder, out: Shape, x: Value, scale: Any, shift: Any, *args: Any) -> list[Value]:
    running = args[:2] if isinstance(args[0], Value) else None
    rest = args[2:] if running else args
    training = rest[0] if isinstance(rest[0], bool) else not b.operator.endswith("no_training.default")
    momentum, eps = rest[-2:]
    channels = (ONE, x.extents[1], *[ONE] * (len(x.extents) - 2))

    def at_channel(each: Any) -> Value | None:
        return None if each is None else b.reshape(each, channels)

    more = at_channel(scale), at_channel(shift)
    ends = (x.extents[1],)
    if not training:
        if running is None:
            raise NoFormulaError("it has no statistics")
        mean, variance = map(at_channel, running)
        assert mean is not None and variance is not None
        rstd = pointwise(b, Shape(channels, "f32"), lambda v: call("rsqrt", call("+", v, eps)), variance)
        empty = Value((Num(0),), "f32", lambda index: Num(0.0))
        return [_normalised(b, out, x, mean, rstd, *more), *[empty] * (len(b.results) - 1)]
    x = settled(b, x)
    over = [n for n in range(len(x.extents)) if n != 1]
    mean, variance, rstd = _moments(b, x, over, eps)
    found = [_normalised(b, out, x, mean, rstd, *more), b.reshape(mean, ends), b.reshape(rstd, ends)]
    if running is None:
        return found
    count = product([x.extents[n] for n in over])
    return [*found, *_running(b, running, b.reshape(mean, ends), b.reshape(variance, ends), count, momentum)]


def _running(
    b: Builder, running: Sequence[Value], mean: Value, variance: Value, count: Expr, momentum: float
) -> list[Value]:
    """The new statistics; of the variance without bias."""
    if not Bounds({}).at_least(count, {(): 2}):
        raise NoFormulaError("it may have the statistics of one value")
    if isinstance(count, Num):
        factor: Expr = Num(momentum * count.value / (count.value - 1))
    else:
        factor = call("*", momentum, call("/", call("f32", count), call("f32", call("-", count, 1))))

    def element(old: Expr, new: Expr, by: Expr) -> Expr:
        return call("+", call("*", 1 - momentum, old), call("*", by, new))

    shape = Shape(mean.extents, running[0].type)
    return [
        pointwise(b, shape, lambda old, new: element(old, new, Num(momentum)), running[0], mean),
        pointwise(b, shape, lambda old, new: element(old, new, factor), running[1], variance),
    ]


@operator("nll_loss_forward.default", "nll_loss2d_forward.default")
def nll_loss(
    b: Builder, out: Shape, x: Value, target: Value, weights: Any, reduction: int, ignored: int
) -> list[Value]:
    x = settled(b, x)
    extents = target.extents

    def weighed(chosen: Expr) -> Expr:
        return Num(1.0) if weights is None else broadcast(weights, (weights.extents[0],))((chosen,))

    def loss(index: Index) -> Expr:
        label = target.at(index)
        kept = call("!=", label, ignored)
        safe = call("select", kept, label, 0)
        place = (index[0], safe, *index[1:]) if len(x.extents) > 1 else (safe,)
        found = call("neg", x.at(place))
        if weights is not None:
            found = call("*", weighed(safe), found)
        return call("select", kept, found, 0.0)

    def counted(index: Index) -> Expr:
        label = target.at(index)
        kept = call("!=", label, ignored)
        return call("select", kept, weighed(call("select", kept, label, 0)), 0.0)

    losses = Value(extents, out.type, loss)
    over = list(range(len(extents)))
    count = b.reduce("sum", Value(extents, out.type, counted), over, out.type, name=f"{b.own}_weight")
    if reduction == 0:
        return [losses, count]
    total = b.reduce("sum", losses, over, out.type, name=f"{b.own}_sum" if reduction == 1 else b.own)
    if reduction == 2:
        return [total, count]
    return [pointwise(b, out, lambda t, c: call("/", t, c), total, count), count]
