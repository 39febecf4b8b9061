"""Barriers in shared memory and thread block clusters: who waits, for how long, and what that orders."""

from __future__ import annotations

import numpy as np
import pytest
from support.emulation import Emulated, emulate, emulate_text, kernel
from warpwright.emulator.launch import ArrayArgument
from warpwright.emulator.program import translate
from warpwright.emulator.ptx.parse import parse
from warpwright.emulator.report import faults_of
from warpwright.emulator.translate.registry import UnsupportedError
from warpwright.facts.profile import FaultKind

INIT = """
setp.ne.u32 %p1, %r0, 0;
mov.u32 %r10, 4096;
mov.u32 %r11, tile;
add.u32 %r10, %r11, 2048;
@!%p1 mbarrier.init.shared.b64 [%r10], {count};
bar.sync 0;
shl.b32 %r12, %r0, 2;
add.u32 %r13, %r11, %r12;
"""
"""%r10 is the barrier, %r13 the thread's word of `tile`, %r14 that of the thread at the other end of 64."""
MIRROR = """
xor.b32 %r15, %r0, 63;
shl.b32 %r15, %r15, 2;
add.u32 %r14, %r11, %r15;
"""
WAIT = """
{label}:
mbarrier.{ask}.shared.b64 %p2, [%r10], %rd5;
@!%p2 bra {label};
"""


def sentences(result: Emulated) -> list[str]:
    return [f"{f.kind} {f.line}: {f.message}" for f in faults_of(result.program, result.run, {"a.cu": "a.cu"})]


def zeros(count: int = 64) -> ArrayArgument:
    return ArrayArgument("x", np.zeros(count, np.uint32), "out")


OUT = """
mul.wide.u32 %rd9, %r0, 4;
add.u64 %rd9, %rd0, %rd9;
"""


@pytest.mark.parametrize("ask", ["try_wait", "test_wait"])
def test_what_was_written_before_an_arrival_is_read_behind_the_wait(ask: str) -> None:
    code = INIT.format(count=64) + MIRROR + OUT
    code += "st.shared.u32 [%r13], %r0;\nmbarrier.arrive.shared::cta.b64 %rd5, [%r10];\n"
    code += WAIT.format(label="W", ask=ask) + "ld.shared.u32 %r20, [%r14];\nst.global.u32 [%rd9], %r20;\n"
    result = emulate(code, arrays=[zeros()])
    assert result.found == []
    assert result.run.outputs["x"].tolist() == list(range(63, -1, -1))


def test_a_read_between_arrival_and_wait_is_a_race() -> None:
    code = INIT.format(count=64) + MIRROR + OUT
    code += "st.shared.u32 [%r13], %r0;\nmbarrier.arrive.shared::cta.b64 %rd5, [%r10];\n"
    code += "ld.shared.u32 %r20, [%r14];\n" + WAIT.format(label="W", ask="try_wait") + "st.global.u32 [%rd9], %r20;\n"
    result = emulate(code, arrays=[zeros()])
    assert [kind for kind, _, _ in result.races] == ["shared-memory-race"]


def test_phases_follow_each_other_and_the_parity_tells_them_apart() -> None:
    turns = "".join(
        f"add.u32 %r2{turn}, %r0, {turn};\nst.shared.u32 [%r13], %r2{turn};\n"
        "mbarrier.arrive.shared::cta.b64 %rd5, [%r10];\n"
        f"W{turn}:\nmbarrier.try_wait.parity.shared.b64 %p2, [%r10], {turn % 2};\n@!%p2 bra W{turn};\n"
        "ld.shared.u32 %r30, [%r14];\n"
        "mbarrier.arrive.shared::cta.b64 %rd5, [%r11+2056];\n"
        f"V{turn}:\nmbarrier.try_wait.parity.shared.b64 %p2, [%r11+2056], {turn % 2};\n@!%p2 bra V{turn};\n"
        for turn in range(4)
    )
    second = "@!%p1 mbarrier.init.shared.b64 [%r11+2056], 64;\n"
    code = INIT.format(count=64).replace("bar.sync", second + "bar.sync") + MIRROR + OUT + turns
    result = emulate(code + "st.global.u32 [%rd9], %r30;\n", arrays=[zeros()])
    assert result.found == []
    assert result.run.outputs["x"].tolist() == [63 - n + 3 for n in range(64)]


