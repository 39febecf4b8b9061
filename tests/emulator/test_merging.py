"""PTX accesses that are one in the machine code: found by addresses, and by the widths that ptxas chose."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.examples import examples
from warpwright.emulator.merging import LineAccess, find_lines, merge, widths_of
from warpwright.emulator.program import outline
from warpwright.emulator.ptx.model import Instruction, Place
from warpwright.emulator.ptx.parse import parse
from warpwright.facts.model import AccessKind, Space
from warpwright.missing import Missing
from warpwright.syntax.source import Source
from warpwright.toolchain.compile import compile_cubin, compile_ptx
from warpwright.toolchain.machine_code import MemoryInstruction, memory_instructions

HEADER = '.version 9.0\n.target sm_90\n.address_size 64\n.file 1 "/a.cu"\n'


def blocks_of(text: str, kernel: str = "k") -> list[list[Instruction]]:
    return [[*b.body, *([b.last] if b.last else [])] for b in outline(parse(text), kernel).blocks]


def body(*lines: str) -> list[list[Instruction]]:
    registers = ".reg .pred %p<3>; .reg .b32 %r<20>; .reg .b64 %rd<9>; .reg .f32 %f<20>;\n.shared .align 16 .b8 t[256];"
    text = "\n".join(lines)
    return blocks_of(f"{HEADER}.entry k() {{\n{registers}\n{text}\nret;\n}}")


def at(line: int, space: Space = Space.SHARED, kind: AccessKind = AccessKind.LOAD) -> LineAccess:
    return LineAccess("/a.cu", line, space, kind)


def found(
    blocks: list[list[Instruction]], widths: dict[LineAccess, dict[int, int]]
) -> list[tuple[list[str], int, int]]:
    """The names of what each merged access consists of, its width, and the bytes before the first."""
    steps = [instruction for block in blocks for instruction in block]
    counted = {key: Counter(counts) for key, counts in widths.items()}
    return [
        ([f"line {place.line}" for m in merged.members if (place := steps[m].place)], merged.width, merged.before)
        for merged in merge(blocks, counted)
    ]


LOADS = ".loc 1 5 1\n" + "\n".join(f"ld.shared.f32 %f{k}, [%r1+{4 * k}];" for k in range(4))


def test_neighbours_are_one_access_as_wide_as_the_machine_code_has_one() -> None:
    assert found(body(LOADS), {at(5): {16: 1}}) == [(["line 5"] * 4, 16, 0)]
    assert found(body(LOADS), {at(5): {8: 2}}) == [(["line 5"] * 2, 8, 0)] * 2
    assert found(body(LOADS), {at(5): {8: 1, 4: 2}}) == [(["line 5"] * 2, 8, 0)]
    assert found(body(LOADS), {at(5): {4: 4}}) == []
    assert found(body(LOADS), {}) == []
    assert found(body(LOADS), {at(5, kind=AccessKind.STORE): {16: 1}, at(6): {16: 1}}) == []


def test_an_access_of_another_line_belongs_to_it_where_its_own_line_lacks_it() -> None:
    lines = "\n".join(f".loc 1 {7 - k} 1\nld.shared.f32 %f{k}, [%r1+{4 * k}];" for k in range(2))
    assert found(body(lines), {at(6): {8: 1}}) == [(["line 7", "line 6"], 8, 0)]


def test_what_a_barrier_a_guard_or_another_register_parts_is_not_merged() -> None:
    first, second = ".loc 1 5 1\nld.shared.f32 %f1, [%r1];", "ld.shared.f32 %f2, [%r1+4];"
    widths = {at(5): {8: 1}}
    assert found(body(first, second), widths)
    assert not found(body(first, "bar.sync 0;", second), widths)
    assert not found(body(first, f"@%p1 {second}"), widths)
    assert not found(body(first, second.replace("%r1", "%r2")), widths)
    assert not found(body(first, "add.u32 %r1, %r1, 64;", second), widths)
    assert not found(body(first, second.replace("ld.shared", "ld.volatile.shared")), widths)
    assert not found(body(first, second.replace("ld.shared", "ld.global").replace("%r1", "%rd1")), widths)


@pytest.mark.parametrize(
    "arithmetic",
    [
        "add.s32 %r2, %r1, 4; ld.shared.f32 %f2, [%r2];",
        "shl.b32 %r3, %r4, 2; mov.u32 %r6, t; add.s32 %r2, %r6, %r3; ld.shared.f32 %f2, [%r2+4];",
        "add.s32 %r5, %r4, 1; shl.b32 %r3, %r5, 2; mov.u32 %r6, t; add.s32 %r2, %r6, %r3; ld.shared.f32 %f2, [%r2];",
        "mad.lo.s32 %r2, %r4, 4, t; ld.shared.f32 %f2, [%r2+4];",
        "sub.s32 %r2, %r1, -4; ld.shared.f32 %f2, [%r2];",
    ],
)
def test_addresses_are_compared_as_sums(arithmetic: str) -> None:
    base = "mul.lo.s32 %r8, %r4, 4; mov.u32 %r7, t; add.s32 %r1, %r8, %r7;"
    blocks = body(base, ".loc 1 5 1\nld.shared.f32 %f1, [%r1];", arithmetic)
    assert found(blocks, {at(5): {8: 1}}) == [(["line 5"] * 2, 8, 0)]


def test_an_or_of_bits_that_are_zero_is_a_sum() -> None:
    text = "shl.b32 %r2, %r1, 3; or.b32 %r3, %r2, 4; .loc 1 5 1\nld.shared.f32 %f1, [%r2]; ld.shared.f32 %f2, [%r3];"
    assert found(body(text), {at(5): {8: 1}})
    assert not found(body(text.replace("3;", "2;")), {at(5): {8: 1}})


def test_a_wide_load_may_have_bytes_that_nobody_uses_and_a_store_may_not() -> None:
    loads = ".loc 1 5 1\n" + "\n".join(f"ld.shared.f32 %f{k}, [t+{4 * k}];" for k in (1, 2, 3, 5, 6))
    assert found(body(loads), {at(5): {16: 2}}) == [(["line 5"] * 3, 16, 4), (["line 5"] * 2, 16, 4)]
    stores = ".loc 1 5 1\n" + "\n".join(f"st.shared.f32 [t+{4 * k}], %f{k};" for k in (1, 2, 3, 5, 6))
    assert found(body(stores), {at(5, kind=AccessKind.STORE): {16: 2}}) == []


def test_a_loop_that_ptxas_unrolled_has_its_accesses_several_times_and_ptx_once() -> None:
    pair = ".loc 1 5 1\nld.shared.f32 %f1, [%r1]; ld.shared.f32 %f2, [%r1+4]; ld.shared.f32 %f3, [%r1+256];"
    again = pair.replace("%r1", "%r2")
    assert len(found(body(pair, again), {at(5): {8: 2, 4: 2}})) == 2
    assert len(found(body(pair, again), {at(5): {8: 4, 4: 20}})) == 1


def test_accesses_that_the_compiler_left_without_a_line_stand_where_the_machine_code_has_them() -> None:
    blocks = body(
        ".loc 1 5 1\nld.shared.f32 %f1, [%r1];\n.loc 1 0 0\nld.shared.f32 %f2, [%r2];\nld.shared.f64 %rd1, [%r4];",
        ".loc 1 6 1\nld.shared.f32 %f3, [%r3];",
    )

    def access(line: int, width: int = 4) -> MemoryInstruction:
        return MemoryInstruction("/a.cu", line, "LDS", Space.SHARED, AccessKind.LOAD, width, 16 * line)

    assert find_lines(blocks, [access(5), access(6), access(6)], []) == {1: Place("/a.cu", 6, 1)}
    assert find_lines(blocks, [access(5), access(5, 8), access(6)], []) == {2: Place("/a.cu", 5, 1)}
    assert find_lines(blocks, [access(5), access(5), access(6), access(6)], []) == {}


@examples(100)
@given(
    st.lists(
        st.tuples(st.integers(0, 24), st.sampled_from([("u8", 1), ("b16", 2), ("b32", 4), ("v2.b32", 8)])), max_size=12
    ),
    st.dictionaries(st.sampled_from([1, 2, 4, 8, 16, 32]), st.integers(0, 6)),
)
def test_each_access_is_in_one_at_most_and_no_more_are_wide_than_the_machine_code_has(
    accesses: list[tuple[int, tuple[str, int]]], widths: dict[int, int]
) -> None:
    text = [
        f"ld.shared.{kind} {'{%r10, %r11}' if kind.startswith('v') else '%r10'}, [t+{place * size}];"
        for place, (kind, size) in accesses
    ]
    merged = merge(body(".loc 1 5 1", *text), {at(5): Counter(widths)})
    members = [m for one in merged for m in one.members]
    assert len(members) == len(set(members))
    made = Counter(one.width for one in merged)
    assert all(made[width] <= widths[width] for width in made)
    for one in merged:
        places = [(accesses[m][0] * accesses[m][1][1], accesses[m][1][1]) for m in one.members]
        assert len(places) >= 2
        start = places[0][0] - one.before
        assert all(start <= place and place + size <= start + one.width for place, size in places)
        assert all(a[0] + a[1] <= b[0] for a, b in pairwise(places))


TEXT = """\
__global__ void k(const float* a, float* b, int n) {
    __shared__ float t[33];
    t[threadIdx.x] = a[threadIdx.x];
    __syncthreads();
    float total = 0;
    #pragma unroll
    for (int k = 1; k < 32; k++)
        total += t[k];
    b[threadIdx.x] = total + a[n] * a[n + 1];
}
"""


@pytest.mark.sass
def test_what_ptxas_makes_of_neighbouring_accesses(tmp_path: Path) -> None:
    """Of shared memory it knows the alignment, and loads `t[0]` with the others; of a pointer it does not."""
    source = Source(str(tmp_path / "a.cu"), TEXT.encode())
    ptx, cubin = compile_ptx(source), compile_cubin(source)
    assert cubin.cubin is not None
    code = memory_instructions(cubin.cubin)
    assert not isinstance(code, Missing)
    (name,) = ptx.kernels.values()
    blocks = blocks_of(ptx.text, name)
    steps = [instruction for block in blocks for instruction in block]
    merged = merge(blocks, widths_of(code[name]))
    assert [(len(one.members), one.width, one.before) for one in merged] == [(3, 16, 4), *[(4, 16, 0)] * 7]
    assert {place.line for one in merged for m in one.members if (place := steps[m].place)} == {8}
