"""Operations are counted by torch's formulas, as torch's own counter counts them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

pytest.importorskip("torch", reason="not installed: torch")

import torch
from torch.nn import functional
from torch.utils.flop_counter import FlopCounterMode
from warpwright_harness.timing.operations import operations_counted


@pytest.fixture(autouse=True)
def without_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)


def drawn(*sizes: int) -> torch.Tensor:
    return torch.ones(*sizes)


def inferred() -> torch.Tensor:
    with torch.inference_mode():
        return functional.linear(drawn(8, 32), drawn(16, 32))


WORK: dict[str, Callable[[], object]] = {
    "nothing": lambda: drawn(4, 4).t().contiguous(),
    "product": lambda: drawn(16, 32) @ drawn(32, 8),
    "batches": lambda: torch.bmm(drawn(3, 16, 32), drawn(3, 32, 8)),
    "convolution": lambda: functional.conv1d(drawn(1, 3, 30), drawn(4, 3, 5)),
    "attention": lambda: functional.scaled_dot_product_attention(*[drawn(1, 2, 16, 8)] * 3),
    "inference": inferred,
}


@pytest.mark.parametrize("name", WORK)
def test_they_are_those_of_torchs_own_counter(name: str) -> None:
    with FlopCounterMode(display=False) as counter:
        WORK[name]()
    assert operations_counted(WORK[name]) == counter.get_total_flops()


def test_a_product_has_two_for_each_element_of_its_depth() -> None:
    assert operations_counted(WORK["product"]) == 2 * 16 * 32 * 8


def test_work_that_fails_has_none_and_a_cuda_error_is_no_failure_of_the_work() -> None:
    assert operations_counted(lambda: drawn(2, 3) @ drawn(2, 3)) == 0.0

    def lost() -> None:
        raise RuntimeError("CUDA error: an illegal memory access was encountered")

    with pytest.raises(RuntimeError, match="illegal"):
        operations_counted(lost)


def test_what_is_no_plain_operator_torchs_own_counter_counts() -> None:
    def chosen() -> torch.Tensor:
        return torch.ops.higher_order.cond(torch.tensor(True), torch.mm, torch.mm, (drawn(4, 4), drawn(4, 4)))

    with FlopCounterMode(display=False) as counter:
        chosen()
    assert operations_counted(chosen) == counter.get_total_flops() == 128