@pytest.mark.parametrize("ask", ["try_wait", "test_wait"])
def test_too_few_arrivals_are_a_deadlock_that_is_found_soon(ask: str) -> None:
    code = INIT.format(count=96) + "mbarrier.arrive.shared::cta.b64 %rd5, [%r10];\n"
    code += WAIT.format(label="W", ask=ask).replace("@!%p2", "mov.u64 %rd7, %globaltimer;\n@!%p2")
    result = emulate(code, arrays=[zeros()])
    assert result.run.lane_steps < 1_000_000
    (said,) = [each for each in sentences(result) if each.startswith(FaultKind.DEADLOCK)]
    assert "64 of 96 arrivals have been made at this barrier, and the others are never made" in said


def test_who_drops_out_is_not_expected_again() -> None:
    code = INIT.format(count=64) + "setp.lt.u32 %p3, %r0, 32;\n@%p3 bra FIRST;\n"
    code += "mbarrier.arrive_drop.shared.b64 _, [%r10];\nbra.uni END;\nFIRST:\n"
    for turn in range(2):
        code += "mbarrier.arrive.shared::cta.b64 %rd5, [%r10];\n" + WAIT.format(label=f"W{turn}", ask="try_wait")
    assert emulate(code + "END:\n").found == []


def test_a_barrier_that_nobody_made_is_memory_that_nobody_wrote() -> None:
    code = "mov.u32 %r10, tile;\nmbarrier.arrive.shared::cta.b64 %rd5, [%r10];\n"
    assert [kind for kind, _, _ in emulate(code).found] == ["uninitialised-read"]


def test_bytes_are_waited_for_as_well() -> None:
    code = INIT.format(count=64) + "mbarrier.arrive.expect_tx.shared::cta.b64 %rd5, [%r10], 4;\n"
    stuck = emulate(code + WAIT.format(label="W", ask="try_wait"))
    assert [kind for kind, _, _ in stuck.found] == ["deadlock"]
    code += "bar.sync 0;\n@!%p1 mbarrier.complete_tx.shared.b64 [%r10], 256;\n"
    assert emulate(code + WAIT.format(label="W", ask="try_wait")).found == []


def test_a_phase_that_ends_leaves_a_barrier_that_waits_for_bytes() -> None:
    code = INIT.format(count=1).replace("bar.sync", "@!%p1 mbarrier.init.shared.b64 [%r11+2056], 1;\nbar.sync")
    code += "@%p1 bra END;\nmbarrier.arrive.expect_tx.shared::cta.b64 %rd5, [%r10], 4;\n"
    code += "mbarrier.arrive.shared::cta.b64 %rd6, [%r11+2056];\n"
    stuck = emulate(code + WAIT.format(label="W", ask="try_wait") + "END:\n")
    assert [kind for kind, _, _ in stuck.found] == ["deadlock"]


def test_a_barrier_made_after_another_has_ended_is_a_barrier_of_its_own() -> None:
    code = "mov.u32 %r11, tile;\nsetp.ne.u32 %p1, %r0, 0;\n@%p1 bra END;\n"
    code += "mbarrier.init.shared.b64 [%r11], 1;\nmbarrier.init.shared.b64 [%r11+8], 5;\n"
    code += "mbarrier.inval.shared.b64 [%r11];\nmbarrier.init.shared.b64 [%r11+16], 1;\n"
    code += "mbarrier.arrive.shared::cta.b64 %rd5, [%r11+16];\nmov.u32 %r10, tile;\nadd.u32 %r10, %r10, 8;\n"
    code += "mbarrier.arrive.shared::cta.b64 %rd5, [%r10];\n" + WAIT.format(label="W", ask="try_wait") + "END:\n"
    (said,) = sentences(emulate(code))
    assert "1 of 5 arrivals have been made at this barrier" in said
    ended = code.replace("[%r11+16];\nmov", "[%r11];\nmov")
    assert [kind for kind, _, _ in emulate(ended).found] == ["uninitialised-read"]


