"""A profile counts accesses at the widths and lines that ptxas gave them."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from warpwright.emulator.launch import ArrayArgument, Launch, run
from warpwright.emulator.program import Program, as_machine_code, translate
from warpwright.emulator.ptx.parse import parse
from warpwright.facts.model import AccessKind, Space
from warpwright.toolchain.machine_code import MemoryInstruction

TEXT = """
.version 9.0
.target sm_90
.address_size 64
.file 1 "/a.cu"
.visible .entry k(.param .u64 out)
{
    .reg .b64 %rd<4>;
    .reg .b32 %r<9>;
    .reg .f32 %f<9>;
    .shared .align 16 .b8 t[2048];
    ld.param.u64 %rd1, [out];
    mov.u32 %r1, %tid.x;
    mov.u32 %r2, t;
    mad.lo.s32 %r3, %r1, 16, %r2;
    .loc 1 5 1
    mov.f32 %f1, 0f3F800000;
    st.shared.f32 [%r3+4], %f1;
    st.shared.f32 [%r3], %f1;
    st.shared.f32 [%r3+8], %f1;
    st.shared.f32 [%r3+12], %f1;
    bar.sync 0;
    .loc 1 7 1
    ld.shared.f32 %f2, [%r3+4];
    .loc 1 8 1
    ld.shared.f32 %f3, [%r3+12];
    add.f32 %f4, %f2, %f3;
    mul.wide.u32 %rd2, %r1, 4;
    add.s64 %rd3, %rd1, %rd2;
    .loc 1 0 0
    st.global.f32 [%rd3], %f4;
    ret;
}
"""


def code(line: int, opcode: str, width: int) -> MemoryInstruction:
    space = Space.SHARED if opcode in {"LDS", "STS"} else Space.GLOBAL
    kind = AccessKind.LOAD if opcode == "LDS" else AccessKind.STORE
    return MemoryInstruction("/a.cu", line, opcode, space, kind, width, 0)


MACHINE = [code(5, "STS", 16), code(8, "LDS", 16), code(9, "STG", 4)]


def traffic(program: Program) -> Counter[tuple[int, str, int, int, int]]:
    """(line, space, width, requests, sectors or wavefronts), of one run of two warps, whose results are checked."""
    ran = run(program, Launch((1, 1, 1), (64, 1, 1)), [ArrayArgument("out", np.zeros(64, np.float32), "out")])
    assert ran.outputs["out"].tolist() == [2.0] * 64
    assert ran.faults == ()
    found: Counter[tuple[int, str, int, int, int]] = Counter()
    for (step, space), one in ran.tallies.traffic.items():
        place = program.steps[step].place
        assert place is not None
        if space != "const":
            found[place.line, space, one.bytes, one.requests, one.moved] += 1
    return found


def test_four_stores_of_words_are_one_of_sixteen_bytes() -> None:
    """Words 16 bytes apart are a 4-way conflict, four times over; as one access of 16 bytes they take four passes."""
    program = translate(parse(TEXT), "k")
    assert traffic(program) == {
        (5, "shared", 4, 2, 8): 4, (7, "shared", 4, 2, 8): 1, (8, "shared", 4, 2, 8): 1, (0, "global", 4, 2, 8): 1,
    }  # fmt: skip
    assert traffic(as_machine_code(program, MACHINE)) == {
        (5, "shared", 16, 2, 8): 1, (8, "shared", 16, 2, 8): 1, (9, "global", 4, 2, 8): 1,
    }  # fmt: skip


@pytest.mark.parametrize("machine", [[], [code(5, "STS", 4)] * 4, [code(6, "LDS", 16)]])
def test_what_the_machine_code_does_not_have_is_counted_as_the_ptx_has_it(machine: list[MemoryInstruction]) -> None:
    program = translate(parse(TEXT), "k")
    assert traffic(as_machine_code(program, machine)) == traffic(program)
