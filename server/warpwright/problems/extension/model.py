"""A torch extension and the problem of calling it, as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from warpwright.cuda.extension.model import Entry
from warpwright.problems.expressions import ExpressionError, Value, evaluate
from warpwright.problems.shapes import Shape
from warpwright.problems.types import element_type


@dataclass(frozen=True, slots=True)
class TensorArgument:
    """A tensor that is passed: `shape` has an expression for each dimension, `scalar` names the element ("float32").

    `values` is "any" or "index(E)", for whole numbers from 0 to E - 1.
    """

    name: str
    scalar: str
    shape: tuple[str, ...]
    values: str = "any"
    keyword: bool = False


@dataclass(frozen=True, slots=True)
class PlainArgument:
    """A number, a bool, whole numbers or None that is passed; `texts` are expressions, `kind` is of KINDS or "none"."""

    name: str
    kind: str
    texts: tuple[str, ...] = ()
    keyword: bool = False


Argument = TensorArgument | PlainArgument


@dataclass(frozen=True, slots=True)
class ExtensionProblem:
    """How to call one function of an extension. `arguments` are in the order of its parameters."""

    entry: Entry
    arguments: tuple[Argument, ...]
    symbols: tuple[str, ...]
    own_shape: Shape | None
    check: tuple[Shape, ...]
    time: tuple[Shape, ...]
    reference: Path | None = None
    notes: tuple[str, ...] = ()

    @property
    def tensors(self) -> tuple[TensorArgument, ...]:
        return tuple(a for a in self.arguments if isinstance(a, TensorArgument))

    def call(self, shape: Shape) -> list[dict[str, Any]]:
        """The arguments at one shape, all numbers, as the harness takes them. Raises ExpressionError."""
        return [_tensor(a, shape) if isinstance(a, TensorArgument) else _plain(a, shape) for a in self.arguments]

    def bytes(self, shape: Shape) -> int:
        """The memory that the tensors take at a shape; 0 where there are none of that shape."""
        try:
            return sum(_bytes(a, shape) for a in self.tensors)
        except ExpressionError:
            return 0


def sizes(argument: TensorArgument, shape: Shape) -> list[int]:
    """A tensor's dimensions at one shape. Raises ExpressionError."""
    return [_whole(text, shape, f"a dimension of {argument.name}", least=0) for text in argument.shape]


def _bytes(argument: TensorArgument, shape: Shape) -> int:
    element = element_type(CXX_OF.get(argument.scalar, argument.scalar))
    count = element.bytes if element else 1
    for size in sizes(argument, shape):
        count *= size
    return count


def _tensor(argument: TensorArgument, shape: Shape) -> dict[str, Any]:
    limit = None
    if argument.values != "any":
        limit = _whole(
            argument.values.removeprefix("index(").removesuffix(")"), shape, f"the values of {argument.name}"
        )
    return {
        "kind": "tensor",
        "name": argument.name,
        "scalar": argument.scalar,
        "sizes": sizes(argument, shape),
        "limit": limit,
        "keyword": argument.keyword,
    }


def _plain(argument: PlainArgument, shape: Shape) -> dict[str, Any]:
    values: list[Value] = [evaluate(text, dict(shape)) for text in argument.texts]
    value: Any = None
    if argument.kind == "ints":
        value = [_as_whole(v, argument.name) for v in values]
    elif argument.kind == "int":
        value = _as_whole(values[0], argument.name)
    elif argument.kind == "bool":
        value = bool(values[0])
    elif argument.kind == "float":
        value = float(values[0])
    return {"kind": "plain", "name": argument.name, "value": value, "keyword": argument.keyword}


def _as_whole(value: Value, name: str) -> int:
    if value != int(value):
        raise ExpressionError(f"{name} is {value}, which is not a whole number")
    return int(value)


def _whole(text: str, values: Mapping[str, Value], what: str, least: int = 1) -> int:
    value = evaluate(text, values)
    if value != int(value) or value < least:
        raise ExpressionError(f"{what} is {value:g}, which is not a whole number from {least} on")
    return int(value)


CXX_OF = {
    "float32": "float", "float64": "double", "float16": "half", "bfloat16": "nv_bfloat16", "bool": "bool",
    "int8": "int8_t", "uint8": "uint8_t", "int16": "short", "int32": "int", "int64": "int64_t",
}  # fmt: skip
"""The element types of tensors, by torch's names."""


def scalar_of(text: str) -> str | None:
    """torch's name of an element type that is written as torch or C++ writes it; None for what tensors do not hold.

    >>> scalar_of("float"), scalar_of("torch.bfloat16"), scalar_of("__half"), scalar_of("long"), scalar_of("float4")
    ('float32', 'bfloat16', 'float16', 'int64', None)
    """
    name = text.strip().removeprefix("torch.").removeprefix("at::").removeprefix("c10::")
    if name in CXX_OF:
        return name
    known = element_type(name)
    return known.scalar if known is not None and known.components == 1 and known.scalar in CXX_OF else None
