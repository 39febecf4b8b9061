"""The arguments of a launch, made from a kernel's problem: the same seed gives the same values.

The distributions are the harness's: `normal` is N(0, 1); `integers` are -8 to 8, on which sums and products stay exact;
`large` has magnitudes from 1e-6 to 1e6; `zeros`; `special` has NaN, infinities, subnormal numbers and -0 among N(0, 1),
one of each at least where there is room; `threshold` has the numbers that the kernels' texts compare with, and others a
little above and below, among N(0, 1). Whole-number types take small numbers for each but `large` and `threshold`, which
has numbers of the whole range, too; an array of indices always holds indices.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from warpwright.emulator.launch import Argument, ArrayArgument, PointerArgument, ScalarArgument, StructArgument
from warpwright.emulator.numerics.halves import bf16_of_f32, f32_of_bf16
from warpwright.problems.model import Array, Case, Part, Pointer, Problem, Struct
from warpwright.problems.types import ElementType, element_type

DISTRIBUTIONS = ("normal", "integers", "large", "zeros", "special", "threshold")

_DTYPES: Mapping[str, Any] = {
    "float32": np.float32, "float64": np.float64, "float16": np.float16, "bfloat16": np.uint16, "bool": np.uint8,
    "int8": np.int8, "uint8": np.uint8, "int16": np.int16, "uint16": np.uint16, "int32": np.int32,
    "uint32": np.uint32, "int64": np.int64, "uint64": np.uint64,
}  # fmt: skip


POISONS = (0x7FFDA5A5, 0x3FFB5A5B)
"""What outputs may hold before a run, different in every byte: NaN as float and as double, and a number as either."""

EPSILON = {"float64": 2.0**-52, "float32": 2.0**-23, "float16": 2.0**-10, "bfloat16": 2.0**-7}
"""The distance from 1 to the next number of a type."""


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


_PIECE = 1 << 20
MOST_THRESHOLD = 1e8
"""Around larger ones sums would overflow, which may depend on their order."""
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
    filled = _Filling(case, distribution, poison, alter, change, problem.compared)
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
    filled = _Filling(case, distribution, 0, alter, change, problem.compared)
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
            made[array.name] = poisoned(np.dtype(_DTYPES[element.scalar]), count, poison).tobytes()
    return made


def as_numbers(scalar: str, content: bytes) -> Any:
    """The bytes of a variable as an array of its scalar type."""
    return np.frombuffer(content, dtype=_DTYPES[scalar])


@dataclass(frozen=True, slots=True)
class _Filling:
    case: Case
    distribution: str
    poison: int
    alter: Alteration | None
    change: Change | None
    thresholds: tuple[float, ...]

    def argument(self, argument: Part, seed: list[int]) -> ArrayArgument | PointerArgument | ScalarArgument:
        offset = self.case.offsets.get(argument.name, 0)
        if isinstance(argument, Pointer):
            return PointerArgument(argument.name, argument.array, offset)
        if isinstance(argument, Array):
            element = element_type(argument.type)
            if element is not None:
                data = self._values(argument, element, np.random.default_rng(seed))
                if self.change is not None and argument.role != "out":
                    data = self._changed(argument, element, data, [*seed, 2])
                is_free = argument.role != "out" and argument.name not in self.case.limits
                if self.alter is not None and is_free and element.scalar in EPSILON:
                    data = self._altered(element.scalar, data, np.random.default_rng([*seed, 1]))
                return ArrayArgument(argument.name, data, argument.role, offset)
        elif argument.type in _DTYPES:
            value = self.case.scalars[argument.name]
            if self.change is not None and self.change.name == argument.name:
                value *= SCALAR_FACTOR
            return ScalarArgument(argument.name, scalar_bytes(argument.type, value))
        raise UnknownTypeError(f"`{argument.name}` has the type `{argument.type}`, which is not known")

    def _values(self, array: Array, element: ElementType, random: np.random.Generator) -> Any:
        return array_values(array, element, self.case, self.distribution, random, self.poison, self.thresholds)

    def _altered(self, scalar: str, data: Any, random: np.random.Generator) -> Any:
        assert self.alter is not None
        altered = self.alter(scalar, data, random)
        if self.distribution != "threshold" or self.alter.across_thresholds:
            return altered
        return np.where(np.isin(data, as_type(scalar, around(scalar, self.thresholds))), data, altered)

    def _changed(self, array: Array, element: ElementType, data: Any, seed: list[int]) -> Any:
        """The values with this array's own changed, or some of them, as `change` asks for."""
        assert self.change is not None
        random = np.random.default_rng(seed)
        others = self._values(array, element, random)
        if self.change.name == array.name:
            return others
        if self.change.name or not len(data):
            return data
        picked = random.random(len(data)) < SHARE
        picked[int(random.integers(len(data)))] = True
        return np.where(picked, others, data)


def array_values(
    array: Array,
    element: ElementType,
    case: Case,
    distribution: str,
    random: np.random.Generator,
    poison: int = 0,
    thresholds: Sequence[float] = (),
) -> Any:
    """One array's values, of the element's scalar type (bfloat16 as its bits), flat; the poison for an output."""
    count = case.counts[array.name] * element.components
    dtype = np.dtype(_DTYPES[element.scalar])
    if array.role == "out":
        return poisoned(dtype, count, poison)
    return _values(element.scalar, count, distribution, case.limits.get(array.name), random, thresholds)


