"""The arguments of a launch, made from a kernel's problem: the same seed gives the same values (see `drawn`)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from warpwright.emulator.drawn import DTYPES, EPSILON, Asked, as_doubles, as_type, drawn, sacred
from warpwright.emulator.launch import Argument, ArrayArgument, PointerArgument, ScalarArgument, StructArgument
from warpwright.emulator.numerics.halves import bf16_of_f32, f32_of_bf16
from warpwright.problems.model import Array, Case, Part, Pointer, Problem, Struct
from warpwright.problems.types import ElementType, element_type

POISONS = (0x7FFDA5A5, 0x3FFB5A5B)
"""What outputs may hold before a run, different in every byte: NaN as float and as double, and a number as either."""


@dataclass(frozen=True, slots=True)
class Alteration:
    """A change of inputs: of values of a scalar type, made with random numbers.

    One `across_thresholds` changes what is a threshold, too; to others these are sacred, as a step beyond one makes
    another branch right. Called with a scalar type and values of it.
    """

    change: Callable[[str, Any, np.random.Generator], Any]
    across_thresholds: bool = False

    def __call__(self, scalar: str, data: Any, random: np.random.Generator) -> Any:
        return self.change(scalar, data, random)


@dataclass(frozen=True, slots=True)
class Change:
    """Other values for the input or the number `name` alone; for a share of the elements of each input, at random
    places, where the name is ""."""

    name: str


SHARE = 0.1
SCALAR_FACTOR = 0.7316717
"""By what a number is multiplied: smaller, so that it leads no index out of bounds, and with a long mantissa."""


class UnknownTypeError(Exception):
    """An argument has a type of which no values can be made. The message names both."""


def arguments_of(
    problem: Problem,
    case: Case,
    distribution: str = "normal",
    seed: int = 0,
    *,
    poison: int = 0,
    alter: Alteration | None = None,
    change: Change | None = None,
) -> list[Argument]:
    """The kernel's arguments at one shape, in the order of its parameters. Raises UnknownTypeError.

    Outputs hold `poison`, 32 bits again and again; inputs of floating-point numbers are changed by `alter`, and inputs
    before that by `change`.
    """
    filled = _Filling(problem, case, distribution, poison, alter, change)
    made: list[Argument] = []
    for place, argument in enumerate(problem.arguments):
        if isinstance(argument, Struct):
            parts = tuple((offset, filled.argument(m, [seed, place, offset])) for offset, m in argument.members)
            made.append(StructArgument(argument.name, argument.bytes, parts))
        else:
            made.append(filled.argument(argument, [seed, place]))
    return made


def variables_of(
    problem: Problem,
    case: Case,
    distribution: str = "normal",
    seed: int = 0,
    *,
    alter: Alteration | None = None,
    change: Change | None = None,
) -> dict[str, bytes]:
    """What the host code is to set the file's variables to, by their names. Raises UnknownTypeError."""
    filled = _Filling(problem, case, distribution, 0, alter, change)
    start = len(problem.arguments)
    made = {array.name: filled.argument(array, [seed, start + n]) for n, array in enumerate(problem.globals)}
    return {name: given.data.tobytes() for name, given in made.items() if isinstance(given, ArrayArgument)}


def results_of(problem: Problem, case: Case, poison: int) -> dict[str, bytes]:
    """What those of the file's variables hold before a launch that it only writes, by their names."""
    made: dict[str, bytes] = {}
    for array in problem.results:
        element = element_type(array.type)
        if array.role == "out" and element is not None:
            count = case.counts[array.name] * element.components
            made[array.name] = poisoned(np.dtype(DTYPES[element.scalar]), count, poison).tobytes()
    return made


def as_numbers(scalar: str, content: bytes) -> Any:
    """The bytes of a variable as an array of its scalar type."""
    return np.frombuffer(content, dtype=DTYPES[scalar])


