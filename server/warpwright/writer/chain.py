"""Which stages are a chain: a contraction, a map of its rows that is normalised by exponentials, and a second
contraction of what that gives. Attention is one; scale, mask, bias and cap of its scores are an expression.

With s(j) for the score of key j, all that a row of such stages needs is

    largest = max[j] s(j),  total = sum[j] exp(s(j) - largest),  sum = sum[j] exp(s(j) - largest) * v(j)

as `sum[j] exp(s(j) - m) * r` is `total * exp(largest - m) * r` for all m and r that do not depend on j.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from warpwright.formulas.bounds import polynomial
from warpwright.formulas.model import Formula, Stage
from warpwright.formulas.tree import Call, Expr, Load, Name, Num, Range, Reduce, rebuilt
from warpwright.writer.edges import Edges, edges_of
from warpwright.writer.sums import (
    LEAST,
    NOTHING,
    factors,
    is_least,
    loads_in,
    names_in,
    of_equals,
    product_of,
    simplified,
    sum_of,
    terms_of,
    with_names,
    without_terms,
)  # fmt: skip

LARGEST, TOTAL, SUM, OWN, SOME, PRODUCT = "@largest", "@total", "@sum", "@own", "@some", "@product"
"""Loads of these stand for what a row has gathered, for exp(largest - largest), for whether the row has keys, and for
an element of the first contraction."""
WIDTH, DEPTH = "@width", "@depth"
"""The dimension that the values have for themselves, and the one that the first contraction sums over."""
_MAX, _SHIFT = "@max ", "@shift"


class NoChainError(Exception):
    """Why stages are no chain: one sentence."""


@dataclass(frozen=True)
class Chain:
    """`PRODUCT` is `sum[DEPTH] queries * keys` for each of `rows` and `key`; the last of `rows` is that of a tile.
    `score` is an expression of it, and keys outside of `edges` count for nothing. `results` are stages over `rows`, and
    over `rows` and `WIDTH`, of what a row has gathered; `base` is the function that is applied to scores, "exp" or
    "exp2". `members` are the names of all stages that the chain computes."""

    queries: Load
    keys: Load
    values: Load
    rows: tuple[str, ...]
    key: str
    depth: Expr
    width: Expr
    width_name: str
    score: Expr
    edges: Edges
    base: str
    results: tuple[Stage, ...]
    members: frozenset[str]

    @property
    def row(self) -> str:
        return self.rows[-1]


def chains(formula: Formula) -> Iterator[Chain | str]:
    """For each contraction of a formula in its normal form the chain that it begins, or why it begins none."""
    for stage in formula.stages:
        if stage.temporary and not stage.combine and isinstance(stage.value, Reduce) and stage.value.op == "sum":
            try:
                yield _Reader(formula, stage).chain(stage.value)
            except NoChainError as error:
                yield str(error)


@dataclass
class _Reader:
    """A chain as far as it is known. Expressions are kept in the names that the first contraction's dimensions have;
    `known` is what stages compute, with their dimensions, and `largest` what the maximum is taken of: what depends on
    the key, and what is added to that."""

    formula: Formula
    first: Stage
    known: dict[str, tuple[tuple[str, ...], Expr]] = field(default_factory=dict)
    largest: dict[str, tuple[Expr, Expr]] = field(default_factory=dict)
    key: str = ""
    range: Range | None = None
    score: tuple[str, Expr, tuple[Expr, ...]] | None = None
    values: Load | None = None
    width: str = ""
    put_in: set[str] = field(default_factory=set)

    def chain(self, first: Reduce) -> Chain:
        stages = self.formula.stages
        one, other, scale = self._operands(first)
        own = tuple(map(Name, self.first.dims))
        self.known[self.first.name] = (self.first.dims, product_of([*scale[0], Load(PRODUCT, own)], scale[1]))
        later: set[str] = set()
        for stage in stages[stages.index(self.first) + 1 :]:
            reads = {load.tensor for load in loads_in(stage.value)}
            if self._is_same(stage):
                self.known[stage.name] = self.known[self.first.name]
            elif reads & later or (reads & self.known.keys() and not self._takes(stage)):
                later.add(stage.name)
        if self.score is None or self.values is None or self.range is None:
            raise NoChainError("No exponentials of the scores weigh values.")
        queries, keys = (other, one) if self.key in names_in(one) else (one, other)
        if self.key in names_in(queries):
            raise NoChainError("Both factors of the scores depend on the key.")
        row = self._row(queries, keys)
        base, score, conditions = self.score
        found = edges_of(conditions, self.range, row, self.formula.dims[self.key], self._is_whole)
        if isinstance(found, str):
            raise NoChainError(found)
        for each in reversed(found[1]):
            score = Call("select", (each, score, LEAST))
        rows = (*(each for each in self.first.dims if each not in (self.key, row)), row)
        dims = self.formula.dims
        return Chain(
            queries, keys, self.values, rows, self.key, dims[first.ranges[0].name], dims[self.width], self.width, score,
            found[0], base, tuple(self._results()), frozenset({*self.known, *self._only_read_here()}),
        )  # fmt: skip

    def _is_same(self, stage: Stage) -> bool:
        """Whether the stage is the first contraction again, in other names."""
        if len(stage.dims) != len(self.first.dims) or not stage.temporary or stage.combine:
            return False
        if not isinstance(stage.value, Reduce) or not isinstance(self.first.value, Reduce):
            return False
        pairs = [*zip(stage.dims, self.first.dims, strict=True)]
        pairs += [(a.name, b.name) for a, b in zip(stage.value.ranges, self.first.value.ranges, strict=False)]
        dims = self.formula.dims
        if any(polynomial(dims[one]) != polynomial(dims[other]) for one, other in pairs):
            return False
        ranges = tuple(replace(each, name=dict(pairs).get(each.name, each.name)) for each in stage.value.ranges)
        value = with_names(stage.value, {own: Name(name) for own, name in pairs})
        return isinstance(value, Reduce) and replace(value, ranges=ranges) == self.first.value

    def _operands(self, first: Reduce) -> tuple[Load, Load, tuple[list[Expr], list[Expr]]]:
        """The two arrays of the first contraction, and what else it multiplies with and divides by."""
        depth = first.ranges[0]
        if len(first.ranges) != 1 or depth.lower or depth.upper or first.accumulate not in ("", "f32"):
            raise NoChainError("The scores are no sums over one whole dimension in f32.")
        above, below = factors(with_names(self._with_maps(first.body), {depth.name: Name(DEPTH)}))
        inner = [each for each in above if DEPTH in names_in(each)]
        loads = [each for each in map(_bare, inner) if isinstance(each, Load) and each.outside is None]
        if len(inner) != 2 or len(loads) != 2 or any(DEPTH in names_in(each) for each in below):
            raise NoChainError("The scores are no products of two arrays.")
        return loads[0], loads[1], ([each for each in above if each not in inner], below)

    def _with_maps(self, node: Expr) -> Expr:
        """With the values of temporaries that are maps of a single array, such as scaled queries."""
        maps = {
            each.name: each
            for each in self.formula.stages
            if each.temporary and not each.combine and each.type == "f32" and not isinstance(each.value, Reduce)
        }

        def change(each: Expr) -> Expr:
            if not isinstance(each, Load) or each.tensor not in maps or each.outside is not None:
                return each
            stage = maps[each.tensor]
            value = self._with_maps(stage.value)
            if len(loads_in(value)) != 1:
                return each
            self.put_in.add(stage.name)
            return with_names(value, dict(zip(stage.dims, each.index, strict=True)))

        return rebuilt(node, change)

    def _takes(self, stage: Stage) -> bool:
        """Whether the stage belongs to the chain; what it computes is then known."""
        if stage.combine or stage.primed or stage.index:
            return False
        value = rebuilt(stage.value, self._put_in)
        names = self._names(stage, value)
        if names is None:
            return False
        found: Expr | None = with_names(value, {own: Name(name) for own, name in names.items()})
        if isinstance(found, Reduce):
            width = next((own for own, name in names.items() if name == WIDTH), "")
            ranges = tuple(replace(each, name=names.get(each.name, each.name)) for each in found.ranges)
            found = self._reduced(stage, replace(found, ranges=ranges), width)
        if found is None:
            return False
        self.known[stage.name] = (tuple(names[each] for each in stage.dims), found)
        return True

    def _put_in(self, node: Expr) -> Expr:
        if not isinstance(node, Load) or node.tensor not in self.known or node.outside is not None:
            return node
        dims, value = self.known[node.tensor]
        return with_names(value, dict(zip(dims, node.index, strict=True)))

    def _names(self, stage: Stage, value: Expr) -> dict[str, str] | None:
        """The chain's names of the stage's dimensions, as it reads what is known; None where it reads that in two ways,
        or has dimensions besides."""
        rows = tuple(each for each in self.first.dims if each != self.key)
        found: dict[str, str] = {}
        for load in loads_in(value):
            if load.tensor.startswith("@"):
                dims = self.first.dims if load.tensor == PRODUCT else (*rows, WIDTH) if load.tensor == SUM else rows
                for index, name in zip(load.index, dims, strict=True):
                    if not isinstance(index, Name) or found.setdefault(index.name, name) != name:
                        return None
        others = [each for each in stage.dims if each not in found]
        if isinstance(value, Reduce) and len(others) == 1:
            found[others.pop()] = WIDTH
        return None if others or len({*found.values()}) < len(found) else found

    def _reduced(self, stage: Stage, value: Reduce, width: str) -> Expr | None:
        """What a row has gathered by a reduction over the keys; None for another reduction."""
        own = value.ranges[0]
        if len(value.ranges) != 1 or own.name not in self.first.dims or own.name != (self.key or own.name):
            return None
        if value.op not in ("max", "sum") or value.accumulate not in ("", "f32"):
            raise NoChainError("The scores are reduced by more than a maximum and sums in f32.")
        self.key = own.name
        self.range = self.range or own
        if self.range != own:
            raise NoChainError("Reductions over the keys have different ranges.")
        if value.op == "max":
            keyed, fixed, conditions = self._split(value.body)
            self.largest[stage.name] = (_masked(keyed, conditions), fixed)
            return Load(f"{_MAX}{stage.name}", self._rows)
        self.width = self.width or width
        return self._gathered(value.body)

    @property
    def _rows(self) -> tuple[Name, ...]:
        return tuple(Name(each) for each in self.first.dims if each != self.key)

    def _is_fixed(self, node: Expr) -> bool:
        return self.key not in names_in(node)

    def _split(self, node: Expr) -> tuple[Expr, Expr, tuple[Expr, ...]]:
        """The terms that depend on the key, those that do not, and the conditions without which all is -inf."""
        terms, conditions = terms_of(node, self._is_fixed)
        keyed = [each for each in terms if not self._is_fixed(each[1])]
        return sum_of(keyed), sum_of([each for each in terms if each not in keyed]), tuple(conditions)

    def _gathered(self, body: Expr) -> Expr:
        """`sum[key] body` of what a row gathers."""
        match body:
            case Num(value=value) if value == 0:
                return Num(0.0)
            case Call(name="neg", args=(inner,)):
                return Call("neg", (self._gathered(inner),))
        above, below = factors(body)
        moving = [each for each in above if not self._is_fixed(each)]
        if not moving or not all(map(self._is_fixed, below)):
            raise NoChainError("What is summed over the keys is no exponential of a score.")
        outside = [each for each in above if each not in moving]
        for each in moving:
            match each:
                case Call(name="select", args=(test, one, other)) if self._is_fixed(test):
                    rest = [*(m for m in moving if m is not each)]
                    sides = [self._gathered(_zero_or(product_of([side, *rest], []), side)) for side in (one, other)]
                    return product_of([*outside, Call("select", (test, sides[0], sides[1]))], below)
        loads = [each for each in map(_bare, moving) if isinstance(each, Load)]
        powers = [each for each in map(_bare, moving) if not isinstance(each, Load)]
        if len(powers) != 1 or len(loads) > 1:
            raise NoChainError("What is summed over the keys is no exponential of a score.")
        base, power = _power(powers[0])
        keyed, fixed, conditions = self._split(power)
        score = (base, keyed, conditions)
        self.score = self.score or score
        if self.score != score:
            raise NoChainError("The sums are of exponentials of different scores.")
        gathered = Load(TOTAL, self._rows)
        if loads:
            gathered = Load(SUM, (*self._rows, Name(WIDTH)))
            self.values = self.values or loads[0]
            if self.values != loads[0] or loads[0].outside is not None or WIDTH not in names_in(loads[0]):
                raise NoChainError("Scores weigh two arrays, or one that has no dimension of its own.")
        shift = Call(base, (self._with_largest(fixed),))
        some = [Load(SOME, self._rows)] if below else []
        return product_of([gathered, Call(_SHIFT, (shift,)), *outside, *some], below)

    def _with_largest(self, fixed: Expr) -> Expr:
        largest = Load(LARGEST, self._rows)
        return largest if fixed == NOTHING else Call("+", (largest, fixed))

    def _with_own(self, node: Expr) -> Expr:
        """With what a shift comes to: nothing is gathered of a row that has no keys."""
        match node:
            case Call(name=name, args=(shift,)) if name == _SHIFT:
                powers = [each for each in factors(shift)[0] if of_equals(each) is None]
                own = [Load(OWN, self._rows)] if Load(LARGEST, self._rows) in map(of_equals, factors(shift)[0]) else []
                some = Load(SOME, self._rows)
                return product_of([*own, *(Call("select", (some, each, Num(0.0))) for each in powers)], [])
        return node

    def _without_own(self, node: Expr) -> Expr:
        """Where a test tells that the largest score is finite, its weight is 1."""
        largest, own = Load(LARGEST, self._rows), Load(OWN, self._rows)
        match node:
            case Call(name="select", args=(Call(args=(tested, *rest)) as test, one, other)) if tested == largest:
                if test.name == "isinf" or (test.name == "==" and is_least(rest[0])):
                    other = rebuilt(other, lambda each: Num(1.0) if each == own else each)
                    return Call("select", (test, one, simplified(other)))
        return node

    def _row(self, queries: Load, keys: Load) -> str:
        """The dimension whose rows share a tile: one that only the queries have."""
        assert self.values is not None
        others = names_in(keys) | names_in(self.values)
        alone = [each.name for each in queries.index if isinstance(each, Name) and each.name in self.first.dims]
        found = [each for each in alone if each not in others]
        if not found:
            raise NoChainError("One query for each of the keys' heads: no rows share a tile of keys.")
        dims = self.formula.dims

        def order(name: str) -> tuple[bool, bool, int]:
            is_number = isinstance(dims[name], Num)
            return polynomial(dims[name]) == polynomial(dims[self.key]), not is_number, self.first.dims.index(name)

        return max(found, key=order)

    def _is_whole(self, node: Expr) -> bool:
        match node:
            case Load(tensor=tensor):
                return not tensor.startswith("@") and self.formula.type_of(tensor).kind == "integer"
            case Name(name=name) if name in self.formula.scalars:
                return self.formula.type_of(name).kind == "integer"
        return True

    def _only_read_here(self) -> set[str]:
        """The temporaries that were put in and that nothing else reads."""
        own = {*self.put_in}
        while True:
            others = [each for each in self.formula.stages if each.name not in self.known and each.name not in own]
            read = {load.tensor for each in others for part in (each.value, *each.index) for load in loads_in(part)}
            if not own & read:
                return own
            own -= read

    def _results(self) -> Iterator[Stage]:
        """What others read of the chain, and its outputs."""
        outside = [each for each in self.formula.stages if each.name not in self.known]
        read = {load.tensor for each in outside for part in (each.value, *each.index) for load in loads_in(part)}
        assert self.score is not None
        instead: dict[str, Expr] = {}
        for name, (keyed, fixed) in self.largest.items():
            if keyed == _masked(self.score[1], self.score[2]):
                instead[f"{_MAX}{name}"] = self._with_largest(fixed)
        found = []
        for stage in self.formula.stages:
            if stage.name not in self.known or (stage.temporary and stage.name not in read):
                continue
            dims, value = self.known[stage.name]
            value = rebuilt(value, lambda each: instead.get(each.tensor, each) if isinstance(each, Load) else each)
            value = rebuilt(rebuilt(simplified(value), self._with_own), self._without_own)
            value = without_terms(value, SUM, Load(SOME, self._rows))
            if any(load.tensor == PRODUCT or load.tensor.startswith(_MAX) for load in loads_in(value)):
                raise NoChainError(f"{stage.name} is needed for each score, or as a maximum of something else.")
            found.append(replace(stage, dims=dims, value=value))
        if not any(WIDTH in each.dims for each in found):
            raise NoChainError("Nothing is stored of what the values give.")
        yield from found


def _bare(node: Expr) -> Expr:
    """Without casts to the type that is computed in."""
    match node:
        case Call(name="f32", args=(inner,)):
            return _bare(inner)
    return node


def _masked(score: Expr, conditions: tuple[Expr, ...]) -> Expr:
    for each in reversed(conditions):
        score = Call("select", (each, score, LEAST))
    return score


def _zero_or(node: Expr, factor: Expr) -> Expr:
    return Num(0.0) if isinstance(factor, Num) and factor.value == 0 else node


def _power(node: Expr) -> tuple[str, Expr]:
    """The function and the exponent of a weight; a weight that a condition makes 0 has the exponent -inf."""
    match node:
        case Call(name="exp" | "exp2" as name, args=(power,)):
            return name, power
        case Call(name="select", args=(test, weight, Num(value=value))) if value == 0:
            base, power = _power(_bare(weight))
            return base, Call("select", (test, power, LEAST))
        case Call(name="select", args=(test, Num(value=value), weight)) if value == 0:
            base, power = _power(_bare(weight))
            return base, Call("select", (Call("not", (test,)), power, LEAST))
    raise NoChainError("What is summed over the keys is no exponential of a score.")
