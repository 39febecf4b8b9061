"""Launch one kernel once without torch, in arrays of exactly their size: `python -m warpwright_harness --bare FILE`.

It starts in a fraction of a second, and under compute-sanitizer each array ends where it ends. FILE is JSON: the cubin
and the function's name, grid, block, dynamic shared bytes, the arguments as in a request, the scalars by name, and for
each array and each variable its bytes and the file that holds its content (null for an output).
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from warpwright_harness.arguments import kernel_arguments
from warpwright_harness.device import LaunchRefusedError, Module, driver, synchronize
from warpwright_harness.variables import variable_named, variables_in, write


def run_bare(request: Mapping[str, Any]) -> None:
    """Raises LaunchRefusedError and CudaFaultError."""
    library = driver()
    device, context = ctypes.c_int(), ctypes.c_void_p()
    _succeed(library.cuInit(0), "the driver does not start")
    _succeed(library.cuDeviceGet(ctypes.byref(device), 0), "there is no GPU")
    _succeed(library.cuDevicePrimaryCtxRetain(ctypes.byref(context), device), "the GPU gives no context")
    _succeed(library.cuCtxSetCurrent(context), "the GPU gives no context")
    addresses: dict[str, int] = {}
    for array in request["arrays"]:
        address = ctypes.c_uint64()
        _succeed(library.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(array["bytes"])), "no memory is free")
        addresses[array["name"]] = address.value
        if array["file"]:
            content = Path(array["file"]).read_bytes()
            _succeed(library.cuMemcpyHtoD_v2(address, content, ctypes.c_size_t(len(content))), "a copy failed")
    image = Path(request["cubin"]).read_bytes()
    with Module(image) as module:
        known = {variable.name: variable for variable in variables_in(image)}
        for variable in request["variables"]:
            name = variable_named(variable["name"], known)
            if name is not None:
                write(module, known[name], Path(variable["file"]).read_bytes())
        arguments = kernel_arguments(request["arguments"], addresses, request["scalars"])
        function = module.function(request["function"])
        module.launch(function, request["grid"], request["block"], request["shared"], 0, arguments)
        synchronize()


def _succeed(code: int, otherwise: str) -> None:
    if code:
        raise LaunchRefusedError(f"{otherwise} (CUDA error {code})")
