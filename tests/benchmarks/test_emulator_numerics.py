"""The comparison with a GPU: its kernels are PTX, its functions run on its operands, and it sees a difference."""

from __future__ import annotations

from collections.abc import Iterator

import emulator_numerics
import numpy as np
import pytest
from emulator_numerics import KINDS, Case, all_cases, assemble, compare, module, operands
from warpwright.emulator.numerics import approximate


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(emulator_numerics, "LANES", 1 << 10)
    with np.errstate(all="ignore"):
        yield


def test_results_have_the_type_that_the_kernel_stores() -> None:
    for number, case in enumerate(all_cases()):
        lanes = operands(case, number)
        result = case.function(*lanes)
        wanted = np.dtype(bool if case.result == "pred" else KINDS[case.result])
        assert result.dtype == wanted, case.instruction
        assert result.shape == (1 << 10,), case.instruction


def test_a_difference_is_seen() -> None:
    case = Case("add.s32", ("s32", "s32"), "s32", np.add)
    lanes = [np.array([1, 2, 3], np.int32), np.array([4, 5, 6], np.int32)]
    row = compare(case, np.array([5, 7, 8], np.int32), np.add(*lanes), lanes)
    assert row["bad"] == 1
    assert row["examples"][0] == {"operands": ["0x3", "0x6"], "gpu": "0x8", "emulator": "0x9"}


def test_a_bound_is_kept() -> None:
    lanes = [np.array([1, 2, 4, 0], np.float32)]
    ours = approximate.rcp(lanes[0])
    case = Case("rcp.approx.f32", ("f32",), "f32", approximate.rcp, ("ulp", 2))
    near = (ours.view(np.uint32) + np.array([0, 1, 2, 0], np.uint32)).view(np.float32)
    assert compare(case, near, ours, lanes)["bad"] == 0
    assert compare(case, near, ours, lanes)["max_ulp"] == 2
    far = (ours.view(np.uint32) + np.array([3, 0, 0, 0], np.uint32)).view(np.float32)
    assert compare(case, far, ours, lanes)["bad"] == 1
    not_a_number = np.array([1, 0.5, 0.25, np.nan], np.float32)
    assert compare(case, not_a_number, ours, lanes)["bad"] == 1


@pytest.mark.nvcc
def test_the_assembler_takes_every_kernel() -> None:
    assert len(assemble(module(all_cases(), "sm_90"), "sm_90")) > 100_000
