"""Races that are there are found, with both lines and both threads, and none is found where threads are ordered."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.emulation import emulate, words
from support.examples import examples
from warpwright.emulator.launch import ArrayArgument
from warpwright.facts.profile import FaultKind, Thread

ADDRESSES = """
shl.b32 %r1, %r0, 2;
mov.u32 %r2, tile;
add.u32 %r3, %r2, %r1;
xor.b32 %r4, %r3, {distance};
"""
"""Lines 1 to 4: %r3 is the address of a thread's own word, %r4 that of the thread at a distance of bytes."""


def exchange(between: str, distance: int) -> str:
    """Each thread writes its word (line 5) and reads another thread's (line 7)."""
    return ADDRESSES.format(distance=distance) + f"st.shared.u32 [%r3], %r0;\n{between}\nld.shared.u32 %r5, [%r4];"


def test_a_read_of_what_another_warp_writes_is_a_race() -> None:
    fault = emulate(exchange("add.u32 %r6, %r0, 1;", 128)).run.faults[0]
    assert fault.kind is FaultKind.SHARED_RACE
    assert fault.thread == Thread((0, 0, 0), (0, 0, 0))
    assert fault.other_thread == Thread((0, 0, 0), (32, 0, 0))
    assert (fault.space, fault.array, fault.offset, fault.count) == ("shared", "tile", 128, 64)


@pytest.mark.parametrize(
    ("between", "distance", "expected"),
    [
        ("add.u32 %r6, %r0, 1;", 128, [("shared-memory-race", 7, 5)]),
        ("bar.warp.sync 0xffffffff;", 128, [("shared-memory-race", 7, 5)]),
        ("bar.sync 0;", 128, []),
        ("barrier.sync.aligned 0;", 128, []),
        ("add.u32 %r6, %r0, 1;", 4, [("missing-syncwarp", 7, 5)]),
        ("bar.warp.sync 0xffffffff;", 4, []),
        ("bar.sync 0;", 4, []),
        ("shfl.sync.bfly.b32 %r7, %r0, 1, 31, 0xffffffff;", 4, []),
        ("vote.sync.any.pred %p1, %p0, 0xffffffff;", 4, []),
        ("membar.cta;", 4, [("missing-syncwarp", 7, 5)]),
    ],
)
def test_what_orders_threads_of_a_block(between: str, distance: int, expected: list[tuple[str, int, int]]) -> None:
    assert emulate(exchange(between, distance)).races == expected


def test_a_write_of_what_another_thread_has_read() -> None:
    code = ADDRESSES.format(distance=128) + (
        "st.shared.u32 [%r3], %r0;\nbar.sync 0;\nld.shared.u32 %r5, [%r4];\nst.shared.u32 [%r3], %r5;"
    )
    assert emulate(code).races == [("shared-memory-race", 8, 7)]


def test_the_second_barrier_of_a_broadcast() -> None:
    """All read word 0, and thread 0, or the last thread, writes it again."""
    code = """
    setp.eq.u32 %p1, %r0, {who};
    @%p1 st.shared.u32 [tile], 7;
    bar.sync 0;
    ld.shared.u32 %r5, [tile];
    {between}
    @%p1 st.shared.u32 [tile], 8;
    """
    for who in (0, 31, 63):
        assert emulate(code.format(who=who, between="add.u32 %r6, %r5, 1;")).races == [("shared-memory-race", 6, 4)]
        assert emulate(code.format(who=who, between="bar.sync 0;")).races == []


def test_threads_that_write_one_place_at_once() -> None:
    code = "st.shared.u32 [tile], %r0;\nbar.sync 0;\nld.shared.u32 %r1, [tile];"
    assert emulate(code).races == [("shared-memory-race", 1, 1)]
    assert emulate("st.shared.u32 [tile], 7;\nbar.sync 0;\nld.shared.u32 %r1, [tile];").races == []
    half = (
        "and.b32 %r1, %r0, 124;\nmov.u32 %r2, tile;\nadd.u32 %r3, %r1, %r2;\nst.shared.u32 [%r3], %r0;\nbar.sync 0;\n"
    )
    fault = emulate(half + "ld.shared.u32 %r4, [%r3];").run.faults[0]
    assert (fault.step, fault.other_step) == (fault.step, fault.step)
    assert fault.thread != fault.other_thread


