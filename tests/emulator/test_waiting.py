"""Threads that wait for each other: they come to run, or the run says who never came."""

from __future__ import annotations

import numpy as np
import pytest
from support.emulation import Emulated, emulate, words
from warpwright.emulator.launch import ArrayArgument
from warpwright.emulator.report import faults_of
from warpwright.facts.profile import FaultKind, Thread


def zeros(count: int, name: str = "x") -> ArrayArgument:
    return ArrayArgument(name, np.zeros(count, np.uint32))


def sentences(result: Emulated) -> list[str]:
    return [f"{f.kind} {f.line}: {f.message}" for f in faults_of(result.program, result.run, {"a.cu": "a.cu"})]


SOON = 1_000_000
"""Lane-steps, of the 20 million after which a run is given up: a deadlock is found, not waited for."""

LOCK = """
TRY:
atom.acquire.gpu.global.cas.b32 %r1, [%rd0], 0, 1;
setp.ne.u32 %p1, %r1, 0;
@%p1 bra TRY;
ld.volatile.global.u32 %r2, [%rd0+4];
add.u32 %r2, %r2, 1;
st.volatile.global.u32 [%rd0+4], %r2;
membar.gl;
st.release.gpu.global.u32 [%rd0], 0;
"""


@pytest.mark.parametrize(("block", "grid"), [(1, 1), (64, 1), (1, 300), (96, 5)])
def test_a_lock_that_each_thread_takes(block: int, grid: int) -> None:
    result = emulate(LOCK, block=block, grid=grid, arrays=[zeros(2)], most_lane_steps=2_000_000_000)
    assert result.run.is_complete
    assert result.run.outputs["x"].tolist() == [0, block * grid]


def test_a_lock_in_one_block_of_many_batches() -> None:
    result = emulate(
        "setp.ne.u32 %p2, %r0, 0;\n@%p2 bra END;\n" + LOCK + "END:\n",
        block=1024,
        grid=100,
        arrays=[zeros(2)],
        most_lane_steps=2_000_000_000,
    )
    assert result.run.outputs["x"].tolist() == [0, 100]


@pytest.mark.parametrize("load", ["ld.volatile.shared.u32", "ld.acquire.cta.shared.u32"])
def test_a_flag_that_a_later_warp_sets(load: str) -> None:
    code = f"""
    setp.eq.u32 %p1, %r0, 0;
    @%p1 st.shared.u32 [tile], 0;
    bar.sync 0;
    setp.ge.u32 %p1, %r0, 32;
    @%p1 bra SET;
    WAIT:
    {load} %r1, [tile];
    setp.eq.u32 %p2, %r1, 0;
    @%p2 bra WAIT;
    bra END;
    SET:
    st.volatile.shared.u32 [tile], 1;
    END:
    st.global.u32 [%rd0], 7;
    """
    result = emulate(code, arrays=[zeros(1)])
    assert result.run.is_complete
    assert result.run.outputs["x"].tolist() == [7]


def test_a_flag_that_a_later_block_sets() -> None:
    """Block 0 waits for block 199, of another batch; what is behind the flag is ordered by fence and acquire."""
    code = """
    setp.eq.u32 %p1, %r39, 0;
    @%p1 bra WAIT;
    setp.ne.u32 %p1, %r39, 199;
    @%p1 bra END;
    st.global.u32 [%rd0+4], 5;
    membar.gl;
    st.volatile.global.u32 [%rd0], 1;
    bra END;
    WAIT:
    ld.acquire.gpu.global.u32 %r1, [%rd0];
    setp.eq.u32 %p2, %r1, 0;
    @%p2 bra WAIT;
    ld.global.u32 %r2, [%rd0+4];
    st.global.u32 [%rd0+8], %r2;
    END:
    """
    result = emulate(code, block=256, grid=200, arrays=[zeros(3)])
    assert (result.found, result.run.is_complete) == ([], True)
    assert result.run.outputs["x"].tolist() == [1, 5, 5]


