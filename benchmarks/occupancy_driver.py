"""Blocks per multiprocessor that we compute against the CUDA driver's own answer, on this machine's GPU.

    python benchmarks/occupancy_driver.py benchmarks/results/occupancy_driver.json

Kernels of many register counts, static shared memories and barriers are compiled with nvcc for the GPU; for each, block
sizes, dynamic shared memories and preferences for the L1 cache are tried, and the driver is asked with
`cuOccupancyMaxActiveBlocksPerMultiprocessor`. Our numbers come from nvcc's report alone. The register counts and static
shared memories that the driver gives for the loaded kernels are compared, too.
"""

from __future__ import annotations

import argparse
import itertools
import json
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from warpwright.facts.occupancy import occupancy
from warpwright.facts.resources import KernelResources
from warpwright.toolchain.messages import parse_resources

THREADS = (1, 31, 32, 33, 64, 96, 128, 160, 192, 256, 320, 384, 512, 640, 768, 896, 1000, 1024)
DYNAMIC = (0, 1, 900, 1024, 8 << 10, 16000, 40 << 10, 48 << 10, 64 << 10, 100 << 10, 113 << 10, 200 << 10, 227 << 10)
PREFERENCES = (
    *(("carveout", percent, 100 if percent < 0 else percent) for percent in (-1, 0, 25, 50, 100)),
    *(("cache", preference, percent) for preference, percent in enumerate((100, 100, 0, 50))),
)
"""What the host can ask for: by a share or by a cache preference (none, shared, L1, equal); and our share for it."""
REGISTERS = (16, 24, 32, 33, 40, 48, 56, 64, 72, 80, 96, 104, 128, 152, 168, 200, 224, 255)
SHARED = (0, 4, 1000, 4096, 12 << 10, 30000, 48 << 10)
BARRIERS = (1, 2, 4, 8, 16)

USE = "s[threadIdx.x % sizeof s] = 1; __syncthreads(); a[0] += s[(threadIdx.x + 1) % sizeof s];"
KERNEL = """
extern "C" __global__ void {bounds} k{number}(float* x) {{
    {shared}
    float a[{live}];
#pragma unroll
    for (int i = 0; i < {live}; i++) a[i] = x[i * 1024 + threadIdx.x];
    {use}
#pragma unroll
    for (int i = 0; i < {live}; i++)
        a[i] = a[i] * a[(i * 7 + 3) % {live}] + a[(i * 5 + 1) % {live}];
    {barriers}
#pragma unroll
    for (int i = 0; i < {live}; i++) x[i * 1024 + threadIdx.x] = a[i];
}}
"""


def kernels() -> str:
    """The text: kernels of so many registers, with shared memory, with named barriers. Some spill: they are not run."""
    variants = [(live, 0, 0) for live in REGISTERS] + [(8, size, 0) for size in SHARED] + [(8, 0, n) for n in BARRIERS]
    variants += [(40, 12 << 10, 4), (72, 30000, 1), (24, 1000, 2)]
    text = ""
    for number, (live, size, barriers) in enumerate(variants):
        text += KERNEL.format(
            number=number,
            live=max(1, live),
            bounds=f"__maxnreg__({live})" if live > 24 else "",
            shared=f"__shared__ char s[{size}];" if size else "",
            use=USE if size else "",
            barriers="".join(f'asm volatile("bar.sync {n};");' for n in range(barriers)),
        )
    return text


def checked(result: tuple[Any, ...]) -> Any:
    error, *values = result
    if int(error):
        raise RuntimeError(str(error))
    return values[0] if values else None


