"""Which GPU there is, and the driver calls that torch does not make: load a cubin and launch its kernels.

The driver is called through ctypes in the context that torch made, so torch's tensors are the kernels' buffers and
nothing needs to be installed beside torch. Source of names and signatures: the CUDA Driver API reference manual.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

DYNAMIC_SHARED_WITHOUT_ASKING = 48 << 10
_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES


class CudaFaultError(Exception):
    """A CUDA error after which the context cannot be used: an illegal address, a trap, a lost device."""

    def __init__(self, name: str, text: str) -> None:
        super().__init__(f"{name}: {text}")
        self.name = name
        self.text = text


class LaunchRefusedError(Exception):
    """The driver did not start the kernel; the context is unharmed. The message names the driver's reason."""


def probe() -> dict[str, Any]:
    """The GPU and the software on it, or {"missing": one sentence}.

    Keys: name, arch ("sm_90"), capability, multiprocessors, l2_bytes, memory_bytes, driver, torch, cuda.
    """
    try:
        import torch
    except ImportError:
        return {"missing": f"{sys.executable} has no torch, which runs kernels on the GPU."}
    if not torch.cuda.is_available():
        return {"missing": "torch sees no CUDA GPU on this machine."}
    properties = torch.cuda.get_device_properties(0)
    version = ctypes.c_int()
    driver().cuDriverGetVersion(ctypes.byref(version))
    return {
        "name": properties.name,
        "arch": f"sm_{properties.major}{properties.minor}",
        "capability": [properties.major, properties.minor],
        "multiprocessors": properties.multi_processor_count,
        "l2_bytes": int(properties.L2_cache_size),
        "memory_bytes": int(properties.total_memory),
        "driver": f"{version.value // 1000}.{version.value % 1000 // 10}",
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
    }


def driver() -> ctypes.CDLL:
    return ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")


@dataclass(frozen=True)
class Function:
    """A kernel in a loaded module. Keeps the module alive."""

    module: Module
    handle: ctypes.c_void_p


class Module:
    """A cubin loaded into torch's context; a context manager that unloads it."""

    def __init__(self, image: bytes) -> None:
        self._driver = driver()
        self.handle = ctypes.c_void_p()
        self._image = ctypes.create_string_buffer(image, len(image))
        code = self._driver.cuModuleLoadData(ctypes.byref(self.handle), self._image)
        if code:
            raise LaunchRefusedError(f"the driver cannot load the cubin ({_error(self._driver, code)[1]})")

    def __enter__(self) -> Module:
        return self

    def __exit__(self, *_: object) -> None:
        self._driver.cuModuleUnload(self.handle)

    def function(self, mangled_name: str) -> Function:
        """Raises LaunchRefusedError where the module has no such kernel."""
        handle = ctypes.c_void_p()
        code = self._driver.cuModuleGetFunction(ctypes.byref(handle), self.handle, mangled_name.encode())
        if code:
            raise LaunchRefusedError(f"the cubin has no kernel {mangled_name}")
        return Function(self, handle)

    def launch(
        self,
        function: Function,
        grid: Sequence[int],
        block: Sequence[int],
        shared_bytes: int,
        stream: int,
        arguments: Sequence[Any],
    ) -> None:
        """Start a kernel on `stream`; `arguments` are ctypes values in the order of its parameters.

        Raises LaunchRefusedError for a launch that the driver turns down, CudaFaultError where an earlier one failed.
        """
        if shared_bytes > DYNAMIC_SHARED_WITHOUT_ASKING:
            code = self._driver.cuFuncSetAttribute(function.handle, _MAX_DYNAMIC_SHARED_SIZE_BYTES, shared_bytes)
            self._check(code)
        pointers = (ctypes.c_void_p * max(1, len(arguments)))(*[ctypes.addressof(a) for a in arguments])
        self._check(
            self._driver.cuLaunchKernel(
                function.handle,
                *(ctypes.c_uint(v) for v in (*grid, *block)),
                ctypes.c_uint(shared_bytes),
                ctypes.c_void_p(stream),
                pointers,
                None,
            )
        )

    def _check(self, code: int) -> None:
        if not code:
            return
        name, text = _error(self._driver, code)
        if name in _REFUSALS:
            raise LaunchRefusedError(text)
        raise CudaFaultError(name, text)


_REFUSALS = {
    "CUDA_ERROR_INVALID_VALUE", "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", "CUDA_ERROR_INVALID_IMAGE",
    "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE",
}  # fmt: skip


def synchronize() -> None:
    """Wait for everything on the device. Raises CudaFaultError for what a kernel did."""
    library = driver()
    code = library.cuCtxSynchronize()
    if code:
        raise CudaFaultError(*_error(library, code))


def _error(driver: ctypes.CDLL, code: int) -> tuple[str, str]:
    name, text = ctypes.c_char_p(), ctypes.c_char_p()
    driver.cuGetErrorName(code, ctypes.byref(name))
    driver.cuGetErrorString(code, ctypes.byref(text))
    return (name.value or b"CUDA_ERROR").decode(), (text.value or str(code).encode()).decode()


_CTYPES: dict[str, Any] = {
    "float32": ctypes.c_float, "float64": ctypes.c_double, "bool": ctypes.c_bool,
    "int8": ctypes.c_int8, "uint8": ctypes.c_uint8, "int16": ctypes.c_int16, "uint16": ctypes.c_uint16,
    "int32": ctypes.c_int32, "uint32": ctypes.c_uint32, "int64": ctypes.c_int64, "uint64": ctypes.c_uint64,
}  # fmt: skip


def scalar_argument(kind: str, value: float) -> Any:
    """A kernel argument passed by value. Half types are given by their bits."""
    if kind in ("float16", "bfloat16"):
        import torch

        tensor = torch.tensor(value, dtype=getattr(torch, kind))
        return ctypes.c_int16(int(tensor.view(torch.int16).item()))
    wanted = _CTYPES[kind]
    return wanted(float(value) if kind.startswith("float") else int(value))


def struct_argument(size: int, members: Sequence[tuple[int, Any]]) -> Any:
    """A struct passed by value: ctypes values at byte offsets, zeros between them."""
    packed = (ctypes.c_char * size)()
    for offset, value in members:
        ctypes.memmove(ctypes.addressof(packed) + offset, ctypes.addressof(value), ctypes.sizeof(value))
    return packed


def pointer_argument(address: int) -> Any:
    return ctypes.c_void_p(address)
