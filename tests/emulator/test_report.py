"""Faults as people read them: the line, the threads, the address, one sentence."""

from __future__ import annotations

import numpy as np
import pytest
from support.emulation import Emulated, emulate, emulate_text, kernel, words
from warpwright.emulator.launch import ArrayArgument
from warpwright.emulator.report import faults_of
from warpwright.facts.profile import FaultKind, Thread

WORD = "mul.wide.u32 %rd8, %r0, 4;\nadd.u64 %rd9, %rd0, %rd8;\n"


def sentences(result: Emulated) -> list[str]:
    return [f"{f.line}: {f.message}" for f in faults_of(result.program, result.run, {"a.cu": "a.cu"})]


@pytest.mark.parametrize(
    ("code", "message"),
    [
        (
            "ld.global.u32 %r1, [%rd9];",
            "3: Thread (50, 0, 0) of block (0, 0, 0) reads just past the end of x (200 bytes).",
        ),
        (
            "st.global.u32 [%rd9+12], %r0;",
            "3: Thread (47, 0, 0) of block (0, 0, 0) writes just past the end of x (200 bytes).",
        ),
        (
            "ld.global.u32 %r1, [%rd0+-8];",
            "3: Thread (0, 0, 0) of block (0, 0, 0) reads 8 bytes before x (200 bytes).",
        ),
        (
            "red.global.add.u32 [%rd9+2000], 1;",
            "3: Thread (0, 0, 0) of block (0, 0, 0) changes by an atomic 1,800 bytes past the end of x (200 bytes).",
        ),
        (
            "ld.global.u64 %rd3, [%rd9];",
            "3: Thread (1, 0, 0) of block (0, 0, 0) reads 8 bytes at an address that is not a multiple of 8.",
        ),
        (
            "ld.u32 %r1, [%rd8];",
            "3: Thread (0, 0, 0) of block (0, 0, 0) reads at an address that belongs to no array.",
        ),
        (
            "st.shared.u32 [tile+4096], %r1;",
            "3: Thread (0, 0, 0) of block (0, 0, 0) writes outside the block's 4,096 bytes of shared memory.",
        ),
        (
            "trap;",
            "3: Thread (0, 0, 0) of block (0, 0, 0) executes a trap.",
        ),
    ],
)
def test_what_ends_a_run(code: str, message: str) -> None:
    result = emulate(WORD + code, arrays=[words(50)])
    assert sentences(result) == [message]
    assert not result.run.is_complete


def test_outputs_are_as_far_as_the_run_came() -> None:
    result = emulate(WORD + "st.global.u32 [%rd0], 77;\nbar.sync 0;\nst.global.u32 [%rd9], 5;", arrays=[words(50)])
    assert not result.run.is_complete
    assert result.run.outputs["x"][0] in {77, 5}
    fault = faults_of(result.program, result.run, {})[-1]
    assert (fault.kind, fault.line, fault.array, fault.address) == (FaultKind.OUT_OF_BOUNDS, 5, "x", 200)
    assert fault.threads == (Thread((0, 0, 0), (50, 0, 0)),)
    assert fault.count == 14


def test_reads_of_what_nothing_wrote() -> None:
    out = ArrayArgument("y", np.zeros(64, np.uint32), "out")
    code = WORD + "setp.lt.u32 %p1, %r0, 60;\n@%p1 st.global.u8 [%rd9], %h1;\n@%p1 st.global.u8 [%rd9+1], %h1;\n"
    code += "ld.global.u16 %h2, [%rd9];\nbar.sync 0;\nld.global.u32 %r1, [%rd9];"
    result = emulate(code, arrays=[out])
    assert sentences(result) == [
        "6: Thread (60, 0, 0) of block (0, 0, 0) reads byte 240 of y, which nothing has written.",
        "8: Thread (0, 0, 0) of block (0, 0, 0) reads byte 0 of y, which nothing has written.",
    ]
    assert [f.count for f in result.run.faults] == [4, 64]
    shared = "st.shared.u32 [tile+4], 5;\nbar.sync 0;\nld.shared.v2.u32 {%r1, %r2}, [tile];"
    assert sentences(emulate(shared)) == [
        "3: Thread (0, 0, 0) of block (0, 0, 0) reads byte 0 of tile, which nothing has written."
    ]
    assert sentences(emulate(shared.replace("tile+4", "tile"))) == [
        "3: Thread (0, 0, 0) of block (0, 0, 0) reads byte 4 of tile, which nothing has written."
    ]


