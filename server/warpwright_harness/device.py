"""Which GPU there is, and the driver calls that torch does not make: load a cubin and launch its kernels.

The driver is called through `cuda.bindings` in the context that torch made, so torch's tensors are the kernels'
buffers. Its functions are bound when this module is imported, before any candidate is loaded.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

try:
    from cuda.bindings import driver as _driver
except ImportError:  # said by `probe`
    _driver = None

SHARED_UNASKED = 48 << 10
"""Bytes of shared memory, static and dynamic, that a launch may have without being asked for."""


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

    Keys: name, uuid, arch ("sm_90"), capability, multiprocessors, l2_bytes, memory_bytes, driver (the newest CUDA that
    it serves), torch, cuda (torch's), bindings (cuda.bindings').
    """
    try:
        import torch
    except ImportError:
        return {"missing": f"{sys.executable} has no torch, which runs kernels on the GPU."}
    if not torch.cuda.is_available():
        return {"missing": "torch sees no CUDA GPU on this machine."}
    if _driver is None:
        return {"missing": f"{sys.executable} has no cuda-bindings, which calls the CUDA driver."}
    import cuda.bindings

    properties = torch.cuda.get_device_properties(0)
    version = _checked(_driver.cuDriverGetVersion())
    return {
        "name": properties.name,
        "uuid": str(getattr(properties, "uuid", "")),
        "arch": f"sm_{properties.major}{properties.minor}",
        "capability": [properties.major, properties.minor],
        "multiprocessors": properties.multi_processor_count,
        "l2_bytes": int(properties.L2_cache_size),
        "memory_bytes": int(properties.total_memory),
        "driver": f"{version // 1000}.{version % 1000 // 10}",
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "bindings": cuda.bindings.__version__,
    }


def architecture() -> str:
    """Of the first GPU ("sm_90"), as the driver says it without torch and without a context; "" where there is none."""
    if _driver is None:
        return ""
    try:
        _checked(_driver.cuInit(0))
        device = _checked(_driver.cuDeviceGet(0))
        major, minor = (_checked(_driver.cuDeviceGetAttribute(name, device)) for name in _CAPABILITY)
    except (CudaFaultError, LaunchRefusedError):
        return ""
    return f"sm_{major}{minor}"


@dataclass(frozen=True)
class Function:
    """A kernel in a loaded module. Keeps the module alive."""

    module: Module
    handle: Any


class Module:
    """A cubin, or PTX that the driver compiles, loaded into torch's context; a context manager that unloads it."""

    def __init__(self, image: bytes) -> None:
        code, self._handle = _load(image)
        if int(code):
            raise LaunchRefusedError(f"the driver cannot load the cubin ({_error(code)[1]})")

    def __enter__(self) -> Module:
        return self

    def __exit__(self, *_: object) -> None:
        _unload(self._handle)

    def function(self, mangled_name: str) -> Function:
        """Raises LaunchRefusedError where the module has no such kernel."""
        code, handle = _find(self._handle, mangled_name.encode())
        if int(code):
            raise LaunchRefusedError(f"the cubin has no kernel {mangled_name}")
        return Function(self, handle)

    def variable(self, mangled_name: str) -> tuple[int, int]:
        """Where a variable lies on the device, and its bytes. Raises LaunchRefusedError where there is none."""
        code, address, size = _find_variable(self._handle, mangled_name.encode())
        if int(code):
            raise LaunchRefusedError(f"the driver does not know the variable {mangled_name}")
        return int(address), int(size)

    def prepare(
        self, function: Function, grid: Sequence[int], block: Sequence[int], shared_bytes: int, arguments: Sequence[Any]
    ) -> Launch:
        """A launch that can be started many times; `arguments` are ctypes values in the order of the parameters.

        Raises LaunchRefusedError where the kernel cannot have that much shared memory.
        """
        if shared_bytes and shared_bytes + int(_checked(_attribute(_STATIC_SHARED, function.handle))) > SHARED_UNASKED:
            _checked(_set_attribute(function.handle, _MOST_DYNAMIC_SHARED, shared_bytes))
        kept = tuple(arguments)
        pointers = (ctypes.c_void_p * max(1, len(kept)))(*[ctypes.addressof(a) for a in kept])
        return Launch(function, (*grid, *block), shared_bytes, kept, pointers)


