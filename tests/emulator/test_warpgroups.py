"""Products of warpgroups: the layouts of the PTX ISA, what a kernel gets from them, and what it may do wrong."""

from __future__ import annotations

import numpy as np
import pytest
from warpwright.emulator.launch import ArrayArgument, Launch, run
from warpwright.emulator.machine.faults import FoundFault
from warpwright.emulator.numerics.warpgroup import Layout, sums
from warpwright.emulator.program import translate
from warpwright.emulator.ptx.parse import parse
from warpwright.syntax.source import Source
from warpwright.toolchain.compile import compile_ptx

KERNEL = """
#include <cuda_fp16.h>
constexpr unsigned kRow = $row;
__device__ unsigned swizzled(unsigned at) { return at ^ (at >> 7 & (kRow / 16 - 1)) << 4; }
__device__ unsigned long long described(const void* p, unsigned leading, unsigned stride) {
    const unsigned long long mode = kRow == 128 ? 1 : kRow == 64 ? 2 : kRow == 32 ? 3 : 0;
    const unsigned at = static_cast<unsigned>(__cvta_generic_to_shared(p));
    return mode << 62 | static_cast<unsigned long long>(stride >> 4) << 32 | leading >> 4 << 16 | at >> 4;
}
// out[64, 16] = a[64, 16] b[16, 16]; b is kept by its columns.
__global__ void product(const __half* a, const __half* b, float* out) {
    __shared__ __align__(1024) char left[64 / 8 * 1024];
    __shared__ __align__(1024) char right[16 / 8 * 1024];
    const int thread = threadIdx.x;
    for (int at = thread; at < 64 * 16; at += 128) {
        const int row = at / 16, k = at % 16;
        const unsigned to = kRow == 16 ? row / 8 * 256 + k / 8 * 128 + row % 8 * 16 + k % 8 * 2
                                       : swizzled(row / 8 * kRow * 8 + row % 8 * kRow + k * 2);
        *reinterpret_cast<__half*>(left + to) = a[at];
        if (row < 16) *reinterpret_cast<__half*>(right + to) = b[k * 16 + row];
    }
    asm volatile("fence.proxy.async;" ::: "memory");
    __syncthreads();
    float d[8] = {100, 100, 100, 100, 100, 100, 100, 100};
    const unsigned long long da = described(left, 128, kRow == 16 ? 256 : kRow * 8);
    const unsigned long long db = described(right, 128, kRow == 16 ? 256 : kRow * 8);
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
    asm volatile("wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16 {%0, %1, %2, %3, %4, %5, %6, %7}, %8, %9, "
                 "$scale, 1, $sign, 0, 0;"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7])
                 : "l"(da), "l"(db) : "memory");
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
    __syncthreads();
    left[thread * 64] = 0;
    __syncthreads();
    for (int part = 0; part < 8; ++part) {
        const int row = thread / 32 * 16 + thread % 32 / 4 + part / 2 % 2 * 8;
        out[row * 16 + part / 4 * 8 + thread % 4 * 2 + part % 2] = d[part] + left[(127 - thread) * 64];
    }
}
"""


def ran(text: str) -> tuple[np.ndarray, np.ndarray, tuple[FoundFault, ...]]:
    """What the kernel gives for random operands, their product, and the faults."""
    compiled = compile_ptx(Source("a.cu", text.encode()), arch="sm_90a")
    assert compiled.ok, compiled.reason
    module = parse(compiled.text)
    program = translate(module, next(f.name for f in module.functions.values() if f.is_kernel))
    random = np.random.default_rng(5)
    a, b = (random.standard_normal(shape).astype(np.float16) for shape in ((64, 16), (16, 16)))
    arguments = [ArrayArgument("a", a), ArrayArgument("b", b), ArrayArgument("out", np.zeros((64, 16), np.float32))]
    result = run(program, Launch((2, 1, 1), (128, 1, 1)), arguments)
    return np.asarray(result.outputs["out"]).reshape(64, 16), a.astype(float) @ b.astype(float), tuple(result.faults)


def kernel(row: int = 128, scale: int = 1, sign: int = 1) -> str:
    return KERNEL.replace("$row", str(row)).replace("$scale", str(scale)).replace("$sign", str(sign))


@pytest.mark.nvcc
@pytest.mark.parametrize("row", [16, 32, 64, 128])
def test_operands_lie_in_each_of_the_swizzles(row: int) -> None:
    found, exact, faults = ran(kernel(row))
    assert not [each for each in faults if each.array != "out"]
    assert np.allclose(found, 100 + exact, atol=1e-4)


@pytest.mark.nvcc
def test_sums_begin_anew_and_operands_are_negated() -> None:
    found, exact, _ = ran(kernel(scale=0, sign=-1))
    assert np.allclose(found, -exact, atol=1e-4)


@pytest.mark.nvcc
@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('asm volatile("fence.proxy.async;" ::: "memory");', "", "no fence.proxy.async since"),
        ('asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");', "", "may still be reading"),
        ("__syncthreads();\n    float", "float", ""),
        (
            'asm volatile("wgmma.commit_group',
            'if (thread < 96) asm volatile("wgmma.commit_group',
            "part of a warpgroup",
        ),
        ("described(left, ", "described(left + thread / 64 * 16, ", "name different matrices"),
    ],
)
def test_what_a_kernel_does_wrong_is_found(old: str, new: str, said: str) -> None:
    text = kernel()
    assert old in text
    faults = ran(text.replace(old, new))[2]
    assert any(said in each.text and each.array != "out" for each in faults)


def test_words_of_a_turned_operand_are_one_for_each_eight_rows_and_step() -> None:
    layout = Layout.of(1 << 62 | (1024 >> 4) << 32 | (8192 >> 4) << 16)
    words = layout.words(128, True).reshape(16, 16)
    for unit, k in ((0, 0), (3, 5), (7, 9), (8, 1), (15, 15)):
        within = k // 8 * 1024 + k % 8 * 128 + (unit % 8 ^ k % 8) * 16
        assert words[unit, k] == unit // 8 * 8192 + within


def test_each_sum_is_held_once() -> None:
    rows, columns = sums(256)
    assert sorted(zip(rows.ravel().tolist(), columns.ravel().tolist(), strict=True)) == [
        (row, column) for row in range(64) for column in range(256)
    ]
