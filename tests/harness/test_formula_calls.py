"""Calls of launch functions, with functions of Python in their place."""

from __future__ import annotations

import ctypes
from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch", reason="not installed: torch")

from warpwright_harness import formula_calls  # noqa: E402


def test_a_launch_function_gets_arrays_sizes_numbers_a_workspace_and_the_stream(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[object] = []

    @ctypes.CFUNCTYPE(ctypes.c_size_t, ctypes.c_longlong)
    def count(size: int) -> int:
        return 2 * size

    @ctypes.CFUNCTYPE(
        ctypes.c_int, ctypes.c_void_p, ctypes.c_longlong, ctypes.c_float, ctypes.c_ulonglong, ctypes.c_int,
        ctypes.c_void_p, ctypes.c_void_p,
    )  # fmt: skip
    def launch(array: int, size: int, one: float, large: int, other: int, workspace: int, stream: int) -> int:
        seen.extend([array, size, one, large, other, ctypes.string_at(workspace, 2 * size), stream])
        return 7

    found = {"f": launch, "f_workspace": count}
    library = SimpleNamespace(address=lambda name: ctypes.cast(found[name], ctypes.c_void_p).value)
    monkeypatch.setattr(formula_calls, "DEVICE", "cpu")
    monkeypatch.setattr(torch.cuda, "current_stream", lambda: SimpleNamespace(cuda_stream=4096))
    numbers = [("f32", 0.5), ("u64", 2**63), ("i8", -3)]
    call = formula_calls.launcher(library, "f", [256], [3], numbers, has_workspace=True)
    assert call() == 7
    assert seen == [256, 3, 0.5, 2**63, -3, b"\x7f" * 6, 4096]