def test_a_barrier_of_the_whole_grid() -> None:
    """As cooperative groups have it: all blocks write, meet, and read what their neighbour wrote."""
    code = """
    mul.wide.u32 %rd2, %r39, 4;
    add.u64 %rd3, %rd1, %rd2;
    st.global.u32 [%rd3], %r39;
    bar.sync 0;
    setp.ne.u32 %p1, %r0, 0;
    @%p1 bra MET;
    fence.acq_rel.gpu;
    atom.add.relaxed.gpu.global.u32 %r1, [%rd0], 1;
    WAIT:
    ld.acquire.gpu.global.u32 %r2, [%rd0];
    setp.lt.u32 %p2, %r2, 200;
    @%p2 bra WAIT;
    MET:
    bar.sync 0;
    xor.b32 %r3, %r39, 1;
    mul.wide.u32 %rd4, %r3, 4;
    add.u64 %rd5, %rd1, %rd4;
    ld.global.u32 %r4, [%rd5];
    """
    result = emulate(code, block=512, grid=200, arrays=[zeros(1), zeros(200, "y")])
    assert (result.found, result.run.is_complete) == ([], True)
    unordered = emulate(
        code.replace("fence.acq_rel.gpu;", "add.u32 %r9, %r0, 1;"),
        block=512,
        grid=200,
        arrays=[zeros(1), zeros(200, "y")],
    )
    assert unordered.found == [("global-memory-race", 18, 3)]


def test_each_block_waits_for_the_one_before_it() -> None:
    """Decoupled look-back over 300 blocks."""
    code = """
    setp.ne.u32 %p1, %r0, 0;
    @%p1 bra END;
    mul.wide.u32 %rd2, %r39, 4;
    add.u64 %rd3, %rd0, %rd2;
    setp.eq.u32 %p2, %r39, 0;
    mov.u32 %r2, 0;
    @%p2 bra PUBLISH;
    WAIT:
    ld.acquire.gpu.global.u32 %r2, [%rd3+-4];
    setp.eq.u32 %p3, %r2, 0;
    @%p3 bra WAIT;
    PUBLISH:
    add.u32 %r3, %r2, 1;
    st.release.gpu.global.u32 [%rd3], %r3;
    END:
    """
    result = emulate(code, block=128, grid=300, arrays=[zeros(300)], most_lane_steps=1_000_000_000)
    assert result.found == []
    assert result.run.outputs["x"].tolist() == list(range(1, 301))


def test_a_flag_that_nobody_sets() -> None:
    spin = (
        "add.u32 %r5, %r0, 1;\nWAIT:\nld.volatile.global.u32 %r1, [%rd0+8];\nsetp.eq.u32 %p1, %r1, 0;\n@%p1 bra WAIT;"
    )
    result = emulate(spin, arrays=[zeros(4)], grid=3)
    assert sentences(result) == [
        "deadlock 3: Thread (0, 0, 0) of block (0, 0, 0) goes round a loop until byte 8 of x changes, and no thread "
        "changes it any more: 192 threads go round such a loop."
    ]
    assert not result.run.is_complete
    assert result.run.lane_steps < SOON


def test_loops_that_change_nothing_and_wait_for_nothing() -> None:
    """The compiler makes such a loop of `while (!flag);` where `flag` is not volatile."""
    for loop in ("WAIT:\nbra WAIT;", "WAIT:\nmov.u32 %r2, 5;\nld.global.u32 %r1, [%rd0];\nbra WAIT;"):
        result = emulate("setp.eq.u32 %p2, %r0, 7;\n@!%p2 bra END;\n" + loop + "\nEND:\n", arrays=[words(1)])
        (fault,) = result.run.faults
        assert (fault.kind, fault.thread, fault.count) == (FaultKind.DEADLOCK, Thread((0, 0, 0), (7, 0, 0)), 1)
        assert result.run.lane_steps < SOON


