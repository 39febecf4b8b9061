"""Memory that the judge owns and a side's process sees: inputs are read from it, results are written to it.

On a GPU it is device memory shared through CUDA's interprocess handles, so that nothing of a result passes through the
side's process. Where the driver does not share memory (WSL 2, some containers) and without a GPU it is host memory.
Source of the calls: the CUDA Driver API reference manual, "Memory Management".
"""

from __future__ import annotations

import ctypes
import mmap
import os
from dataclasses import dataclass
from typing import Any

import torch

ALIGNMENT = 256
_LAZY_PEER_ACCESS = 1  # CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS


class ArenaError(Exception):
    """There is not enough memory, or a place outside of it was named; the message is one sentence's tail."""


class _Handle(ctypes.Structure):
    _fields_ = (("reserved", ctypes.c_char * 64),)


@dataclass(frozen=True)
class Memory:
    """Bytes that two processes see, as a tensor of them; `described` is what the other process needs to open it."""

    raw: torch.Tensor
    described: dict[str, Any]
    keeps: Any
    """What has to live as long as the tensor."""

    def at(self, offset: int, size: int) -> torch.Tensor:
        """The bytes [offset, offset + size). Raises ArenaError."""
        if not 0 <= offset <= offset + size <= self.raw.numel():
            raise ArenaError(f"bytes {offset} to {offset + size} of {self.raw.numel()} were named")
        return self.raw[offset : offset + size]


def new_memory(size: int, device: str) -> Memory:
    """`size` bytes of the judge's: on the GPU where another process can open them there, else of the host.

    Raises ArenaError where there are not so many.
    """
    return (_new_on_gpu(size) if device == "cuda" else None) or _new_on_host(size)


def open_memory(described: dict[str, Any], descriptor: int | None) -> Memory:
    """The other side's view; `descriptor` is that of host memory, which this closes. Raises ArenaError."""
    if described["place"] == "host":
        assert descriptor is not None
        mapped = mmap.mmap(descriptor, described["size"])
        os.close(descriptor)
        return Memory(_on_host(mapped), described, mapped)
    torch.zeros(1, device="cuda")
    driver = ctypes.CDLL("libcuda.so.1")
    address = ctypes.c_uint64()
    handle = _Handle.from_buffer_copy(bytes.fromhex(described["handle"]))
    if code := driver.cuIpcOpenMemHandle_v2(ctypes.byref(address), handle, ctypes.c_uint(_LAZY_PEER_ACCESS)):
        raise ArenaError(f"the judge's memory cannot be opened (CUDA error {code})")
    release = _Release(driver.cuIpcCloseMemHandle, address.value)
    return Memory(_on_gpu(address.value, described["size"]), described, release)


def _new_on_gpu(size: int) -> Memory | None:
    torch.zeros(1, device="cuda")  # makes torch's context current, in which the driver then allocates
    driver = ctypes.CDLL("libcuda.so.1")
    address = ctypes.c_uint64()
    if driver.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(size)):
        raise ArenaError(f"the GPU has no {size >> 20} MB of free memory for the results")
    release = _Release(driver.cuMemFree_v2, address.value)
    handle = _Handle()
    if driver.cuIpcGetMemHandle(ctypes.byref(handle), address):
        return None
    described = {"place": "gpu", "size": size, "handle": bytes(handle).hex()}
    return Memory(_on_gpu(address.value, size), described, release)


def _new_on_host(size: int) -> Memory:
    descriptor = os.memfd_create("warpwright-arena")
    try:
        os.ftruncate(descriptor, size)
        mapped = mmap.mmap(descriptor, size)
    except (OSError, ValueError) as error:
        os.close(descriptor)
        raise ArenaError(f"there are no {size >> 20} MB of free memory for the results ({error})") from None
    return Memory(_on_host(mapped), {"place": "host", "size": size, "descriptor": descriptor}, _Closed(descriptor))


def _on_host(mapped: mmap.mmap) -> torch.Tensor:
    return torch.frombuffer(mapped, dtype=torch.uint8)


def _on_gpu(address: int, size: int) -> torch.Tensor:
    return torch.as_tensor(_Array(address, size), device="cuda")


class _Array:
    """What torch reads to make a tensor over memory that it did not allocate."""

    def __init__(self, address: int, size: int) -> None:
        self.__cuda_array_interface__ = {
            "shape": (size,), "typestr": "|u1", "data": (address, False), "strides": None, "version": 3,
        }  # fmt: skip


class _Release:
    """Gives device memory back with the last reference to it."""

    def __init__(self, function: Any, address: int) -> None:
        self._function, self._address = function, address

    def __del__(self) -> None:
        self._function(ctypes.c_uint64(self._address))


class _Closed:
    """Closes a file descriptor with the last reference to it."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def __del__(self) -> None:
        os.close(self._descriptor)


def aligned(size: int) -> int:
    """The next multiple of ALIGNMENT.

    >>> aligned(0), aligned(1), aligned(256)
    (0, 256, 256)
    """
    return -(-size // ALIGNMENT) * ALIGNMENT
