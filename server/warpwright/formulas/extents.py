"""Which extent each dimension has: what stands at one place of an array has that place's extent."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from warpwright.formulas.bounds import Bounds, Polynomial, expression, highest, plus, polynomial, scaled
from warpwright.formulas.lexer import FormulaError
from warpwright.formulas.model import Tensor
from warpwright.formulas.parser import one_more
from warpwright.formulas.printer import shown
from warpwright.formulas.tree import Call, Declaration, Equation, Expr, Load, Name, Num, Range, Reduce, walk

Place = tuple[str, int]
"""A dimension (its name, -1), or a place of a tensor (its name, the position)."""


class Extents:
    """Places that share an extent, joined one by one. `expression` gives the extent of each in the end."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._up: dict[Place, Place] = {}
        self._known: dict[Place, tuple[Expr, str]] = {}

    def root(self, place: Place) -> Place:
        while (up := self._up.get(place, place)) != place:
            place = up
        return place

    def join(self, one: Place, other: Place, at: int) -> None:
        """Both have one extent."""
        first, second = self.root(one), self.root(other)
        if first == second:
            return
        known, also = self._known.get(first), self._known.pop(second, None)
        self._up[second] = first
        if also is not None:
            if known is None:
                self._known[first] = also
            else:
                self._agree(known, also, at)

    def give(self, place: Place, extent: Expr, said_by: str, at: int) -> None:
        """The extent of a place is `extent`, as `said_by` says."""
        root = self.root(place)
        known = self._known.setdefault(root, (extent, said_by))
        self._agree(known, (extent, said_by), at)

    def known(self, place: Place) -> Expr | None:
        found = self._known.get(self.root(place))
        return found[0] if found else None

    def _agree(self, one: tuple[Expr, str], other: tuple[Expr, str], at: int) -> None:
        if one[0] != other[0] and polynomial(one[0]) != polynomial(other[0]):
            reason = f"One extent is {shown(one[0])} ({one[1]}) and {shown(other[0])} ({other[1]})."
            raise FormulaError(self.text, at, reason)


def extents_of(
    text: str,
    equations: Iterable[Equation],
    declarations: Mapping[str, Declaration],
    dims: Mapping[str, int],
    names: set[str],
) -> Extents:
    """The extents of `dims` (each with the place where it comes up) and of all tensors in `equations`. `names` are
    taken.

    What the declaration of a result says counts for its dimensions, wherever else they index. What nothing says has the
    dimension's name in capitals: `x[r, c]` is of R x C elements. An array of which only `x[i
    + k]` is read ends with the last element that is read; one with `x[i - 1; zero]` is as long as i; one whose indices
    come from memory has an extent of its own, `table_size0`.
    """
    found = Extents(text)
    for each in declarations.values():
        for place, extent in enumerate(each.extents or ()):
            found.give((each.name, place), extent, f"the declaration of {each.name}", each.at)
    loads = [load for equation in equations for load in _uses(equation, dims)]
    beyond = _read_beyond([load for load, _ in loads], dims, declarations)
    for equation in equations:
        _of_result(found, equation, dims)
    fixed = {dim: known for dim in dims if (known := found.known((dim, -1))) is not None}
    for equation in equations:
        _of_equation(found, equation, dims, beyond, fixed)
    for load, own in loads:
        _like_result(found, load, own)
    used = names | {name for each in declarations.values() for name in names_in(each.extents or ())}
    for dim, at in dims.items():
        if found.known((dim, -1)) is None:
            name = _free(dim.upper(), names)
            used.add(name)
            found.give((dim, -1), Name(name, at), dim, at)
    _of_the_rest(found, [load for load, _ in loads], {dim: found.known((dim, -1)) or Num(1) for dim in dims}, used)
    return found


def _read_beyond(loads: list[Load], dims: Mapping[str, int], declared: Mapping[str, Declaration]) -> set[Place]:
    """Places of arrays without extents that are read at a dimension and more: `first[r + 1]` beside `first[r]`."""
    return {
        (load.tensor, place)
        for load in loads
        for place, index in enumerate(load.index)
        if load.outside is None
        and not isinstance(index, Name)
        and (load.tensor not in declared or declared[load.tensor].extents is None)
        and (polynomial(index) or {}).get((), 0) > 0
        and all(set(key) <= dims.keys() for key in polynomial(index) or {})
    }


def _uses(equation: Equation, dims: Mapping[str, int]) -> Iterator[tuple[Load, frozenset[str]]]:
    """Every load, with the dimensions of the equation's result; where it scatters to, as one."""
    own = frozenset(name for name in names_in(equation.index) if name in dims)
    for node in (node for each in (equation.value, *equation.index) for node in walk(each)):
        if isinstance(node, Load):
            yield node, own
    yield Load(equation.name, equation.index, None, equation.at), own


def _like_result(found: Extents, load: Load, own: frozenset[str]) -> None:
    """`x[i - 1; zero]` has the extent of i, where nothing else says one."""
    for place, index in enumerate(load.index):
        if load.outside is None:
            continue
        terms = polynomial(index) or {}
        dims = [key[0] for key, factor in terms.items() if len(key) == 1 and key[0] in own and factor == 1]
        if len(dims) != 1 or any(set(key) & own for key in terms if key != (dims[0],)):
            continue
        if found.known((dims[0], -1)) is None or found.known((load.tensor, place)) is None:
            found.join((dims[0], -1), (load.tensor, place), load.at)