@dataclass(frozen=True)
class Launch:
    """A kernel with its grid, block and arguments. `pointers` hold the addresses of `arguments`."""

    function: Function
    sizes: tuple[int, ...]
    shared_bytes: int
    arguments: tuple[Any, ...]
    pointers: Any

    def start(self, stream: int) -> None:
        """Enqueue it on `stream`.

        Raises LaunchRefusedError for a launch that the driver turns down, CudaFaultError where an earlier one failed.
        """
        address = ctypes.addressof(self.pointers)
        _checked(_launch(self.function.handle, *self.sizes, self.shared_bytes, stream, address, 0))


@dataclass(frozen=True)
class Launches:
    """Launches that follow each other on one stream."""

    launches: tuple[Launch, ...]

    def start(self, stream: int) -> None:
        """Enqueue them in their order; raises as `Launch.start`."""
        for launch in self.launches:
            launch.start(stream)


def synchronize() -> None:
    """Wait for everything on the device. Raises CudaFaultError for what a kernel did."""
    code, *_ = _synchronize()
    if int(code):
        raise CudaFaultError(*_error(code))


def read_memory(address: int, size: int) -> bytes:
    """Bytes of the device's memory. Raises LaunchRefusedError or CudaFaultError."""
    content = ctypes.create_string_buffer(size)
    _checked(_copy_to_host(ctypes.addressof(content), address, size))
    return content.raw


def write_memory(address: int, content: bytes) -> None:
    """Set bytes of the device's memory. Raises LaunchRefusedError or CudaFaultError."""
    _checked(_copy_to_device(address, content, len(content)))


def make_context() -> None:
    """The GPU's primary context, made current: for a process without torch, which makes it. Raises CudaFaultError."""
    _checked(_driver.cuInit(0))
    _checked(_driver.cuCtxSetCurrent(_checked(_driver.cuDevicePrimaryCtxRetain(_checked(_driver.cuDeviceGet(0))))))


def allocate(size: int) -> int:
    """The address of so many bytes of the device's memory. Raises CudaFaultError."""
    return int(_checked(_driver.cuMemAlloc(size)))


def release(address: int) -> None:
    """Give back what `allocate` gave. Raises CudaFaultError."""
    _checked(_driver.cuMemFree(address))


_REFUSALS = {
    "CUDA_ERROR_INVALID_VALUE", "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", "CUDA_ERROR_INVALID_IMAGE",
    "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE",
}  # fmt: skip


def _checked(answer: tuple[Any, ...]) -> Any:
    """What a driver call returned beside its code."""
    if int(answer[0]):
        name, text = _error(answer[0])
        if name in _REFUSALS:
            raise LaunchRefusedError(text)
        raise CudaFaultError(name, text)
    return answer[1] if len(answer) == 2 else answer[1:]


def _error(code: Any) -> tuple[str, str]:
    name, text = (ask(code)[1] or b"" for ask in (_driver.cuGetErrorName, _driver.cuGetErrorString))
    return name.decode() or "CUDA_ERROR", text.decode() or f"error {int(code)}"


if _driver is not None:
    _load, _unload, _find = _driver.cuModuleLoadData, _driver.cuModuleUnload, _driver.cuModuleGetFunction
    _launch, _synchronize, _set_attribute = _driver.cuLaunchKernel, _driver.cuCtxSynchronize, _driver.cuFuncSetAttribute
    _find_variable, _copy_to_host = _driver.cuModuleGetGlobal, _driver.cuMemcpyDtoH
    _copy_to_device = _driver.cuMemcpyHtoD
    _attribute = _driver.cuFuncGetAttribute
    _MOST_DYNAMIC_SHARED = _driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
    _CAPABILITY = (
        _driver.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
        _driver.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
    )
    _STATIC_SHARED = _driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES


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
