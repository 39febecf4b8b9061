"""PTX as nvcc writes it, whole and damaged."""

from __future__ import annotations

from collections import Counter
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.examples import examples
from warpwright.emulator.ptx.model import Address, Instruction, Module, Symbol
from warpwright.emulator.ptx.parse import parse
from warpwright.emulator.ptx.tokens import PtxError
from warpwright.syntax.source import Source
from warpwright.toolchain.compile import compile_ptx

pytestmark = pytest.mark.nvcc

TEXT = r"""
#include <cassert>
#include <cooperative_groups.h>
#include <cstdio>
#include <cuda_fp16.h>
#include <mma.h>

__constant__ float weights[5] = {1.0f, 0.5f, -0.25f};
__device__ int counter;
struct Pair { float x; double y; };
__device__ Pair pairs[2] = {{1.0f, 2.0}, {3.0f, 4.0}};
__device__ int* pointer = &counter;
extern __shared__ float dynamic[];

__device__ __noinline__ double slow(Pair p, int k) { return k ? slow(p, k - 1) * p.y : p.x; }

template <typename T, int N> __global__ void __launch_bounds__(N, 2) reduce(T* data, int n, Pair p) {
    __shared__ T tile[N];
    int i = blockIdx.x * N + threadIdx.x;
    tile[threadIdx.x] = i < n ? data[i] * (T)weights[threadIdx.x % 5] : T(0);
    __syncthreads();
    for (int step = N / 2; step > 0; step /= 2) {
        if (threadIdx.x < step) tile[threadIdx.x] += tile[threadIdx.x + step];
        __syncthreads();
    }
    T total = __shfl_down_sync(0xffffffff, tile[threadIdx.x], 16);
    assert(n > 0);
    if (threadIdx.x == 0) {
        atomicAdd(&counter, 1);
        data[blockIdx.x] = total + (T)slow(p, n) + (T)dynamic[0];
        printf("%d of %f\n", n, (double)total);
    }
}

__global__ void half_of(__half2* a, const float4* b, float4* c, int k) {
    int lane;
    asm volatile("{ .reg .pred p; .reg .u32 t; mov.u32 t, %%laneid; setp.lt.u32 p, t, 7; L: @p bra M; M:"
                 "mov.u32 %0, t; }"
                 : "=r"(lane));
    asm volatile("{ .reg .pred p; setp.ne.s32 p, %0, 0; L: @p bra M; M: }" :: "r"(lane));
    a[threadIdx.x] = __hfma2(a[threadIdx.x], a[lane], a[0]);
    switch (k) {
    case 0: c[lane] = b[lane]; break;
    case 1: c[lane].x = sinf(b[lane].y); break;
    case 2: c[lane].y = __expf(b[lane].x); break;
    case 3: c[lane].z = rsqrtf(b[lane].x); break;
    default: cooperative_groups::this_thread_block().sync();
    }
}

__global__ void tensor(const __half* a, const __half* b, float* c) {
    using namespace nvcuda::wmma;
    fragment<matrix_a, 16, 16, 16, __half, row_major> fa;
    fragment<matrix_b, 16, 16, 16, __half, col_major> fb;
    fragment<accumulator, 16, 16, 16, float> fc;
    load_matrix_sync(fa, a, 16);
    load_matrix_sync(fb, b, 16);
    fill_fragment(fc, 0.0f);
    mma_sync(fc, fa, fb, fc);
    store_matrix_sync(c, fc, 16, mem_row_major);
}

template __global__ void reduce<float, 256>(float*, int, Pair);
template __global__ void reduce<double, 128>(double*, int, Pair);
"""
PATH = str(Path("folder with a space") / "real.cu")


@cache
def ptx(arch: str) -> str:
    compiled = compile_ptx(Source(PATH, TEXT.encode()), arch=arch)
    assert compiled.ok, compiled.reason
    return compiled.text


@pytest.mark.parametrize("arch", ["sm_75", "sm_90a"])
def test_a_whole_file(arch: str) -> None:
    module = parse(ptx(arch))
    assert module.target == arch
    kernels = {f.name: f for f in module.functions.values() if f.is_kernel}
    assert len(kernels) == 4
    reduce = next(f for f in kernels.values() if "reduceIfLi256" in f.name)
    assert dict(reduce.directives)["maxntid"][0] == 256
    assert [p.size for p in reduce.parameters] == [8, 4, 16]
    assert module.variables["weights"].initial[:8] == bytes.fromhex("0000803f0000003f")  # type: ignore[index]
    assert module.variables["pointer"].relocations == {0: Symbol("counter", is_generic=True)}
    assert module.variables["dynamic"].size is None


def test_every_instruction_stands_where_the_text_has_it_and_knows_its_source_line() -> None:
    text = ptx("sm_90a")
    rows = text.splitlines()
    opcodes: Counter[str] = Counter()
    for function in parse(text).functions.values():
        for item in function.body or ():
            if isinstance(item, Instruction):
                opcodes[item.name] += 1
                assert item.name in rows[item.row - 1]
                assert item.place is not None
                assert item.place.file
                for operand in item.operands:
                    if isinstance(operand, Address):
                        assert isinstance(operand.offset, int)
    for name in ("bar.sync", "shfl.sync.down.b32", "call.uni", "ret"):
        assert opcodes[name] == sum(line.count(f"{name} ") + line.count(f"{name};") for line in rows), name


def test_an_access_in_an_inlined_function_names_the_call() -> None:
    functions = parse(ptx("sm_90a")).functions
    inlined = [
        item.place
        for function in functions.values()
        for item in function.body or ()
        if isinstance(item, Instruction) and item.place and item.place.inlined_at
    ]
    assert inlined
    outermost = inlined[0]
    while outermost.inlined_at:
        assert outermost.function.startswith("_Z")
        outermost = outermost.inlined_at
    assert outermost.file.endswith("real.cu")


def parsed_or_refused(text: str) -> Module | PtxError:
    try:
        return parse(text)
    except PtxError as error:
        assert 1 <= error.row <= text.count("\n") + 1
        return error


@examples(60)
@given(st.data())
def test_a_text_that_is_cut_off(data: st.DataObject) -> None:
    text = ptx("sm_90a")
    parsed_or_refused(text[: data.draw(st.integers(0, len(text)))])


@examples(60)
@given(st.data())
def test_a_text_with_lines_that_are_lost_doubled_or_overwritten(data: st.DataObject) -> None:
    lines = ptx("sm_90a").splitlines(keepends=True)
    at = data.draw(st.integers(0, len(lines) - 1))
    column = data.draw(st.integers(0, len(lines[at])))
    put = data.draw(st.text(max_size=4) | st.sampled_from(["", ";", "{", "}", ":", "|", "%q", "\n"]))
    lines[at] = data.draw(st.sampled_from(["", lines[at] * 2, lines[at][:column] + put + lines[at][column + 1 :]]))
    parsed_or_refused("".join(lines))
