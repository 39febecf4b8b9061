"""The table of opcodes against real machine code."""

from __future__ import annotations

from pathlib import Path

import pytest
from warpwright.missing import Missing
from warpwright.syntax.source import read_source
from warpwright.toolchain.compile import compile_cubin
from warpwright.toolchain.machine_code import MachineInstruction, machine_code
from warpwright.toolchain.opcodes import Family, family_of, memory_uses

ROOT = Path(__file__).resolve().parent.parent.parent
KERNELS = ("control", "floats", "integers", "memory", "shared", "atomics")


def instructions(arch: str) -> list[MachineInstruction]:
    found: list[MachineInstruction] = []
    for name in KERNELS:
        compiled = compile_cubin(read_source(str(ROOT / "tests/emulator/kernels" / f"{name}.cu")), arch=arch)
        assert compiled.cubin is not None, compiled.reason
        code = machine_code(compiled.cubin)
        assert not isinstance(code, Missing)
        found += [each for kernel in code.values() for each in kernel]
    return found


@pytest.mark.sampled(3)
@pytest.mark.sass
@pytest.mark.parametrize("arch", ["sm_75", "sm_90", "sm_120"])
def test_every_instruction_has_a_family_and_its_parts(arch: str) -> None:
    found = instructions(arch)
    assert len(found) > 1000
    assert not {each.opcode for each in found if family_of(each.opcode, each.operands) is Family.OTHER}
    assert not [each.text for each in found if any(mark in each.text for mark in (";", "/*", "@", "{"))
                and not each.guard]  # fmt: skip
    memory = {Family.LOAD, Family.STORE, Family.ATOMIC}
    assert not [each.text for each in found if family_of(each.opcode) in memory and not memory_uses(each.opcode)]


def test_an_opcode_that_nobody_knows_is_other() -> None:
    assert family_of("FROBNICATE.E") is Family.OTHER
    assert memory_uses("FROBNICATE.E") == ()
