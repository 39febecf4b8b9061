"""Atomic sums of halves: each lane's turn rounds as the type does, and a packed pair is two sums."""

from __future__ import annotations

import numpy as np
import pytest
from warpwright.emulator.launch import ArrayArgument, Launch, ScalarArgument, run
from warpwright.emulator.program import translate
from warpwright.emulator.ptx.parse import parse

TEXT = """
.version 9.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 sums, .param .u64 found, .param .u32 mask)
{
    .reg .b64 %rd<9>;
    .reg .b32 %r<9>;
    .reg .b16 %h<4>;
    ld.param.u64 %rd1, [sums];
    ld.param.u64 %rd2, [found];
    ld.param.u32 %r2, [mask];
    mov.u32 %r1, %tid.x;
    and.b32 %r3, %r1, %r2;
    mul.wide.u32 %rd3, %r3, BYTES;
    add.s64 %rd4, %rd1, %rd3;
    mul.wide.u32 %rd5, %r1, BYTES;
    add.s64 %rd6, %rd2, %rd5;
    mov.BITS VALUE, ONE;
    atom.global.add.noftz.TYPE OLD, [%rd4], VALUE;
    st.global.BITS [%rd6], OLD;
    ret;
}
"""
F16_ONE, BF16_ONE = 0x3C00, 0x3F80


def sums(type_name: str, mask: int, start: int) -> tuple[list[int], list[int]]:
    """What is left in memory and what each of 32 lanes found, when each adds one (a pair: 1 and 2)."""
    packed = type_name.endswith("x2")
    one = BF16_ONE if type_name.startswith("bf16") else F16_ONE
    two = one + (0x80 if type_name.startswith("bf16") else 0x400)
    text = TEXT.replace("BYTES", "4" if packed else "2").replace("BITS", "b32" if packed else "b16")
    text = text.replace("TYPE", type_name).replace("VALUE", "%r4" if packed else "%h1")
    text = text.replace("OLD", "%r5" if packed else "%h2").replace("ONE", str(two << 16 | one if packed else one))
    dtype = np.uint32 if packed else np.uint16
    arguments = [
        ArrayArgument("sums", np.full(32, start, dtype)),
        ArrayArgument("found", np.zeros(32, dtype), "out"),
    ]
    scalar = ScalarArgument("mask", mask.to_bytes(4, "little"))
    ran = run(translate(parse(text), "k"), Launch((1, 1, 1), (32, 1, 1)), [*arguments, scalar])
    assert ran.faults == ()
    return ran.outputs["sums"].tolist(), ran.outputs["found"].tolist()


def test_lanes_with_places_of_their_own() -> None:
    assert sums("f16", 31, 0) == ([F16_ONE] * 32, [0] * 32)
    assert sums("bf16", 31, 0) == ([BF16_ONE] * 32, [0] * 32)
    assert sums("f16x2", 31, 0) == ([0x4000_3C00] * 32, [0] * 32)
    assert sums("bf16x2", 31, 0) == ([0x4000_3F80] * 32, [0] * 32)


@pytest.mark.parametrize(("type_name", "total"), [("f16", 0x5000), ("bf16", 0x4200), ("f16x2", 0x5400_5000)])
def test_lanes_that_share_a_place_take_turns(type_name: str, total: int) -> None:
    """32 ones are 32, and 32 twos are 64; each lane finds the sum before its own."""
    left, found = sums(type_name, 0, 0)
    assert left == [total] + [0] * 31
    assert len(set(found)) == 32
    assert found[0] == 0


def test_each_turn_rounds() -> None:
    """2048 + 1 is 2048 in f16, and 256 + 1 is 256 in bf16, as often as it is added."""
    assert sums("f16", 0, 0x6800)[0][0] == 0x6800
    assert sums("bf16", 0, 0x4380)[0][0] == 0x4380
