"""From a formula as it is written to one whose names, extents, types and order are known.

One module of one class, as each step leaves to the next what it found of the names.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from warpwright.formulas.bounds import Bounds, polynomial
from warpwright.formulas.extents import Extents, extents_of, names_in
from warpwright.formulas.functions import FUNCTIONS
from warpwright.formulas.inside import clipped, promises
from warpwright.formulas.lexer import FormulaError
from warpwright.formulas.model import Formula, Role, Stage, Tensor
from warpwright.formulas.order import loads_of, ordered
from warpwright.formulas.parser import parse
from warpwright.formulas.plain import plain
from warpwright.formulas.printer import shown
from warpwright.formulas.tree import (
    Call,
    Declaration,
    Equation,
    Expr,
    Load,
    Name,
    Num,
    Range,
    Reduce,
    Written,
    children,
    product,
    rebuilt,
    walk,
)
from warpwright.formulas.types import TYPES, ElementType, computed
from warpwright.formulas.typing_rules import LITERAL, TypeRuleError, settled, type_of

_MOST_ELEMENTS = 1 << 59
"""Of an array: so many of 16 bytes are within 64 bits."""
_SCATTERS = {"sum": "+", "prod": "*", "max": "max", "min": "min"}


def formula_of(text: str) -> Formula:
    """The formula that a text says. Raises FormulaError.

    >>> f = formula_of("y[r] = sum[c] x[r, c] * w[c]")
    >>> [(each.name, each.type, tuple(map(shown, each.extents))) for each in f.tensors.values()]
    [('x', 'f32', ('R', 'C')), ('w', 'f32', ('C',)), ('y', 'f32', ('R',))]
    """
    return resolve(text, parse(text))


def resolve(text: str, written: Written) -> Formula:
    """As `formula_of`, of a text that was parsed."""
    return _Resolver(text, written).formula()


@dataclass
class _Resolver:
    text: str
    written: Written
    declared: dict[str, Declaration] = field(default_factory=dict)
    scalars: dict[str, str] = field(default_factory=dict)
    types: dict[str, ElementType] = field(default_factory=dict)
    guessed: dict[str, str] = field(default_factory=dict)
    capitals: dict[str, str] = field(default_factory=dict)

    def fail(self, at: int, reason: str) -> FormulaError:
        return FormulaError(self.text, at, reason)

    def formula(self) -> Formula:
        self._declarations()
        self._ranges()
        equations = plain(self.text, self.written.equations)
        dims = self._dims(equations)
        for each in equations:
            if each.name in dims:
                raise self.fail(dims[each.name], f"{each.name} is a dimension and a result: choose another name.")
        self.capitals = {dim.upper(): dim for dim in dims}
        sizes = set(names_in(e for d in self.declared.values() for e in (*(d.extents or ()), *d.strides)))
        for name in sizes & (dims.keys() | {each.name for each in equations}):
            raise self.fail(self._first(name), f"{name} is an extent and something else: choose another name.")
        equations = [self._with_loads(each, equations, dims, sizes) for each in equations]
        self._places(equations)
        self._all_used(equations)
        taken = {*self.scalars, *self.declared, *dims, *(each.name for each in equations), *self._loaded(equations)}
        extents = extents_of(self.text, equations, self.declared, dims, taken)
        self._guess_types(equations)
        of_dims = {each: self._extent(extents, (each, -1), dims[each]) for each in dims}
        equations = [clipped(self._with_extents(each, of_dims), Bounds(of_dims)) for each in equations]
        tensors = self._tensors(equations, extents)
        in_order = ordered(self.text, equations)
        stages = tuple(self._typed(each, dims, tensors) for each in in_order)
        tensors = {
            name: replace(each, type=next((s.type for s in stages if s.name == name), each.type))
            for name, each in tensors.items()
        }

        def shape(load: Load) -> tuple[Expr, ...]:
            return tuple(self._extent(extents, (load.tensor, place), load.at) for place in range(len(load.index)))

        stages = tuple(
            replace(each, extents=shape(Load(each.name, each.index))) if each.index and each.temporary else each
            for each in stages
        )
        places = [each.at for each in in_order]
        said = promises(self.text, stages, places, shape, of_dims, set(self.scalars))
        used = [e for each in tensors.values() for e in (*each.extents, *(each.strides or ()))]
        used += [*of_dims.values(), *(extent for each in stages for extent in each.extents)]
        sizes_used = tuple(names_in(used))
        written = tuple(each.name for each in self.written.equations if not each.temporary)
        return Formula(self.text, tensors, self.scalars, of_dims, sizes_used, stages, said, written)

    # Names

    def _declarations(self) -> None:
        for each in self.written.declarations:
            if each.name in self.declared:
                raise self.fail(each.at, f"{each.name} is declared twice.")
            for name in each.fields:
                full = f"{each.name}.{name}"
                self.declared[full] = replace(each, name=full)
            if not each.fields:
                self.declared[each.name] = each

    def _ranges(self) -> None:
        for equation in self.written.equations:
            for node in (node for part in (*equation.index, equation.value) for node in walk(part)):
                if not isinstance(node, Reduce):
                    continue
                names = [each.name for each in node.ranges]
                for name in names:
                    if names.count(name) > 1:
                        raise self.fail(node.at, f"{node.op} runs over {name} twice.")

    def _first(self, name: str) -> int:
        """Where a name comes up first."""
        places = (e.at for q in self.written.equations for part in (*q.index, q.value) for e in walk(part)
                  if isinstance(e, Name) and e.name == name)  # fmt: skip
        declared = (d.at for d in self.written.declarations if name in names_in((*(d.extents or ()), *d.strides)))
        return min((*places, *declared), default=0)

    def _dims(self, equations: list[Equation]) -> dict[str, int]:
        """The dimensions, each with the place where it comes up first. In an index of a result that is computed, a
        name is a dimension where it indexes an array, too."""
        found: dict[str, int] = {}
        for equation in equations:
            indexing = {
                name
                for part in (*equation.index, equation.value)
                for node in walk(part)
                if isinstance(node, Load | Reduce)
                for name in (names_in(node.index) if isinstance(node, Load) else [each.name for each in node.ranges])
            }
            for index in equation.index:
                for node in walk(index):
                    if (
                        isinstance(node, Name)
                        and node.name not in self.declared
                        and (index is node or (node.name in indexing and not self._is_size(node.name)))
                    ):
                        found.setdefault(node.name, node.at)
            for node in walk(equation.value):
                if isinstance(node, Reduce):
                    for each in node.ranges:
                        found.setdefault(each.name, each.at)
        return found

    def _is_size(self, name: str) -> bool:
        return any(name in names_in(d.extents or ()) for d in self.declared.values())

    def _with_extents(self, each: Equation, dims: Mapping[str, Expr]) -> Equation:
        """K is the extent of k, whatever that is."""

        def change(node: Expr) -> Expr:
            dim = self.capitals.get(node.name) if isinstance(node, Name) and node.name not in dims else None
            known = node.name in self.scalars if isinstance(node, Name) else True
            return dims[dim] if dim is not None and not known and not self._is_size(dim.upper()) else node

        return replace(each, value=rebuilt(each.value, change))

    def _with_loads(
        self, each: Equation, equations: list[Equation], dims: Mapping[str, int], sizes: set[str]
    ) -> Equation:
        """Names that are stages or declared arrays of one element become loads; others are dimensions that are in
        scope, extents, or arguments that are numbers."""
        single = {e.name for e in equations if not e.index}
        single |= {d.name for d in self.declared.values() if d.extents == ()}
        over = {r.name: node.op for node in walk(each.value) if isinstance(node, Reduce) for r in node.ranges}
        arrays = {e.name for e in equations if e.index} | {load.tensor for load in loads_of(each) if load.index}
        scope = {name for index in each.index for name in names_in([index]) if name in dims}

        def change(node: Expr, bound: frozenset[str], in_index: bool) -> Expr:
            match node:
                case Name(name=name, at=at):
                    return named(name, at, bound, in_index)
                case Load(tensor=tensor, index=index, at=at):
                    if tensor in sizes or tensor in dims:
                        raise self.fail(at, f"{tensor} is a number here, not an array.")
                    return replace(node, index=tuple(change(e, bound, True) for e in index))
                case Call(name=call, args=args):
                    whole = in_index and not (call in TYPES or call in FUNCTIONS)
                    return replace(node, args=tuple(change(e, bound, whole) for e in args))
                case Reduce(ranges=ranges, body=body):
                    return reduced(node, ranges, body, bound)
            return node

        def reduced(node: Reduce, ranges: tuple[Range, ...], body: Expr, bound: frozenset[str]) -> Expr:
            new: list[Range] = []
            for r in ranges:
                lower = None if r.lower is None else change(r.lower, bound, True)
                upper = None if r.upper is None else change(r.upper, bound, True)
                new.append(replace(r, lower=lower, upper=upper))
                bound |= {r.name}
            return replace(node, ranges=tuple(new), body=change(body, bound, False))

        def named(name: str, at: int, bound: frozenset[str], in_index: bool) -> Expr:
            if name in bound or name in sizes:
                return Name(name, at)
            if name in single and name != each.name:
                return Load(name, (), None, at)
            if name in over:
                short = f"{over[name]}[{name}]"
                raise self.fail(
                    at, f"{short} ends before this {name}: put all of it in parentheses, as in {short} (a + b)."
                )
            if name in dims:
                where = f"{each.name}[{', '.join(map(shown, each.index))}]" if each.index else each.name
                raise self.fail(
                    at, f"{name} is no dimension of {where}: reduce over it, as in sum[{name}], or add it there."
                )
            if name == each.name:
                raise self.fail(at, f"{name} is defined by itself: the new value of an argument is {name}'.")
            known = self.declared.get(name)
            if (known is not None and known.extents) or name in arrays:
                raise self.fail(at, f"{name} is an array: name an element of it, as in {name}[i].")
            if name in self.capitals and known is None:
                return Name(name, at)
            self.scalars.setdefault(name, known.type if known else "i32" if in_index else "f32")
            return Name(name, at)

        index = tuple(change(e, frozenset(scope), True) for e in each.index)
        return replace(each, index=index, value=change(each.value, frozenset(scope), False))

    @staticmethod
    def _loaded(equations: list[Equation]) -> set[str]:
        return {load.tensor for each in equations for load in loads_of(each)}

    def _places(self, equations: list[Equation]) -> None:
        """Every use of an array has one number of indices, and of a struct a field."""
        structs = {each.name: each.fields for each in self.written.declarations if each.fields}
        used = [(load.tensor, load.at) for each in equations for load in loads_of(each)]
        for name, at in [*used, *((each.name, each.at) for each in equations)]:
            base, dot, _ = name.partition(".")
            if base in structs and name not in self.declared:
                fields = " and ".join(f"{base}.{own}" for own in structs[base])
                raise self.fail(at, f"{base} is a struct of {fields}: name one of them.")
            if dot and name not in self.declared:
                raise self.fail(at, f"{base} is no struct: declare it with its fields, as in {base}: f32[N]{{x, y}}.")
        counts: dict[str, int] = {name: len(d.extents) for name, d in self.declared.items() if d.extents is not None}
        for each in equations:
            counts.setdefault(each.name, len(each.index))
            if counts[each.name] != len(each.index):
                raise self.fail(each.at, _indices(each.name, counts[each.name], len(each.index)))
        for each in equations:
            for load in loads_of(each):
                if counts.setdefault(load.tensor, len(load.index)) != len(load.index):
                    raise self.fail(load.at, _indices(load.tensor, counts[load.tensor], len(load.index)))

    def _all_used(self, equations: list[Equation]) -> None:
        used = self._loaded(equations) | self.scalars.keys()
        for stage in equations:
            if stage.temporary and stage.name not in used:
                raise self.fail(stage.at, f"Nothing reads {stage.name}: use it or leave it out.")
        used |= {each.name for each in equations}
        for each in self.written.declarations:
            if not used & ({f"{each.name}.{own}" for own in each.fields} or {each.name}):
                raise self.fail(each.at, f"{each.name} is declared and not used: use it or leave it out.")

    def _guess_types(self, equations: list[Equation]) -> None:
        """What is an index is a whole number and what is a condition a truth value, where nothing is declared."""
        made = {each.name for each in equations}

        def guess(node: Expr, kind: str) -> None:
            if isinstance(node, Load) and node.tensor not in self.declared and node.tensor not in made:
                self.guessed.setdefault(node.tensor, kind)

        for each in equations:
            for inner in (inner for part in each.index for inner in _whole_parts(part)):
                guess(inner, "i32")
            for node in (node for part in (*each.index, each.value) for node in walk(part)):
                ends = (end for r in node.ranges for end in (r.lower, r.upper)) if isinstance(node, Reduce) else ()
                whole = node.index if isinstance(node, Load) else ()
                for inner in (inner for top in (*whole, *ends) if top is not None for inner in _whole_parts(top)):
                    guess(inner, "i32")
                match node:
                    case Call(name="select", args=(condition, _, _)):
                        guess(condition, "bool")
                    case Call(name="and" | "or" | "not", args=args):
                        for operand in args:
                            guess(operand, "bool")
                    case Call(name="uniform" | "normal", args=(Name(name=seed), _)) if seed not in self.declared:
                        self.scalars[seed] = "i64"

    # Extents, tensors, order

    def _extent(self, extents: Extents, place: tuple[str, int], at: int) -> Expr:
        found = extents.known(place)
        assert found is not None, place
        terms = polynomial(found)
        if terms is None:
            raise self.fail(at, f"The extent {shown(found)} is no sum of products of sizes.")
        if all(not key for key in terms) and terms.get((), 0) <= 0:
            what = place[0] if place[1] < 0 else f"The extent {place[1] + 1} of {place[0]}"
            raise self.fail(
                at,
                f"{what} has {shown(found)} elements: one at least is needed."
                if place[1] < 0
                else f"{what} is {shown(found)}: it is 1 at least.",
            )
        return found

    def _tensors(self, equations: list[Equation], extents: Extents) -> dict[str, Tensor]:
        outputs = {each.name: each for each in equations if not each.temporary}
        temporary = {each.name for each in equations if each.temporary}
        found: dict[str, Tensor] = {}
        for name, count, at in self._arrays(equations):
            if name in temporary:
                continue
            role: Role = "in"
            if name in outputs:
                each = outputs[name]
                role = "in-out" if each.primed or each.combine else "out"
            shape = tuple(self._extent(extents, (name, place), at) for place in range(count))
            if math.prod(each.value for each in shape if isinstance(each, Num)) > _MOST_ELEMENTS:
                raise self.fail(at, f"{name} has more elements than 64 bits count bytes of.")
            found[name] = self._tensor(name, shape, role)
        return {name: each for name, each in found.items() if each.role != "out"} | {
            name: found[name] for name in outputs if found[name].role == "out"
        }

    def _arrays(self, equations: list[Equation]) -> Iterator[tuple[str, int, int]]:
        """Name, number of indices and place of each array, inputs first as they are read."""
        seen: set[str] = set()
        for load in (load for each in equations for load in loads_of(each)):
            if load.tensor not in seen and load.index:
                seen.add(load.tensor)
                yield load.tensor, len(load.index), load.at
        for load in (load for each in equations for load in loads_of(each)):
            if load.tensor not in seen and not any(each.name == load.tensor for each in equations):
                seen.add(load.tensor)
                yield load.tensor, 0, load.at
        for each in equations:
            if each.name not in seen:
                seen.add(each.name)
                yield each.name, len(each.index), each.at

    def _tensor(self, name: str, shape: tuple[Expr, ...], role: Role) -> Tensor:
        known = self.declared.get(name)
        if known is None:
            return Tensor(name, self.guessed.get(name, "f32"), shape, role)
        if known.layout == "channels_last" and len(shape) not in (4, 5):
            raise self.fail(
                known.at, f"channels_last takes the extents N, C, H, W or N, C, D, H, W; {name} has {len(shape)}."
            )
        for stride in known.strides:
            if isinstance(stride, Num) and stride.value < 0:
                raise self.fail(known.at, f"A stride of {name} is below 0: count down in its indices instead.")
            if stride == Num(0) and role != "in":
                raise self.fail(known.at, f"A stride of {name} is 0, so that several results have one place.")
        strides = known.strides or _strides(known.layout, shape)
        if not known.fields:
            return Tensor(name, known.type, shape, role, strides or None)
        packed = strides or _strides("row", shape)
        apart = tuple(product([each, Num(len(known.fields))]) for each in packed)
        base, _, own = name.partition(".")
        return Tensor(name, known.type, shape, role, apart, base, known.fields.index(own))

    # Types and ranges

    def _typed(self, each: Equation, dims: Mapping[str, int], tensors: Mapping[str, Tensor]) -> Stage:
        def named(name: str) -> ElementType:
            if name in self.types:
                return self.types[name]
            if name in tensors and (tensors[name].role != "out" or name in self.declared):
                return TYPES[tensors[name].type]
            if name in self.scalars and name not in self.declared and self.scalars[name] == "f32":
                return LITERAL  # a number takes the type of what it meets, as Python's in torch
            return TYPES[self.scalars.get(name, "i64")]

        value, index, combine = each.value, each.index, ""
        over = tuple(e.name for e in index if isinstance(e, Name))
        keeps = False
        if any(not isinstance(e, Name) for e in index):
            over = tuple(name for name in names_in(index) if name in dims)
            combine, keeps, value = self._scatter(each, over)
        elif given := next((e for e in index if isinstance(e, Name) and e.name not in dims), None):
            reason = f"{given.name} is a number that the caller hands over and no dimension of {each.name}"
            raise self.fail(given.at, f"{reason}: leave it out of the indices.")
        try:
            kind = type_of(value, named)
            for e in index:
                if type_of(e, named).kind != "integer":
                    raise TypeRuleError(
                        e.at, f"An index of {each.name} is a whole number, not {type_of(e, named).name}."
                    )
        except TypeRuleError as error:
            raise self.fail(error.at, error.reason) from None
        kind, computed_kind = settled(kind), settled(kind)
        if each.name in self.declared:
            kind = TYPES[self.declared[each.name].type]
        elif each.primed:
            kind = TYPES[tensors[each.name].type]
        if computed_kind.kind == "complex" and kind.kind != "complex":
            raise self.fail(each.at, f"{each.name} is {kind.name} and its value complex: take real(...) or abs(...).")
        self.types[each.name] = kind
        if each.temporary and each.name not in self.declared:
            kind = computed(kind)
        return Stage(
            each.name, over, value, kind.name, each.temporary, index if combine else (), combine, keeps, each.primed
        )

    def _scatter(self, each: Equation, over: tuple[str, ...]) -> tuple[str, bool, Expr]:
        """The sign, whether what was there counts, and the value of an equation whose indices are computed."""
        if each.combine:
            return each.combine, True, each.value
        value = each.value
        match value:
            case Reduce(op=op, ranges=ranges, body=body) if (
                op in _SCATTERS
                and {r.name for r in ranges} <= set(over)
                and all(r.lower is None and r.upper is None for r in ranges)
            ):
                return _SCATTERS[op], False, body
        hint = f"write +=, or {each.name}[...] = sum[...], or compute the indices of what is read instead"
        reason = f"Several values may meet in one element of {each.name}: {hint}."
        raise self.fail(each.at, reason)


def _whole_parts(node: Expr) -> Iterator[Expr]:
    """What of an index is a whole number itself: nothing behind a cast or a function."""
    yield node
    if not isinstance(node, Load) and not (isinstance(node, Call) and (node.name in TYPES or node.name in FUNCTIONS)):
        for child in children(node):
            yield from _whole_parts(child)


def _indices(name: str, declared: int, used: int) -> str:
    return f"{name} has {declared} {'index' if declared == 1 else 'indices'}, here {used}."


def _strides(layout: str, shape: tuple[Expr, ...]) -> tuple[Expr, ...]:
    """In elements; empty for a packed array in row-major order."""
    places = list(range(len(shape)))
    if layout == "row":
        order = places
    elif layout == "column":
        order = places[::-1]
    else:
        order = [0, *places[2:], 1]
    if layout == "row" and len(shape) < 2:
        return tuple(Num(1) for _ in shape)
    strides: dict[int, Expr] = {}
    inner: list[Expr] = []
    for place in reversed(order):
        strides[place] = product(inner)
        inner = [shape[place], *inner]
    return tuple(strides[place] for place in places)
