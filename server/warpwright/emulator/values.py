"""The arguments of a launch, made from a kernel's problem: the same seed gives the same values.

The distributions are the harness's: `normal` is N(0, 1); `integers` are -8 to 8, on which sums and products stay exact;
`large` has magnitudes from 1e-6 to 1e6; `zeros`; `special` has NaN, infinities, subnormal numbers and -0 among N(0, 1).
Whole-number types take small numbers for each, and an array of indices always holds indices.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from warpwright.emulator.launch import Argument, ArrayArgument, ScalarArgument, StructArgument
from warpwright.emulator.numerics.halves import bf16_of_f32
from warpwright.problems.model import Array, Case, Problem, Scalar, Struct
from warpwright.problems.types import ElementType, element_type

DISTRIBUTIONS = ("normal", "integers", "large", "zeros", "special")

_DTYPES: Mapping[str, Any] = {
    "float32": np.float32, "float64": np.float64, "float16": np.float16, "bfloat16": np.uint16, "bool": np.uint8,
    "int8": np.int8, "uint8": np.uint8, "int16": np.int16, "uint16": np.uint16, "int32": np.int32,
    "uint32": np.uint32, "int64": np.int64, "uint64": np.uint64,
}  # fmt: skip


class UnknownTypeError(Exception):
    """An argument has a type of which no values can be made. The message names both."""


def arguments_of(problem: Problem, case: Case, distribution: str = "normal", seed: int = 0) -> list[Argument]:
    """The kernel's arguments at one shape, in the order of its parameters. Raises UnknownTypeError."""
    made: list[Argument] = []
    for place, argument in enumerate(problem.arguments):
        if isinstance(argument, Struct):
            parts = tuple(
                (offset, _argument(member, case, distribution, [seed, place, offset]))
                for offset, member in argument.members
            )
            made.append(StructArgument(argument.name, argument.bytes, parts))
        else:
            made.append(_argument(argument, case, distribution, [seed, place]))
    return made


def variables_of(problem: Problem, case: Case, distribution: str = "normal", seed: int = 0) -> dict[str, bytes]:
    """What the host code is to set the file's variables to, by their names. Raises UnknownTypeError."""
    start = len(problem.arguments)
    made = {
        array.name: _argument(array, case, distribution, [seed, start + place])
        for place, array in enumerate(problem.globals)
    }
    return {name: given.data.tobytes() for name, given in made.items() if isinstance(given, ArrayArgument)}


def _argument(
    argument: Array | Scalar, case: Case, distribution: str, seed: list[int]
) -> ArrayArgument | ScalarArgument:
    if isinstance(argument, Array):
        element = element_type(argument.type)
        if element is not None:
            data = array_values(argument, element, case, distribution, np.random.default_rng(seed))
            return ArrayArgument(argument.name, data, argument.role)
    elif argument.type in _DTYPES:
        return ScalarArgument(argument.name, scalar_bytes(argument.type, case.scalars[argument.name]))
    raise UnknownTypeError(f"`{argument.name}` has the type `{argument.type}`, which is not known")


def array_values(array: Array, element: ElementType, case: Case, distribution: str, random: np.random.Generator) -> Any:
    """One array's values, of the element's scalar type (bfloat16 as its bits), flat; zeros for an output."""
    count = case.counts[array.name] * element.components
    if array.role == "out":
        return np.zeros(count, dtype=_DTYPES[element.scalar])
    return _values(element.scalar, count, distribution, case.limits.get(array.name), random)


def _values(scalar: str, count: int, distribution: str, limit: int | None, random: np.random.Generator) -> Any:
    dtype = _DTYPES[scalar]
    if limit is not None:
        return random.integers(0, max(1, limit), count).astype(dtype)
    if distribution == "zeros":
        return np.zeros(count, dtype=dtype)
    if scalar == "bool":
        return random.integers(0, 2, count).astype(dtype)
    if "float" not in scalar:
        least = 0 if scalar.startswith("u") else -8
        most = 1 << 20 if distribution == "large" and np.dtype(dtype).itemsize >= 4 else 8
        return random.integers(least, most + 1, count).astype(dtype)
    return _as_type(scalar, _floats(scalar, count, distribution, random))


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
        at = random.random(count)
        for place, value in enumerate((np.nan, np.inf, -np.inf, tiny, -0.0)):
            values[(at >= place * 0.01) & (at < (place + 1) * 0.01)] = value
    return values


def _as_type(scalar: str, values: Any) -> Any:
    with np.errstate(all="ignore"):
        if scalar == "bfloat16":
            return bf16_of_f32(values.astype(np.float32))
        return values.astype(_DTYPES[scalar])


def scalar_bytes(scalar: str, value: float) -> bytes:
    """A scalar argument as the kernel takes it.

    >>> scalar_bytes("int32", 3).hex()
    '03000000'
    """
    if "float" in scalar:
        return bytes(_as_type(scalar, np.array([value], dtype=np.float64)).tobytes())
    size = int(np.dtype(_DTYPES[scalar]).itemsize)
    return (int(value) & ((1 << 8 * size) - 1)).to_bytes(size, "little")
