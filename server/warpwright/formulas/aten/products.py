"""Matrix products and attention."""

from __future__ import annotations

import math

from warpwright.formulas.aten.graph import Shape
from warpwright.formulas.aten.indices import ZERO, Index
from warpwright.formulas.aten.operators import operator
from warpwright.formulas.aten.pointwise import call, is_plain, pointwise, select
from warpwright.formulas.aten.values import Builder, NoFormulaError, Value, broadcast
from warpwright.formulas.tree import Expr, Name, Num, Range, Reduce

LIBRARY = "it calls a library"


def _or_library(b: Builder) -> None:
    if b.keeps_products:
        raise NoFormulaError(LIBRARY)


def in_memory(b: Builder, x: Value, name: str) -> Value:
    """An operand that is read many times: an array, under another index at most."""
    return x if is_plain(x.at(b.dims(x.extents))) else b.named(x, name)


def _product(b: Builder, out: Shape, x: Value, y: Value, name: str) -> Value:
    """`x[..., m, k] y[..., k, n]`, of as many leading dimensions."""
    _or_library(b)
    x, y = in_memory(b, x, f"{b.own}_left"), in_memory(b, y, f"{b.own}_right")
    index = b.dims(out.extents)
    taken = [each.name for each in index if isinstance(each, Name)]
    (k,) = b.dims([x.extents[-1]], taken)
    body = call("*", x.at((*index[:-1], k)), y.at((*index[:-2], k, index[-1])))
    expr: Expr = Reduce("sum", (Range(k.name),), body) if isinstance(k, Name) else body
    return b.stage(name, out.extents, out.type, expr, "product", index)


@operator("mm.default", "bmm.default")
def product(b: Builder, out: Shape, x: Value, y: Value) -> Value:
    return _product(b, out, x, y, b.own)


@operator("mv.default")
def matrix_vector(b: Builder, out: Shape, x: Value, y: Value) -> Value:
    both = pointwise(b, Shape(x.extents, out.type), lambda e, f: call("*", e, f), x, y)
    return b.reduce("sum", both, [1], out.type)


@operator("dot.default", "vdot.default")
def dot(b: Builder, out: Shape, x: Value, y: Value) -> Value:
    both = pointwise(b, Shape(x.extents, out.type), lambda e, f: call("*", e, f), x, y)
    return b.reduce("sum", both, [0], out.type)


@operator("addmm.default", "baddbmm.default")
def product_and_sum(
    b: Builder, out: Shape, bias: Value, x: Value, y: Value, beta: float = 1, alpha: float = 1
) -> Value:
    found = _product(b, out, x, y, f"{b.own}_product")

    def element(bias: Expr, e: Expr) -> Expr:
        e = e if alpha == 1 else call("*", alpha, e)
        if beta == 0:
            return e
        return call("+", e, bias if beta == 1 else call("*", beta, bias))

    return pointwise(b, out, element, bias, found)


@operator("linear.default")
def linear(b: Builder, out: Shape, x: Value, weights: Value, bias: Value | None = None) -> Value:
    _or_library(b)
    x, weights = in_memory(b, x, f"{b.own}_left"), in_memory(b, weights, f"{b.own}_right")
    index = b.dims(out.extents)
    taken = [each.name for each in index if isinstance(each, Name)]
    (k,) = b.dims([x.extents[-1]], taken)
    body = call("*", x.at((*index[:-1], k)), weights.at((index[-1], k)))
    expr: Expr = Reduce("sum", (Range(k.name),), body) if isinstance(k, Name) else body
    found = b.stage(f"{b.own}_product" if bias else b.own, out.extents, out.type, expr, "product", index)
    return found if bias is None else pointwise(b, out, lambda e, c: call("+", e, c), found, bias)


@operator("scaled_dot_product_attention.default")
def attention(
    b: Builder,
    out: Shape,
    q: Value,
    k: Value,
    v: Value,
    mask: Value | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,  # the extents tell
) -> Value:
    _or_library(b)
    if dropout_p:
        raise NoFormulaError("it drops values at random")
    q, k, v = (in_memory(b, e, f"{b.own}_{n}") for e, n in ((q, "q"), (k, "k"), (v, "v")))
    size = q.extents[-1]
    by = Num(scale) if scale is not None else _root(size)
    kind = "f64" if out.type == "f64" else "f32"
    extents: Index = (*q.extents[:-1], k.extents[-2])
    index = b.dims(extents)
    (inner,) = b.dims([size], [each.name for each in index if isinstance(each, Name)])
    both = call("*", q.at((*index[:-1], inner)), k.at((*_heads(index[:-2], q, k), index[-1], inner)))
    score = call("*", by, Reduce("sum", (Range(inner.name),), both) if isinstance(inner, Name) else both)
    if mask is not None:
        weighed = broadcast(mask, extents)(index)
        score = select(weighed, score, -math.inf) if mask.type == "bool" else call("+", score, weighed)
    if is_causal:
        score = select(call("<=", index[-1], index[-2]), score, -math.inf)
    b.together = b.own
    scores = b.stage(f"{b.own}_score", extents, kind, score, "product", index)
    most = b.reduce("max", scores, [-1], kind, keep=True, name=f"{b.own}_max")

    def weight_of(e: Expr, m: Expr) -> Expr:
        # Of a row that is masked whole, the maximum is -inf, and each weight is 0.
        found = call("exp", call("-", e, m))
        return found if mask is None else select(call("==", m, -math.inf), 0.0, found)

    weights = b.named(pointwise(b, Shape(extents, kind), weight_of, scores, most), f"{b.own}_weight")
    total = b.reduce("sum", weights, [-1], kind, keep=True, name=f"{b.own}_sum")
    index = b.dims(out.extents)
    (j,) = b.dims([k.extents[-2]], [each.name for each in index if isinstance(each, Name)])
    both = call("*", weights.at((*index[:-1], j)), v.at((*_heads(index[:-2], q, v), j, index[-1])))
    summed: Expr = Reduce("sum", (Range(j.name),), both) if isinstance(j, Name) else both
    count = total.at((*index[:-1], ZERO))
    made = call("/", summed, count)
    if mask is not None:
        made = select(call("==", count, 0.0), 0.0, made)
    found = b.stage(b.own, out.extents, out.type, made, "product", index)
    b.together = ""
    return found


def _heads(index: Index, q: Value, shared: Value) -> Index:
    """The index of the batches and heads of keys or values, of which several heads of queries may read the same."""
    if not index or q.extents[-3] == shared.extents[-3]:
        return index
    match q.extents[-3], shared.extents[-3]:
        case Num(value=int(heads)), Num(value=int(fewer)) if fewer and heads % fewer == 0:
            return (*index[:-1], call("//", index[-1], heads // fewer))
    raise NoFormulaError("its heads share keys, and their number is known at run time only")


def _root(size: Expr) -> Expr:
    return Num(size.value**-0.5) if isinstance(size, Num) else call("rsqrt", call("f32", size))