def test_blocks_have_no_shared_memory_in_common() -> None:
    assert emulate(exchange("bar.sync 0;", 128), grid=300).races == []
    faults = emulate(exchange("add.u32 %r6, %r0, 1;", 128), grid=300).run.faults
    assert [fault.count for fault in faults] == [300 * 64]


def test_widths_that_differ_share_cells() -> None:
    code = """
    shl.b32 %r1, %r0, 4;
    mov.u32 %r2, tile;
    add.u32 %r3, %r2, %r1;
    st.shared.v4.u32 [%r3], {%r0, %r0, %r0, %r0};
    xor.b32 %r4, %r3, 512;
    ld.shared.u8 %h1, [%r4+15];
    """
    assert emulate(code).races == [("shared-memory-race", 6, 4)]
    assert emulate(code.replace("xor.b32 %r4, %r3, 512;", "mov.b32 %r4, %r3;")).races == []


def at_word(address: str, target: str = "%rd1") -> str:
    return f"mul.wide.u32 {target}, {address}, 4;\nadd.u64 {target}, {target}, %rd0;\n"


def test_global_memory_between_blocks_and_in_one() -> None:
    """Each thread writes word t of x (line 3); then reads word t + 64, the next block's, or t ^ 1."""
    own = "mad.lo.u32 %r1, %r39, 64, %r0;\n" + at_word("%r1")
    next_block = own + "st.global.u32 [%rd1], %r1;\nbar.sync 0;\nld.global.u32 %r2, [%rd1+256];"
    result = emulate(next_block, grid=1000, arrays=[words(64 * 1001)])
    assert ("global-memory-race", 6, 4) in result.races
    either_way = {("global-memory-race", 6, 4), ("global-memory-race", 4, 6)}  # where a batch of blocks ends
    assert set(result.races) <= either_way
    fault = result.run.faults[0]
    assert (fault.space, fault.array) == ("global", "x")
    assert fault.thread is not None and fault.other_thread is not None
    assert fault.thread.block != fault.other_thread.block
    neighbour = own + "st.global.u32 [%rd1], 7777777;\n{}\nxor.b32 %r2, %r1, 1;\n" + at_word("%r2", "%rd2")
    neighbour += "ld.global.u32 %r3, [%rd2];"
    for between, expected in (("bar.sync 0;", []), ("bar.warp.sync -1;", []), ("membar.gl;", ["missing-syncwarp"])):
        found = emulate(neighbour.format(between), grid=10, arrays=[words(640)]).races
        assert [kind for kind, _, _ in found] == expected


def test_an_array_that_is_only_read_has_no_race() -> None:
    code = at_word("%r0") + "ld.global.u32 %r2, [%rd0];\nld.global.u32 %r3, [%rd1+4];"
    assert emulate(code, grid=3, arrays=[words(65)]).races == []


