"""Where the keys begin and end that a row sees: comparisons of indices as ends of a range."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator
from dataclasses import dataclass, field

from warpwright.formulas.bounds import Polynomial, expression, facts_of, plus, polynomial, scaled
from warpwright.formulas.tree import Call, Expr, Load, Name, Num, Range, rebuilt, walk
from warpwright.writer.sums import sum_of

_OPPOSITE = {"<": ">=", "<=": ">", ">": "<=", ">=": "<"}


@dataclass(frozen=True, slots=True)
class Edge:
    """`slope * row + rest`; the slope is not negative."""

    slope: int
    rest: Expr


@dataclass(frozen=True, slots=True)
class Edges:
    """A row sees the keys from the last of `since` to before the first of `until`. `are_ranges`: what is reduced leaves
    out the other keys; else their scores are -inf."""

    since: tuple[Edge, ...] = ()
    until: tuple[Edge, ...] = ()
    are_ranges: bool = True


def edges_of(
    conditions: Iterable[Expr], reduced: Range, row: str, extent: Expr, is_whole: Callable[[Expr], bool]
) -> tuple[Edges, list[Expr]] | str:
    """The edges that conditions and the range of a reduction over the keys set, and the conditions that set none; or
    why a range is no edge. `extent` is that of the keys, `is_whole` tells names and loads that are whole numbers."""
    found = _Reader(row, reduced.name, is_whole)
    since: list[Edge] = []
    until: list[Edge] = []
    for test in _tests(reduced):
        edges = found.edges(test)
        if edges is None:
            return "The range of the keys is not set by sizes and the row's number."
        since += edges[0]
        until += edges[1]
    ranged = len(since) + len(until)
    left: list[Expr] = []
    for test in (each for condition in conditions for each in _conjuncts(condition)):
        edges = found.edges(test)
        if edges is None:
            left.append(test)
        else:
            since += edges[0]
            until += edges[1]
    are_ranges = ranged == len(since) + len(until)
    until = [each for each in until if each.slope or polynomial(each.rest) != polynomial(extent)]
    return Edges(tuple(dict.fromkeys(since)), tuple(dict.fromkeys(until)), are_ranges), left


def _tests(one: Range) -> Iterator[Expr]:
    """The range as comparisons; an end that is the larger of two is two of them."""
    match one.lower:
        case Call(name="max", args=args):
            yield from (test for each in args for test in _tests(Range(one.name, lower=each)))
        case None | Num(value=0):
            pass
        case _:
            yield Call("<=", (one.lower, Name(one.name)))
    match one.upper:
        case Call(name="min", args=args):
            yield from (test for each in args for test in _tests(Range(one.name, upper=each, closed=one.closed)))
        case None:
            return
        case _:
            yield Call("<=" if one.closed else "<", (Name(one.name), one.upper))


def _conjuncts(node: Expr) -> Iterator[Expr]:
    match node:
        case Call(name="and", args=args):
            for each in args:
                yield from _conjuncts(each)
        case Call(name="not", args=(Call(name="or", args=(one, other)),)):
            yield from _conjuncts(Call("not", (one,)))
            yield from _conjuncts(Call("not", (other,)))
        case Call(name="not", args=(Call(name="<" | "<=" | ">" | ">=" as sign, args=args),)):
            yield from _conjuncts(Call(_OPPOSITE[sign], args))
        case Call(name=">" | ">=" as sign, args=(most, Call(name="abs") as size)):
            yield from _conjuncts(Call(sign.replace(">", "<"), (size, most)))
        case Call(name="<" | "<=" as sign, args=(Call(name="abs", args=(inner,)), most)):
            yield Call(sign, (inner, most))
            yield Call(sign, (Call("neg", (inner,)), most))
        case _:
            yield node


@dataclass
class _Reader:
    row: str
    key: str
    is_whole: Callable[[Expr], bool]
    opaque: dict[str, Expr] = field(default_factory=dict)

    def edges(self, test: Expr) -> tuple[list[Edge], list[Edge]] | None:
        """The edges that a comparison sets, from which and before which keys are seen; None where it sets none."""
        since: list[Edge] = []
        until: list[Edge] = []
        if not all(self.is_whole(each) for each in walk(test) if isinstance(each, Name | Load)):
            return None
        for fact in facts_of(opaque(test, (self.row, self.key), self.opaque)):
            own, row, rest = self._parts(fact)
            if own not in (1, -1) or any(name in (self.row, self.key) for key in rest for name in key):
                return None
            if own * row > 0:
                return None  # falls from row to row
            if own > 0:
                since.append(Edge(-row, self._shown(scaled(rest, -1))))
            else:
                until.append(Edge(row, self._shown(plus(rest, {(): 1}))))
        return (since, until) if since or until else None

    def _parts(self, fact: Polynomial) -> tuple[int, int, Polynomial]:
        """The factors of the key and of the row, and what else is added."""
        rest = {key: factor for key, factor in fact.items() if key not in ((self.row,), (self.key,))}
        return fact.get((self.key,), 0), fact.get((self.row,), 0), rest

    def _shown(self, found: Polynomial) -> Expr:
        terms = [(1 if factor > 0 else -1, expression({key: abs(factor)})) for key, factor in found.items()]
        shown = sum_of(sorted(terms, key=lambda each: isinstance(each[1], Num))) if terms else Num(0)
        return rebuilt(shown, lambda each: self.opaque.get(each.name, each) if isinstance(each, Name) else each)


def opaque(node: Expr, moving: Container[str], names: dict[str, Expr]) -> Expr:
    """With a name for each load and quotient that has none of the `moving` names; `names` collects them."""

    def change(each: Expr) -> Expr:
        fixed = not any(isinstance(inner, Name) and inner.name in moving for inner in walk(each))
        if not fixed or not (isinstance(each, Load) or (isinstance(each, Call) and polynomial(each) is None)):
            return each
        name = f"@{each}"
        names[name] = each
        return Name(name)

    return rebuilt(node, change)
