"""A kernel's arguments as the driver takes them: ctypes values in the order of its parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from warpwright_harness.device import pointer_argument, scalar_argument, struct_argument


def kernel_arguments(
    described: Sequence[Mapping[str, Any]], addresses: Mapping[str, int], scalars: Mapping[str, float]
) -> list[Any]:
    """`described` are a request's arguments; `addresses` are those of its arrays, members of structs among them."""

    def value(argument: Mapping[str, Any]) -> Any:
        if argument["kind"] == "struct":
            return struct_argument(argument["bytes"], [(m["offset"], value(m)) for m in argument["members"]])
        if argument["kind"] == "array":
            return pointer_argument(addresses[argument["name"]])
        return scalar_argument(argument["scalar"], scalars[argument["name"]])

    return [value(argument) for argument in described]
