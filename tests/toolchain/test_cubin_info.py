"""Launch bounds and spills as a cubin records them."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.examples import examples
from warpwright.missing import Missing
from warpwright.syntax.source import Source
from warpwright.toolchain.compilation import Compiled
from warpwright.toolchain.compile import compile_cubin
from warpwright.toolchain.cubin_info import kernel_info
from warpwright.toolchain.local_traffic import LocalPurpose, local_traffic
from warpwright.toolchain.machine_code import machine_code
from warpwright.toolchain.spilled import with_spills

TEXT = b"""\
__global__ void __launch_bounds__(1024, 2) spills(float* x) {
    float a[40];
#pragma unroll
    for (int i = 0; i < 40; i++)
        a[i] = x[i * 1024 + threadIdx.x];
#pragma unroll
    for (int i = 0; i < 40; i++)
#pragma unroll
        for (int j = 0; j < 40; j++)
            a[i] = a[i] * a[j] + 1.0f;
#pragma unroll
    for (int i = 0; i < 40; i++)
        x[i * 1024 + threadIdx.x] = a[i];
}
__global__ void indexes(float* x, int n) {
    float a[40];
    for (int i = 0; i < 40; i++)
        a[i * n & 31] = x[i];
    x[0] = a[n] + a[n + 1];
}
__global__ void __launch_bounds__(1024, 2) both(float* x, int n) {
    float a[40], picked[16];
#pragma unroll
    for (int i = 0; i < 16; i++)
        picked[i * n & 15] = x[i];
#pragma unroll
    for (int i = 0; i < 40; i++)
        a[i] = x[i * 1024 + threadIdx.x];
#pragma unroll
    for (int i = 0; i < 40; i++)
#pragma unroll
        for (int j = 0; j < 40; j++)
            a[i] = a[i] * a[j] + picked[j * n & 15];
#pragma unroll
    for (int i = 0; i < 40; i++)
        x[i * 1024 + threadIdx.x] = a[i];
}
__global__ void plain(float* x) { x[0] = 1.0f; }
"""


@pytest.fixture(scope="module")
def compiled() -> Compiled:
    made = compile_cubin(Source("a.cu", TEXT))
    assert made.ok, made.reason
    return made


@pytest.mark.nvcc
def test_launch_bounds(compiled: Compiled) -> None:
    spills, indexes, plain = (compiled.kernels[name] for name in ("spills", "indexes", "plain"))
    assert (spills.max_threads, spills.max_registers) == (1024, 32)
    assert [(each.max_threads, each.max_registers) for each in (indexes, plain)] == [(None, None)] * 2


@pytest.mark.nvcc
@pytest.mark.sass
def test_spills_have_lines_and_add_up_to_what_ptxas_says(compiled: Compiled) -> None:
    found = with_spills(compiled)
    spills = found["spills"]
    assert spills.spill_store_bytes > 0
    assert sum(place.store_bytes for place in spills.spills) == spills.spill_store_bytes
    assert sum(place.load_bytes for place in spills.spills) == spills.spill_load_bytes
    lines = {place.places[0][1] for place in spills.spills}
    assert 10 in lines
    assert lines <= set(range(1, 15))
    assert found["indexes"].stack_bytes > 0  # an array in local memory, which is no spill
    assert found["indexes"].spills == ()


@pytest.mark.nvcc
@pytest.mark.sass
def test_spills_are_told_from_an_array_beside_them(compiled: Compiled) -> None:
    assert compiled.cubin is not None
    both = with_spills(compiled)["both"]
    code = machine_code(compiled.cubin)
    assert not isinstance(code, Missing)
    spills = kernel_info(compiled.cubin.read_bytes())[both.mangled_name].spills
    uses = Counter(access.use for access in local_traffic(code[both.mangled_name], both, spills))
    assert uses[LocalPurpose.ARRAY] > 0
    assert uses[LocalPurpose.SPILL] == len(spills) > 0
    assert uses[LocalPurpose.UNKNOWN] == 0
    assert sum(place.store_bytes for place in both.spills) == both.spill_store_bytes


@pytest.mark.nvcc
def test_a_damaged_cubin_says_nothing_and_raises_nothing(compiled: Compiled) -> None:
    assert compiled.cubin is not None
    whole = compiled.cubin.read_bytes()
    for cut in range(0, len(whole), 997):
        kernel_info(whole[:cut])


@given(st.binary(max_size=200))
@examples(50)
def test_what_is_no_cubin_says_nothing(data: bytes) -> None:
    assert kernel_info(data) == {}
    kernel_info(b"\x7fELF\x02\x01" + data)
