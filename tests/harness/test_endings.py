"""Whether an error that ends a request is the kernel's or the machine's."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from warpwright.facts.profile import FaultKind  # noqa: E402
from warpwright.verify.original_fails import failure_in  # noqa: E402
from warpwright_harness.device import CudaFaultError, LaunchRefusedError  # noqa: E402
from warpwright_harness.endings import ending_of  # noqa: E402


@pytest.mark.parametrize(
    ("name", "kinds"),
    [
        ("CUDA_ERROR_ILLEGAL_ADDRESS", {FaultKind.OUT_OF_BOUNDS}),
        ("CUDA_ERROR_LAUNCH_FAILED", {FaultKind.OUT_OF_BOUNDS, FaultKind.TRAP}),
        ("CUDA_ERROR_MISALIGNED_ADDRESS", {FaultKind.MISALIGNED}),
        ("CUDA_ERROR_LAUNCH_TIMEOUT", {FaultKind.STEP_LIMIT}),
        ("CUDA_ERROR_ASSERT", {FaultKind.ASSERTION}),
    ],
)
def test_what_a_kernel_did_is_a_fault(name: str, kinds: set[FaultKind]) -> None:
    ending = ending_of(CudaFaultError(name, "what it did"))
    assert (ending["event"], ending["name"], ending["text"]) == ("fault", name, "what it did")
    assert set(failure_in(ending).kinds) == kinds


@pytest.mark.parametrize(
    "name",
    [
        "CUDA_ERROR_NO_DEVICE", "CUDA_ERROR_DEVICE_UNAVAILABLE", "CUDA_ERROR_ECC_UNCORRECTABLE",
        "CUDA_ERROR_NVLINK_UNCORRECTABLE", "CUDA_ERROR_SYSTEM_NOT_READY", "CUDA_ERROR_UNKNOWN",
    ],
)  # fmt: skip
def test_what_the_gpu_did_is_no_fault_of_the_kernel(name: str) -> None:
    ending = ending_of(CudaFaultError(name, "what happened"))
    assert ending["event"] == "error"
    assert ending["lost"]
    assert ending["text"] == f"the GPU cannot be used any more ({name}: what happened)"


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (torch.cuda.OutOfMemoryError("CUDA out of memory. Tried to allocate"), "the GPU has not enough free memory"),
        (CudaFaultError("CUDA_ERROR_OUT_OF_MEMORY", "out of memory"), "the GPU has not enough free memory"),
        (MemoryError(), "this machine has not enough free memory"),
        (RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory"), "this machine has not enough"),
        (ValueError("of a user's\nreference"), "ValueError: of a user's reference"),
    ],
)
def test_other_errors_end_in_a_sentence_and_lose_no_gpu(error: Exception, words: str) -> None:
    ending = ending_of(error)
    assert ending["event"] == "error"
    assert words in ending["text"]
    assert not ending.get("lost")


def test_a_launch_that_the_driver_turned_down_harms_nothing() -> None:
    assert ending_of(LaunchRefusedError("too many resources")) == {"event": "refused", "reason": "too many resources"}


def test_memory_that_is_really_not_there_is_told_from_other_errors() -> None:
    with pytest.raises((RuntimeError, MemoryError)) as raised:
        torch.empty(1 << 60, dtype=torch.uint8)
    assert "this machine has not enough free memory" in ending_of(raised.value)["text"]
