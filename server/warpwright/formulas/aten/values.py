"""Values of a graph as functions from an index to an expression, and the stages that are made of them.

A value is computed where it is read, until it is named: then it is a stage, and its readers load it. Dimensions are
shared by all stages: of one extent there is a first, a second and so on, so that stages of the same shape have the same
dimensions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from warpwright.formulas.aten.graph import Shape
from warpwright.formulas.aten.indices import ONE, ZERO, Index, reshaped, same
from warpwright.formulas.bounds import Bounds
from warpwright.formulas.tree import Call, Expr, Load, Name, Num, Range, Reduce, walk

Kind = Literal["map", "rows", "product", "scatter", "scan"]
"""How a stage reads: each element once, each once for a row that is reduced, many times (a matrix product, a window),
or into places that are computed."""


@dataclass(frozen=True, slots=True)
class Value:
    """`at` gives the element at an index. `name` is that of the array that holds the elements in order, "" for what is
    not in memory; `origin` the value of which this is the same elements in other extents."""

    extents: Index
    type: str
    at: Callable[[Index], Expr]
    name: str = ""
    origin: Value | None = None


@dataclass(frozen=True, slots=True)
class Made:
    """A stage: `name[index] = value` over `dims`. `together` names stages that belong to one kernel."""

    name: str
    dims: tuple[str, ...]
    value: Expr
    type: str
    kind: Kind
    together: str = ""
    index: tuple[Expr, ...] = ()
    extents: tuple[Expr, ...] = ()


class NoFormulaError(Exception):
    """An operator, or a use of one, that is no formula: the tail of a sentence."""


@dataclass
class Builder:
    """Collects stages. `aliases` are arrays under other extents: the name of the array and the extents.

    What the function of an operator may ask about the call: `own`, the name of its result; `operator`, its own name;
    `results`, the shapes of all that it gives; `used`, the numbers of those that something reads; and whether
    convolutions and products stay a library's."""

    extents: dict[str, Expr] = field(default_factory=dict)
    stages: dict[str, Made] = field(default_factory=dict)
    arrays: dict[str, Shape] = field(default_factory=dict)
    aliases: dict[str, tuple[str, Index]] = field(default_factory=dict)
    own: str = ""
    operator: str = ""
    results: tuple[Shape, ...] = ()
    used: frozenset[int] = frozenset()
    keeps_convolutions: bool = True
    keeps_products: bool = False
    together: str = ""
    _by_extent: dict[Expr, list[str]] = field(default_factory=dict)

    def dims(self, extents: Sequence[Expr], taken: Sequence[str] = ()) -> Index:
        """A dimension for each extent, but for those of 1, whose index is 0."""
        used: set[str] = set(taken)
        found: list[Expr] = []
        for each in extents:
            if each == ONE:
                found.append(ZERO)
                continue
            known = self._by_extent.setdefault(each, [])
            free = next((name for name in known if name not in used), None)
            if free is None:
                free = f"#{len(self.extents)}"
                known.append(free)
                self.extents[free] = each
            used.add(free)
            found.append(Name(free))
        return tuple(found)

    def array(self, name: str, shape: Shape) -> Value:
        """An array that is handed over, or that a call of a library leaves."""
        self.arrays[name] = shape
        return Value(shape.extents, shape.type, _load(name, shape.extents), "" if shape.strides else name)

    def fresh(self, name: str) -> str:
        taken = {*self.stages, *self.arrays, *self.aliases}
        return name if name not in taken else next(f"{name}_{n}" for n in range(2, 10000) if f"{name}_{n}" not in taken)

    def named(self, value: Value, name: str = "") -> Value:
        """The value as an array or a stage, which its readers load."""
        if value.name:
            return value
        index = self.dims(value.extents)
        expr = value.at(index)
        if isinstance(expr, Load) and expr.index == _kept(index, value.extents) and expr.outside is None:
            base, extents = self.under(expr.tensor)
            if _squeezed(extents) == _squeezed(value.extents) and self.arrays[base].strides is None:
                return Value(value.extents, value.type, value.at, base)
        if value.origin is not None:
            return self.reshape(self.named(value.origin, name), value.extents)
        return self.stage(name or self.own, value.extents, value.type, expr, "map", index)

    def stage(
        self, name: str, extents: Index, kind: str, expr: Expr, how: Kind, index: Index, together: str = ""
    ) -> Value:
        """A stage over the dimensions in `index`."""
        name = self.fresh(name)
        dims = tuple(each.name for each in index if isinstance(each, Name))
        self.stages[name] = Made(name, dims, expr, kind, how, together or self.together)
        self.arrays[name] = Shape(extents, kind)
        return Value(extents, kind, _load(name, extents), name)

    def scatter(self, name: str, extents: Index, kind: str, index: Index, expr: Expr, dims: Index) -> Value:
        """A stage that adds values up at places that are computed, from 0 on."""
        name = self.fresh(name)
        over = tuple(each.name for each in dims if isinstance(each, Name))
        value = Reduce("sum", tuple(map(Range, over)), expr)
        kept = _kept(index, extents)
        left = tuple(each for each in extents if each != ONE)
        self.stages[name] = Made(name, over, value, kind, "scatter", "", kept, left)
        self.arrays[name] = Shape(extents, kind)
        return Value(extents, kind, _load(name, extents), name)

    def reduce(
        self,
        op: str,
        value: Value,
        over: Sequence[int],
        kind: str,
        *,
        name: str = "",
        keep: bool = False,
        body: Callable[[Expr], Expr] = lambda each: each,
    ) -> Value:
        """A reduction of some places of a value; `keep` leaves them with an extent of 1."""
        over = [each % len(value.extents) for each in over] if value.extents else []
        left = tuple(e for n, e in enumerate(value.extents) if n not in over)
        index = self.dims(left)
        taken = [each.name for each in index if isinstance(each, Name)]
        ranges = self.dims([value.extents[n] for n in over], taken)
        found, inner = iter(index), iter(ranges)
        whole = tuple(next(inner) if n in over else next(found) for n in range(len(value.extents)))
        expr = body(value.at(whole))
        names = tuple(Range(each.name) for each in ranges if isinstance(each, Name))
        made = (
            self.stage(name or self.own, left, kind, Reduce(op, names, expr), "rows", index)
            if names
            else Value(left, kind, self._of_one(op, value, whole, over, body))
        )
        return self.reshape(made, tuple(ONE if n in over else e for n, e in enumerate(value.extents))) if keep else made

    @staticmethod
    def _of_one(
        op: str, value: Value, whole: Index, over: Sequence[int], body: Callable[[Expr], Expr]
    ) -> Callable[[Index], Expr]:
        """`at` of a reduction of one element."""
        if op in ("argmax", "argmin", "var", "std"):
            return lambda index: Num(0 if op.startswith("arg") else 0.0)

        def at(index: Index) -> Expr:
            kept = iter(index)
            return body(value.at(tuple(ZERO if n in over else next(kept) for n in range(len(whole)))))

        return at

    def reshape(self, value: Value, extents: Index) -> Value:
        """The same elements in other extents."""
        if len(extents) == len(value.extents) and all(map(same, extents, value.extents)):
            return value
        if _squeezed(extents) == _squeezed(value.extents):
            return Value(extents, value.type, _moved(value, extents), value.name, value.origin)
        base = value.origin or value
        if len(base.extents) == len(extents) and all(map(same, extents, base.extents)):
            return base
        if value.name:
            alias = self.alias(value.name, extents)
            return Value(extents, value.type, _load(alias, extents), value.name, base if base.name else None)
        if reshaped(self.dims(extents), extents, value.extents, self.extents) is None:
            raise NoFormulaError("its extents are not known to hold as many elements")

        def at(index: Index) -> Expr:
            old = reshaped(index, extents, base.extents, self.extents)
            assert old is not None
            return base.at(old)

        return Value(extents, value.type, at, "", base)

    def alias(self, name: str, extents: Index) -> str:
        """The array under other extents."""
        for alias, known in self.aliases.items():
            if known == (name, extents):
                return alias
        alias = self.fresh(f"{name}_as")
        self.aliases[alias] = (name, extents)
        return alias

    def under(self, name: str) -> tuple[str, Index]:
        """The array that a load means, and the extents under which it reads it."""
        return self.aliases[name] if name in self.aliases else (name, self.arrays[name].extents)

    def inside(self, value: Value, index: Index, fill: float | int) -> Expr:
        """The element, or `fill` where the index lies outside of the extents."""
        bounds = Bounds(self.extents)
        beyond = [
            (each, extent)
            for each, extent in zip(index, value.extents, strict=True)
            if not (bounds.at_least(each, {}) and bounds.less(each, extent))
        ]
        if not beyond:
            return value.at(index)
        own = self.dims(value.extents)
        plain = value.at(own)
        found = value.at(index)
        if isinstance(plain, Load) and isinstance(found, Load) and plain.outside is None:
            tested = {each.name for each, i in zip(own, index, strict=True) if isinstance(each, Name) and i != each}
            parts = [set(_names(each)) for each in plain.index]
            if all({name} in parts for name in tested) and all(isinstance(each, Name) for each in plain.index):
                return Load(found.tensor, found.index, Num(fill))
        condition: Expr | None = None
        for each, extent in beyond:
            if not bounds.at_least(each, {}):
                condition = _both(condition, Call(">=", (each, ZERO)))
            if not bounds.less(each, extent):
                condition = _both(condition, Call("<", (each, extent)))
        assert condition is not None
        return Call("select", (condition, found, Num(fill)))


