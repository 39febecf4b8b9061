"""The launch functions that are written from formulas, called from Python."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch

from warpwright_harness.libraries import Library

DEVICE = "cuda"
WORKSPACE_FILL = 0x7F
"""What the bytes of a workspace hold before a launch function first writes them."""
_NUMBERS: dict[str, type[Any]] = {
    "f32": ctypes.c_float, "f64": ctypes.c_double, "i64": ctypes.c_longlong, "u64": ctypes.c_ulonglong,
    "u32": ctypes.c_uint,
}  # fmt: skip


def launcher(
    library: Library,
    name: str,
    addresses: Iterable[int],
    lengths: Sequence[int],
    numbers: Iterable[tuple[str, Any]],
    *,
    has_workspace: bool,
) -> Callable[[], int]:
    """A call on the current stream, which gives the CUDA error: with the addresses of the arrays, the sizes, and the
    numbers, each with its type."""
    sizes = [ctypes.c_longlong(each) for each in lengths]
    given: list[Any] = [*map(ctypes.c_void_p, addresses), *sizes]
    given += [_NUMBERS.get(kind, ctypes.c_int)(value) for kind, value in numbers]
    held: list[torch.Tensor] = []
    if has_workspace:
        count = ctypes.CFUNCTYPE(ctypes.c_size_t, *map(type, sizes))(library.address(f"{name}_workspace"))
        held.append(torch.full((max(1, count(*sizes)),), WORKSPACE_FILL, dtype=torch.uint8, device=DEVICE))
    given += [ctypes.c_void_p(each.data_ptr()) for each in held]
    given.append(ctypes.c_void_p(torch.cuda.current_stream().cuda_stream))
    run = ctypes.CFUNCTYPE(ctypes.c_int, *map(type, given))(library.address(name))

    def call(_held: object = held) -> int:
        """Keeps the workspace alive."""
        return int(run(*given))

    return call
