"""What was written: kernels, and as data which of them a launch function launches when, so that it can be carried out
without it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from warpwright.formulas.extents import at_sizes, is_constant
from warpwright.formulas.model import Formula, Tensor
from warpwright.formulas.tree import Call, Expr, Num
from warpwright.schedules.model import Schedule

MOST_INDEX = 2**31 - 1
"""The largest index of 32 bits."""
IN_64_BITS = "The same with indices of 64 bits."
SHARED_MEMORY = 227 * 1024
"""Bytes that a block may ask for on the GPUs that have most."""


@dataclass(frozen=True, slots=True)
class Kernel:
    """The text of one kernel. `parameters` are names of arrays, temporaries, sizes and scalars of the formula in
    order. Of one whose `is_indexed` the sizes have the type of its template parameter `Index`, else of `size_type`.
    `helpers` are the functions that it calls, `types` the element types that it names.

    Of a kernel that somebody else wrote, `passed` has what its numbers are, by parameter: an expression over sizes, or
    a scalar, and its type; `casts` the types of pointers that are other ones than the launch function's."""

    name: str
    text: str
    parameters: tuple[str, ...]
    is_indexed: bool = False
    size_type: str = "long long"
    helpers: frozenset[str] = frozenset()
    types: frozenset[str] = frozenset()
    passed: Mapping[str, tuple[Expr, str]] = field(default_factory=dict)
    casts: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Launch:
    """One launch. The grid is of expressions over sizes, `index` the argument of a template: "int", "long long" or
    "". `template` are the arguments of one that has others, `arrays` those that it gets for others of its kernel's.
    `shared_bytes` may hang on sizes, too."""

    kernel: str
    grid: tuple[Expr, Expr, Expr]
    block: tuple[int, int, int]
    index: str = ""
    shared_bytes: Expr | int = 0
    template: tuple[str, ...] = ()
    arrays: Mapping[str, str] = field(default_factory=dict)

    @property
    def asks_for_shared(self) -> bool:
        """Whether it needs more shared memory than each GPU gives without being asked: a path that others follow."""
        return self.most_shared > 48 * 1024

    @property
    def most_shared(self) -> int:
        """The bytes of shared memory, or the most that any size asks for."""
        return self.shared_bytes if isinstance(self.shared_bytes, int) else SHARED_MEMORY

    def shared_at(self, sizes: Mapping[str, int]) -> int:
        """The bytes of shared memory at some sizes."""
        return self.shared_bytes if isinstance(self.shared_bytes, int) else at_sizes(self.shared_bytes, sizes)

    @property
    def arguments(self) -> tuple[str, ...]:
        """The arguments of the template."""
        return self.template or ((self.index,) if self.index else ())


@dataclass(frozen=True, slots=True)
class Path:
    """Launches that are right where all `conditions` over sizes hold and each of the arrays in `aligned` begins at a
    multiple of so many bytes. `reason` is a comment that says when it is taken, `schedule` how the work is laid."""

    launches: tuple[Launch, ...]
    conditions: tuple[Expr, ...] = ()
    aligned: Mapping[str, int] = field(default_factory=dict)
    reason: str = ""
    schedule: Schedule | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """One part of the work: the first of its paths that is right. The last path has no conditions. `count` is the
    number of results, and nothing is done where it is 0. `names` are those of expressions over sizes that its paths
    share; one may be part of a later one."""

    paths: tuple[Path, ...]
    count: Expr
    names: Mapping[str, Expr] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Code:
    """A formula in CUDA. `formula` is in its normal form; `temporaries` are arrays that the steps hand on to each
    other, in the order in which they lie in the workspace; `zeroed` the results that are to hold zeros before."""

    name: str
    formula: Formula
    kernels: tuple[Kernel, ...]
    steps: tuple[Step, ...]
    temporaries: tuple[Tensor, ...] = ()
    zeroed: frozenset[str] = frozenset()

    def kernel(self, name: str) -> Kernel:
        return next(each for each in self.kernels if each.name == name)


def pruned(code: Code) -> Code:
    """The code without what fixed sizes decide: conditions that always hold, paths that are never taken, their kernels.

    >>> always, never = Call("<=", (Num(8), Num(9))), Call("<=", (Num(9), Num(8)))
    >>> paths = (Path((), (never,)), Path((), (always,)), Path(()))
    >>> len(list(_possible(paths)))
    1
    """
    steps = tuple(replace(each, paths=tuple(_possible(each.paths))) for each in code.steps)
    launched = {launch.kernel for step in steps for path in step.paths for launch in path.launches}
    return replace(code, steps=steps, kernels=tuple(each for each in code.kernels if each.name in launched))


def _possible(paths: Sequence[Path]) -> Iterator[Path]:
    kept: list[Path] = []
    for path in paths:
        fixed = [each for each in path.conditions if is_constant(each)]
        if not all(at_sizes(each, {}) for each in fixed):
            continue
        left = replace(path, conditions=tuple(each for each in path.conditions if each not in fixed))
        if any(_takes_all(each, left) for each in kept):
            continue
        kept.append(left)
        yield left


def _takes_all(path: Path, later: Path) -> bool:
    """Whether nothing is left for a later path."""
    aligned = all(later.aligned.get(name, 1) % size == 0 for name, size in path.aligned.items())
    asked, wanted = (max((o.most_shared for o in p.launches if o.asks_for_shared), default=0) for p in (path, later))
    return aligned and asked <= wanted and set(path.conditions) <= set(later.conditions)


def ceiling(count: Expr, size: int) -> Expr:
    """How many groups of `size` hold `count`."""
    if size == 1:
        return count
    if is_constant(count):
        return Num(-(-at_sizes(count, {}) // size))
    return Call("//", (Call("+", (count, Num(size - 1))), Num(size)))


def taken(step: Step, sizes: Mapping[str, int], alignment: Mapping[str, int]) -> Path | None:
    """The path that the launch function takes; None where there is nothing to do. `alignment` says at a multiple of
    how many bytes each array begins."""
    if at_sizes(step.count, sizes) == 0:
        return None
    for path in step.paths:
        fits = all(at_sizes(each, sizes) for each in path.conditions)
        if fits and all(alignment.get(name, 256) % size == 0 for name, size in path.aligned.items()):
            return path
    raise ValueError("a step has no path without conditions")