def test_what_changes_in_each_turn_is_not_judged() -> None:
    counts = "WAIT:\nadd.u32 %r1, %r1, 2;\nsetp.ne.u32 %p1, %r1, 1;\n@%p1 bra WAIT;"
    assert emulate(counts, block=1).found == [("step-limit", 2, None)]
    gives_up = """
    WAIT:
    add.u32 %r1, %r1, 1;
    setp.gt.u32 %p2, %r1, 2000;
    @%p2 bra END;
    ld.volatile.global.u32 %r2, [%rd0];
    setp.eq.u32 %p1, %r2, 0;
    @%p1 bra WAIT;
    END:
    st.global.u32 [%rd0+4], %r1;
    """
    result = emulate(gives_up, grid=3, arrays=[zeros(2)], most_lane_steps=1_000_000_000)
    assert (result.run.is_complete, result.run.outputs["x"].tolist()) == (True, [0, 2001])
    looks_at_the_clock = """
    mov.u64 %rd5, %clock64;
    add.u64 %rd5, %rd5, 2000000;
    WAIT:
    ld.volatile.global.u32 %r2, [%rd0];
    setp.ne.u32 %p1, %r2, 0;
    @%p1 bra END;
    mov.u64 %rd6, %clock64;
    setp.lt.u64 %p2, %rd6, %rd5;
    mov.u64 %rd6, 0;
    @%p2 bra WAIT;
    END:
    """
    assert emulate(looks_at_the_clock, arrays=[zeros(1)], most_lane_steps=1_000_000_000).run.is_complete


def test_threads_that_take_locks_and_give_them_back_in_vain_are_not_judged() -> None:
    """Each holds one lock and tries the other's: on a GPU they go on sooner or later, as they do not run in step."""
    code = """
    and.b32 %r1, %r0, 1;
    shl.b32 %r2, %r1, 2;
    cvt.u64.u32 %rd2, %r2;
    add.u64 %rd3, %rd0, %rd2;
    xor.b32 %r2, %r2, 4;
    cvt.u64.u32 %rd2, %r2;
    add.u64 %rd4, %rd0, %rd2;
    TRY:
    atom.global.exch.b32 %r5, [%rd3], 1;
    bar.warp.sync 3;
    atom.global.cas.b32 %r6, [%rd4], 0, 1;
    bar.warp.sync 3;
    st.volatile.global.u32 [%rd3], 0;
    bar.warp.sync 3;
    setp.ne.u32 %p1, %r6, 0;
    @%p1 bra TRY;
    """
    assert [kind for kind, *_ in emulate(code, block=2, arrays=[zeros(2)]).found if "race" not in kind] == [
        "step-limit"
    ]


def test_a_lock_whose_holder_waits_for_its_warp() -> None:
    code = LOCK.replace("ld.volatile.global.u32 %r2, [%rd0+4];", "bar.warp.sync 0xffffffff;\nmov.u32 %r2, 3;")
    result = emulate(code, block=32, grid=2, arrays=[zeros(2)])
    assert sentences(result) == [
        "deadlock 2: Thread (1, 0, 0) of block (0, 0, 0) goes round a loop until byte 0 of x changes, and no thread "
        "changes it any more: 63 threads go round such a loop, 1 waits at a barrier; thread (0, 0, 0) of block "
        "(0, 0, 0) waits at line 5."
    ]
    assert result.run.lane_steps < SOON


def test_a_flag_that_is_set_behind_the_barrier_of_whoever_waits_for_it() -> None:
    code = """
    setp.eq.u32 %p1, %r0, 0;
    @%p1 st.shared.u32 [tile], 0;
    bar.sync 0;
    setp.ne.u32 %p1, %r0, 0;
    @%p1 bra MEET;
    WAIT:
    ld.volatile.shared.u32 %r1, [tile];
    setp.eq.u32 %p2, %r1, 0;
    @%p2 bra WAIT;
    MEET:
    bar.sync 0;
    st.volatile.shared.u32 [tile], 1;
    """
    result = emulate(code, block=96, grid=2)
    assert sentences(result) == [
        "deadlock 7: Thread (0, 0, 0) of block (0, 0, 0) goes round a loop until byte 0 of tile changes, and no thread "
        "changes it any more: 2 threads go round such a loop, 190 wait at a barrier; thread (1, 0, 0) of block "
        "(0, 0, 0) waits at line 11."
    ]