@pytest.mark.parametrize(
    ("first", "second", "races"),
    [
        ("red.global.add.u32 [%rd0], 1;", "red.global.add.u32 [%rd0], 2;", False),
        ("atom.global.add.u32 %r1, [%rd0], 1;", "atom.global.max.u32 %r1, [%rd0], 2;", False),
        ("atom.global.add.u32 %r1, [%rd0], 1;", "ld.global.u32 %r1, [%rd0];", True),
        ("atom.global.add.u32 %r1, [%rd0], 1;", "st.global.u32 [%rd0], %r39;", True),
        ("atom.global.add.u32 %r1, [%rd0], 1;", "ld.volatile.global.u32 %r1, [%rd0];", False),
        ("st.relaxed.gpu.global.u32 [%rd0], %r39;", "ld.acquire.gpu.global.u32 %r1, [%rd0];", False),
        ("st.volatile.global.u32 [%rd0], %r39;", "ld.volatile.global.u32 %r1, [%rd0];", False),
        ("st.volatile.global.u32 [%rd0], %r39;", "ld.global.u32 %r1, [%rd0];", True),
        ("st.relaxed.gpu.global.u32 [%rd0], %r0;", "st.relaxed.gpu.global.u32 [%rd0], %r39;", False),
        ("st.global.u32 [%rd0], 5;", "st.global.u32 [%rd0], 5;", False),
    ],
)
def test_atomics_and_strong_accesses(first: str, second: str, races: bool) -> None:
    code = f"setp.eq.u32 %p1, %r39, 0;\n@%p1 {first}\n@!%p1 {second}"
    assert [kind for kind, _, _ in emulate(code, grid=2, arrays=[words(1)]).races] == ["global-memory-race"] * races


def test_an_atomic_and_the_plain_read_after_it_need_a_barrier() -> None:
    code = """
    setp.eq.u32 %p1, %r0, 0;
    @%p1 st.shared.u32 [tile], 0;
    bar.sync 0;
    atom.shared.add.u32 %r1, [tile], 1;
    {between}
    @%p1 ld.shared.u32 %r2, [tile];
    """
    assert emulate(code.format(between="bar.sync 0;")).races == []
    assert emulate(code.format(between="add.u32 %r5, %r0, 1;")).races == [("shared-memory-race", 6, 4)]
    assert emulate(code.format(between="bar.sync 0;").replace("    bar.sync 0;", "add.u32 %r5, %r0, 1;", 1)).races == [
        ("shared-memory-race", 4, 2)
    ]


def test_the_first_guess_of_a_loop_of_compare_and_swap() -> None:
    code = """
    ld.global.u32 %r1, [%rd0];
    LOOP:
    mov.b32 %r2, %r1;
    max.u32 %r3, %r2, %r0;
    atom.global.cas.b32 %r1, [%rd0], %r2, %r3;
    setp.ne.u32 %p1, %r1, %r2;
    @%p1 bra LOOP;
    """
    result = emulate(code, grid=3, arrays=[words(1)])
    assert (result.races, result.run.outputs["x"].tolist()) == ([], [63])
    other = "mov.b64 %rd1, %rd0;\nld.global.u32 %r5, [%rd1];\nadd.u32 %r1, %r5, 1;" + "\n" + code[code.index("LOOP:") :]
    assert emulate(other, grid=3, arrays=[words(1)]).races == [("global-memory-race", 7, 2)]


LAST_BLOCK = """
mul.wide.u32 %rd2, %r39, 4;
add.u64 %rd3, %rd0, %rd2;
setp.ne.u32 %p1, %r0, 0;
@%p1 bra WAIT;
st.global.u32 [%rd3], %r39;
{fence}
{count} %r2, [%rd1], 99;
setp.eq.u32 %p2, %r2, 99;
selp.u32 %r3, 1, 0, %p2;
st.shared.u32 [tile], %r3;
WAIT:
bar.sync 0;
ld.shared.u32 %r4, [tile];
setp.eq.u32 %p3, %r4, 0;
@%p3 bra END;
mul.wide.u32 %rd4, %r0, 4;
add.u64 %rd5, %rd0, %rd4;
ld.global.u32 %r5, [%rd5];
END:
"""
"""The last of 100 blocks to count itself reads what all others wrote (line 5, read on line 18)."""


