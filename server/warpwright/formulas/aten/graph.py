"""A graph of ATen's operators, as `warpwright_harness.exported` prints it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from warpwright.formulas.parser import parse
from warpwright.formulas.tree import Expr, Num


@dataclass(frozen=True, slots=True)
class Shape:
    """Extents and strides in elements, and the element type. `strides` are None for a packed array."""

    extents: tuple[Expr, ...]
    type: str
    strides: tuple[Expr, ...] | None = None


@dataclass(frozen=True, slots=True)
class Node:
    """A call of an operator, such as "aten.add.Tensor". `has_many` says that its result is a tuple."""

    name: str
    operator: str
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    results: tuple[Shape | None, ...]
    has_many: bool = False


@dataclass(frozen=True, slots=True)
class Input:
    """What is handed over: `kind` is "user_input", "parameter", "buffer" or "constant_tensor"; `target` the name that
    the module has for it. `number` is the value of a constant of one element."""

    name: str
    kind: str
    target: str
    shape: Shape | None
    number: Any = None


@dataclass(frozen=True, slots=True)
class Output:
    """What comes back: a "user_output", or a new value of the buffer `target`. `value` is None for a number."""

    kind: str
    target: str
    value: str | None


@dataclass(frozen=True, slots=True)
class Graph:
    inputs: tuple[Input, ...]
    nodes: tuple[Node, ...]
    outputs: tuple[Output, ...]


@dataclass(frozen=True, slots=True)
class Ref:
    """A value of the graph as an argument."""

    name: str


@dataclass(frozen=True, slots=True)
class Type:
    """An element type as an argument."""

    name: str


def graph_of(document: Mapping[str, Any]) -> Graph:
    """From JSON. Raises KeyError where it is of another form."""
    inputs = tuple(
        Input(e["name"], e["kind"], e["target"], _shape(e) if "shape" in e else None, _argument(e.get("number")))
        for e in document["inputs"]
    )
    nodes = tuple(
        Node(
            each["name"],
            each["operator"],
            tuple(map(_argument, each["args"])),
            {key: _argument(value) for key, value in each["kwargs"].items()},
            tuple(_shape(one) if "shape" in one else None for one in each["results"]),
            each["many"],
        )
        for each in document["nodes"]
    )
    outputs = tuple(
        Output(each["kind"], each["target"], each["value"]["value"] if isinstance(each["value"], dict) else None)
        for each in document["outputs"]
    )
    return Graph(inputs, nodes, outputs)


def _shape(found: Mapping[str, Any]) -> Shape:
    extents = tuple(map(extent, found["shape"]))
    strides = tuple(map(extent, found["strides"]))
    return Shape(extents, found["type"], None if _is_packed(extents, strides) else strides)


def _is_packed(extents: Sequence[Expr], strides: Sequence[Expr]) -> bool:
    from warpwright.formulas.aten.indices import ONE, mul, same

    step: Expr = ONE
    for count, stride in zip(reversed(extents), reversed(strides), strict=True):
        if count != ONE and not same(stride, step):
            return False
        step = mul(step, count)
    return True


def extent(found: Any) -> Expr:
    """A number of elements; one that is known at run time has the name that torch gave it.

    >>> extent(3), extent({"size": "2*s77"})
    (Num(value=3), Call(name='*', args=(Num(value=2), Name(name='s77'))))
    """
    if isinstance(found, Mapping):
        return parse(f"y = {found['size']}").equations[0].value
    return Num(int(found))


def _argument(found: Any) -> Any:
    if isinstance(found, list):
        return [_argument(each) for each in found]
    if not isinstance(found, Mapping):
        return found
    match found:
        case {"value": name}:
            return Ref(name)
        case {"size": _}:
            return extent(found)
        case {"type": name}:
            return Type(name)
        case {"float": text}:
            return float(text)
        case {"complex": [real, imaginary]}:
            return complex(real, imaginary)
    return None
