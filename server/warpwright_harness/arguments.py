"""A kernel's arguments as the driver takes them: ctypes values in the order of its parameters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from warpwright_harness.device import pointer_argument, scalar_argument, struct_argument


def kernel_arguments(
    described: Sequence[Mapping[str, Any]], addresses: Mapping[str, int], scalars: Mapping[str, float]
) -> list[Any]:
    """`described` are a request's arguments; `addresses` are what its pointers are, members of structs among them."""

    def value(argument: Mapping[str, Any]) -> Any:
        if argument["kind"] == "struct":
            return struct_argument(argument["bytes"], [(m["offset"], value(m)) for m in argument["members"]])
        if argument["kind"] in ("array", "pointer"):
            return pointer_argument(addresses[argument["name"]])
        return scalar_argument(argument["scalar"], scalars[argument["name"]])

    return [value(argument) for argument in described]


def passed_addresses(
    described: Iterable[Mapping[str, Any]], starts: Mapping[str, int], offsets: Mapping[str, int]
) -> dict[str, int]:
    """What is passed for each array and each pointer into one: so many bytes behind the start of its array.

    >>> described = [{"kind": "array", "name": "y"}, {"kind": "pointer", "name": "x", "array": "y"}]
    >>> passed_addresses(described, {"y": 256}, {"x": 4})
    {'y': 256, 'x': 260}
    """
    parts = (part for each in described for part in (each["members"] if each["kind"] == "struct" else [each]))
    return {
        part["name"]: starts[part.get("array", part["name"])] + offsets.get(part["name"], 0)
        for part in parts
        if part["kind"] in ("array", "pointer")
    }


def moved_addresses(
    addresses: Mapping[str, int], names: Sequence[str], repeat: Sequence[Any] | None
) -> Iterator[Mapping[str, int]]:
    """The arrays' addresses at each launch of one kernel. `repeat` is how often it is launched, and by how many bytes
    each of the arguments `names` moves on each time; None for once.

    >>> list(moved_addresses({"y": 64, "x": 0}, ["y", "n"], [2, [8, 0]]))
    [{'y': 64, 'x': 0}, {'y': 72, 'x': 0}]
    """
    times, moves = repeat if repeat is not None else (1, [])
    for done in range(times):
        moved = {name: addresses[name] + done * by for name, by in zip(names, moves, strict=False) if by}
        yield {**addresses, **moved}