def _of_the_rest(found: Extents, loads: list[Load], dims: Mapping[str, Expr], used: set[str]) -> None:
    ends: dict[Place, list[Polynomial | None]] = {}
    for load in loads:
        for place, index in enumerate(load.index):
            if found.known((load.tensor, place)) is None:
                ends.setdefault((load.tensor, place), []).append(_end(load, index, dims))
    many = {load.tensor for load in loads if len(load.index) > 1}
    for (name, place), each in ends.items():
        if found.known((name, place)) is not None:
            continue
        bounds = Bounds(dims)
        known = [end for end in each if end is not None]
        largest = next((e for e in known if all(bounds.not_negative(plus(e, scaled(o, -1))) for o in known)), None)
        if len(known) == len(each) and largest is not None:
            extent = expression(largest)
        else:
            symbol = _free(f"{name.replace('.', '_')}_size{place if name in many else ''}", used)
            used.add(symbol)
            extent = Name(symbol)
        found.give((name, place), extent, name, next(load.at for load in loads if load.tensor == name))


def _end(load: Load, index: Expr, dims: Mapping[str, Expr]) -> Polynomial | None:
    """One more than the largest index that is read; None where it is not known, or another one may be meant."""
    match index:
        case Call(name="%", args=(_, divisor)) if {*names_in([divisor])} <= {*names_in(dims.values())}:
            return polynomial(divisor)
    terms = polynomial(index)
    if load.outside is not None or terms is None or any(name not in dims for key in terms for name in key):
        return None
    end = plus(highest(terms, dims), {(): 1})
    if end.keys() <= {()} and end.get((), 0) <= 0:
        return None
    for name in dims.keys() & {key[0] for key, factor in terms.items() if len(key) == 1 and factor == 1}:
        extent = polynomial(dims[name]) or {}
        if Bounds(dims).not_negative(plus(extent, scaled(end, -1))):
            return extent
    return end


def names_in(expressions: Iterable[Expr]) -> list[str]:
    """The names in expressions, each once, in the order in which they come up."""
    found = (node.name for each in expressions for node in walk(each) if isinstance(node, Name))
    return list(dict.fromkeys(found))


def _free(name: str, used: set[str]) -> str:
    return name if name not in used else next(free for n in range(2, 1000) if (free := f"{name}{n}") not in used)


def _of_result(found: Extents, equation: Equation, dims: Mapping[str, int]) -> None:
    for place, index in enumerate(equation.index):
        if isinstance(index, Name) and index.name in dims:
            found.join((index.name, -1), (equation.name, place), index.at)


def _of_equation(
    found: Extents, equation: Equation, dims: Mapping[str, int], beyond: set[Place], fixed: Mapping[str, Expr]
) -> None:
    parts = [node for each in (equation.value, *equation.index) for node in walk(each)]
    for node in parts:
        if isinstance(node, Load):
            for place, index in enumerate(node.index):
                if isinstance(index, Name) and index.name in dims and (node.tensor, place) not in beyond:
                    extent = found.known((node.tensor, place))
                    if index.name in fixed and extent and polynomial(extent) != polynomial(fixed[index.name]):
                        continue  # whether it lies inside is proved where it is read
                    found.join((index.name, -1), (node.tensor, place), index.at)
    for node in parts:
        if isinstance(node, Reduce):
            for each in node.ranges:
                _of_range(found, each, dims)


def _of_range(found: Extents, each: Range, dims: Mapping[str, int]) -> None:
    """`k < 3` gives k the extent 3, `j <= i` and `j >= i` that of i, where nothing else says one."""
    end = each.lower if each.upper is None else each.upper
    match end:
        case Name(name=other) if other in dims:
            if found.known((each.name, -1)) is None or found.known((other, -1)) is None:
                found.join((other, -1), (each.name, -1), each.at)
        case upper if each.upper is None or upper is None or found.known((each.name, -1)) is not None:
            return
        case upper if not any(
            isinstance(node, Load) or (isinstance(node, Name) and node.name in dims) for node in walk(upper)
        ):
            last = one_more(upper) if each.closed else upper
            found.give((each.name, -1), last, f"the range of {each.name}", each.at)


_OPERATORS: dict[str, Callable[[int, int], int]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "//": operator.floordiv, "%": operator.mod, "min": min,
    "max": max, "<=": operator.le, "<": operator.lt, ">=": operator.ge, ">": operator.gt, "==": operator.eq,
}  # fmt: skip


def is_constant(node: Expr) -> bool:
    """Whether no size is in an expression over sizes."""
    return not any(isinstance(each, Name) for each in walk(node))


def at_sizes(node: Expr, sizes: Mapping[str, int]) -> int:
    """The value of an expression over sizes; a comparison is 0 or 1.

    >>> from warpwright.formulas.parser import parse
    >>> at_sizes(parse("y = (N + 255) // 256").equations[0].value, {"N": 1000})
    4
    """
    match node:
        case Num(value=value):
            return int(value)
        case Name(name=name):
            return sizes[name]
        case Call(name="neg", args=(operand,)):
            return -at_sizes(operand, sizes)
        case Call(name=name, args=(left, right)) if name in _OPERATORS:
            return int(_OPERATORS[name](at_sizes(left, sizes), at_sizes(right, sizes)))
    raise ValueError(f"{shown(node)} is no expression over sizes")


def strides_at(tensor: Tensor, shape: Sequence[int], sizes: Mapping[str, int]) -> list[int]:
    """How many elements apart neighbours along each dimension lie in an array of this shape."""
    if tensor.strides is not None:
        return [at_sizes(each, sizes) for each in tensor.strides]
    return [math.prod(shape[place + 1 :]) for place in range(len(shape))]
