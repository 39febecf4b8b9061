"""Kernels written as PTX by hand, and what running them finds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from warpwright.emulator.launch import ArrayArgument, Launch, Run, ScalarArgument, run
from warpwright.emulator.program import Program, translate
from warpwright.emulator.ptx.parse import parse
from warpwright.facts.profile import FaultKind

_HEAD = """.version 9.0
.target sm_90
.address_size 64
.visible .entry k({parameters})
{{
    .reg .pred %p<20>;
    .reg .b16 %h<20>;
    .reg .b32 %r<40>;
    .reg .b64 %rd<40>;
    .reg .f32 %f<20>;
    .shared .align 16 .b8 tile[{shared}];
{body}
    ret;
}}
"""
RACES = {FaultKind.SHARED_RACE, FaultKind.GLOBAL_RACE, FaultKind.MISSING_SYNCWARP}
THREAD = "    mov.u32 %r0, %tid.x;\n    mov.u32 %r39, %ctaid.x;\n"
"""In the code of `kernel`, %r0 is the thread's number in its block and %r39 the block's number."""


def kernel(code: str, *, pointers: int = 0, shared: int = 4096) -> str:
    """A module with one kernel. Pointers stand in %rd0, %rd1, ...; each line of `code` is at its own source line,
    counted from 1, so that a fault's line says which one it was."""
    parameters = ", ".join(f".param .u64 k_param_{i}" for i in range(pointers))
    loads = "".join(f"    ld.param.u64 %rd{i}, [k_param_{i}];\n" for i in range(pointers))
    lines = [f"    .loc 1 {n} 1\n    {line.strip()}" for n, line in enumerate(code.strip().splitlines(), 1)]
    body = THREAD + loads + "\n".join(lines)
    return _HEAD.format(parameters=parameters, shared=shared, body=body) + '.file 1 "a.cu"\n'


@dataclass(frozen=True, slots=True)
class Emulated:
    """What ran, and what came of it."""

    program: Program
    run: Run

    @property
    def found(self) -> list[tuple[str, int, int | None]]:
        """The kind, line and other line of each fault, in order."""
        lines = [i.place.line if i.place is not None else 0 for i in self.program.steps]
        faults = self.run.faults
        return sorted(
            (f.kind.value, lines[f.step], None if f.other_step is None else lines[f.other_step]) for f in faults
        )

    @property
    def races(self) -> list[tuple[str, int, int | None]]:
        """The faults that are races, within a warp or not."""
        return [each for each in self.found if each[0] in RACES]


def emulate(
    code: str,
    *,
    grid: int = 1,
    block: int = 64,
    arrays: Sequence[ArrayArgument] = (),
    shared: int = 4096,
    most_lane_steps: int = 20_000_000,
) -> Emulated:
    """Run the lines of a kernel that takes these arrays."""
    text = kernel(code, pointers=len(arrays), shared=shared)
    return emulate_text(text, grid=grid, block=block, arrays=arrays, most_lane_steps=most_lane_steps)


def emulate_text(
    text: str,
    *,
    grid: int = 1,
    block: int = 64,
    arrays: Sequence[ArrayArgument] = (),
    most_lane_steps: int = 20_000_000,
) -> Emulated:
    """Run the kernel `k` of a module."""
    program = translate(parse(text), "k")
    arguments: list[ArrayArgument | ScalarArgument] = list(arrays)
    launch = Launch((grid, 1, 1), (block, 1, 1))
    return Emulated(program, run(program, launch, arguments, most_lane_steps=most_lane_steps))


def words(count: int, role: str = "in-out", name: str = "x") -> ArrayArgument:
    """An array of 32-bit words that count up from zero."""
    return ArrayArgument(name, np.arange(count, dtype=np.uint32), role)
