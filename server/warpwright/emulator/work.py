"""What a run has the machine do: its counts by the part of the machine that does it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from warpwright.emulator.flow import is_barrier, reads_and_writes
from warpwright.emulator.ptx.model import Instruction
from warpwright.facts.work import Work

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from warpwright.emulator.launch import Run
    from warpwright.emulator.program import Program

_FREE = {"mov", "cvta", "ret", "exit", "trap", "brkpt", "pragma"}
"""What ptxas makes no instruction of, or one for the whole thread."""

_SPECIAL = {"ex2", "lg2", "sin", "cos", "rsqrt", "tanh"}
_LOADS = {"ld", "ldu", "atom", "ldmatrix"}
_ACCESSES = {*_LOADS, "st", "red", "cp"}
_SPACES = {"global", "shared", "local"}
_WHOLE_DIVISION = {"div", "rem"}

# Machine instructions that one of PTX becomes, counted in what nvcc 13.0 makes of each for sm_90.
_DIVISION_32, _DIVISION_64 = 18.0, 70.0
_FLOAT_DIVISION, _FLOAT_ROOT = 9.0, 8.0
_DOUBLE_DIVISION, _DOUBLE_ROOT = 16.0, 18.0
_WIDE = 2.0
"""Of a 64-bit operation on whole numbers: two halves."""


def work_of(program: Program, run: Run, blocks: int, threads: int) -> Work:
    """The work of a run of so many blocks that was asked for its `reach`. Raises ValueError for one that was not."""
    if run.reach is None:
        raise ValueError("the run was not asked for its reach")
    issued = double = special = 0.0
    barriers = waits = shared_waits = 0
    tallies = run.tallies
    for block, steps in enumerate(program.block_steps):
        times = tallies.warps[block]
        if not times:
            continue
        instructions = [program.steps[step] for step in steps]
        for instruction in instructions:
            each, each_double, each_special = issued_for(instruction)
            issued += each * times
            double += each_double * times
            special += each_special * times
            barriers += times * is_barrier(instruction)
        waits += times * waits_of(instructions, {"global", "local", "generic"})
        shared_waits += times * waits_of(instructions, {"shared"})
    moved = {"loads": 0, "stores": 0, "shared": 0, "requests": 0, "load requests": 0, "atomics": 0}
    for (step, space), traffic in tallies.traffic.items():
        opcode = program.steps[step].opcode
        if space == "shared":
            moved["shared"] += traffic.moved
        elif space in ("global", "local"):
            is_load = opcode not in {"st", "atom", "red"}
            moved["requests"] += traffic.requests
            moved["load requests"] += traffic.requests if is_load else 0
            moved["loads" if is_load else "stores"] += traffic.moved
            moved["atomics"] += traffic.lanes if opcode in {"atom", "red"} else 0
    return Work(
        blocks=blocks,
        threads=threads,
        issued=issued,
        double=double,
        special=special,
        shared_wavefronts=moved["shared"],
        requests=moved["requests"],
        loaded_sectors=moved["loads"],
        stored_sectors=moved["stores"],
        block_sectors=run.reach.block_sectors,
        load_requests=moved["load requests"],
        fresh_requests=run.reach.fresh_requests,
        touched_sectors=run.reach.touched_sectors,
        atomics=moved["atomics"],
        hottest=run.reach.hottest,
        waits=waits,
        shared_waits=shared_waits,
        barriers=barriers,
    )


def issued_for(instruction: Instruction) -> tuple[float, float, float]:
    """The machine instructions that ptxas makes of one, and those of them in double precision and on the special units.

    >>> issued_for(Instruction("fma", ("rn", "f64"), (), None, None, 1))
    (1.0, 1.0, 0.0)
    >>> issued_for(Instruction("div", ("rn", "f32"), (), None, None, 1))
    (9.0, 0.0, 1.0)
    """
    opcode, modifiers = instruction.opcode, instruction.modifiers
    kind = modifiers[-1] if modifiers else ""
    if opcode in _FREE or (opcode == "ld" and "param" in modifiers):
        return 0.0, 0.0, 0.0
    is_double = "f64" in modifiers
    if opcode in _SPECIAL:
        return 1.0, 0.0, 1.0
    if opcode in _WHOLE_DIVISION and kind[:1] in "us":
        return (_DIVISION_64 if kind.endswith("64") else _DIVISION_32), 0.0, 1.0
    if opcode in {"div", "rcp", "sqrt"}:
        if is_double:
            cost = _DOUBLE_ROOT if opcode == "sqrt" else _DOUBLE_DIVISION
            return cost, cost, 1.0
        if {"approx", "full"} & set(modifiers):
            return 2.0, 0.0, 1.0
        return (_FLOAT_ROOT if opcode == "sqrt" else _FLOAT_DIVISION), 0.0, 1.0
    if is_double and opcode not in {"ld", "st", "mov", "selp"}:
        return 1.0, 1.0, 0.0
    if kind in {"s64", "u64", "b64"} and opcode in {"mul", "mad", "shl", "shr", "setp", "min", "max", "and", "or"}:
        return _WIDE, 0.0, 0.0
    if opcode == "cvt":
        return 1.0, 0.0, 0.25
    return 1.0, 0.0, 0.0


def waits_of(instructions: Sequence[Instruction], spaces: Collection[str]) -> int:
    """How often a warp waits in straight code for what it loads from these spaces.

    The compiler moves loads up as far as it may, so that those wait together of which none needs what another loads. A
    load stays behind a store to memory that it might read.

    Example: `a = p[0]; b = p[1]; c = a + b;` waits once, `a = p[0]; b = p[a];` twice.
    """
    needs: dict[str, int] = {}
    deepest = floor = 0
    for instruction in instructions:
        reads, writes = reads_and_writes(instruction)
        depth = max((needs.get(register, 0) for register in reads), default=0)
        if instruction.opcode in _ACCESSES and not {"param", "const"} & set(instruction.modifiers):
            parts = (modifier.partition("::")[0] for modifier in instruction.modifiers)
            space = next((part for part in parts if part in _SPACES), "generic")
            if space in spaces and instruction.opcode in _LOADS:
                depth = max(depth, 0 if "nc" in instruction.modifiers else floor) + 1
                deepest = max(deepest, depth)
            elif space in spaces:
                floor = deepest
        needs.update(dict.fromkeys(writes, depth))
    return deepest
