"""PTX text to data: the grammar by hand-written texts, and texts that are cut off or damaged."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from warpwright.emulator.ptx.model import (
    Address,
    Function,
    Guard,
    Immediate,
    Instruction,
    Label,
    Module,
    Negated,
    Pair,
    Place,
    Register,
    Symbol,
    Vector,
)
from warpwright.emulator.ptx.parse import parse
from warpwright.emulator.ptx.tokens import PtxError

HEADER = ".version 8.4\n.target sm_90a, debug\n.address_size 64\n"

WHOLE = (
    HEADER
    + r"""
.file	1 "/home/me/my k\303\244rnels/a.cu", 1700000000, 512
.extern .func  (.param .b32 func_retval0) vprintf
(
	.param .b64 vprintf_param_0,
	.param .b64 vprintf_param_1
)
;
.extern .shared .align 16 .b8 tile[];
.visible .const .align 4 .b8 table[8] = {1, 2, 0x03, 255};
.global .align 8 .u64 pointers[3] = {generic(table)+4, tile, 7};
.weak .global .align 1 .b8 packed[10] = {9, 0xFF(table+2), 0xFF00(table+2), 0xFF0000(table+2), 0xFF000000(table+2),
	0xFF00000000(table+2), 0xFF0000000000(table+2), 0xFF000000000000(table+2), 0xFF00000000000000(table+2), 8};
