"""Operators that move elements: index maps, which need no kernel."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from warpwright.formulas.aten.graph import Shape
from warpwright.formulas.aten.indices import ONE, ZERO, Index, add, mul, same, sub
from warpwright.formulas.aten.operators import operator
from warpwright.formulas.aten.pointwise import call, select
from warpwright.formulas.aten.values import Builder, NoFormulaError, Value, broadcast
from warpwright.formulas.tree import Expr, Load, Num, Outside


def mapped(value: Value, extents: Index, index: Callable[[Index], Index]) -> Value:
    """The element at an index is that of `value` at another."""
    return Value(extents, value.type, lambda i: value.at(index(i)))


@operator("view.default", "_unsafe_view.default", "reshape.default", "unsqueeze.default", "flatten.using_ints")
@operator("squeeze.dim", "squeeze.dims", "squeeze.default")
def view(b: Builder, out: Shape, x: Value, *_: Any) -> Value:
    return b.reshape(x, out.extents)


@operator("permute.default")
def permute(b: Builder, out: Shape, x: Value, dims: Sequence[int]) -> Value:
    return _permuted(x, out, [each % len(x.extents) for each in dims])


def _permuted(x: Value, out: Shape, places: list[int]) -> Value:
    return mapped(x, out.extents, lambda i: tuple(i[places.index(n)] for n in range(len(places))))


@operator("transpose.int")
def transpose(b: Builder, out: Shape, x: Value, one: int, other: int) -> Value:
    places = list(range(len(x.extents)))
    places[one], places[other] = places[other], places[one]
    return _permuted(x, out, places)


@operator("t.default", "mT.default")
def t(b: Builder, out: Shape, x: Value) -> Value:
    places = list(range(len(x.extents)))
    return _permuted(x, out, [*places[:-2], *reversed(places[-2:])])


@operator("expand.default", "broadcast_to.default")
def expand(b: Builder, out: Shape, x: Value, *_: Any, **__: Any) -> Value:
    if len(x.extents) == len(out.extents) and all(map(same, x.extents, out.extents)):
        return x
    return Value(out.extents, x.type, broadcast(x, out.extents))


@operator("slice.Tensor")
def slice_(b: Builder, out: Shape, x: Value, dim: int = 0, start: Any = None, end: Any = None, step: int = 1) -> Value:
    dim %= len(x.extents)
    first = _place(start if start is not None else 0, x.extents[dim])
    return _sliced(x, out.extents, dim, first, step)


def _sliced(x: Value, extents: Index, dim: int, first: Expr, step: int = 1) -> Value:
    if same(extents[dim], x.extents[dim]):
        return x
    return mapped(x, extents, lambda i: (*i[:dim], add(first, mul(Num(step), i[dim])), *i[dim + 1 :]))


@operator("select.int")
def select_int(b: Builder, out: Shape, x: Value, dim: int, index: Any) -> Value:
    dim %= len(x.extents)
    return _selected(x, out.extents, dim, _place(index, x.extents[dim]))


def _selected(x: Value, extents: Index, dim: int, at: Expr) -> Value:
    return mapped(x, extents, lambda i: (*i[:dim], at, *i[dim:]))


@operator("narrow.default")
def narrow(b: Builder, out: Shape, x: Value, dim: int, start: Any, length: Any) -> Value:
    dim %= len(x.extents)
    return _sliced(x, out.extents, dim, _place(start, x.extents[dim]))


def _place(found: Any, extent: Expr) -> Expr:
    """A start that is negative counts from the end."""
    if isinstance(found, int):
        return add(extent, Num(found)) if found < 0 else Num(found)
    return found if not isinstance(found, Value) else _refused("its place is computed")


def _refused(reason: str) -> Expr:
    raise NoFormulaError(reason)


@operator("split.Tensor", "split_with_sizes.default", "chunk.default", "unbind.int")
def split(b: Builder, out: Shape, x: Value, *args: Any, dim: int | None = None) -> list[Value]:
    if b.operator == "unbind.int":
        place = (args[0] if args else dim or 0) % len(x.extents)
        return [_selected(x, each.extents, place, Num(n)) for n, each in enumerate(b.results)]
    place = (args[1] if len(args) > 1 else dim or 0) % len(x.extents)
    found: list[Value] = []
    start: Expr = ZERO
    for each in b.results:
        found.append(_sliced(x, each.extents, place, start))
        start = add(start, each.extents[place])
    return found


@operator("cat.default")
def cat(b: Builder, out: Shape, parts: Sequence[Value], dim: int = 0) -> Value:
    parts = [each for each in parts if each.extents != (ZERO,)]
    dim %= len(out.extents)
    ends: list[Expr] = []
    for each in parts:
        ends.append(add(ends[-1] if ends else ZERO, each.extents[dim]))

    def at(index: Index) -> Expr:
        def moved(n: int) -> Expr:
            start = ends[n - 1] if n else ZERO
            own = ZERO if parts[n].extents[dim] == ONE else sub(index[dim], start)
            return parts[n].at((*index[:dim], own, *index[dim + 1 :]))

        found = moved(len(parts) - 1)
        for n in reversed(range(len(parts) - 1)):
            found = select(call("<", index[dim], ends[n]), moved(n), found)
        return found

    return Value(out.extents, out.type, at)


@operator("stack.default")
def stack(b: Builder, out: Shape, parts: Sequence[Value], dim: int = 0) -> Value:
    dim %= len(out.extents)

    def at(index: Index) -> Expr:
        inner = (*index[:dim], *index[dim + 1 :])
        found = parts[-1].at(inner)
        for n in reversed(range(len(parts) - 1)):
            found = select(call("==", index[dim], n), parts[n].at(inner), found)
        return found

    return Value(out.extents, out.type, at)


@operator("constant_pad_nd.default")
def pad(b: Builder, out: Shape, x: Value, pads: Sequence[int], value: float = 0) -> Value:
    before = [0] * len(x.extents)
    for n in range(len(pads) // 2):
        before[len(x.extents) - 1 - n] = pads[2 * n]
    fill = float(value) if out.type.startswith(("f", "bf")) and value else value

    def at(index: Index) -> Expr:
        return b.inside(x, tuple(sub(i, Num(p)) for i, p in zip(index, before, strict=True)), fill)

    return Value(out.extents, out.type, at)


@operator("reflection_pad1d.default", "reflection_pad2d.default", "reflection_pad3d.default")
@operator("replication_pad1d.default", "replication_pad2d.default", "replication_pad3d.default")
def pad_by_itself(b: Builder, out: Shape, x: Value, pads: Sequence[int]) -> Value:
    x = b.named(x)
    how: Outside = "reflect" if b.operator.startswith("reflection") else "clamp"
    before = [0] * len(x.extents)
    for n in range(len(pads) // 2):
        before[len(x.extents) - 1 - n] = pads[2 * n]

    def at(index: Index) -> Expr:
        found = x.at(tuple(sub(i, Num(p)) for i, p in zip(index, before, strict=True)))
        assert isinstance(found, Load)
        return Load(found.tensor, found.index, how)

    return Value(out.extents, out.type, at)


@operator("flip.default")
def flip(b: Builder, out: Shape, x: Value, dims: Sequence[int]) -> Value:
    places = {each % len(x.extents) for each in dims}

    def index(i: Index) -> Index:
        return tuple(
            call("-", sub(e, ONE), each) if n in places else each
            for n, (each, e) in enumerate(zip(i, x.extents, strict=True))
        )

    return mapped(x, out.extents, index)


@operator("roll.default")
def roll(b: Builder, out: Shape, x: Value, shifts: Any, dims: Sequence[int] = ()) -> Value:
    if not dims:
        raise NoFormulaError("it rolls over all dimensions at once")
    by = dict(zip([each % len(x.extents) for each in dims], shifts, strict=True))

    def at(i: Index) -> Expr:
        found = b.named(x).at(tuple(sub(each, Num(by.get(n, 0))) for n, each in enumerate(i)))
        assert isinstance(found, Load)
        return Load(found.tensor, found.index, "wrap")

    return Value(out.extents, out.type, at)


@operator("repeat.default")
def repeat(b: Builder, out: Shape, x: Value, *_: Any) -> Value:
    before = len(out.extents) - len(x.extents)

    def index(i: Index) -> Index:
        inner = zip(i[before:], x.extents, out.extents[before:], strict=True)
        return tuple(each if same(own, new) else call("%", each, own) for each, own, new in inner)

    return mapped(x, out.extents, index)


@operator("diagonal.default")
def diagonal(b: Builder, out: Shape, x: Value, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Value:
    first, second = dim1 % len(x.extents), dim2 % len(x.extents)

    def index(i: Index) -> Index:
        rest = iter(i[:-1])
        row, column = add(i[-1], Num(max(0, -offset))), add(i[-1], Num(max(0, offset)))
        return tuple(row if n == first else column if n == second else next(rest) for n in range(len(x.extents)))

    return mapped(x, out.extents, index)


@operator("diag_embed.default")
def diag_embed(b: Builder, out: Shape, x: Value, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Value:
    if offset or (dim1, dim2) != (-2, -1):
        raise NoFormulaError("its diagonal is not the last two dimensions' own")

    def at(index: Index) -> Expr:
        return select(call("==", index[-2], index[-1]), x.at(index[:-1]), 0)

    return Value(out.extents, out.type, at)


@operator("upsample_nearest1d.vec", "upsample_nearest2d.vec", "upsample_nearest3d.vec")
def upsample_nearest(b: Builder, out: Shape, x: Value, *_: Any, **__: Any) -> Value:
    def index(i: Index) -> Index:
        inner = zip(i, x.extents, out.extents, strict=True)
        return tuple(e if same(a, c) else call("//", mul(e, a), c) for e, a, c in inner)

    return mapped(x, out.extents, index)


@operator("embedding.default")
def embedding(b: Builder, out: Shape, table: Value, ids: Value, *_: Any, **__: Any) -> Value:
    rank = len(ids.extents)
    return mapped(table, out.extents, lambda i: (ids.at(i[:rank]), i[rank]))


@operator("index_select.default")
def index_select(b: Builder, out: Shape, x: Value, dim: int, ids: Value) -> Value:
    dim %= len(x.extents)
    return mapped(x, out.extents, lambda i: (*i[:dim], ids.at((i[dim],) if ids.extents else ()), *i[dim + 1 :]))


@operator("gather.default")
def gather(b: Builder, out: Shape, x: Value, dim: int, ids: Value, **_: Any) -> Value:
    dim %= len(x.extents)
    return mapped(x, out.extents, lambda i: (*i[:dim], ids.at(i), *i[dim + 1 :]))


@operator("index.Tensor", "_unsafe_index.Tensor")
def index(b: Builder, out: Shape, x: Value, by: Sequence[Value | None]) -> Value:
    by = [*by, *[None] * (len(x.extents) - len(by))]
    places = [n for n, each in enumerate(by) if each is not None]
    indexed = [each for each in by if each is not None]
    if any(each.type == "bool" for each in indexed):
        raise NoFormulaError("the number of its results depends on a mask")
    rank = max(len(each.extents) for each in indexed)
    first = places[0] if places == list(range(places[0], places[-1] + 1)) else 0
    shared = out.extents[first : first + rank]

    def wrapped(found: Expr, extent: Expr) -> Expr:
        return select(call("<", found, 0), call("+", found, extent), found) if isinstance(found, Load) else found

    def at(i: Index) -> Expr:
        common, rest = i[first : first + rank], iter((*i[:first], *i[first + rank :]))
        return x.at(
            tuple(
                next(rest) if each is None else wrapped(broadcast(each, shared)(common), x.extents[n])
                for n, each in enumerate(by)
            )
        )

    return Value(out.extents, out.type, at)


@operator("index_add.default")
def index_add(b: Builder, out: Shape, x: Value, dim: int, ids: Value, source: Value, alpha: float = 1) -> Value:
    dim %= len(x.extents)
    over = b.dims(source.extents)
    at = (*over[:dim], ids.at((over[dim],)), *over[dim + 1 :])
    added = b.scatter(b.own + "_added", out.extents, out.type, at, source.at(over), over)
    return Value(
        out.extents,
        out.type,
        lambda i: call("+", x.at(i), added.at(i) if alpha == 1 else call("*", alpha, added.at(i))),
    )


@operator("scatter_add.default")
def scatter_add(b: Builder, out: Shape, x: Value, dim: int, ids: Value, source: Value) -> Value:
    dim %= len(x.extents)
    over = b.dims(ids.extents)
    at = (*over[:dim], ids.at(over), *over[dim + 1 :])
    added = b.scatter(b.own + "_added", out.extents, out.type, at, source.at(over), over)
    return Value(out.extents, out.type, lambda i: call("+", x.at(i), added.at(i)))


@operator("index_put.default", "_unsafe_index_put.default")
def index_put(
    b: Builder, out: Shape, x: Value, by: Sequence[Value | None], source: Value, accumulate: bool = False
) -> Value:
    indexed = [each for each in by if each is not None]
    if not accumulate or len(indexed) != 1 or indexed[0].type == "bool":
        raise NoFormulaError("of several values for one element it keeps any")
    (ids,) = indexed
    place = next(n for n, each in enumerate(by) if each is not None)
    extents = (*x.extents[:place], *ids.extents, *x.extents[place + 1 :])
    over = b.dims(extents)
    end = place + len(ids.extents)
    at = (*over[:place], ids.at(over[place:end]), *over[end:])
    added = b.scatter(b.own + "_added", out.extents, out.type, at, broadcast(source, extents)(over), over)
    return Value(out.extents, out.type, lambda i: call("+", x.at(i), added.at(i)))


@operator("slice_scatter.default")
def slice_scatter(
    b: Builder, out: Shape, x: Value, source: Value, dim: int = 0, start: Any = None, end: Any = None, step: int = 1
) -> Value:
    if step != 1:
        raise NoFormulaError("it writes with a step")
    dim %= len(x.extents)
    first = _place(start if start is not None else 0, x.extents[dim])
    last = add(first, source.extents[dim])

    def at(i: Index) -> Expr:
        inside = call("and", call(">=", i[dim], first), call("<", i[dim], last))
        return select(inside, source.at((*i[:dim], sub(i[dim], first), *i[dim + 1 :])), x.at(i))

    return Value(out.extents, out.type, at)


@operator("select_scatter.default")
def select_scatter(b: Builder, out: Shape, x: Value, source: Value, dim: int, index: int) -> Value:
    dim %= len(x.extents)
    place = _place(index, x.extents[dim])

    def at(i: Index) -> Expr:
        return select(call("==", i[dim], place), source.at((*i[:dim], *i[dim + 1 :])), x.at(i))

    return Value(out.extents, out.type, at)
