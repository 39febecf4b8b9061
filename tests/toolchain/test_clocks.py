"""Reads of a clock are seen in machine code of each generation, and nothing else is taken for one."""

from __future__ import annotations

import pytest
from warpwright.syntax.source import Source
from warpwright.toolchain.clocks import clocks_read
from warpwright.toolchain.compile import compile_cubin

pytestmark = pytest.mark.nvcc

READS = {
    "clock64()": {"clock"},
    "clock()": {"clock"},
    "globaltimer()": {"globaltimer"},
    "threadIdx.x + 0x50 + smid()": set(),
}
KERNEL = """
__device__ unsigned long long globaltimer() {{
    unsigned long long t; asm volatile("mov.u64 %0, %globaltimer;" : "=l"(t)); return t;
}}
__device__ unsigned smid() {{ unsigned s; asm volatile("mov.u32 %0, %smid;" : "=r"(s)); return s; }}
__global__ void k(long long* out) {{ __nanosleep(100); out[blockIdx.x * blockDim.x + threadIdx.x] = {}; }}
"""


@pytest.mark.parametrize("arch", ["sm_75", "sm_90", "sm_120"])
@pytest.mark.parametrize("expression", READS)
def test_clocks(arch: str, expression: str) -> None:
    compiled = compile_cubin(Source("/nowhere/k.cu", KERNEL.format(expression).encode()), arch=arch)
    assert compiled.cubin is not None, compiled.reason
    assert clocks_read(compiled.cubin.read_bytes()) == READS[expression]


@pytest.mark.parametrize("content", [b"", b"\x7fELF\x02", b"\x7fELF\x02" + bytes(100), b"PTX"])
def test_what_is_no_cubin_reads_none(content: bytes) -> None:
    assert clocks_read(content) == frozenset()