.global .f32 grid[2][3] = {{0f3F800000, 2.0}, {-1, 0F40400000, 4}};
.global .texref picture;
.func  (.param .b32 result) helper(.reg .u32 a, .param .align 4 .b8 b[12]) .noreturn;
.visible .entry _Z1kPf( // the kernel
	.param .u64 .ptr .global .align 4 _Z1kPf_param_0,
	.param .align 8 .b8 _Z1kPf_param_1[24]
)
.maxntid 256, 1, 1
.minnctapersm 2
{
	.reg .pred 	%p<3>;
	.reg .b32 	%r<8>;
	.reg .b64 	%rd<5>;
	.reg .v2 .f32 pos;
	/* demoted variable,
	over two lines */
	.shared .align 4 .b8 local_tile[64];
	.loc	1 10 3
	ld.param.u64 	%rd1, [_Z1kPf_param_0+0];
	mov.u32 	%r1, %tid.x; mov.f32 pos.x, 0f3F800000;
	setp.lt.and.s32 	%p1|%p2, %r1, -5, !%p1;
	.loc	1 20 5, function_name $L__info_string0, inlined_at 1 11 7
	.loc	1 30 9, function_name $L__info_string1+1, inlined_at 1 20 5
	@!%p1 ld.global.v2.f32 {%r2, _}, [%rd1+-8];
	cp.async.cg.shared.global.L2::128B [local_tile+16], [%rd1], 16;
	{ // callseq 0, 0
	.param .b32 param0;
	st.param.b32 	[param0+0], 017;
	.param .b32 retval0;
	call.uni (retval0),
	vprintf,
	(
	param0
	);
	ld.param.b32 	%r3, [retval0+0];
	} // callseq 0
	{
	.param .b32 param0;
	.reg .pred %p1;
	LOOP:
	st.param.b32 	[param0-4], 0b101U;
	@%p1 bra.uni LOOP;
	}
	tex.2d.v4.f32.f32 {%r1, %r2, %r3, %r4}, [picture, {%r5, %r6}];
	targets: .branchtargets $L__BB0_1, LOOP;
	brx.idx 	%r1, targets;
	prototype_0 : .callprototype (.param .b32 _) _ (.param .b64 _, .param .b64 _) ;
	call (%r1), %rd1, (%rd2, %rd3), prototype_0;
$L__BB0_1:
	mov.u64 	%rd2, tile+8;
LOOP:
	ret;
}
.alias other, helper;
.section	.debug_str
{
$L__info_string0:
.b8 95,90,49,97,0
$L__info_string1:
.b8 95,90
.b8 49,98,0
}
"""
)


def kernel(body: str) -> Function:
    return parse(HEADER + ".entry k(.param .u64 p) {\n" + body + "\n}").functions["k"]


def instructions(function: Function) -> list[Instruction]:
    return [item for item in function.body or () if isinstance(item, Instruction)]


def operand(text: str) -> object:
    """The operand that `text` is read as, among registers of every kind."""
    return instructions(kernel(f".reg .b32 %r<9>; .reg .pred %p<3>, q; op {text};"))[0].operands[0]


def failure(text: str) -> PtxError:
    with pytest.raises(PtxError) as caught:
        parse(text)
    return caught.value


def test_header() -> None:
    module = parse(WHOLE)
    assert (module.version, module.target, module.address_bits) == ((8, 4), "sm_90a", 64)
    assert module.aliases == {"other": "helper"}
    assert set(module.functions) == {"vprintf", "helper", "_Z1kPf"}


def test_variables() -> None:
    variables = parse(WHOLE).variables
    assert variables["tile"].size is None
    assert variables["tile"].is_external
    assert variables["tile"].align == 16
    assert (variables["table"].size, variables["table"].initial) == (8, bytes([1, 2, 3, 255]))
    assert variables["pointers"].initial == bytes(16) + (7).to_bytes(8, "little")
    assert variables["pointers"].relocations == {0: Symbol("table", 4, is_generic=True), 8: Symbol("tile")}
    assert variables["packed"].initial == b"\x09" + bytes(8) + b"\x08"
    assert variables["packed"].relocations == {1: Symbol("table", 2)}
    assert variables["grid"].initial == struct.pack("<6f", 1, 2, 0, -1, 3, 4)
    assert (variables["picture"].type, variables["picture"].size) == ("texref", 0)


def test_functions() -> None:
    functions = parse(WHOLE).functions
    assert functions["vprintf"].body is None
    assert [p.size for p in functions["vprintf"].parameters] == [8, 8]
    assert [(p.name, p.space, p.size) for p in functions["helper"].parameters] == [("a", "reg", 4), ("b", "param", 12)]
    assert functions["helper"].directives == (("noreturn", ()),)
    one = functions["_Z1kPf"]
    assert one.is_kernel
    assert one.directives == (("maxntid", (256, 1, 1)), ("minnctapersm", (2,)))
    assert [p.size for p in one.parameters] == [8, 24]
    assert one.registers["%r7"] == "b32"
    assert "%r8" not in one.registers
    assert (one.registers["pos.x"], one.registers["pos.y"]) == ("f32", "f32")


def test_names_of_nested_scopes_are_made_unique() -> None:
    one = parse(WHOLE).functions["_Z1kPf"]
    assert [v.name for v in one.variables] == ["local_tile", "param0", "retval0", "param0#1"]
    assert one.registers["%p1"] == one.registers["%p1#2"] == "pred"
    stores = [i for i in instructions(one) if i.name == "st.param.b32"]
    assert [i.operands[0] for i in stores] == [Address(Symbol("param0")), Address(Symbol("param0#1"), -4)]
    assert [i.operands[1] for i in stores] == [Immediate(15), Immediate(5)]
    jump = next(i for i in instructions(one) if i.opcode == "bra")
    labels = [item.name for item in one.body or () if isinstance(item, Label)]
    assert labels == ["LOOP#3", "$L__BB0_1", "LOOP"]
    assert (jump.guard, jump.operands) == (Guard("%p1#2", negated=False), (Symbol("LOOP#3"),))
    assert one.branch_targets == {"targets": ("$L__BB0_1", "LOOP")}


def test_calls() -> None:
    one = parse(WHOLE).functions["_Z1kPf"]
    by_name, by_pointer = (i for i in instructions(one) if i.opcode == "call")
    assert by_name.operands == (Vector((Symbol("retval0"),)), Symbol("vprintf"), Vector((Symbol("param0"),)))
    assert by_pointer.operands[1:] == (
        Register("%rd1"),
        Vector((Register("%rd2"), Register("%rd3"))),
        Symbol("prototype_0"),
    )
    results, parameters = one.prototypes["prototype_0"]
    assert ([v.size for v in results], [v.size for v in parameters]) == ([4], [8, 8])


def test_places_are_those_of_the_source_with_the_chain_of_calls() -> None:
    first, *rest = instructions(parse(WHOLE).functions["_Z1kPf"])
    file = "/home/me/my kärnels/a.cu"
    assert first.place == Place(file, 10, 3)
    inlined = next(i for i in rest if i.name == "ld.global.v2.f32")
    middle = Place(file, 20, 5, inlined_at=Place(file, 11, 7), function="_Z1a")
    assert inlined.place == Place(file, 30, 9, inlined_at=middle, function="Z1b")
    assert WHOLE.splitlines()[inlined.row - 1].strip().startswith("@!%p1 ld.global.v2.f32")


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("%r1", Register("%r1")),
        ("_", Register("_")),
        ("%ctaid.y", Register("%ctaid.y")),
        ("!q", Negated(Register("q"))),
        ("%p1|%p2", Pair(Register("%p1"), Register("%p2"))),
        ("_|%p2", Pair(Register("_"), Register("%p2"))),
        ("WARP_SZ", Immediate(32)),
        ("42", Immediate(42)),
        ("-42", Immediate(-42)),
        ("- 42", Immediate(-42)),
        ("0xFFFFFFFFFFFFFFFF", Immediate(2**64 - 1)),
        ("0x10U", Immediate(16)),
        ("017", Immediate(15)),
        ("0b11", Immediate(3)),
        ("0f3F800000", Immediate(1.0, 0x3F800000, 32)),
        ("-0F3f800000", Immediate(-1.0, 0xBF800000, 32)),
        ("0dBFF0000000000000", Immediate(-1.0, 0xBFF0000000000000, 64)),
        ("1.5", Immediate(1.5, 0x3FF8000000000000, 64)),
        ("[%r1]", Address(Register("%r1"))),
        ("[%r1+4]", Address(Register("%r1"), 4)),
        ("[%r1-4]", Address(Register("%r1"), -4)),
        ("[%r1 + -4]", Address(Register("%r1"), -4)),
        ("[p+8]", Address(Symbol("p"), 8)),
        ("[0x40]", Address(Immediate(64))),
        ("p+8", Symbol("p", 8)),
        ("{%r1, _, 3}", Vector((Register("%r1"), Register("_"), Immediate(3)))),
        ("{{%r1}, {%r2}}", Vector((Vector((Register("%r1"),)), Vector((Register("%r2"),))))),
        ("()", Vector(())),
        ("%r1.b0", Register("%r1.b0")),
    ],
)
def test_operands(text: str, meant: object) -> None:
    assert operand(text) == meant


def test_a_nan_keeps_its_bits() -> None:
    signalling = operand("0f7F800001")
    assert isinstance(signalling, Immediate)
    assert (signalling.bits, signalling.width) == (0x7F800001, 32)


def test_modifiers() -> None:
    one = instructions(kernel(".reg .b32 %r<3>; cp.async.cg.shared.global.L2::128B [p], [p], 16, %r1; bar.sync 0;"))
    assert (one[0].opcode, one[0].modifiers) == ("cp", ("async", "cg", "shared", "global", "L2::128B"))
    assert one[1].name == "bar.sync"


@pytest.mark.parametrize(
    ("text", "row", "sentence"),
    [
        ("", 1, "this is not PTX"),
        ("int main() {}", 1, "this is not PTX"),
        (".version 99.1\n.target sm_90", 1, "PTX version 99.1 is not known; 6.0 to "),
        (".version 1.4\n.target sm_10", 1, "PTX version 1.4 is not known"),
        (".version 8.4\n", 1, "the text ends where `.target` was expected; it seems to be cut off"),
        (HEADER + ".entry k(.param .u64 p", 4, "the text ends where"),
        (HEADER + ".entry k() {\nret;", 5, "the text ends inside the function `k`; it is cut off"),
        (HEADER + ".entry k() {\nret", 5, "the text ends"),
        (HEADER + ".entry k() {\n/* ret; }", 5, "a comment `/*` is not closed"),
        (HEADER + ".entry k() {\nmov.u32 %r1, 0;\n}", 5, "the register `%r1` is not declared"),
        (HEADER + ".entry k() {\nbra L;\n}", 5, "the label `L` is not declared"),
        (HEADER + ".entry k() {\nst.global.u32 [x], 0;\n}", 5, "the name `x` is not declared"),
        (HEADER + ".entry k() {\n.reg .b32 %r<2>;\nmov.u32 %r1 0;\n}", 6, "`,` or `;` was expected, not `0`"),
        (HEADER + ".entry k() {\n.reg .b32 %r<2>;\nmov.u32 %r1, ;\n}", 6, "an operand was expected, not `;`"),
        (HEADER + ".entry k() {\n.reg .b32 a; .reg .b32 a;\n}", 5, "`a` is declared twice"),
        (HEADER + ".entry k() {\nL:\nL: ret;\n}", 6, "the label `L` stands twice"),
        (HEADER + ".entry k() {\n.reg .b32 %r<4000000000>;\n}", 5, "a number of registers was expected"),
        (HEADER + ".entry k() {\nbar.sync 99999999999999999999;\n}", 5, "is not a number of at most 64 bits"),
        (HEADER + ".entry k() {\n.loc 1 2 3\nret;\n}", 5, "`.loc` names file 1, which no .file declares"),
        (HEADER + ".entry k() { ret; }\n.entry k() { ret; }", 5, "the function `k` is defined twice"),
        (HEADER + ".global .b8 a[2] = {1, 2, 3};", 4, "`a` has 2 bytes, and its initial value has 3"),
        (HEADER + ".global .b8 a[9000000000000000];", 4, "more than any memory"),
        (HEADER + ".global .align 3 .b8 a;", 4, "3 is not an alignment"),
        (".version 8.4\n.target sm_90\n.address_size 16", 3, "an address has 32 or 64 bits, not 16"),
        (HEADER + "nonsense", 4, "a variable or a function was expected, not `nonsense`"),
        (HEADER + ".entry k() { op " + "{" * 5000 + " }", 4, "nests braces deeper"),
    ],
)
def test_what_is_wrong_is_said_in_a_sentence_with_its_line(text: str, row: int, sentence: str) -> None:
    error = failure(text)
    assert error.row == row
    assert sentence in error.sentence
    assert str(error) == f"Line {row} of the PTX: {error.sentence}"


def parsed_or_refused(text: str) -> Module | PtxError:
    """What the parser makes of any text at all; another exception fails the test."""
    try:
        return parse(text)
    except PtxError as error:
        assert 1 <= error.row <= text.count("\n") + 1
        assert error.sentence.endswith(".")
        return error


@settings(deadline=None)
@given(st.integers(0, len(WHOLE)))
def test_any_prefix(end: int) -> None:
    parsed_or_refused(WHOLE[:end])


@settings(deadline=None)
@given(
    st.integers(0, len(WHOLE) - 1),
    st.integers(0, 12),
    st.text(max_size=3)
    | st.sampled_from(["{", "}", "[", "(", '"', "/*", "-", "%", "1e999", "9" * 6000, "0f", ".reg", "²"]),
)
def test_damaged_text(start: int, length: int, put: str) -> None:
    parsed_or_refused(WHOLE[:start] + put + WHOLE[start + length :])


@settings(deadline=None)
@given(st.text())
def test_any_text_after_a_header(text: str) -> None:
    parsed_or_refused(HEADER + text)
    parsed_or_refused(HEADER + ".entry k() {" + text)
