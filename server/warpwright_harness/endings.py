"""What an exception that ends a request says: about the kernel that ran, or about the machine."""

from __future__ import annotations

from typing import Any

import torch

from warpwright_harness.device import CudaFaultError, LaunchRefusedError, synchronize

_OF_KERNELS = {
    "CUDA_ERROR_ILLEGAL_ADDRESS": ("out-of-bounds",),
    "CUDA_ERROR_MISALIGNED_ADDRESS": ("misaligned",),
    "CUDA_ERROR_INVALID_ADDRESS_SPACE": ("out-of-bounds",),
    "CUDA_ERROR_LAUNCH_FAILED": ("out-of-bounds", "trap"),
    "CUDA_ERROR_LAUNCH_TIMEOUT": ("step-limit",),
    "CUDA_ERROR_INVALID_PC": ("out-of-bounds", "trap"),
    "CUDA_ERROR_ILLEGAL_INSTRUCTION": ("trap",),
    "CUDA_ERROR_HARDWARE_STACK_ERROR": ("out-of-bounds", "trap"),
    "CUDA_ERROR_ASSERT": ("assertion",),
}
"""The driver's errors that a kernel brings about, with the kinds of fault (`warpwright.facts.profile.FaultKind`) that
each may be. All others, such as a lost device or memory that cannot be corrected, say nothing about it. Source: the
CUDA Driver API reference manual, CUresult."""


def ending_of(error: Exception) -> dict[str, Any]:
    """The last event of the request: "refused", "fault" or "error"; "lost" in it says that the GPU is of no use now."""
    if isinstance(error, LaunchRefusedError):
        return {"event": "refused", "reason": str(error)}
    if isinstance(error, torch.cuda.OutOfMemoryError):
        return {"event": "error", "text": "the GPU has not enough free memory for this problem"}
    text = " ".join(str(error).split())
    if isinstance(error, MemoryError) or "DefaultCPUAllocator" in text:
        return {"event": "error", "text": "this machine has not enough free memory for this problem"}
    fault = error if isinstance(error, CudaFaultError) else _lasting_fault() if "CUDA error" in text else None
    if fault is None:
        return {"event": "error", "text": f"{type(error).__name__}: {text[:300]}"}
    if fault.name in _OF_KERNELS:
        return {"event": "fault", "name": fault.name, "text": fault.text, "kinds": list(_OF_KERNELS[fault.name])}
    if fault.name == "CUDA_ERROR_OUT_OF_MEMORY":
        return {"event": "error", "text": "the GPU has not enough free memory for this problem"}
    return {"event": "error", "lost": True, "text": f"the GPU cannot be used any more ({fault.name}: {fault.text})"}


def _lasting_fault() -> CudaFaultError | None:
    """The error that the context keeps, of which torch told in its own words."""
    try:
        synchronize()
    except CudaFaultError as fault:
        return fault
    return None