def test_blocks_that_wait_for_each_other_before_they_say_so() -> None:
    """Blocks 0 and 199, of different batches."""
    code = """
    setp.ne.u32 %p1, %r0, 0;
    @%p1 bra END;
    rem.u32 %r1, %r39, 199;
    setp.ne.u32 %p1, %r1, 0;
    @%p1 bra END;
    setp.eq.u32 %p2, %r39, 0;
    selp.u64 %rd2, 0, 4, %p2;
    add.u64 %rd3, %rd0, %rd2;
    sub.u64 %rd2, 4, %rd2;
    add.u64 %rd4, %rd0, %rd2;
    WAIT:
    ld.acquire.gpu.global.u32 %r2, [%rd3];
    setp.eq.u32 %p3, %r2, 0;
    @%p3 bra WAIT;
    st.release.gpu.global.u32 [%rd4], 1;
    END:
    """
    result = emulate(code, block=256, grid=200, arrays=[zeros(2)])
    assert result.found == [("deadlock", 12, None)]
    assert "2 threads go round such a loop" in sentences(result)[0]
    assert (
        emulate(code.replace("ne.u32 %p1, %r1, 0", "ge.u32 %p1, %r0, 0"), block=256, grid=200, arrays=[zeros(2)]).found
        == []
    )


def test_a_barrier_of_more_blocks_than_a_gpu_holds() -> None:
    code = """
    setp.ne.u32 %p1, %r0, 0;
    @%p1 bra END;
    atom.add.relaxed.gpu.global.u32 %r1, [%rd0], 1;
    WAIT:
    ld.acquire.gpu.global.u32 %r2, [%rd0];
    setp.lt.u32 %p2, %r2, 400;
    @%p2 bra WAIT;
    END:
    """
    result = emulate(code, block=1024, grid=400, arrays=[zeros(1)], most_lane_steps=1_000_000_000)
    (said,) = sentences(result)
    assert said.endswith("go round such a loop, 112 blocks start only when others have ended.")
    assert emulate(code.replace("400", "200"), block=1024, grid=200, arrays=[zeros(1)]).run.is_complete


def test_a_reader_waits_at_syncwarp_for_a_writer_that_comes_later() -> None:
    """Lanes but 0 come to line 4 first and wait; lane 0 writes and comes to line 10."""
    code = """
    setp.eq.u32 %p1, %r0, 0;
    @%p1 bra WRITE;
    mov.u32 %r9, 0;
    bar.warp.sync 0xffffffff;
    ld.shared.u32 %r1, [tile];
    st.global.u32 [%rd0], %r1;
    bra END;
    WRITE:
    st.shared.u32 [tile], 42;
    bar.warp.sync 0xffffffff;
    END:
    """
    result = emulate(code, block=32, arrays=[zeros(1)])
    assert result.found == []
    assert result.run.outputs["x"].tolist() == [42]


def test_lanes_that_ended_are_not_waited_for() -> None:
    code = """
    setp.ge.u32 %p1, %r0, 20;
    @%p1 bra END;
    bar.warp.sync 0xffffffff;
    vote.sync.ballot.b32 %r1, 1, 0xffffffff;
    st.global.u32 [%rd0], %r1;
    END:
    """
    result = emulate(code, block=32, arrays=[zeros(1)])
    assert result.found == []
    assert result.run.outputs["x"].tolist() == [(1 << 20) - 1]


def test_lanes_that_go_round_a_loop_less_often_meet_behind_it() -> None:
    code = """
    mov.u32 %r1, 0;
    LOOP:
    add.u32 %r1, %r1, 1;
    setp.le.u32 %p1, %r1, %r0;
    @%p1 bra LOOP;
    shfl.sync.idx.b32 %r2, %r1, 31, 31, 0xffffffff;
    st.global.u32 [%rd0], %r2;
    """
    result = emulate(code, block=32, arrays=[zeros(1)])
    assert result.run.outputs["x"].tolist() == [32]


def test_syncwarp_that_a_lane_never_comes_to() -> None:
    code = """
    setp.eq.u32 %p1, %r0, 5;
    @%p1 bra OTHER;
    bar.warp.sync 0xffffffff;
    OTHER:
    bar.sync 0;
    """
    result = emulate(code)
    fault = result.run.faults[-1]
    assert (fault.kind, fault.thread, fault.other_thread, fault.count) == (
        FaultKind.DEADLOCK,
        Thread((0, 0, 0), (0, 0, 0)),
        Thread((0, 0, 0), (5, 0, 0)),
        31,
    )
    assert sentences(result) == [
        "deadlock 3: Thread (0, 0, 0) of block (0, 0, 0) waits at a __syncwarp for thread (5, 0, 0) of block "
        "(0, 0, 0), which the mask 0xffffffff names and which never arrives."
    ]
    assert not result.run.is_complete