def test_races_say_both_lines_and_what_is_missing() -> None:
    shared = "shl.b32 %r1, %r0, 2;\nmov.u32 %r2, tile;\nadd.u32 %r3, %r2, %r1;\nxor.b32 %r4, %r3, {};\n"
    shared += "st.shared.u32 [%r3], %r0;\nld.shared.u32 %r5, [%r4];"
    assert sentences(emulate(shared.format(128))) == [
        "6: Thread (0, 0, 0) of block (0, 0, 0) reads byte 128 of tile (value 32), which thread (32, 0, 0) of the same "
        "block has written at line 5, with no __syncthreads() between."
    ]
    assert sentences(emulate(shared.format(4))) == [
        "6: Thread (0, 0, 0) of block (0, 0, 0) reads byte 4 of tile (value 1), which thread (1, 0, 0) of the same "
        "block has written at line 5, with no __syncwarp() between: the lanes of a warp run in no fixed order."
    ]
    assert sentences(emulate("st.shared.u32 [tile], %r0;\nbar.sync 0;\nld.shared.u32 %r1, [tile];")) == [
        "1: Thread (0, 0, 0) of block (0, 0, 0) and thread (63, 0, 0) of the same block write different values to "
        "byte 0 of tile (0 over 63) at once."
    ]
    blocks = "ld.global.u32 %r1, [%rd0];\nadd.u32 %r1, %r1, 1;\nst.global.u32 [%rd0], %r1;"
    result = emulate(blocks, block=1, grid=2, arrays=[words(1)])
    fault = faults_of(result.program, result.run, {})[0]
    assert fault.kind is FaultKind.GLOBAL_RACE
    assert fault.message == (
        "Thread (0, 0, 0) of block (0, 0, 0) writes byte 0 of x (1 over 0), which thread (0, 0, 0) of block (1, 0, 0) "
        "has read at line 1, and nothing orders the two blocks."
    )
    assert fault.other is not None and fault.other.line == 1


def test_calls_of_inlined_code_are_named() -> None:
    text = kernel("ld.shared.u32 %r1, [tile];").replace(
        "    .loc 1 1 1\n", "    .loc 1 7 1\n    .loc 1 3 5, function_name $L__info_string0, inlined_at 1 7 1\n"
    )
    text += ".section .debug_str\n{\n$L__info_string0:\n.b8 102,0\n}\n"
    result = emulate_text(text)
    assert sentences(result) == [
        "3: Thread (0, 0, 0) of block (0, 0, 0) reads byte 0 of tile, which nothing has written (called from line 7)."
    ]


def test_results_that_nobody_uses() -> None:
    own = "shl.b32 %r1, %r0, 2;\nmov.u32 %r2, tile;\nadd.u32 %r3, %r2, %r1;\n"
    unread = own + "st.shared.u32 [%r3+256], %r0;\nst.shared.u32 [%r3], %r0;\nld.shared.u32 %r4, [%r3];"
    assert sentences(emulate(unread, grid=3)) == ["4: No thread loads from tile what this line stores there."]
    may_be = unread + "\nsetp.gt.u32 %p1, %r0, 99;\n@%p1 bra END;\nbra OUT;\nEND:\nld.shared.u32 %r5, [%r3+256];\nOUT:"
    assert sentences(emulate(may_be, grid=3)) == []
    replaced = own + "st.shared.u32 [%r3], 0;\nst.shared.u32 [%r3], %r0;\nld.shared.u32 %r4, [%r3];"
    assert sentences(emulate(replaced)) == []
    counted = own + "st.shared.u32 [%r3], 0;\nred.shared.add.u32 [%r3], 1;\nld.shared.u32 %r4, [%r3];"
    assert sentences(emulate(counted)) == []
    out = ArrayArgument("y", np.zeros(64, np.uint32), "out")
    assert sentences(emulate("mov.u32 %r1, 5;", arrays=[out])) == ["0: The output y is never written."]
    assert sentences(emulate("st.global.u32 [%rd0], 5;", arrays=[out])) == []


def test_calls_of_functions_are_named() -> None:
    """`first` (line 10) calls `second` (line 20) at line 11; the kernel calls `first` at line 1."""
    functions = """
.func second() { .reg .b32 %r<4>; .loc 1 20 1
    ld.shared.u32 %r1, [tile];
    ret; }
.func first() { .loc 1 11 1
    call second, ();
    ret; }
.visible .entry k("""
    text = kernel("call first, ();").replace(".visible .entry k(", functions)
    text = text.replace("    .shared .align 16 .b8 tile[4096];\n", "")
    text = text.replace(".address_size 64\n", ".address_size 64\n.shared .align 16 .b8 tile[4096];\n")
    assert sentences(emulate_text(text)) == [
        "20: Thread (0, 0, 0) of block (0, 0, 0) reads byte 0 of tile, which nothing has written (called from line 11, "
        "from line 1)."
    ]


def test_a_part_of_a_warp_at_a_matrix_instruction() -> None:
    code = "mov.u32 %r2, tile;\nldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r1}, [%r2];"
    assert sentences(emulate(code, block=16)) == ["2: A matrix instruction is reached by a part of a warp."]