@pytest.mark.parametrize(
    ("fence", "count", "expected"),
    [
        ("membar.gl;", "atom.global.inc.u32", []),
        ("fence.acq_rel.gpu;", "atom.global.inc.u32", []),
        ("fence.sc.sys;", "atom.global.inc.u32", []),
        ("add.u32 %r5, %r0, 1;", "atom.acq_rel.gpu.global.inc.u32", []),
        ("add.u32 %r5, %r0, 1;", "atom.global.inc.u32", [("global-memory-race", 18, 5)]),
        ("membar.cta;", "atom.global.inc.u32", [("global-memory-race", 18, 5)]),
    ],
)
def test_the_last_block_reads_what_all_wrote(fence: str, count: str, expected: list[tuple[str, int, int]]) -> None:
    out = ArrayArgument("sums", np.zeros(100, np.uint32))
    counter = ArrayArgument("counter", np.zeros(1, np.uint32))
    result = emulate(LAST_BLOCK.format(fence=fence, count=count), grid=100, arrays=[out, counter])
    assert result.races == expected


def test_a_barrier_of_some_warps_orders_those_alone() -> None:
    """Warps 0 and 1 meet at barrier 1, warps 2 and 3 at none."""
    code = ADDRESSES.format(distance=128) + (
        "st.shared.u32 [%r3], %r0;\nsetp.ge.u32 %p1, %r0, 64;\n@!%p1 bar.sync 1, 64;\nld.shared.u32 %r5, [%r4];"
    )
    result = emulate(code, block=128)
    assert result.races == [("shared-memory-race", 8, 5)]
    assert result.run.faults[0].count == 64


@examples(60)
@given(
    st.lists(st.tuples(st.booleans(), st.integers(0, 7), st.booleans()), min_size=1, max_size=8),
    st.sampled_from([32, 64, 96]),
    st.integers(1, 3),
)
def test_races_are_those_that_all_pairs_of_accesses_have(
    steps: list[tuple[bool, int, bool]], block: int, grid: int
) -> None:
    """Each step reads or writes, for each thread, the word (t * factor) % 64, and may have a barrier before it. A race
    is found exactly where two threads access one word, one of them writes, and there is no barrier between."""
    lines = ["mov.u32 %r2, tile;"]
    accesses: list[tuple[int, bool, list[int]]] = []
    epoch = 0
    for number, (is_write, factor, has_barrier) in enumerate(steps):
        if has_barrier:
            lines.append("bar.sync 0;")
            epoch += 1
        lines += [f"mul.lo.u32 %r1, %r0, {factor};", "and.b32 %r1, %r1, 63;", "shl.b32 %r1, %r1, 2;"]
        lines.append("add.u32 %r3, %r2, %r1;")
        lines += [f"mad.lo.u32 %r4, %r0, 8, {number};"]
        lines.append("st.shared.u32 [%r3], %r4;" if is_write else "ld.shared.u32 %r5, [%r3];")
        accesses.append((epoch, is_write, [t * factor % 64 for t in range(block)]))
    expected = any(
        first_epoch == second_epoch and (first_writes or second_writes) and t != u and first_words[t] == second_words[u]
        for i, (first_epoch, first_writes, first_words) in enumerate(accesses)
        for second_epoch, second_writes, second_words in accesses[i:]
        for t in range(block)
        for u in range(block)
    )
    result = emulate("\n".join(lines), block=block, grid=grid)
    assert bool(result.races) == expected


