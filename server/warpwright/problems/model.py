"""What is needed to run a kernel, as data that can be shown, edited and run.

Example: `transpose` takes `in` (float, width * height elements, read), `out` (float, width * height, written) and the
ints width and height; its grid is ((width + 31) / 32, (height + 31) / 32) blocks of 32 x 8 threads.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from warpwright.facts.model import MAX_THREADS_PER_BLOCK, Dim3
from warpwright.facts.profile import Fault
from warpwright.problems.expressions import ExpressionError, Value, evaluate, names, parse
from warpwright.problems.guesses import Guess, behind, other_sizes
from warpwright.problems.shapes import Shape
from warpwright.problems.types import element_type

ROLES = ("in", "out", "in-out")


@dataclass(frozen=True, slots=True)
class Array:
    """A pointer argument. `extent` is in elements of `type`; it may use gridDim and blockDim too.

    `values` says what an input may hold: "any", or "index(E)" for whole numbers from 0 to E - 1. `origin` is where it
    was read: "sample.toml", "directive", "launch" or "inferred", most trusted first. A member of a struct is named
    with it, as `p.data`. What is passed is the address `offset` elements behind the array's start, as in `k(in + 1)`.
    """

    name: str
    type: str
    extent: str
    role: str
    origin: str
    values: str = "any"
    offset: str = "0"


@dataclass(frozen=True, slots=True)
class Pointer:
    """A pointer argument that leads into another one's array: `offset` elements of `type` behind its start.

    Example: of `k<<<...>>>(x, x + n)` the first is the array and the second a pointer with the offset "n".
    """

    name: str
    type: str
    array: str
    offset: str


@dataclass(frozen=True, slots=True)
class Scalar:
    """An argument passed by value; `value` is an expression over the shape symbols, or a number."""

    name: str
    type: str
    value: str
    origin: str


Part = Array | Pointer | Scalar
"""What a kernel takes by itself or as a member of a struct."""


@dataclass(frozen=True, slots=True)
class Struct:
    """A struct passed by value, `bytes` long. `members` are its numbers and pointers with their byte offsets, each
    named as in `p.n`; what lies between them is zero."""

    name: str
    type: str
    bytes: int
    members: tuple[tuple[int, Part], ...]


Argument = Array | Pointer | Scalar | Struct


@dataclass(frozen=True, slots=True)
class Repeat:
    """How often a step is launched at one shape, and by how many bytes each of its arguments moves on each time."""

    times: int
    moves: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Case:
    """A problem at one shape, all numbers: what the harness launches; `shared_opt_in` is for `Problem`'s, `repeats` are
    those of its steps."""

    shape: Shape
    counts: Mapping[str, int]
    scalars: Mapping[str, Value]
    limits: Mapping[str, int]
    grid: Dim3
    block: Dim3
    dynamic_shared_bytes: int
    shared_opt_in: int | None = None
    repeats: tuple[Repeat, ...] = ()
    offsets: Mapping[str, int] = field(default_factory=lambda: {})
    """By how many bytes an address that is passed lies behind the start of its array, where it does."""


@dataclass(frozen=True, slots=True)
class Step:
    """One of several kernels that are launched one after the other, each with the problem's grid and block.

    `arguments` are the names of those of the problem that it is handed, in the order of its parameters; `instance` is
    as in `Problem`. It is launched `times` times; `moves` says by how many elements each argument that is an array
    moves on each time, "0" for one that stays.

    Example: `scale<<<grid, 256>>>(y + r * n, x, n)` for r from 0 to `rows` has the times "rows" and the moves "n", "0"
    and "0".
    """

    kernel: str
    instance: tuple[str, ...]
    arguments: tuple[str, ...]
    times: str = "1"
    moves: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Problem:
    """How to run one kernel. `arguments` are in the order of the kernel's parameters.

    `grid`, `block` and `dynamic_shared_bytes` are expressions. `own_shape` holds the values that the user's own launch
    gives the symbols, None where they are not known. `instance` holds the launch's template arguments as written.
    `globals` are `__constant__` and `__device__` variables that the kernel reads and the host code is to set before it
    runs. `profile` is the shape for a profile: few threads, several full blocks and a partial one. `shared_opt_in` is
    the dynamic shared memory that the host code asks for, in bytes: "0" where it asks for none, None where it is not
    known how much, or the launch's text does not say how much it takes. `compared` are the numbers that its text
    compares with, `scales` those by which it multiplies or divides; `guarded` are the arrays of indices whose values it
    looks at before it uses them. `notes` are what was assumed, one sentence each, `guesses` what of it a fault of a run
    may come of. `steps` are the launches in whose place the kernel's stands, where the problem is theirs. `variables`
    are the `__device__` and `__managed__` variables that its text names, with what it does to them; `results` those of
    which a comparison with another version looks at what is left, `unread` the names of those that only other files may
    read, and `prints` says whether it looks at what is printed.
    """

    kernel: str
    arguments: tuple[Argument, ...]
    symbols: tuple[str, ...]
    grid: tuple[str, str, str]
    block: tuple[str, str, str]
    dynamic_shared_bytes: str
    own_shape: Shape | None
    check: tuple[Shape, ...]
    time: tuple[Shape, ...]
    launch_origin: str
    instance: tuple[str, ...] = ()
    reference: Path | None = None
    notes: tuple[str, ...] = field(default=())
    guesses: tuple[Guess, ...] = ()
    globals: tuple[Array, ...] = ()
    profile: Shape | None = None
    shared_opt_in: str | None = None
    compared: tuple[Value, ...] = ()
    scales: tuple[Value, ...] = ()
    guarded: tuple[str, ...] = ()
    steps: tuple[Step, ...] = ()
    variables: tuple[Array, ...] = ()
    results: tuple[Array, ...] = ()
    unread: frozenset[str] = frozenset()
    prints: bool = False

    @property
    def parts(self) -> tuple[Part, ...]:
        """The arguments, with the members of a struct in its place."""
        return tuple(
            part
            for argument in self.arguments
            for part in ([member for _, member in argument.members] if isinstance(argument, Struct) else [argument])
        )

    @property
    def arrays(self) -> tuple[Array, ...]:
        """Those behind pointers, and the variables of the file that are to be set."""
        return (*(a for a in self.parts if isinstance(a, Array)), *self.globals)

    @property
    def scalars(self) -> tuple[Scalar, ...]:
        return tuple(a for a in self.parts if isinstance(a, Scalar))

    def guesses_behind(self, fault: Fault, shape: Shape) -> tuple[Guess, ...]:
        """What was guessed that a fault of a run at a shape may come of; none where it is the kernel's own."""
        sizes = () if self.own_shape is None and self._takes_any_size() else other_sizes(shape, self.own_shape)
        return behind((*self.guesses, *sizes), fault, {array.name for array in self.arrays})

    def _takes_any_size(self) -> bool:
        """Whether the grid has a block for what is left of each size, so that the launch is meant for all of them."""
        even = dict.fromkeys(self.symbols, 1024)

        def blocks(shape: Shape) -> int:
            x, y, z = self.case(shape).grid
            return x * y * z

        try:
            return all(blocks({**even, symbol: 1025}) > blocks(even) for symbol in self.symbols)
        except ExpressionError:
            return False

    def case(self, shape: Shape) -> Case:
        """Everything at one shape. Raises ExpressionError where it cannot be launched there."""
        values: dict[str, Value] = dict(shape)
        grid = self._dim3(self.grid, values, "grid")
        block = self._dim3(self.block, values, "block")
        if block[0] * block[1] * block[2] > MAX_THREADS_PER_BLOCK:
            raise ExpressionError(f"a block of {block[0]} x {block[1]} x {block[2]} threads is larger than 1,024")
        for axis, blocks, threads in zip("xyz", grid, block, strict=True):
            values[f"gridDim.{axis}"], values[f"blockDim.{axis}"] = blocks, threads
        held = (*self.arrays, *self.results)
        counts = {a.name: _whole(a.extent, values, f"the extent of {a.name}", least=0) for a in held}
        limits = {
            a.name: _whole(a.values.removeprefix("index(").removesuffix(")"), values, f"the values of {a.name}")
            for a in self.arrays
            if a.values.startswith("index(")
        }
        scalars = {s.name: evaluate(s.value, values) for s in self.scalars}
        shared = _whole(self.dynamic_shared_bytes, values, "the dynamic shared memory", least=0)
        asked = None if self.shared_opt_in is None else int(evaluate(self.shared_opt_in, values))
        repeats = tuple(self._repeat(step, values) for step in self.steps)
        offsets = {
            each.name: int(evaluate(each.offset, values)) * _element_bytes(each.type)
            for each in self.parts
            if isinstance(each, Array | Pointer) and each.offset != "0"
        }
        return Case(dict(shape), counts, scalars, limits, grid, block, shared, asked, repeats, offsets)

    def _repeat(self, step: Step, values: Mapping[str, Value]) -> Repeat:
        sizes = {array.name: _element_bytes(array.type) for array in self.arrays}
        moves = zip(step.arguments, step.moves, strict=True) if step.moves else ()
        return Repeat(
            _whole(step.times, values, f"the number of launches of {step.kernel}"),
            tuple(sizes.get(name, 0) * int(evaluate(text, values)) for name, text in moves),
        )

    def bytes(self, shape: Shape) -> int:
        """The memory that the arrays take at a shape; 0 where the kernel cannot be launched there."""
        try:
            counts = self.case(shape).counts
        except ExpressionError:
            return 0
        return sum(counts[a.name] * _element_bytes(a.type) for a in self.arrays)

    def size(self, shape: Shape) -> tuple[int, int, int] | None:
        """Threads of the grid, threads of a block, bytes of the arrays; None where it cannot be launched there."""
        try:
            case = self.case(shape)
        except ExpressionError:
            return None
        x, y, z = case.block
        blocks = case.grid[0] * case.grid[1] * case.grid[2]
        return blocks * x * y * z, x * y * z, self.bytes(shape)

    def _dim3(self, texts: tuple[str, str, str], values: Mapping[str, Value], what: str) -> Dim3:
        x, y, z = (_whole(text, values, f"the {what}'s {axis}") for axis, text in zip("xyz", texts, strict=True))
        return x, y, z

    def unknown_symbols(self) -> frozenset[str]:
        """Names in the expressions that no symbol gives a value."""
        texts = [*self.grid, *self.block, self.dynamic_shared_bytes, *(s.value for s in self.scalars)]
        texts += [a.extent for a in self.arrays]
        texts += [each.offset for each in self.parts if isinstance(each, Array | Pointer)]
        known = {*self.symbols, *(f"{dim}.{axis}" for dim in ("gridDim", "blockDim") for axis in "xyz")}
        return frozenset().union(*(names(parse(text)) for text in texts)) - known


def grid_symbols(problem: Problem) -> frozenset[str]:
    """The symbols that the number of blocks depends on."""
    return frozenset().union(*(names(parse(text)) for text in problem.grid)) & frozenset(problem.symbols)


def _element_bytes(type_name: str) -> int:
    element = element_type(type_name)
    return element.bytes if element else 1


def _whole(text: str, values: Mapping[str, Value], what: str, least: int = 1) -> int:
    value = evaluate(text, values)
    if value != int(value):
        raise ExpressionError(f"{what} is {value}, which is not a whole number")
    if value < least:
        raise ExpressionError(f"{what} is {value:g}, which is less than {least}")
    return int(value)
