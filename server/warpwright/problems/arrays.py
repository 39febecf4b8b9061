"""The arrays of a problem: what is allocated and reached put together, and what was assumed of it said."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from warpwright.facts.launches import LaunchSite
from warpwright.facts.model import Basis
from warpwright.facts.types import CType
from warpwright.problems import ranges
from warpwright.problems.allocations import Allocations
from warpwright.problems.arguments import ArgumentReader, PointerArgument
from warpwright.problems.expressions import (
    Binary,
    Expression,
    ExpressionError,
    Name,
    Number,
    Value,
    evaluate,
    names,
    parse,
    show,
    substitute,
)
from warpwright.problems.extents import Need, Settled, evaluator, settle
from warpwright.problems.guesses import About, Guess
from warpwright.problems.kernel_text import filled_type, is_mixed
from warpwright.problems.lacking import LackingError
from warpwright.problems.model import Array
from warpwright.problems.overrides import ArrayOverride, merged
from warpwright.problems.ranges import ZERO
from warpwright.problems.reach import ArrayReach, KernelReach, limits_in
from warpwright.problems.shapes import Shape, check_shapes
from warpwright.problems.sites import elements
from warpwright.problems.types import element_type

ASSUMED_TIMES = 4
"""Elements for each thread in an array of which nothing says how long it is."""
_UNTOUCHED = ArrayReach(Number(1), "in", CType("?", None), False)
_SHARED_EXAMPLE = "launch grid((n + 255) / 256) block(256) shared(4 * 256)"
Dims = tuple[str, str, str]


class ArrayReader:
    def __init__(
        self,
        arguments: ArgumentReader,
        reach: KernelReach,
        symbols: tuple[str, ...],
        launch: tuple[Dims, Dims],
        own: Shape | None,
        shared: str | None,
    ) -> None:
        self.arguments = arguments
        self.reach = reach
        self.symbols = symbols
        self.own = own
        self.grid, self.block = launch
        self.shared = shared
        self.allocations = Allocations(arguments.program, arguments.reader.symbolic)
        self.notes = arguments.notes
        self.said = merged(arguments.said, arguments.directives)
        self._globals = self._global_arrays()
        self._pointers = list(arguments.pointers())
        self._types = {p.name: self._type(p) for p in self._pointers}
        self.settled = self._settle()

    def arrays(self) -> dict[str, Array]:
        """By parameter or member."""
        out: dict[str, Array] = {}
        for pointer in self._pointers:
            reach = self.reach.arrays.get(pointer.name, _UNTOUCHED)
            override = self.said.get(pointer.name, ArrayOverride())
            role = override.role or ("in" if pointer.is_const else reach.role)
            values = override.values or self._values(pointer.name)
            if override.values is None and role == "in-out" and self._starts_at_zero(pointer, reach):
                values = "index(1)"
            extent = override.extent or show(self.settled.extents[pointer.name])
            if override.extent is not None:
                said = self.arguments.said
                origin = said.origin if pointer.name in said.arrays else self.arguments.directives.origin
            else:
                origin = "launch" if pointer.name in self._allocated else "inferred"
            out[pointer.name] = Array(pointer.name, self._types[pointer.name], extent, role, origin, values)
            self._guess(out[pointer.name], role_said=override.role is not None)
            if is_mixed(pointer.to) and pointer.to.kind == "struct" and role != "out" and override.type is None:
                self.notes.append(
                    f"{pointer.name} holds structs `{pointer.to.name}`, which are filled with small whole numbers"
                )
        return out

    def _guess(self, array: Array, *, role_said: bool) -> None:
        """Note what nobody said of an array."""
        directive = f"array {array.name}[{array.extent}] {array.role}"
        if array.origin == "inferred" or array.name in self.settled.enlarged:
            said = f"{array.name} was given {array.extent} elements"
            self.arguments.guesses.append(Guess(About.EXTENT, said, directive, array.name))
        if array.role == "out" and not role_said:
            said = f"{array.name} is taken to hold nothing before the launch"
            self.arguments.guesses.append(
                Guess(About.ROLE, said, f"array {array.name}[{array.extent}] in-out", array.name)
            )

    def _starts_at_zero(self, pointer: PointerArgument, reach: ArrayReach) -> bool:
        """Whether host code fills it with zeros, or its counters give places, as in `out[atomicAdd(count, 1)]`."""
        if self.allocations.is_zeroed(pointer.passed):
            return True
        if reach.counts:
            self.notes.append(f"{pointer.name} holds counters; they start at 0")
        return reach.counts

    def globals(self) -> tuple[Array, ...]:
        """`__constant__` and `__device__` variables that the kernel reads alone and that the text gives no value."""
        return tuple(
            Array(name, kind, show(extent), "in", "inferred", self._said_values(name) or self._values(f"::{name}"))
            for name, (kind, extent) in self._globals.items()
        )

    def variables(self) -> tuple[Array, ...]:
        """`__device__` and `__managed__` variables that the kernel names, with what it does to them; but for those of a
        type of which nothing can be compared, such as addresses."""
        found: list[Array] = []
        for name, kind in self.reach.globals.items():
            variable, reach = self.arguments.text.unit.variables.get(name), self.reach.arrays.get(f"::{name}")
            if variable is None or variable.space != "global" or reach is None:
                continue
            filled, count = filled_type(reach.element), _count(kind)
            if filled is not None and count:
                found.append(Array(name, filled, str(count), reach.role, "inferred"))
        return tuple(found)

    def _said_values(self, name: str) -> str | None:
        override = self.said.get(name)
        return override.values if override is not None else None

    def holds(self, shape: Shape) -> bool:
        """Whether each array is as long as the kernel's text says that it reaches, at one shape."""
        values = self._values_at(shape)
        limits = {f"#{name}": limit for name, limit in self.settled.limits.items()}
        if values is None:
            return False
        at_shape = evaluator([values])
        for need in self._needs:
            extent = self.settled.extents.get(need.name)
            if need.reach is not None and extent is not None:
                (reached,), (held,) = at_shape(substitute(need.reach, limits)), at_shape(extent)
                if reached is not None and held is not None and reached > held:
                    return False
        return True

    def dynamic_shared_bytes(self, given: str | None, site: LaunchSite | None) -> str:
        """What the launch says, `given`, or more where that is for the user's own sizes and others reach further. Where
        those reach further too, the launch gives too little, and the run is to show it.

        Without one as much as the kernel reaches; where an index of it has no bound, what the facts read of the launch.
        Raises LackingError where that is nothing either.
        """
        most = self._shared_reach()
        if given is not None:
            if most is None or not given.isdigit() or int(given) == 0 or not names(most):
                return given
            if self._own_value(most, 0) > int(given):
                return given
            return show(ranges.largest(Number(int(given)), most) or Number(int(given)))
        if most is None:
            known = site.launch.dynamic_shared_bytes if site is not None else None
            if known is not None and site is not None and site.launch.basis is Basis.EXACT:
                return str(known)
            raise LackingError("nothing says how much dynamic shared memory it has", _SHARED_EXAMPLE)
        said = "the text does not say how much dynamic shared memory it has; what its indices need was taken"
        self.notes.append(said)
        self.arguments.guesses.append(Guess(About.SHARED, said, f"launch shared({show(most)})"))
        return show(most)

    def _shared_reach(self) -> Expression | None:
        """The bytes of dynamic shared memory that the kernel reaches; None where an index of it has no bound."""
        most: Expression | None = ZERO
        for array in self.arguments.kernel.shared_arrays:
            if array.dynamic:
                reach = self.reach.arrays.get(f"shared {array.name}")
                size = array.element_bytes or (reach.element.size if reach is not None else None)
                extent = self._in_symbols(reach.extent) if reach is not None and reach.extent is not None else None
                bytes_of_it = ranges.combine("*", extent, Number(size)) if size is not None else None
                most = ranges.largest(most, bytes_of_it)
        return None if most is None or any(name.startswith("#") for name in names(most)) else most

    # Parts ----------------------------------------------------------------------------------------------------------

    def _type(self, pointer: PointerArgument) -> str:
        override = self.said.get(pointer.name)
        if override is not None and override.type is not None:
            return override.type
        return self.arguments.element(pointer)

    def _global_arrays(self) -> dict[str, tuple[str, Expression]]:
        found: dict[str, tuple[str, Expression]] = {}
        for name, kind in self.reach.globals.items():
            reach = self.reach.arrays.get(f"::{name}")
            variable = self.arguments.text.unit.variables.get(name)
            if reach is None or reach.role != "in" or variable is None or variable.value is not None:
                continue
            count = _count(kind)
            filled = filled_type(reach.element)
            if filled is None or not count:
                raise LackingError(f"the variable `{name}`, which it reads, is of a type that cannot be filled in")
            found[name] = filled, Number(count)
        return found

    def _settle(self) -> Settled:
        self._allocated: set[str] = set()
        needs: list[Need] = []
        for pointer in self._pointers:
            reach = self.reach.arrays.get(pointer.name, _UNTOUCHED)
            override = self.said.get(pointer.name, ArrayOverride())
            extent = self._in_symbols(reach.extent) if reach.extent is not None else None
            limited = reach.limited and override.values is None
            if override.extent is not None:
                needs.append(Need(pointer.name, parse(override.extent), extent, limited, said=True))
                continue
            allocated = self._allocation(pointer)
            if allocated is not None:
                self._allocated.add(pointer.name)
                if extent is None:
                    self.notes.append(
                        f"an index of {pointer.name} has no bound in the kernel's text; the {show(allocated)} elements"
                        " that are allocated are taken to hold it"
                    )
            needs.append(Need(pointer.name, allocated, extent, limited, short=pointer.to.size == 1))
        for name, (_, held) in self._globals.items():
            reach = self.reach.arrays[f"::{name}"]
            extent = self._in_symbols(reach.extent) if reach.extent is not None else None
            needs.append(Need(f"::{name}", held, extent, reach.limited, said=True))
        for name, kind in self.reach.globals.items():  # and in one of the file that has its values
            known = self.reach.arrays.get(f"::{name}")
            count = _count(kind)
            if name not in self._globals and known is not None and known.extent is not None and count:
                reached = self._in_symbols(known.extent)
                needs.append(Need(f"::{name}", Number(count), reached, False, said=True))
        for name, reach in self.reach.arrays.items():  # what indexes an array of its own must stay in it
            if reach.declared is not None and reach.extent is not None:
                needs.append(Need(name, Number(reach.declared), self._in_symbols(reach.extent), False, said=True))
        needs += self._in_dynamic_shared()
        sizes = [Name(s) for s in self.symbols]
        self._needs = needs
        settled = settle(needs, sizes, evaluator(self._shapes()))
        if settled.unknown:
            settled = self._with_assumed(settled.unknown, sizes)
        for name in settled.enlarged:
            self.notes.append(f"the host code allocates {name} for its own sizes; for others it is made longer")
        for name, limit in settled.limits.items():
            if any(need.name == name and need.limited and not need.said for need in needs):
                self.notes.append(
                    f"{name.removeprefix('::')} holds indices; whole numbers below {show(limit)} are put in"
                )
        return settled

    def _in_dynamic_shared(self) -> Iterator[Need]:
        """What indexes dynamic shared memory by values of an array must stay in what the launch gives it."""
        for array in self.arguments.kernel.shared_arrays if self.shared is not None else ():
            name = f"shared {array.name}"
            reach = self.reach.arrays.get(name)
            extent = self._in_symbols(reach.extent) if reach is not None and reach.extent is not None else None
            if array.dynamic and array.element_bytes and extent is not None and limits_in(extent):
                yield Need(name, elements(parse(self.shared or "0"), array.element_bytes), extent, False, said=True)

    def _with_assumed(self, unknown: tuple[str, ...], sizes: Sequence[Expression]) -> Settled:
        """With arrays whose indices have no bound, and of which no allocation can be followed, as long as the launch
        has threads, several times over: what indexes them is kept below the number of threads. Where that is too
        little for the kernel, the run shows it, and the shape counts for nothing."""
        threads = ranges.normal(parse("*".join(f"({part})" for part in (*self.grid, *self.block))))
        self._needs = [replace(n, allocated=threads) if n.name in unknown else n for n in self._needs]
        settled = settle(self._needs, sizes, evaluator(self._shapes()))
        longer = ranges.normal(Binary("*", Number(ASSUMED_TIMES), threads))
        for name in unknown:
            self.notes.append(f"nothing says how many elements {name} has; {show(longer)} were taken")
        return replace(settled, extents={**settled.extents, **dict.fromkeys(unknown, longer)})

    def _values(self, name: str) -> str:
        limit = self.settled.limits.get(name)
        return f"index({show(limit)})" if limit is not None else "any"

    def _allocation(self, pointer: PointerArgument) -> Expression | None:
        site, element = self.arguments.site, element_type(self._types[pointer.name])
        if site is None or element is None:
            return None
        size = pointer.to.size
        if pointer.to.kind == "array" or size is None:
            size = element.bytes
        try:
            found = self.allocations.elements(site.source, self.arguments.reader.function, pointer.passed, size)
            for name, value in self.allocations.defaults.items():
                self.arguments.reader.defaults.setdefault(name, value)
            return ranges.normal(self.arguments.settled(found, self.symbols)) if found is not None else None
        except ExpressionError:
            return None

    def _in_symbols(self, extent: Expression) -> Expression | None:
        """A reach with the block's sizes put in; None where it depends on something that has no value."""
        sizes = {f"blockDim.{axis}": parse(text) for axis, text in zip("xyz", self.block, strict=True)}
        fixed = {f"gridDim.{axis}": parse(text) for axis, text in zip("xyz", self.grid, strict=True) if text.isdigit()}
        whole = ranges.normal(substitute(extent, {**sizes, **fixed}))
        values = self.arguments.scalar_values
        hidden = {name: parse(values[name[1:]].value) for name in names(whole) if name.startswith("@")}
        whole = substitute(whole, hidden) if hidden else whole
        known = {*self.symbols, *(f"gridDim.{axis}" for axis in "xyz")}
        if any(name not in known and not name.startswith("#") for name in names(whole)):
            return None
        return whole

    def _shapes(self) -> list[dict[str, Value]]:
        """A few shapes with the sizes of their grids, the user's own first."""
        out: list[dict[str, Value]] = []
        for shape in check_shapes(self.symbols, self.own, lambda _: 1):
            values = self._values_at(shape)
            if values is not None:
                out.append(values)
        return out

    def _own_value(self, expression: Expression, otherwise: Value) -> Value:
        """What an expression is at the user's own sizes."""
        values = self._values_at(self.own) if self.own is not None else None
        (value,) = evaluator([values])(expression) if values is not None else (None,)
        return otherwise if value is None else value

    def _values_at(self, shape: Shape) -> dict[str, Value] | None:
        """A shape with the sizes of its grid and block; None where there is none."""
        values: dict[str, Value] = dict(shape)
        try:
            for dim, texts in (("gridDim", self.grid), ("blockDim", self.block)):
                for axis, text in zip("xyz", texts, strict=True):
                    values[f"{dim}.{axis}"] = evaluate(text, shape)
        except ExpressionError:
            return None
        return values


def _count(kind: CType) -> int:
    """The elements of a variable: 1 for a plain one, 0 where an extent is not known."""
    count = 1
    while kind.kind == "array" and kind.to is not None:
        count *= kind.extent or 0
        kind = kind.to
    return count
