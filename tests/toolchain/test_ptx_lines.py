"""PTX by line, against the emulator's reading of the same text, and on damaged text."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from warpwright.emulator.ptx.model import Function, Instruction, Place
from warpwright.emulator.ptx.parse import parse
from warpwright.syntax.source import read_source
from warpwright.toolchain.compile import compile_ptx
from warpwright.toolchain.machine_code import parse_machine_code
from warpwright.toolchain.ptx_lines import parse_ptx_lines

KERNELS = Path(__file__).resolve().parent.parent / "emulator" / "kernels"
PTX = """\
.version 9.0
.target sm_90
.func (.param .b32 r) f(.param .b32 f_0)
;
.visible .entry k(
	.param .u64 k_0
)
{
	.reg .f32 %f<4>;
	.loc	1 3 5
	.loc	2 7 9, function_name $L__info_string0, inlined_at 1 3 5
	// begin inline asm
	{  cvt.f32.f16 %f1, %rs1;}

	// end inline asm
$L__BB0_1:
	ld.global.v2.f32 	{%f2, %f3}, [%rd1+8];
	{ // callseq 0, 0
	call.uni (r),
	f,
	(
	p
	);
	}
	@%p1 bra 	$L__BB0_1;
	ret;
}
.func (.param .b32 r) f(.param .b32 f_0)
{
	.loc	1 0 1
	ret;
}
	.file	1 "/a \\"b\\".cu"
	.file	2 "/h.cuh"
"""
SASS = """\
//--------------------- .text.k --------------------------
.text.k:
	//## File "/a.cu", line 3 inlined at "/a.cu", line 9
	//## File "/a.cu", line 9
        /*0000*/                   LDC R1, c[0x0][0x28] ;
.L_x_0:
        /*0010*/              @!P0 BRA `(.L_x_0);
$__internal_0_$__cuda_sm20_div_rn_f64_full:
        /*0020*/                   RET.REL.NODEC R20 `(k) ;
        /*0030*/                   NOP;
"""


def chain(place: Place | None) -> tuple[tuple[str, int], ...]:
    found: list[tuple[str, int]] = []
    while place is not None:
        found.append((place.file, place.line))
        place = place.inlined_at
    return tuple(found) if found and found[0][1] else ()


@pytest.mark.nvcc
@pytest.mark.parametrize("name", ["control", "halves", "memory", "tensor", "warps"])
def test_rows_and_places_are_those_that_the_emulator_reads(name: str) -> None:
    compiled = compile_ptx(read_source(str(KERNELS / f"{name}.cu")))
    assert compiled.ok, compiled.reason
    module, found = parse(compiled.text), parse_ptx_lines(compiled.text)
    entries = [each for each in module.functions.values() if isinstance(each, Function) and each.name in found]
    assert {each.name for each in entries} == set(compiled.kernels.values())
    for function in entries:
        meant = [(each.row, chain(each.place)) for each in function.body if isinstance(each, Instruction)]
        assert [(each.row, each.places) for each in found[function.name] if not each.function] == meant


def test_inline_assembly_calls_and_called_functions() -> None:
    found = parse_ptx_lines(PTX)["k"]
    inlined = (("/h.cuh", 7), ('/a "b".cu', 3))
    assert [(each.text, each.places, each.function, each.label) for each in found] == [
        ("cvt.f32.f16 %f1, %rs1", inlined, "", ""),
        ("ld.global.v2.f32 {%f2, %f3}, [%rd1+8]", inlined, "", "$L__BB0_1"),
        ("call.uni (r), f, ( p )", inlined, "", ""),
        ("@%p1 bra $L__BB0_1", inlined, "", ""),
        ("ret", inlined, "", ""),
        ("ret", (), "f", ""),
    ]
    assert [each.row for each in found[:2]] == [13, 17]


def damaged(text: str) -> st.SearchStrategy[str]:
    """A text with a part taken out and something else put in."""
    places = st.tuples(st.integers(0, len(text)), st.integers(0, len(text)), st.text(max_size=12))
    return places.map(lambda cut: text[: min(cut[:2])] + cut[2] + text[max(cut[:2]) :])


@given(damaged(PTX))
def test_damaged_ptx_is_read_as_far_as_it_goes(text: str) -> None:
    for found in parse_ptx_lines(text).values():
        assert all(each.text and 1 <= each.row <= text.count("\n") + 1 for each in found)


@given(damaged(SASS))
def test_damaged_machine_code_is_read_as_far_as_it_goes(text: str) -> None:
    for found in parse_machine_code(text).values():
        assert all(each.opcode and each.offset >= 0 for each in found)


def test_the_toolkits_own_functions_have_no_line() -> None:
    first, second, third = parse_machine_code(SASS)["k"]
    assert first.places == second.places == (("/a.cu", 3), ("/a.cu", 9))
    assert (second.guard, second.label) == ("@!P0", ".L_x_0")
    assert (third.places, third.function) == ((), "__cuda_sm20_div_rn_f64_full")
