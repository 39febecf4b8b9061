"""`printf` and `assert` in device code."""

from __future__ import annotations

import numpy as np
import pytest
from warpwright.emulator.launch import ArrayArgument, Launch, run
from warpwright.emulator.program import translate
from warpwright.emulator.ptx.parse import parse
from warpwright.facts.profile import FaultKind
from warpwright.syntax.source import Source
from warpwright.toolchain.compile import compile_ptx

TEXT = r"""
#include <cassert>
#include <cstdio>
__global__ void k(const int* a, const char* unused) {
    if (threadIdx.x < 2) printf("%s %2d: %.3f %x %lld%%\n", "lane", threadIdx.x, a[threadIdx.x] * 0.5, a[0], 1ll << 40);
    assert(a[threadIdx.x] < 7);
}
"""


@pytest.mark.nvcc
def test_prints_and_asserts() -> None:
    compiled = compile_ptx(Source("prints.cu", TEXT.encode()))
    program = translate(parse(compiled.text), compiled.kernels["k"])
    a = np.array([3, 5, 7, 9] * 8, dtype=np.int32)
    result = run(
        program, Launch((1, 1, 1), (32, 1, 1)), [ArrayArgument("a", a, "in"), ArrayArgument("unused", a, "in")]
    )
    assert result.printed == ("lane  0: 1.500 3 1099511627776%\n", "lane  1: 2.500 3 1099511627776%\n")
    (fault,) = result.faults
    assert fault.kind is FaultKind.ASSERTION
    assert "a[threadIdx.x] < 7" in fault.text
    assert fault.thread is not None
    assert fault.thread.thread == (2, 0, 0)
    assert not result.is_complete
