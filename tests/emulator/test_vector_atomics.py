"""Atomic sums of vectors: each element is changed by itself."""

from __future__ import annotations

import numpy as np
from warpwright.emulator.launch import ArrayArgument, Launch, run
from warpwright.emulator.program import translate
from warpwright.emulator.ptx.parse import parse

TEXT = """
.version 9.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 sums, .param .u64 found)
{
    .reg .b64 %rd<9>;
    .reg .b32 %r<9>;
    .reg .f32 %f<9>;
    ld.param.u64 %rd1, [sums];
    ld.param.u64 %rd2, [found];
    mov.u32 %r1, %tid.x;
    and.b32 %r3, %r1, 1;
    mul.wide.u32 %rd3, %r3, 16;
    add.s64 %rd4, %rd1, %rd3;
    mul.wide.u32 %rd5, %r1, 16;
    add.s64 %rd6, %rd2, %rd5;
    mov.f32 %f1, 0f3F800000;
    mov.f32 %f2, 0f40000000;
    atom.global.add.v4.f32 {%f5, %f6, %f7, %f8}, [%rd4], {%f1, %f2, %f2, %f1};
    st.global.v4.f32 [%rd6], {%f5, %f6, %f7, %f8};
    red.global.add.v2.f32 [%rd4+8], {%f1, %f2};
    ret;
}
"""


def test_each_element_of_a_vector_is_added_to() -> None:
    sums, found = np.arange(8, dtype=np.float32), np.zeros(16, np.float32)
    arguments = [ArrayArgument("sums", sums), ArrayArgument("found", found, "out")]
    ran = run(translate(parse(TEXT), "k"), Launch((1, 1, 1), (4, 1, 1)), arguments)
    assert ran.faults == ()
    assert ran.outputs["sums"].tolist() == [2, 5, 8, 9, 6, 9, 12, 13]
    assert ran.outputs["found"].reshape(4, 4)[:2].tolist() == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert ran.outputs["found"].reshape(4, 4)[2].tolist() == [1, 3, 4, 4]
