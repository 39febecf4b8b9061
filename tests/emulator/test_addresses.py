"""What a program may do with the addresses that it is handed, and what makes its result hang on where arrays lie."""

from __future__ import annotations

import pytest
from warpwright.emulator.addresses import looks_at_addresses
from warpwright.emulator.ptx.parse import parse
from warpwright.syntax.source import Source
from warpwright.toolchain.compile import compile_ptx

pytestmark = pytest.mark.nvcc

KERNEL = """
extern "C" __global__ void {name}(const float* in, float* out, const float* end, unsigned long long n) {{
    unsigned long long i = blockIdx.x * (unsigned long long)blockDim.x + threadIdx.x;
    unsigned long long a = (unsigned long long)in, b = (unsigned long long)out;
    if (i < n) {text}
}}
"""
ALLOWED = {
    "plain": "out[i] = in[i] + in[i * n >> 3];",
    "aligned": "{ if ((a & 15) == 0) *(float4*)(out + 4 * i) = *(const float4*)(in + 4 * i); else out[i] = in[i]; }",
    "both_aligned": "if (((a | b) & 15) == 0) out[i] = in[i];",
    "aligned_by_remainder": "if (a % 16 == 0) out[i] = in[i];",
    "elements_to_alignment": "{ unsigned k = (16 - (unsigned)(a & 15)) / 4; if (i < k) out[i] = in[i]; }",
    "aligned_down": "{ const float* p = (const float*)(a & ~15ull); out[i] = p[i]; }",
    "null": "out[i] = in ? in[i] : 0.0f;",
    "walked": "for (const float* p = in; p != end; p++) out[i] += *p;",
    "difference": "out[i] = in[(end - in) - 1 - i];",
    "overlapping": "if (out + n <= in || in + n <= out) out[i] = in[i];",
    "chosen": "{ const float* p = n > 7 ? in : end; out[i] = p[i]; }",
    "large_number": "if (n >> 40 == 0) out[i] = in[i];",
}
ASKING = {
    "high_bits": "if (a >> 40 == 3) out[i] = in[i];",
    "middle_bits": "if ((b & 0x100000) == 0) out[i] = in[i];",
    "odd_remainder": "if (a % 3 == 0) out[i] = in[i];",
    "lower_half": "if ((unsigned)a > 1000u) out[i] = in[i];",
    "as_an_index": "out[i] = in[(b >> 20) & 1];",
    "as_a_number": "out[i] = in[i] + (float)(a >> 30);",
    "written": "{ out[i] = in[i]; ((unsigned long long*)out)[n] = a; }",
    "folded": "if (((a ^ b) * 7 >> 33) & 1) out[i] = in[i];",
    "number_beyond": "if (a > 0x7f0000000000ull) out[i] = in[i];",
}


def test_what_hangs_on_where_arrays_lie() -> None:
    kernels = {**ALLOWED, **ASKING}
    text = "".join(KERNEL.format(name=name, text=text) for name, text in kernels.items())
    compiled = compile_ptx(Source("/nowhere/k.cu", text.encode()))
    assert compiled.ok, compiled.reason
    assert set(looks_at_addresses(parse(compiled.text))) == {*ASKING}