def test_a_shuffle_that_half_a_warp_does_not_come_to() -> None:
    code = """
    setp.ge.u32 %p1, %r0, 16;
    @%p1 bra OTHER;
    shfl.sync.down.b32 %r2, %r0, 8, 31, 0xffffffff;
    OTHER:
    bar.sync 0;
    """
    result = emulate(code, block=32)
    assert result.run.is_complete
    assert result.found == [("barrier-not-reached", 3, 5)]
    assert emulate(code.replace("0xffffffff", "0x0000ffff"), block=32).found == []


def test_barriers_that_not_all_reach() -> None:
    early = "setp.ge.u32 %p1, %r0, 48;\n@%p1 bra END;\nbar.sync 0;\nEND:\n"
    assert sentences(emulate(early)) == [
        "barrier-not-reached 3: 16 of the block's 64 threads ended before this barrier."
    ]
    two = "setp.ge.u32 %p1, %r0, 48;\n@%p1 bra OTHER;\nbar.sync 0;\nbra END;\nOTHER:\nbar.sync 0;\nEND:\n"
    result = emulate(two)
    assert result.found == [("barrier-not-reached", 6, 3)]
    counted = "setp.ge.u32 %p1, %r0, 32;\n@%p1 bra END;\nbar.sync 1, 64;\nEND:\n"
    assert sentences(emulate(counted)) == [
        "deadlock 3: 32 of 64 threads have arrived at barrier 1, and the others never arrive."
    ]
    assert emulate(counted.replace("64", "32")).found == []


def test_a_producer_that_arrives_and_a_consumer_that_waits() -> None:
    code = """
    setp.ge.u32 %p1, %r0, 32;
    @%p1 bra CONSUME;
    @!%p1 st.shared.u32 [tile], 9;
    bar.arrive 1, 64;
    bra END;
    CONSUME:
    bar.sync 1, 64;
    ld.shared.u32 %r1, [tile];
    st.global.u32 [%rd0], %r1;
    END:
    """
    result = emulate(code, arrays=[words(1)])
    assert result.found == []
    assert result.run.outputs["x"].tolist() == [9]
    missing = emulate(code.replace("bar.arrive 1, 64;", "mov.u32 %r5, 0;"), arrays=[words(1)])
    assert ("deadlock", 7, None) in missing.found


def test_each_pair_of_warps_has_a_barrier_of_its_own() -> None:
    code = """
    shr.u32 %r1, %r0, 6;
    add.u32 %r1, %r1, 1;
    shl.b32 %r2, %r0, 2;
    mov.u32 %r3, tile;
    add.u32 %r3, %r3, %r2;
    st.shared.u32 [%r3], %r0;
    bar.sync %r1, 64;
    xor.b32 %r4, %r3, 128;
    ld.shared.u32 %r5, [%r4];
    """
    assert emulate(code, block=256, grid=3).found == []


def test_a_lock_that_whoever_has_it_keeps_is_told_apart_from_a_flag_that_nobody_sets() -> None:
    take = "TRY:\natom.acquire.gpu.global.cas.b32 %r1, [%rd0], 0, 1;\nsetp.ne.u32 %p1, %r1, 0;\n@%p1 bra TRY;\n"
    kept = emulate(take, block=64, arrays=[zeros(2)])
    wait = "TRY:\nld.acquire.gpu.global.u32 %r1, [%rd0];\nsetp.eq.u32 %p1, %r1, 0;\n@%p1 bra TRY;\n"
    unset = emulate(wait, block=64, arrays=[zeros(2)])
    found = [[(f.kind, f.keeps_lock) for f in each.run.faults] for each in (kept, unset)]
    assert found == [[(FaultKind.DEADLOCK, True)], [(FaultKind.DEADLOCK, False)]]
