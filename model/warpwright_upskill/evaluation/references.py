"""Running the torch reference of a prompt: floating point in double precision, on the CPU, with one thread."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from warpwright.formulas.numpy_types import Array

_WIDE = {"f": "float64", "c": "complex128"}
_UNKNOWN_TO_TORCH = {"uint16": "int64", "uint32": "int64", "uint64": "int64"}


@dataclass(frozen=True, slots=True)
class Result:
    """One output of a reference: its values, floating point with 64 bits, and the name of torch's type of it."""

    values: Array
    type: str


def prepare() -> None:
    """Load torch, which takes seconds, before the first deadline runs."""
    import torch

    torch.set_num_threads(1)


def run_reference(reference: str, inputs: Mapping[str, Array]) -> tuple[Result, ...]:
    """The outputs of `def reference(...)` for values in the order of its parameters. Raises what it raises."""
    import torch

    function = function_of(reference)
    given = []
    for value in inputs.values():
        wide = _WIDE.get(value.dtype.kind) or _UNKNOWN_TO_TORCH.get(value.dtype.name) or value.dtype.name
        tensor = torch.from_numpy(np.array(value, wide, order="C"))
        given.append(tensor if value.ndim else tensor.item())
    with torch.no_grad():
        found = function(*given)
    results = list(found) if isinstance(found, tuple | list) else [found]
    return tuple(_result(torch.as_tensor(each), torch) for each in results)


def _result(tensor: Any, torch: Any) -> Result:
    name = str(tensor.dtype).removeprefix("torch.")
    if tensor.is_floating_point():
        tensor = tensor.to(torch.float64)
    elif tensor.is_complex():
        tensor = tensor.to(torch.complex128)
    return Result(tensor.detach().contiguous().numpy(), name)


@lru_cache(maxsize=256)
def function_of(reference: str) -> Any:
    """The function that the text of a reference defines, of arrays and numbers in the prompt's order."""
    import math

    import torch

    names: dict[str, Any] = {"torch": torch, "math": math, "F": torch.nn.functional, "np": np}
    exec(compile(reference, "reference", "exec"), names)
    return names["reference"]
