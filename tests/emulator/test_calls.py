"""Device functions: what is a call's own, and what all calls share."""

from __future__ import annotations

import numpy as np
import pytest
from warpwright.emulator.launch import ArrayArgument, Launch, run
from warpwright.emulator.program import translate
from warpwright.emulator.ptx.parse import parse

HEADER = ".version 8.4\n.target sm_90\n.address_size 64\n"
INNER = """
.func (.param .b32 r) inner(.param .b32 p) {
    .reg .b32 %r<2>;
    ld.param.u32 %r1, [p];
    add.u32 %r1, %r1, 100;
    st.param.b32 [r], %r1;
    ret;
}
"""
OUTER = """
.func (.param .b32 r) outer(.param .b32 p) {
    .reg .b32 %r<4>;
    {
        .param .b32 param0;
        st.param.b32 [param0], 7;
        .param .b32 retval0;
        call.uni (retval0), inner, (param0);
        ld.param.b32 %r1, [retval0];
    }
    ld.param.u32 %r2, [p];
    add.u32 %r3, %r1, %r2;
    st.param.b32 [r], %r3;
    ret;
}
"""
KERNEL = """
.visible .entry k(.param .u64 out) {
    .reg .b64 %rd<4>;
    .reg .b32 %r<4>;
    ld.param.u64 %rd1, [out];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd2, %r1, 4;
    add.s64 %rd3, %rd1, %rd2;
    {
        .param .b32 param0;
        st.param.b32 [param0], %r1;
        .param .b32 retval0;
        call.uni (retval0), outer, (param0);
        ld.param.b32 %r2, [retval0];
    }
    st.global.u32 [%rd3], %r2;
    ret;
}
"""


@pytest.mark.parametrize("threads", [1, 5, 64])
def test_a_parameter_is_read_after_a_call_inside_with_a_parameter_of_the_same_name(threads: int) -> None:
    program = translate(parse(HEADER + INNER + OUTER + KERNEL), "k")
    out = np.zeros(threads, np.uint32)
    ran = run(program, Launch((1, 1, 1), (threads, 1, 1)), [ArrayArgument("out", out, "out")])
    assert ran.outputs["out"].tolist() == [thread + 107 for thread in range(threads)]
    assert ran.faults == ()


def test_all_lanes_store_to_one_place_and_one_of_them_wins() -> None:
    kernel = KERNEL.replace("st.global.u32 [%rd3]", "st.global.u32 [%rd1]")
    program = translate(parse(HEADER + INNER + OUTER + kernel), "k")
    ran = run(program, Launch((1, 1, 1), (32, 1, 1)), [ArrayArgument("out", np.zeros(1, np.uint32), "out")])
    assert 107 <= ran.outputs["out"][0] < 139