def weight(node: Expr) -> int:
    """How many functions and operators an expression has; indices count nothing."""
    match node:
        case Call(args=args):
            return 1 + sum(map(weight, args))
        case Reduce(body=body):
            return 1 + weight(body)
    return 0


def number(value: float | int | bool, type: str = "") -> Value:
    """A number, as a value without extents."""
    kind = type or ("bool" if isinstance(value, bool) else "i64" if isinstance(value, int) else "f32")
    return Value((), kind, lambda index: Num(value))


def broadcast(value: Value, extents: Index) -> Callable[[Index], Expr]:
    """`at` for an index into larger extents."""
    before = len(extents) - len(value.extents)

    def at(index: Index) -> Expr:
        inner = index[before:]
        return value.at(tuple(ZERO if e == ONE else i for i, e in zip(inner, value.extents, strict=True)))

    return at


def _load(name: str, extents: Index) -> Callable[[Index], Expr]:
    return lambda index: Load(name, _kept(index, extents))


def _kept(index: Index, extents: Index) -> Index:
    return tuple(each for each, extent in zip(index, extents, strict=True) if extent != ONE)


def _squeezed(extents: Index) -> Index:
    return tuple(each for each in extents if each != ONE)


def _moved(value: Value, extents: Index) -> Callable[[Index], Expr]:
    """`at` for extents that differ by some of 1."""

    def at(index: Index) -> Expr:
        kept = iter(_kept(index, extents))
        return value.at(tuple(ZERO if each == ONE else next(kept) for each in value.extents))

    return at


def _both(one: Expr | None, other: Expr) -> Expr:
    return other if one is None else Call("and", (one, other))


def _names(node: Expr) -> list[str]:
    return [each.name for each in walk(node) if isinstance(each, Name)]