def clusters(code: str, blocks: int, grid: int = 4) -> Emulated:
    """Run a kernel whose clusters have so many blocks."""
    text = kernel(code, pointers=1).replace(")\n{", f")\n.explicitcluster\n.reqnctapercluster {blocks}, 1, 1\n{{", 1)
    return emulate_text(text, grid=grid, block=64, arrays=[zeros(grid)])


NEIGHBOUR = """
mov.u32 %r11, tile;
mov.u32 %r16, %cluster_ctarank;
setp.ne.u32 %p1, %r0, 0;
@!%p1 st.shared.u32 [tile], %r39;
{before}
xor.b32 %r17, %r16, 1;
mapa.shared::cluster.u32 %r18, %r11, %r17;
@!%p1 ld.shared::cluster.u32 %r20, [%r18];
mul.wide.u32 %rd9, %r39, 4;
add.u64 %rd9, %rd0, %rd9;
@!%p1 st.global.u32 [%rd9], %r20;
{after}
"""
MEET = "barrier.cluster.arrive;\nbarrier.cluster.wait;"


def test_blocks_of_a_cluster_read_each_others_shared_memory() -> None:
    result = clusters(NEIGHBOUR.format(before=MEET, after=MEET), 2)
    assert result.found == []
    assert result.run.outputs["x"].tolist() == [1, 0, 3, 2]


def test_without_the_barrier_of_the_cluster_that_is_a_race() -> None:
    result = clusters(NEIGHBOUR.format(before="bar.sync 0;", after=MEET), 2)
    assert "shared-memory-race" in [kind for kind, _, _ in result.found]


def test_an_address_of_a_block_that_the_cluster_does_not_have() -> None:
    code = NEIGHBOUR.format(before=MEET, after=MEET).replace("xor.b32 %r17, %r16, 1", "mov.u32 %r17, 2")
    assert [kind for kind, _, _ in clusters(code, 2).found] == ["out-of-bounds"]


def test_blocks_that_end_are_not_waited_for_and_that_is_told() -> None:
    code = "mov.u32 %r16, %cluster_ctarank;\nsetp.ne.u32 %p1, %r16, 0;\n@%p1 bra END;\n" + MEET + "\nEND:\n"
    result = clusters(code, 2)
    assert result.run.is_complete
    assert [kind for kind, _, _ in result.found if kind != FaultKind.UNUSED_RESULT] == ["barrier-not-reached"]


def test_who_arrives_and_ends_is_counted_once() -> None:
    code = (
        "mov.u32 %r16, %cluster_ctarank;\nsetp.eq.u32 %p1, %r16, 1;\nsetp.gt.u32 %p2, %r16, 1;\nmov.u32 %r11, tile;\n"
    )
    code += "@%p1 barrier.cluster.arrive;\n@%p1 ret;\n@%p2 bra READ;\n"
    code += f"setp.ne.u32 %p3, %r0, 0;\n@!%p3 st.shared.u32 [tile], %r16;\n{MEET}\nbra.uni END;\n"
    code += f"READ:\n{MEET}\nmapa.shared::cluster.u32 %r18, %r11, 0;\nld.shared::cluster.u32 %r20, [%r18];\nEND:\n"
    assert [kind for kind, _, _ in clusters(code, 4).found if kind != FaultKind.UNUSED_RESULT] == []


def test_a_cluster_whose_size_the_launch_gives_is_refused() -> None:
    module = parse(kernel(MEET))
    with pytest.raises(UnsupportedError, match="a cluster whose size only the launch gives is not emulated"):
        translate(module, "k")
