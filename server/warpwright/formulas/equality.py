"""Whether two formulas compute the same.

What does not count: names of dimensions, sizes and stages; the order of operands and of nested sums; whether a part is
a stage of its own; how a mean, a variance, a sigmoid and the like are spelt. Arithmetic is taken as exact: roundings in
between, and what wraps around, do not count. What counts: names, types, extents and strides of arrays, names of
numbers, and all else. Formulas that compute the same may still be called different; those that are called the same are.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import permutations

from warpwright.formulas.bounds import Polynomial, plus, polynomial
from warpwright.formulas.model import Formula, Stage
from warpwright.formulas.parser import parse
from warpwright.formulas.tree import Call, Expr, Load, Name, Num, Range, Reduce
from warpwright.formulas.types import TYPES
from warpwright.formulas.typing_rules import settled, type_of

MOST_STEPS = 20_000
"""Of a comparison; what takes more is called different."""
MOST_PERMUTED = 5
"""Dimensions of one reduction, of which each order is tried."""


def same(one: Formula, other: Formula) -> bool:
    """Whether both compute the same of the same arrays and numbers.

    >>> from warpwright.formulas.resolve import formula_of
    >>> same(formula_of("y[r] = mean[c] 2 * x[r, c]"), formula_of("y[i] = s[i] / J * 2 where s[i] = sum[j] x[i, j]"))
    True
    >>> same(formula_of("y[r] = sum[c] x[r, c]"), formula_of("y[c] = sum[r] x[r, c]"))
    False
    """
    try:
        return meaning(one) == meaning(other)
    except _TooLargeError:
        return False


def meaning(formula: Formula) -> Mapping[str, str]:
    """What each array holds afterwards and how it lies, as texts that are the same where formulas are."""
    reader = _Reader(formula)
    found = {f"array {name}": reader.array(name) for name in formula.tensors}
    return found | {f"result {each.name}": reader.result(each) for each in formula.outputs}


class _TooLargeError(Exception):
    pass


_Factor = tuple[str, int, frozenset[int]]
"""What is multiplied, its power, and the levels of the reduced dimensions around it that it depends on."""
_Product = tuple[_Factor, ...]


@dataclass(frozen=True, slots=True)
class _Value:
    """What an expression is: a sum of products, each with a number before it."""

    terms: tuple[tuple[_Product, Fraction], ...]

    @property
    def key(self) -> str:
        if (
            len(self.terms) == 1
            and self.terms[0][1] == 1
            and len(self.terms[0][0]) == 1
            and self.terms[0][0][0][1] == 1
        ):
            return self.terms[0][0][0][0]
        return _key("sum", *(f"{[each[:2] for each in part]}*{factor}" for part, factor in self.terms))

    @property
    def uses(self) -> frozenset[int]:
        return frozenset(use for part, _ in self.terms for factor in part for use in factor[2])

    @property
    def number(self) -> Fraction | None:
        if not self.terms:
            return Fraction(0)
        return self.terms[0][1] if len(self.terms) == 1 and not self.terms[0][0] else None


def _key(*parts: object) -> str:
    return hashlib.blake2b("\0".join(map(str, parts)).encode(), digest_size=12).hexdigest()


def _atom(key: str, uses: frozenset[int] = frozenset(), power: int = 1) -> _Value:
    return _Value(((((key, power, uses),), Fraction(1)),))


def _literal(value: Fraction) -> _Value:
    return _Value((((), value),) if value else ())


def _added(values: Sequence[_Value]) -> _Value:
    total: dict[_Product, Fraction] = {}
    for value in values:
        for part, factor in value.terms:
            total[part] = total.get(part, Fraction(0)) + factor
    left = [(part, factor) for part, factor in total.items() if factor]
    return _Value(tuple(sorted(left, key=lambda each: [factor[:2] for factor in each[0]])))


def _scaled(value: _Value, factor: Fraction) -> _Value:
    return _Value(tuple((part, own * factor) for part, own in value.terms))


def _multiplied(values: Sequence[_Value]) -> _Value:
    """The product. What is divided by is kept apart: x / x is 1 for all x but 0."""
    powers: dict[tuple[str, bool], int] = {}
    uses: dict[str, frozenset[int]] = {}
    number = Fraction(1)
    for value in values:
        if not value.terms:
            return value
        part, own = value.terms[0] if len(value.terms) == 1 else _atom(value.key, value.uses).terms[0]
        number *= own
        for key, power, levels in part:
            powers[key, power > 0] = powers.get((key, power > 0), 0) + power
            uses[key] = levels
    return _Value(((tuple(sorted((key, power, uses[key]) for (key, _), power in powers.items())), number),))


def _inverse(value: _Value) -> _Value:
    if len(value.terms) > 1:
        return _atom(value.key, value.uses, -1)
    part, number = value.terms[0]
    return _Value(((tuple((key, -power, uses) for key, power, uses in part), 1 / number),))


def _spelt(text: str) -> Expr:
    return parse(f"y = {text}").equations[0].value


SPELT_OUT = {
    "relu": _spelt("max(a, 0)"), "square": _spelt("a * a"), "sigmoid": _spelt("1 / (1 + exp(-a))"),
    "silu": _spelt("a / (1 + exp(-a))"), "fma": _spelt("a * b + c"), "clamp": _spelt("min(max(a, b), c)"),
    "rcp": _spelt("1 / a"), "rsqrt": _spelt("1 / sqrt(a)"), "erfc": _spelt("1 - erf(a)"), "log1p": _spelt("log(1 + a)"),
    "expm1": _spelt("exp(a) - 1"), "softplus": _spelt("log(1 + exp(a))"),
}  # fmt: skip
"""Functions as others: their arguments are a, b and c."""
_IN_ANY_ORDER = ("max", "min", "fmax", "fmin", "and", "or", "==", "!=", "&", "|", "^", "hypot")
_NESTING = ("max", "min", "fmax", "fmin", "and", "or", "&", "|", "^")
_MERGING = ("sum", "prod", "max", "min", "any", "all")
_Scope = Mapping[str, _Value]


@dataclass
class _Reader:
    formula: Formula
    sizes: dict[str, str] = field(default_factory=dict)
    known: dict[tuple[str, tuple[str, ...], int], _Value] = field(default_factory=dict)
    steps: int = 0

    def __post_init__(self) -> None:
        for name in sorted(self.formula.tensors):
            for place, extent in enumerate(self.formula.tensors[name].extents):
                if isinstance(extent, Name):
                    self.sizes.setdefault(extent.name, f"{name} {place}")

    def array(self, name: str) -> str:
        tensor = self.formula.tensors[name]
        strides = None if tensor.strides is None else [self.extent(each) for each in tensor.strides]
        extents = [self.extent(each) for each in tensor.extents]
        return _key(tensor.type, tensor.role, tensor.base, tensor.offset, extents, strides)

    def result(self, stage: Stage) -> str:
        """Where a result goes, and which value."""
        if not stage.index:
            scope = {dim: _atom(f"place {place}") for place, dim in enumerate(stage.dims)}
            return _key(stage.type, stage.primed, self.value(stage.value, scope, 0).key)

        def scattered(scope: _Scope) -> str:
            places = [self.value(each, scope, len(stage.dims)).key for each in stage.index]
            return _key(*places, self.value(stage.value, scope, len(stage.dims)).key)

        orders = permutations(stage.dims) if len(stage.dims) <= MOST_PERMUTED else [stage.dims]
        least = min(scattered({dim: self._bound(dim, level) for level, dim in enumerate(order)}) for order in orders)
        return _key(stage.type, stage.combine, stage.keeps, least)

    def extent(self, node: Expr) -> str:
        return _key(*sorted(self._sized(polynomial(node) or {}).items()))

    def _sized(self, terms: Polynomial) -> dict[str, int]:
        return {" * ".join(sorted(self.sizes.get(name, name) for name in key)): value for key, value in terms.items()}

    def _bound(self, dim: str, level: int) -> _Value:
        return _atom(_key("reduced", level, self.extent(self.formula.dims[dim])), frozenset([level]))

    def value(self, node: Expr, scope: _Scope, level: int) -> _Value:
        """The value of an expression, within `level` dimensions that are reduced."""
        self.steps += 1
        if self.steps > MOST_STEPS:
            raise _TooLargeError
        match node:
            case Num(value=number):
                if isinstance(number, bool) or not math.isfinite(number):
                    return _atom(_key("literal", number))
                return _literal(Fraction(number))
            case Name(name=name):
                return self._named(name, scope)
            case Load():
                return self._loaded(node, scope, level)
            case Reduce():
                return self._reduced(node, scope, level)
            case Call():
                return self._called(node, scope, level)

    def _named(self, name: str, scope: _Scope) -> _Value:
        if name in scope:
            return scope[name]
        return _atom(f"number {name}" if name in self.formula.scalars else f"size {self.sizes.get(name, name)}")

    def _loaded(self, node: Load, scope: _Scope, level: int) -> _Value:
        index = [self.value(each, scope, level) for each in node.index]
        uses = frozenset[int]().union(*(each.uses for each in index))
        stage = self.formula.stage(node.tensor)
        if stage is None or stage.index or node.outside is not None:
            what = self.result(stage) if stage is not None else f"array {node.tensor}"
            outside = node.outside if not isinstance(node.outside, Num) else self.value(node.outside, {}, 0).key
            return _atom(_key(what, *(each.key for each in index), "outside", outside), uses)
        wanted = (stage.name, tuple(each.key for each in index), level)
        if wanted not in self.known:
            found = self.value(stage.value, dict(zip(stage.dims, index, strict=True)), level)
            whole = TYPES[stage.type].kind
            self.known[wanted] = found if self._kind(stage.value) == whole else _atom(_key(stage.type, found.key), uses)
        return self.known[wanted]

    def _kind(self, node: Expr) -> str:
        whole = {*self.formula.dims, *self.formula.sizes}
        return settled(type_of(node, lambda name: TYPES["i64"] if name in whole else self.formula.type_of(name))).kind

    def _called(self, node: Call, scope: _Scope, level: int) -> _Value:
        name, args = node.name, node.args
        if name in SPELT_OUT:
            given = {letter: self.value(arg, scope, level) for letter, arg in zip("abc", args, strict=False)}
            return self.value(SPELT_OUT[name], given, level)
        if name in TYPES and TYPES[name].is_float:
            return self.value(args[0], scope, level)
        if name == "select" and isinstance(args[0], Call) and args[0].name == "not":
            return self._called(Call("select", (args[0].args[0], args[2], args[1])), scope, level)
        values = [self.value(each, scope, level) for each in args]
        match name:
            case "+":
                return _added(values)
            case "-":
                return _added([values[0], _scaled(values[1], Fraction(-1))])
            case "neg":
                return _scaled(values[0], Fraction(-1))
            case "*":
                return _multiplied(values)
            case "/" if values[1].number != 0:
                return _multiplied([values[0], _inverse(values[1])])
            case "**" | "pow" if (power := values[1].number) is not None and power.denominator == 1 and 0 < power <= 8:
                return _multiplied([values[0]] * int(power))
            case ">" | ">=":
                name, values = {">": "<", ">=": "<="}[name], values[::-1]
        uses = frozenset[int]().union(*(each.uses for each in values))
        keys = [each.key for each in values]
        if name in ("**", "pow"):
            keys.append(self._kind(node))  # 2 ** -1 is 0 in whole numbers
        if name in _NESTING:
            keys = [key for arg in args for key in self._nested(name, arg, scope, level)]
        return _atom(_key(name, *(sorted(keys) if name in _IN_ANY_ORDER else keys)), uses)

    def _nested(self, name: str, node: Expr, scope: _Scope, level: int) -> list[str]:
        """The operands of a function within itself: of max(a, max(b, c)) a, b and c."""
        if isinstance(node, Call) and node.name == name:
            return [key for each in node.args for key in self._nested(name, each, scope, level)]
        return [self.value(node, scope, level).key]

    def _reduced(self, node: Reduce, scope: _Scope, level: int) -> _Value:
        node = self._whole(node)
        spelt = _in_sums(node)
        if spelt is not node:
            return self.value(spelt, scope, level)
        while node.op in _MERGING and isinstance(node.body, Reduce) and node.body.op == node.op:
            inner = self._whole(node.body)
            if {each.name for each in node.ranges} & {each.name for each in inner.ranges}:
                break
            node = Reduce(node.op, (*node.ranges, *inner.ranges), inner.body)
        ranges, inside = node.ranges, level + len(node.ranges)
        orders = permutations(ranges) if len(ranges) <= MOST_PERMUTED else [ranges]
        tried = []
        for order in orders:
            own = {**scope, **{each.name: self._bound(each.name, level + n) for n, each in enumerate(order)}}
            ends = [self._ends(each, own, inside) for each in order]
            body = self.value(node.body, own, inside)
            outside, body = _apart(node.op, body, level)
            uses = frozenset(use for each in (body, *(value for end in ends for value in end)) for use in each.uses)
            extents = [self.extent(self.formula.dims[each.name]) for each in order]
            key = _key(node.op, *extents, *([each.key for each in end] for end in ends), body.key)
            tried.append((key, outside, frozenset(use for use in uses if use < level)))
        key, outside, uses = min(tried, key=lambda each: each[0])
        return _multiplied([outside, _atom(key, uses)])

    def _ends(self, each: Range, scope: _Scope, level: int) -> list[_Value]:
        lower = [] if each.lower is None else [self.value(each.lower, scope, level)]
        if each.upper is None:
            return [_atom("from"), *lower]
        last = self.value(each.upper, scope, level)
        return [*lower, last if each.closed else _added([last, _literal(Fraction(-1))])]

    def _whole(self, node: Reduce) -> Reduce:
        """Ranges that leave nothing out, without their ends."""
        ranges = []
        for each in node.ranges:
            extent = polynomial(self.formula.dims[each.name])
            upper = None if each.upper is None else polynomial(each.upper)
            if upper is not None and each.closed:
                upper = plus(upper, {(): 1})
            first = each.lower is None or polynomial(each.lower) == {}
            whole = first and (each.upper is None or upper == extent)
            ranges.append(Range(each.name) if whole else each)
        if node.op == "mean" and all(each == Range(each.name) for each in ranges):
            count: Expr = Num(1)
            for each in ranges:
                count = Call("*", (count, self.formula.dims[each.name]))
            return Reduce("sum", tuple(ranges), Call("/", (node.body, count)))
        return Reduce(node.op, tuple(ranges), node.body)


def _apart(op: str, body: _Value, level: int) -> tuple[_Value, _Value]:
    """The factors of a sum that do not depend on what is summed over, and the rest."""
    if op != "sum" or len(body.terms) != 1:
        return _literal(Fraction(1)), body
    part, number = body.terms[0]
    before = tuple(each for each in part if all(use < level for use in each[2]))
    return _Value(((before, number),)), _Value(((tuple(each for each in part if each not in before), Fraction(1)),))


def _in_sums(node: Reduce) -> Expr:
    """A variance as the mean of squares, `logsumexp` as what it is called."""
    match node.op:
        case "var" | "std":
            mean = Reduce("mean", node.ranges, node.body)
            found: Expr = Reduce("mean", node.ranges, Call("square", (Call("-", (node.body, mean)),)))
            return found if node.op == "var" else Call("sqrt", (found,))
        case "logsumexp":
            return Call("log", (Reduce("sum", node.ranges, Call("exp", (node.body,))),))
    return node
