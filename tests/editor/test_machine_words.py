"""What a hover says of a line's machine code."""

from __future__ import annotations

from warpwright.editor.machine.words import line_markdown
from warpwright.facts.resources import KernelResources
from warpwright.toolchain.machine_code import MachineInstruction
from warpwright.toolchain.machine_lines import machine_lines
from warpwright.toolchain.machine_view import KernelCode, MachineView, kernel_code

FILE = "/a.cu"


def kernel(name: str, *instructions: str, line: int = 3, spilled: int = 0) -> KernelCode:
    """A kernel of one line; an instruction is `@P0 LDG.E R0, [R2]`."""
    code = []
    for index, text in enumerate(instructions):
        guard, rest = text.split(" ", 1) if text.startswith("@") else ("", text)
        opcode, _, operands = rest.partition(" ")
        code.append(MachineInstruction(16 * index, opcode, operands, guard, ((FILE, line),)))
    return kernel_code(code, KernelResources(name, name, 8, spilled, 0, 0, 0, 0, 0))


def said(*kernels: KernelCode, line: int = 3) -> str:
    return line_markdown(machine_lines(MachineView("sm_90", "nvcc 13.0", (), kernels), {FILE}), FILE, line)


def test_accesses_double_precision_spills_and_calls_are_named() -> None:
    text = said(
        kernel(
            "k", "LDG.E.128 R4, [R2.64]", "LDG.E R8, [R2.64]", "@P0 STG.E [R2.64], R8", "F2F.F64.F32 R4, R2",
            "STL [R1+0x8], R4", "CALL.REL.NOINC `($__internal_0_$__cuda_sm20_div_rn_f64_full)", "@!PT LDS RZ, [RZ]",
            spilled=4,
        )
    )  # fmt: skip
    assert "**Machine code** for `sm_90`: **7 SASS instructions**" in text
    assert "- 2 global loads: 1 of 4 bytes a lane, 1 of 16 (128-bit); 1 global store: 4 bytes a lane" in text
    assert "- 1 in double precision: F2F.F64.F32" in text
    assert "- 1 call: `__cuda_sm20_div_rn_f64_full`" in text
    assert "1 spilled to or from local memory, 1 predicated, 1 never executed" in text
    assert "shared" not in text
    assert text.count("\n") < 16


def test_instances_that_became_the_same_are_named_together() -> None:
    text = said(kernel("sum<float>", "FADD R0, R0, R1"), kernel("sum<int>", "IADD3 R0, R0, R1, RZ"),
                kernel("sum<float, 2>", "FADD R0, R0, R1"))  # fmt: skip
    assert "in `sum<float>`, `sum<float, 2>`: **1 SASS instruction**" in text
    assert "In `sum<int>`: **1 SASS instruction**" in text


def test_instances_beyond_those_that_are_kept_are_counted() -> None:
    text = said(*(kernel(f"k<{n}>", *["FADD R0, R0, R1"] * n) for n in range(1, 8)))
    assert "5 other instances of the kernel" in text


def test_a_line_that_became_nothing_says_nothing() -> None:
    assert said(kernel("k", "EXIT"), line=4) == ""