@dataclass(frozen=True, slots=True)
class _Filling:
    problem: Problem
    case: Case
    distribution: str
    poison: int
    alter: Alteration | None
    change: Change | None

    def argument(self, argument: Part, seed: list[int]) -> ArrayArgument | PointerArgument | ScalarArgument:
        offset = self.case.offsets.get(argument.name, 0)
        if isinstance(argument, Pointer):
            return PointerArgument(argument.name, argument.array, offset)
        if isinstance(argument, Array):
            element = element_type(argument.type)
            if element is not None:
                asked = self._asked(argument, element)
                data = self._values(argument, asked, np.random.default_rng(seed))
                if self.change is not None and argument.role != "out":
                    data = self._changed(argument, asked, data, [*seed, 2])
                is_free = argument.role != "out" and argument.name not in self.case.limits
                if self.alter is not None and is_free and element.scalar in EPSILON:
                    data = self._altered(asked, data, np.random.default_rng([*seed, 1]))
                return ArrayArgument(argument.name, data, argument.role, offset)
        elif argument.type in DTYPES:
            value = self.case.scalars[argument.name]
            if self.change is not None and self.change.name == argument.name:
                value *= SCALAR_FACTOR
            return ScalarArgument(argument.name, scalar_bytes(argument.type, value))
        raise UnknownTypeError(f"`{argument.name}` has the type `{argument.type}`, which is not known")

    def _asked(self, array: Array, element: ElementType) -> Asked:
        return Asked(
            element.scalar,
            self.case.counts[array.name] * element.components,
            self.case.limits.get(array.name),
            array.name in self.problem.guarded,
            self.problem.compared,
            self.problem.scales,
        )

    def _values(self, array: Array, asked: Asked, random: np.random.Generator) -> Any:
        """Of the scalar type (bfloat16 as its bits), flat; the poison for an output."""
        if array.role == "out":
            return poisoned(np.dtype(DTYPES[asked.scalar]), asked.count, self.poison)
        return drawn(asked, self.distribution, random)

    def _altered(self, asked: Asked, data: Any, random: np.random.Generator) -> Any:
        assert self.alter is not None
        altered = self.alter(asked.scalar, data, random)
        kept = sacred(asked, self.distribution)
        if not len(kept) or self.alter.across_thresholds:
            return altered
        return np.where(np.isin(data, as_type(asked.scalar, kept)), data, altered)

    def _changed(self, array: Array, asked: Asked, data: Any, seed: list[int]) -> Any:
        """The values with this array's own changed, or some of them, as `change` asks for."""
        assert self.change is not None
        random = np.random.default_rng(seed)
        others = self._values(array, asked, random)
        if self.change.name == array.name:
            return others
        if self.change.name or not len(data):
            return data
        picked = random.random(len(data)) < SHARE
        picked[int(random.integers(len(data)))] = True
        return np.where(picked, others, data)


def poisoned(dtype: Any, count: int, poison: int) -> Any:
    """Memory of `count` numbers that nothing has written.

    >>> poisoned(np.dtype(np.uint16), 3, 0x7FFDA5A5).tolist() == [0xA5A5, 0x7FFD, 0xA5A5]
    True
    """
    words = -(-count * dtype.itemsize // 4)
    made = np.full(words, poison, dtype="<u4") if poison else np.zeros(words, dtype="<u4")  # no page of it is touched
    return made.view(np.uint8)[: count * dtype.itemsize].view(dtype)


def perturbed(seed: int) -> Alteration:
    """Inputs moved by one unit in the last place, up or down at random; another `seed` moves them otherwise."""

    def alter(scalar: str, data: Any, random: np.random.Generator) -> Any:
        moves = np.random.default_rng([seed, int(random.integers(1 << 31))]).integers(0, 2, len(data)) * 2 - 1
        return as_type(scalar, as_doubles(scalar, data) * (1.0 + EPSILON[scalar] * moves))

    return Alteration(alter)


def scaled(factor: float) -> Alteration:
    """Inputs times a factor. What is made of them is used only where it follows, so that all branches are the same."""

    def alter(scalar: str, data: Any, random: np.random.Generator) -> Any:
        del random
        return as_type(scalar, as_doubles(scalar, data) * factor)

    return Alteration(alter, across_thresholds=True)


def _bounded(scalar: str, data: Any, random: np.random.Generator) -> Any:
    """Large numbers in the place of infinities."""
    del random
    values = as_doubles(scalar, data)
    most = 2.0**6 if scalar == "float16" else 2.0**20
    return np.where(np.isinf(values), as_type(scalar, np.sign(values) * most), data)


bounded = Alteration(_bounded, across_thresholds=True)


def _coarser(scalar: str, data: Any, random: np.random.Generator) -> Any:
    """Inputs rounded to the next lower precision that hardware offers: float64 to float32, float32 to TF32 (10 bits of
    mantissa, to nearest, ties away from zero), float16 to bfloat16."""
    del random
    with np.errstate(all="ignore"):
        if scalar == "float64":
            return data.astype(np.float32).astype(np.float64)
        if scalar == "float32":
            rounded = ((data.view(np.uint32) + np.uint32(0x1000)) & np.uint32(0xFFFFE000)).view(np.float32)
            return np.where(np.isfinite(data), rounded, data)
        return as_type(scalar, f32_of_bf16(bf16_of_f32(as_doubles(scalar, data).astype(np.float32))))


coarser = Alteration(_coarser)


def numbers(data: bytes, *, is_float: bool) -> Any:
    """The numbers that another process sent, as float64 or int64."""
    return np.frombuffer(data, dtype=np.float64 if is_float else np.int64)


def scalar_bytes(scalar: str, value: float) -> bytes:
    """A scalar argument as the kernel takes it.

    >>> scalar_bytes("int32", 3).hex()
    '03000000'
    """
    if "float" in scalar:
        return bytes(as_type(scalar, np.array([value], dtype=np.float64)).tobytes())
    size = int(np.dtype(DTYPES[scalar]).itemsize)
    return (int(value) & ((1 << 8 * size) - 1)).to_bytes(size, "little")