def poisoned(dtype: Any, count: int, poison: int) -> Any:
    """Memory of `count` numbers that nothing has written.

    >>> poisoned(np.dtype(np.uint16), 3, 0x7FFDA5A5).tolist() == [0xA5A5, 0x7FFD, 0xA5A5]
    True
    """
    words = -(-count * dtype.itemsize // 4)
    made = np.full(words, poison, dtype="<u4") if poison else np.zeros(words, dtype="<u4")  # no page of it is touched
    return made.view(np.uint8)[: count * dtype.itemsize].view(dtype)


def as_doubles(scalar: str, data: Any) -> Any:
    """An array as numbers: of bfloat16, which is kept as bits, their values."""
    return (f32_of_bf16(data) if scalar == "bfloat16" else data).astype(np.float64)


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


def _values(
    scalar: str,
    count: int,
    distribution: str,
    limit: int | None,
    random: np.random.Generator,
    thresholds: Sequence[float],
) -> Any:
    dtype = _DTYPES[scalar]
    if limit is not None:
        return random.integers(0, max(1, limit), count).astype(dtype)
    if distribution == "zeros":
        return np.zeros(count, dtype=dtype)
    if scalar == "bool":
        return random.integers(0, 2, count).astype(dtype)
    if distribution == "threshold":
        return _around_thresholds(scalar, count, random, thresholds)
    if "float" not in scalar:
        least = 0 if scalar.startswith("u") else -8
        most = 1 << 20 if distribution == "large" and np.dtype(dtype).itemsize >= 4 else 8
        return random.integers(least, most + 1, count).astype(dtype)
    if distribution == "normal" and count > _PIECE:  # the same numbers, without as many doubles beside them
        values = np.empty(count, dtype=dtype)
        for start in range(0, count, _PIECE):
            values[start : start + _PIECE] = as_type(scalar, random.standard_normal(min(_PIECE, count - start)))
        return values
    return as_type(scalar, _floats(scalar, count, distribution, random))


def _around_thresholds(scalar: str, count: int, random: np.random.Generator, thresholds: Sequence[float]) -> Any:
    """Half small numbers, half the others in turn at random places, each at least once where there is room."""
    others = as_type(scalar, around(scalar, thresholds))
    if "float" in scalar:
        values = as_type(scalar, random.standard_normal(count))
    else:
        values = random.integers(0 if scalar.startswith("u") else -8, 9, count).astype(_DTYPES[scalar])
        whole = np.frombuffer(random.bytes(count // 4 * values.itemsize), values.dtype)
        others = np.concatenate([others, whole])
    places = random.permutation(count)[: max(count // 2, 1) if len(others) else 0]
    values[places] = np.resize(others, len(places))
    return values


def around(scalar: str, thresholds: Sequence[float]) -> Any:
    """Thresholds that the type holds, with either sign, and numbers on both sides of each; of whole numbers also those
    at which 24 bits and the type end, as float64.

    >>> around("float32", [1000.0]).tolist()
    [1000.0, -1000.0, 984.375, 1015.625]
    >>> around("uint8", [100, 300]).tolist()
    [99.0, 100.0, 101.0, 0.0, 254.0, 255.0]
    """
    given = np.array([each for each in thresholds if abs(each) <= MOST_THRESHOLD], dtype=np.float64)
    if "float" in scalar:
        given = given[np.abs(given) <= (100.0 if scalar == "float16" else MOST_THRESHOLD)]
        return (given[:, None] * np.array([1.0, -1.0, 63 / 64, 65 / 64])).reshape(-1)
    kind = np.iinfo(_DTYPES[scalar])
    least, most = max(kind.min, -(2**53)), min(kind.max, 2**53)  # as float64 holds them
    edges = [2**23, 2**24, 2**24 + 1, least, most - 1, most]
    whole = np.concatenate([(given[given == np.floor(given)][:, None] + np.array([-1, 0, 1])).reshape(-1), edges])
    return whole[(whole >= least) & (whole <= most)]


def _floats(scalar: str, count: int, distribution: str, random: np.random.Generator) -> Any:
    if distribution == "integers":
        return random.integers(-8, 9, count).astype(np.float64)
    if distribution == "large":
        reach = 2.0 if scalar == "float16" else 6.0
        signs = np.where(random.random(count) < 0.5, -1.0, 1.0)
        return signs * 10.0 ** ((random.random(count) * 2 - 1) * reach)
    values = random.standard_normal(count)
    if distribution == "special":
        tiny = {"float16": 2.0**-16, "float64": 2.0**-1024}.get(scalar, 2.0**-128)
        mixed = np.array([np.nan, np.inf, -np.inf, -0.0, tiny, -tiny])
        at = random.random(count)
        for place, value in enumerate(mixed):
            values[(at >= place * 0.01) & (at < (place + 1) * 0.01)] = value
        if count >= 4 * len(mixed):  # a hundredth of a short array may be none
            values[random.permutation(count)[: len(mixed)]] = mixed
    return values


def as_type(scalar: str, values: Any) -> Any:
    """Numbers as an array of a scalar type: of bfloat16 its bits."""
    with np.errstate(all="ignore"):
        if scalar == "bfloat16":
            return bf16_of_f32(values.astype(np.float32))
        return values.astype(_DTYPES[scalar])


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
    size = int(np.dtype(_DTYPES[scalar]).itemsize)
    return (int(value) & ((1 << 8 * size) - 1)).to_bytes(size, "little")