def compiled(folder: Path, arch: str) -> tuple[Path, dict[str, KernelResources]]:
    (folder / "kernels.cu").write_text(kernels(), encoding="utf-8")
    cubin = folder / "kernels.cubin"
    command = ["nvcc", "-cubin", f"-arch={arch}", "-Xptxas", "-v", "-o", str(cubin), str(folder / "kernels.cu")]
    made = subprocess.run(command, capture_output=True, text=True, check=True)
    return cubin, parse_resources(made.stdout + made.stderr)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    arguments = parser.parse_args()
    from cuda.bindings import driver

    checked(driver.cuInit(0))
    device = checked(driver.cuDeviceGet(0))
    context = checked(driver.cuDevicePrimaryCtxRetain(device))
    checked(driver.cuCtxSetCurrent(context))
    attribute = driver.CUdevice_attribute
    major, minor, optin = (
        checked(driver.cuDeviceGetAttribute(each, device))
        for each in (
            attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
            attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
            attribute.CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN,
        )
    )
    arch = f"sm_{major}{minor}"
    with tempfile.TemporaryDirectory() as folder:
        cubin, resources = compiled(Path(folder), arch)
        module = checked(driver.cuModuleLoadData(cubin.read_bytes()))
    points: Counter[str] = Counter()
    wrong: list[dict[str, Any]] = []
    loaded = []
    function_attribute = driver.CUfunction_attribute
    for name, each in resources.items():
        function = checked(driver.cuModuleGetFunction(module, name.encode()))
        registers, static, most_threads = (
            checked(driver.cuFuncGetAttribute(which, function))
            for which in (
                function_attribute.CU_FUNC_ATTRIBUTE_NUM_REGS,
                function_attribute.CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES,
                function_attribute.CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK,
            )
        )
        loaded.append(
            {
                "kernel": name, "registers": each.registers, "driver_registers": registers,
                "shared_bytes": each.shared_bytes, "driver_shared_bytes": static, "barriers": each.barriers,
            }
        )  # fmt: skip
        checked(
            driver.cuFuncSetAttribute(
                function,
                function_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                optin - each.shared_bytes,
            )
        )
        for threads, dynamic, (how, value, carveout) in itertools.product(THREADS, DYNAMIC, PREFERENCES):
            if each.shared_bytes + dynamic > optin or threads > most_threads:
                continue
            preferred = function_attribute.CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT
            checked(driver.cuFuncSetAttribute(function, preferred, value if how == "carveout" else -1))
            cache = driver.CUfunc_cache(value if how == "cache" else 0)
            checked(driver.cuFuncSetCacheConfig(function, cache))
            theirs = int(checked(driver.cuOccupancyMaxActiveBlocksPerMultiprocessor(function, threads, dynamic)))
            ours = occupancy(
                arch,
                each.registers,
                each.shared_bytes + dynamic,
                threads,
                each.barriers,
                carveout,
            )
            points[ours.limiter] += 1
            if ours.blocks != theirs:
                wrong.append(
                    {
                        "kernel": name, "registers": each.registers, "static": each.shared_bytes, "dynamic": dynamic,
                        "barriers": each.barriers, "threads": threads, how: value,
                        "ours": ours.blocks, "driver": theirs,
                    }
                )  # fmt: skip
    result = {
        "command": "python benchmarks/occupancy_driver.py benchmarks/results/occupancy_driver.json",
        "device": checked(driver.cuDeviceGetName(100, device)).partition(b"\0")[0].decode(),
        "versions": {"driver": checked(driver.cuDriverGetVersion()), "nvcc": _nvcc()},
        "points": sum(points.values()),
        "points_by_limiter": dict(points),
        "differ": len(wrong),
        "register_counts_that_differ": sum(one["registers"] != one["driver_registers"] for one in loaded),
        "kernels": loaded,
        "differences": wrong[:40],
    }
    arguments.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    print(json.dumps({key: value for key, value in result.items() if key not in ("kernels", "differences")}, indent=1))
    for one in wrong[:40]:
        print(one)
    return 1 if wrong else 0


def _nvcc() -> str:
    said = subprocess.run(["nvcc", "--version"], capture_output=True, text=True, check=True).stdout
    return said.split("release ")[1].split()[1]


if __name__ == "__main__":
    sys.exit(main())