@examples(60)
@given(
    st.lists(
        st.tuples(st.booleans(), st.integers(0, 3), st.sampled_from(["", "warp", "block"])), min_size=2, max_size=9
    ),
    st.sampled_from([32, 64]),
)
def test_nothing_is_said_of_threads_that_are_ordered(steps: list[tuple[bool, int, str]], block: int) -> None:
    """Each step reads or writes the word t ^ 2**k of thread t, behind nothing, `__syncwarp` or `__syncthreads`."""
    lines = ["mov.u32 %r2, tile;"]
    accesses: list[tuple[int, int, bool, int]] = []
    blocks = warps = 0
    for number, (is_write, bit, meeting) in enumerate(steps):
        if meeting == "block":
            lines.append("bar.sync 0;")
            blocks, warps = blocks + 1, warps + 1
        elif meeting == "warp":
            lines.append("bar.warp.sync 0xffffffff;")
            warps += 1
        distance = (0, 1, 2, 32)[bit] % block
        lines += [f"xor.b32 %r1, %r0, {distance};", "shl.b32 %r1, %r1, 2;", "add.u32 %r3, %r2, %r1;"]
        lines.append(f"mad.lo.u32 %r4, %r0, 16, {number};")
        lines.append("st.shared.u32 [%r3], %r4;" if is_write else "ld.shared.u32 %r5, [%r3];")
        accesses.append((blocks, warps, is_write, distance))
    within = across = False
    for i, (blocks, warps, is_write, distance) in enumerate(accesses):
        for other_blocks, other_warps, other_writes, other_distance in accesses[i + 1 :]:
            if distance != other_distance and (is_write or other_writes) and blocks == other_blocks:
                is_across = (distance ^ other_distance) >= 32
                across |= is_across
                within |= not is_across and warps == other_warps
    kinds = {kind for kind, _, _ in emulate("\n".join(lines), block=block).races}
    assert (bool(kinds & {"shared-memory-race", "global-memory-race"}), bool(kinds)) == (across, within or across)


SPECULATED = """
setp.eq.u32 %p1, %r0, 0;
@!%p1 bra BEHIND;
st.shared.u32 [tile], %r39;
BEHIND:
{code}
"""
"""The first thread stores a word (line 3) that the code from line 5 on loads, with no barrier between."""
LOAD_AND_SELECT = "ld.shared.u32 %r5, [tile];\nselp.b32 %r6, %r5, 0, %p1;"
SET_BETWEEN = "ld.shared.u32 %r5, [tile];\nadd.u32 %r7, %r5, 1;\nsetp.eq.u32 %p2, %r0, 0;\nselp.b32 %r6, %r7, 0, %p2;"


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (LOAD_AND_SELECT, []),
        (SET_BETWEEN, []),
        (LOAD_AND_SELECT.replace("%r5, 0", "0, %r5"), ["shared-memory-race"]),  # taken in all other lanes
        (SET_BETWEEN.replace("%r7, 0", "0, %r7"), ["shared-memory-race"]),
        (LOAD_AND_SELECT + "\nadd.u32 %r8, %r5, 1;", ["shared-memory-race"]),  # used in all lanes besides
        (LOAD_AND_SELECT.replace("0, %p1", "%r5, %p1"), ["shared-memory-race"]),
        (SET_BETWEEN.replace("setp", "st.shared.u32 [tile+4], %r7;\nsetp"), ["shared-memory-race"]),
        (LOAD_AND_SELECT.replace("selp", "setp.ge.u32 %p1, %r0, 0;\nselp"), ["shared-memory-race"]),
        (LOAD_AND_SELECT + "\nbar.sync 0;\nadd.u32 %r8, %r5, 1;", ["shared-memory-race"]),
    ],
)
def test_a_load_that_is_made_ahead_counts_where_a_select_takes_it(code: str, expected: list[str]) -> None:
    """nvcc loads in all lanes what the source reads in some, where that cannot fault."""
    found = emulate(SPECULATED.format(code=code)).races
    assert [kind for kind, _, _ in found] == expected


def test_what_nobody_wrote_is_read_where_a_select_takes_it() -> None:
    code = "setp.eq.u32 %p1, %r0, {lane};\n@!%p1 bra BEHIND;\nst.shared.u32 [tile], %r39;\nBEHIND:\nbar.sync 0;\n"
    code += "add.u32 %r4, %r3, 4;\nld.shared.u32 %r5, [tile+{offset}];\nselp.b32 %r6, %r5, 0, %p1;"
    assert emulate(code.format(lane=0, offset=0)).found == []
    unwritten = emulate(code.format(lane=0, offset=4)).run.faults
    assert [(f.kind, f.count) for f in unwritten] == [
        (FaultKind.UNINITIALISED_READ, 1),
        (FaultKind.UNUSED_RESULT, 1),
    ]
    assert emulate(code.format(lane=99, offset=4)).found == []
