"""What this machine can do at most, measured once: bytes per second of memory and of the second-level cache, operations
per second of each kind. The parent keeps the result per GPU and driver. The rates of memory bound every kernel; those
of arithmetic only one whose operations are counted, and take the libraries of matrix products, which load for seconds.

A multiplication and an addition count as two operations. Each rate is the best of several runs: a bound must not lie
above what the hardware does.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Collection
from typing import Any

import torch

from warpwright_harness.device import Module, pointer_argument
from warpwright_harness.timing.stopwatch import Stopwatch, l2_bytes

MEMORY = ("dram_bytes", "l2_bytes")
RATES = (*MEMORY, "fp32", "fp64", "fp16_tensor")
REPEATS = 7

_SOURCE = r"""
template <typename T>
__device__ void multiply_add(T* out, int steps, T factor, T addend) {
    T chains[8];
    #pragma unroll
    for (int c = 0; c < 8; ++c) chains[c] = T(threadIdx.x) * factor + T(c);
    for (int step = 0; step < steps; step += 16) {
        #pragma unroll
        for (int unrolled = 0; unrolled < 16; ++unrolled) {
            #pragma unroll
            for (int c = 0; c < 8; ++c) chains[c] = fma(chains[c], factor, addend);
        }
    }
    T sum = 0;
    #pragma unroll
    for (int c = 0; c < 8; ++c) sum += chains[c];
    if (sum == T(-1)) *out = sum;
}
extern "C" __global__ void fp32(float* out, int steps, float factor, float addend) {
    multiply_add(out, steps, factor, addend);
}
extern "C" __global__ void fp64(double* out, int steps, double factor, double addend) {
    multiply_add(out, steps, factor, addend);
}

extern "C" __global__ void read(const float4* in, float* out, int count, int passes) {
    float sum = 0;
    for (int pass = 0; pass < passes; ++pass)
        #pragma unroll 4
        for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
            float4 v = __ldcg(in + i);
            sum += v.x + v.y + v.z + v.w;
        }
    if (sum == -1.0f) *out = sum;
}
"""
_STEPS = {"fp32": (16 * 1250, ctypes.c_float), "fp64": (16 * 625, ctypes.c_double)}
_BLOCK = 256


def measure_rates(stopwatch: Stopwatch, wanted: Collection[str]) -> dict[str, float]:
    """The wanted ones of RATES, per second. Raises RuntimeError where the runtime compiler is missing or fails."""
    properties: Any = torch.cuda.get_device_properties(0)
    blocks = 8 * properties.multi_processor_count
    rates: dict[str, float] = {}
    sink = torch.zeros(1, dtype=torch.float64, device="cuda")
    with Module(_compiled(f"sm_{properties.major}{properties.minor}")) as module:

        def best(name: str, *arguments: Any) -> float:
            launch = module.prepare(module.function(name), (blocks, 1, 1), (_BLOCK, 1, 1), 0, arguments)
            stream = torch.cuda.current_stream().cuda_stream
            return _best_seconds(stopwatch, lambda: launch.start(stream))

        for name, (steps, number) in _STEPS.items():
            if name not in wanted:
                continue
            seconds = best(name, pointer_argument(sink.data_ptr()), ctypes.c_int(steps), number(0.999), number(1e-3))
            rates[name] = 2.0 * 8 * steps * blocks * _BLOCK / seconds
        if "l2_bytes" in wanted:
            part = torch.zeros(l2_bytes() // 16, dtype=torch.float32, device="cuda")  # a quarter of the cache
            count, passes = part.numel() // 4, 40
            seconds = best(
                "read",
                pointer_argument(part.data_ptr()), pointer_argument(sink.data_ptr()), ctypes.c_int(count),
                ctypes.c_int(passes),
            )  # fmt: skip
            rates["l2_bytes"] = 16.0 * count * passes / seconds
    if "dram_bytes" in wanted:
        rates["dram_bytes"] = _dram(stopwatch)
    # The products last: they heat the chip, which then runs slower for a while.
    if "fp16_tensor" in wanted:
        rates["fp16_tensor"] = _product(stopwatch, torch.float16, 8192)
    if "fp64" in wanted:
        rates["fp64"] = max(
            rates["fp64"], _product(stopwatch, torch.float64, 4096)
        )  # on tensor cores, if there are any
    return rates


def _best_seconds(stopwatch: Stopwatch, work: Callable[[], object]) -> float:
    work()
    return min(stopwatch.start_warm(work)() for _ in range(REPEATS)) / 1e6


def _dram(stopwatch: Stopwatch) -> float:
    """The best of copying, reading and writing far more than the cache holds."""
    free, _ = torch.cuda.mem_get_info()
    count: int = min(2 << 30, free // 4) // 4
    source = torch.ones(count, dtype=torch.float32, device="cuda")
    target = torch.empty_like(source)
    size = 4.0 * count
    copied = 2 * size / _best_seconds(stopwatch, lambda: target.copy_(source))
    read = size / _best_seconds(stopwatch, source.sum)
    written = size / _best_seconds(stopwatch, lambda: target.fill_(1.0))
    return max(copied, read, written)


def _product(stopwatch: Stopwatch, dtype: Any, n: int) -> float:
    a, b = (torch.randn(n, n, device="cuda", dtype=torch.float32).to(dtype) for _ in range(2))
    return 2.0 * float(n) ** 3 / _best_seconds(stopwatch, lambda: torch.matmul(a, b))


def _compiled(arch: str) -> bytes:
    """The kernels above as a cubin. Raises ImportError and RuntimeError."""
    from cuda.bindings import nvrtc

    program = _checked(nvrtc.nvrtcCreateProgram(_SOURCE.encode(), b"rates.cu", 0, [], []))
    try:
        _checked(nvrtc.nvrtcCompileProgram(program, 1, [f"--gpu-architecture={arch}".encode()]))
        image = bytes(_checked(nvrtc.nvrtcGetCUBINSize(program)))
        _checked(nvrtc.nvrtcGetCUBIN(program, image))
        return image
    finally:
        nvrtc.nvrtcDestroyProgram(program)


def _checked(answer: tuple[Any, ...]) -> Any:
    if int(answer[0]):
        raise RuntimeError(f"the CUDA runtime compiler failed ({answer[0].name})")
    return answer[1] if len(answer) > 1 else None
