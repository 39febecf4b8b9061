"""Launch kernels of one cubin with given arguments and keep what they leave: `python gpu_launch.py FOLDER`.

The folder holds `kernels.cubin` and `jobs.json`, a list of {"function", "grid", "block", "shared", "arguments"}; an
argument is {"array": FILE} for an array's bytes, or {"bytes": HEX}. Each array's bytes after the launch are written
beside it, as FILE.after. Uses the CUDA driver alone, so that it starts at once under a profiler.

Source of names and signatures: the CUDA Driver API reference manual.
"""

from __future__ import annotations

import ctypes
import json
import sys
from pathlib import Path
from typing import Any


def check(driver: ctypes.CDLL, code: int, what: str) -> None:
    if code:
        text = ctypes.c_char_p()
        driver.cuGetErrorString(code, ctypes.byref(text))
        raise SystemExit(f"{what}: {(text.value or b'').decode() or code}")


def run(driver: ctypes.CDLL, folder: Path, module: ctypes.c_void_p, job: dict[str, Any]) -> None:
    """One launch on fresh memory."""
    function = ctypes.c_void_p()
    name = job["function"]
    check(driver, driver.cuModuleGetFunction(ctypes.byref(function), module, name.encode()), name)
    if job["shared"] > 48 << 10:
        check(driver, driver.cuFuncSetAttribute(function, 8, job["shared"]), name)
    values: list[Any] = []
    arrays: list[tuple[ctypes.c_uint64, bytes, Path]] = []
    for argument in job["arguments"]:
        if "bytes" in argument:
            raw = bytes.fromhex(argument["bytes"])
            values.append(ctypes.create_string_buffer(raw, len(raw)))
            continue
        path = folder / argument["array"]
        content = path.read_bytes()
        address = ctypes.c_uint64()
        check(driver, driver.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(max(256, len(content)))), name)
        check(driver, driver.cuMemcpyHtoD_v2(address, content, ctypes.c_size_t(len(content))), name)
        arrays.append((address, content, path))
        values.append(address)
    pointers = (ctypes.c_void_p * max(1, len(values)))(*[ctypes.addressof(v) for v in values])
    sizes = [ctypes.c_uint(v) for v in (*job["grid"], *job["block"], job["shared"])]
    check(driver, driver.cuLaunchKernel(function, *sizes, None, pointers, None), name)
    check(driver, driver.cuCtxSynchronize(), name)
    for address, content, path in arrays:
        after = ctypes.create_string_buffer(len(content))
        check(driver, driver.cuMemcpyDtoH_v2(after, address, ctypes.c_size_t(len(content))), name)
        path.with_name(path.name + ".after").write_bytes(after.raw)
        check(driver, driver.cuMemFree_v2(address), name)


def main() -> None:
    folder = Path(sys.argv[1])
    driver = ctypes.CDLL("libcuda.so.1")
    check(driver, driver.cuInit(0), "the driver")
    device, context, module = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_void_p()
    check(driver, driver.cuDeviceGet(ctypes.byref(device), 0), "the device")
    check(driver, driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), device), "the context")
    check(driver, driver.cuCtxSetCurrent(context), "the context")
    image = (folder / "kernels.cubin").read_bytes()
    check(driver, driver.cuModuleLoadData(ctypes.byref(module), image), "the cubin")
    for job in json.loads((folder / "jobs.json").read_text()):
        run(driver, folder, module, job)


if __name__ == "__main__":
    main()
