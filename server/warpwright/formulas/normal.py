"""The normal form: what a writer begins with.

Every reduction is the whole of a stage and one of `PLAIN`; no dimension that is reduced has the name of one of the
result's; what an array held before is read at the element that is written, or not in the stages that write it.

Example: `y[r, c] = x[r, c] / mean[c] x[r, c]` becomes `y_sum[r] = sum[c2] x[r, c2]` and `y[r, c] = x[r, c] / (y_sum[r]
/ C)`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from warpwright.formulas.bounds import Bounds, from_memory
from warpwright.formulas.extents import names_in
from warpwright.formulas.model import Formula, Stage, Tensor
from warpwright.formulas.tree import Call, Expr, Load, Name, Num, Range, Reduce, rebuilt, walk
from warpwright.formulas.types import TYPES, ElementType, computed
from warpwright.formulas.typing_rules import settled, type_of

PLAIN = ("sum", "prod", "max", "min", "any", "all", "argmax", "argmin")
"""Reductions that a writer knows. The others are made of them."""


def normal(formula: Formula) -> Formula:
    """The formula in its normal form. It computes the same.

    >>> from warpwright.formulas.printer import shown
    >>> from warpwright.formulas.resolve import formula_of
    >>> for stage in normal(formula_of("y[r, c] = x[r, c] / mean[c] x[r, c]")).stages:
    ...     print(stage.name, stage.dims, shown(stage.value))
    y_sum ('r',) sum[c2] x[r, c2]
    y ('r', 'c') x[r, c] / (y_sum[r] / f32(C))
    """
    return _Normal(formula).formula()


@dataclass
class _Normal:
    given: Formula
    dims: dict[str, Expr] = field(default_factory=dict)
    taken: set[str] = field(default_factory=set)
    done: list[Stage] = field(default_factory=list)
    types: dict[str, str] = field(default_factory=dict)
    renamed: dict[str, list[str]] = field(default_factory=dict)

    def formula(self) -> Formula:
        given = self.given
        self.dims = dict(given.dims)
        self.taken = {*given.tensors, *given.scalars, *given.dims, *given.sizes, *(each.name for each in given.stages)}
        self.types = {each.name: each.type for each in given.stages}
        stages = _apart(self._rounded_last(given.stages), self.fresh)
        self.types.update((each.name, each.type) for each in stages)
        for stage in stages:
            value = self._value(stage.value, stage, stage.dims, top=not stage.combine and self._adds_up_in(stage))
            self.done.append(replace(stage, value=value))
        return replace(given, stages=tuple(self.done), dims=self.dims)

    def _adds_up_in(self, stage: Stage) -> bool:
        """Whether the stage's own type can hold what its reduction gathers: a sum of fractions is not gathered in
        whole numbers, nor one of f64 in f32, nor the largest of i64 in i32, which keeps the low bits of each."""
        own, value = computed(TYPES[stage.type]), computed(self.type_of(stage.value))
        if own.kind != "integer" or value.kind != "integer":
            return own.kind == value.kind and own.bits >= value.bits
        is_ordered = isinstance(stage.value, Reduce) and stage.value.op in ("max", "min")
        return not is_ordered or (own.bounds[0] <= value.bounds[0] and value.bounds[1] <= own.bounds[1])

    def _rounded_last(self, stages: Iterable[Stage]) -> Iterator[Stage]:
        """An output that other stages read is rounded to its type where it is stored, not where it is read."""
        stages = list(stages)
        read = {node.tensor for s in stages for e in (s.value, *s.index) for node in walk(e) if isinstance(node, Load)}
        exact: dict[str, str] = {}
        for stage in stages:
            wide = computed(TYPES[stage.type]).name
            if stage.temporary or stage.primed or stage.combine or wide == stage.type or stage.name not in read:
                yield _reading(stage, exact)
                continue
            exact[stage.name] = self.fresh(f"{stage.name}_exact")
            yield replace(_reading(stage, exact), name=exact[stage.name], type=wide, temporary=True)
            yield replace(stage, value=Load(exact[stage.name], tuple(map(Name, stage.dims))))

    def fresh(self, name: str) -> str:
        """A free name; a field of a struct gives one without the dot."""
        name = name.replace(".", "_")
        free = (f"{name}{n}" for n in range(2, 1000))
        found = name if name not in self.taken else next(each for each in free if each not in self.taken)
        self.taken.add(found)
        return found

    def type_of(self, node: Expr) -> ElementType:
        def named(name: str) -> ElementType:
            if name in self.given.tensors and name not in self.types:
                return TYPES[self.given.tensors[name].type]
            return TYPES[self.types.get(name) or self.given.scalars.get(name, "i64")]

        return settled(type_of(node, named))

    # Reductions

    def _value(self, node: Expr, stage: Stage, scope: tuple[str, ...], *, top: bool = False) -> Expr:
        """The expression with every reduction in it, but a plain one that is all of it, as a stage of its own."""
        if isinstance(node, Reduce):
            node = self._renamed(node, scope)
            inner = (*scope, *(each.name for each in node.ranges))
            node = replace(node, body=self._value(node.body, stage, inner))
            if node.op not in PLAIN:
                return self._value(self._made_of_plain(node, stage, scope), stage, scope)
            # What is the same along a dimension is reduced once, and stored in each place.
            if top and all(each in _read(node) or self.dims[each] == Num(1) for each in scope):
                return node
            return self._hoisted(node, stage, scope, f"{stage.name}_{node.op}")
        match node:
            case Load(index=index):
                return replace(node, index=tuple(self._value(each, stage, scope) for each in index))
            case Call(args=args):
                return replace(node, args=tuple(self._value(each, stage, scope) for each in args))
        return node

    def _renamed(self, node: Reduce, scope: tuple[str, ...]) -> Reduce:
        """With names of its own for dimensions that the result has too."""
        for each in node.ranges:
            if each.name in scope:
                others = self.renamed.setdefault(each.name, [])
                name = next((other for other in others if other not in scope), None) or self.fresh(each.name)
                if name not in others:
                    others.append(name)
                self.dims[name] = self.dims[each.name]
                node = _with_range_named(node, each.name, name)
        return node

    def _hoisted(self, node: Reduce, stage: Stage, scope: tuple[str, ...], name: str) -> Load:
        free = _read(node)
        dims = tuple(each for each in dict.fromkeys(scope) if each in free)
        same = next((s for s in self.done if s.temporary and s.value == node and s.dims == dims), None)
        if same is None:
            kind = node.accumulate or computed(self.type_of(node)).name
            same = Stage(self.fresh(name), dims, node, kind, temporary=True)
            self.types[same.name] = same.type
            self.done.append(same)
        return Load(same.name, tuple(map(Name, dims)))

    def _made_of_plain(self, node: Reduce, stage: Stage, scope: tuple[str, ...]) -> Expr:
        """A mean, a variance or the logarithm of a sum of exponentials, by sums and a maximum."""
        kind = computed(self.type_of(node)).name
        if node.op in ("mean", "var", "std"):
            body = _as_float(node.body, kind, self.type_of(node.body))
            total = self._hoisted(replace(node, op="sum", body=body), stage, scope, f"{stage.name}_sum")
            mean = Call("/", (total, Call(kind, (self._count(node),))))
            if node.op == "mean":
                return mean
            about = self._stage(mean, scope, f"{stage.name}_mean", "f64" if node.accumulate == "f64" else kind)
            squares = Call("square", (Call("-", (node.body, about)),))
            spread = self._hoisted(replace(node, op="sum", body=squares), stage, scope, f"{stage.name}_squares")
            variance = Call("/", (spread, Call(kind, (self._count(node),))))
            return variance if node.op == "var" else Call("sqrt", (variance,))
        if node.op == "logsumexp":
            most = self._hoisted(replace(node, op="max"), stage, scope, f"{stage.name}_max")
            # Where the maximum is infinite, the difference to it would be no number.
            shifted = Call("exp", (Call("-", (node.body, most)),))
            total = self._hoisted(replace(node, op="sum", body=shifted), stage, scope, f"{stage.name}_sum")
            return Call("select", (Call("isinf", (most,)), most, Call("+", (most, Call("log", (total,))))))
        raise ValueError(f"{node.op} is no reduction")

    def _stage(self, value: Expr, scope: tuple[str, ...], name: str, kind: str) -> Load:
        free = set(names_in([value]))
        dims = tuple(each for each in dict.fromkeys(scope) if each in free)
        stage = Stage(self.fresh(name), dims, value, kind, temporary=True)
        self.types[stage.name] = kind
        self.done.append(stage)
        return Load(stage.name, tuple(map(Name, dims)))

    def _count(self, node: Reduce) -> Expr:
        """How many elements are reduced."""
        total: Expr | None = None
        for each in node.ranges:
            end = self.dims[each.name] if each.upper is None else each.upper
            if each.upper is not None and each.closed:
                end = Call("+", (end, Num(1)))
            count = end if each.lower is None else Call("-", (end, each.lower))
            if not self._is_in_order(Num(0) if each.lower is None else each.lower, end):
                count = Call("max", (count, Num(0)))
            total = count if total is None else Call("*", (total, count))
        return total or Num(1)

    def _is_in_order(self, begin: Expr, end: Expr) -> bool:
        """Whether a range is proved, or promised, not to end before it begins, also where a size is 0."""
        if from_memory(end):
            return begin == Num(0)
        if from_memory(begin):
            return end in self.dims.values()
        match begin, end:
            case Num(value=0), Name():
                return True
            case Call(name="max", args=(one, other)), _:
                return self._is_in_order(one, end) and self._is_in_order(other, end)
            case _, Call(name="min", args=(one, other)):
                return self._is_in_order(begin, one) and self._is_in_order(begin, other)
            case _, Call(name="+", args=(Call(name="min", args=(one, other)), more)):
                return all(self._is_in_order(begin, Call("+", (each, more))) for each in (one, other))
        length = Call("-", (end, begin))
        within = [self.dims[name] for name in names_in([length]) if name in self.dims]
        sure = {*self.dims, *names_in(within)}  # where there is a place in a dimension, its extent is not 0

        def least(node: Expr) -> Expr:
            return Call("-", (node, Num(1))) if isinstance(node, Name) and node.name not in sure else node

        return Bounds(self.dims).at_least(rebuilt(length, least), {})


def _reading(stage: Stage, instead: Mapping[str, str]) -> Stage:
    """The stage with other names in its loads."""

    def change(node: Expr) -> Expr:
        return replace(node, tensor=instead[node.tensor]) if isinstance(node, Load) and node.tensor in instead else node

    return replace(
        stage, value=rebuilt(stage.value, change), index=tuple(rebuilt(each, change) for each in stage.index)
    )


def _read(node: Reduce) -> set[str]:
    """The names that a reduction reads, without its own dimensions."""
    ends = [end for each in node.ranges for end in (each.lower, each.upper) if end is not None]
    return set(names_in([node.body, *ends])) - {each.name for each in node.ranges}


def _as_float(body: Expr, kind: str, own: ElementType) -> Expr:
    return Call(kind, (body,)) if own.kind in ("integer", "bool") else body


def _with_range_named(node: Reduce, old: str, new: str) -> Reduce:
    """The dimension under another name, in the ranges that come after it and in the body."""

    def change(each: Expr) -> Expr:
        return replace(each, name=new) if isinstance(each, Name) and each.name == old else each

    ranges: list[Range] = []
    seen = False
    for each in node.ranges:
        ends = (each.lower and rebuilt(each.lower, change), each.upper and rebuilt(each.upper, change))
        lower, upper = ends if seen else (each.lower, each.upper)
        ranges.append(replace(each, name=new if each.name == old else each.name, lower=lower, upper=upper))
        seen = seen or each.name == old
    return replace(node, ranges=tuple(ranges), body=_renamed_outside(node.body, old, change))


def _renamed_outside(body: Expr, old: str, change: Callable[[Expr], Expr]) -> Expr:
    """`change` for all but reductions that have a dimension of that name themselves."""
    match body:
        case Reduce(ranges=ranges) if any(each.name == old for each in ranges):
            return body
        case Reduce(ranges=ranges, body=inner):
            new = tuple(
                replace(r, lower=r.lower and rebuilt(r.lower, change), upper=r.upper and rebuilt(r.upper, change))
                for r in ranges
            )
            return replace(body, ranges=new, body=_renamed_outside(inner, old, change))
        case Load(index=index):
            return replace(body, index=tuple(_renamed_outside(each, old, change) for each in index))
        case Call(args=args):
            return replace(body, args=tuple(_renamed_outside(each, old, change) for each in args))
    return change(body)


# New values of arrays that are read


def _apart(stages: Iterable[Stage], fresh: Callable[[str], str]) -> list[Stage]:
    """A new value of an array whose old one is read elsewhere goes to a place of its own first, and is copied at the
    end."""
    stages = list(stages)
    out: list[Stage] = []
    copies: list[Stage] = []
    for stage in stages:
        if not stage.primed or not _read_elsewhere(stage, stages):
            out.append(stage)
            continue
        name = fresh(f"{stage.name}_next")
        out.append(replace(stage, name=name, temporary=True, primed=False))
        copies.append(replace(stage, value=Load(name, tuple(map(Name, stage.dims)))))
    return out + copies


def _read_elsewhere(stage: Stage, stages: list[Stage]) -> bool:
    own = tuple(map(Name, stage.dims))
    return any(
        other.dims != stage.dims or other.combine or load.index != own or _in_reduction(load, other.value)
        for other in stages
        for part in (other.value, *other.index)
        for load in walk(part)
        if isinstance(load, Load) and load.tensor == stage.name
    )


def _in_reduction(load: Load, value: Expr) -> bool:
    return any(load in list(walk(each)) for each in walk(value) if isinstance(each, Reduce))


def identity(op: str, kind: ElementType) -> int | float | bool:
    """What changes nothing, as the start of a reduction.

    >>> identity("max", TYPES["f32"]), identity("max", TYPES["i8"]), identity("all", TYPES["bool"])
    (-inf, -128, True)
    """
    if op in ("any", "all"):
        return op == "all"
    if op in ("sum", "prod"):
        return 1 if op == "prod" else 0
    lowest = op in ("max", "argmax")
    if kind.kind == "float":
        return -math.inf if lowest else math.inf
    return kind.bounds[0] if lowest else kind.bounds[1]


def tensors_of(formula: Formula) -> Mapping[str, Tensor]:
    """Every array of a formula in its normal form: those of the caller, and one for each stage that is kept in
    memory."""
    made = {
        each.name: Tensor(each.name, each.type, formula.extents_of(each.name), "out")
        for each in formula.stages
        if each.temporary
    }
    return {**formula.tensors, **made}
