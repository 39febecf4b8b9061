"""A run's counts by source line, as profiles have them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from warpwright.emulator.launch import Run
from warpwright.emulator.program import Program
from warpwright.emulator.ptx.model import Instruction, Place
from warpwright.facts.line_sums import LineSum
from warpwright.facts.model import AccessKind, Space
from warpwright.facts.profile import InstructionSet, Line, Traffic

_KINDS = {
    "ld": AccessKind.LOAD, "ldu": AccessKind.LOAD, "ldmatrix": AccessKind.LOAD, "wmma.load": AccessKind.LOAD,
    "st": AccessKind.STORE, "stmatrix": AccessKind.STORE, "wmma.store": AccessKind.STORE,
    "cp global": AccessKind.LOAD, "cp shared": AccessKind.STORE,
}  # fmt: skip
_SPACES = {"global": Space.GLOBAL, "shared": Space.SHARED, "local": Space.LOCAL}


def place_of(instruction: Instruction, own: Mapping[str, str]) -> Place | None:
    """The innermost place of an instruction in the user's own files, under the name that `own` gives an absolute path.

    None where it stands in none of them, or at no line.
    """
    place = instruction.place
    while place is not None and (place.file not in own or not place.line):
        place = place.inlined_at
    return None if place is None else replace(place, file=own[place.file])


def lines_of(program: Program, run: Run, own: Mapping[str, str]) -> tuple[Line, ...]:
    """The lines of the files in `own` that a run executed, in order. Constant memory is no traffic of a line."""
    sums: dict[tuple[str, int], LineSum] = {}
    tallies = run.tallies

    def at(step: int) -> LineSum | None:
        place = place_of(program.steps[step], own)
        return None if place is None else sums.setdefault((place.file, place.line), LineSum())

    for block, steps in enumerate(program.block_steps):
        for step in steps:
            here = at(step)
            if here is None or not tallies.warps[block]:
                continue
            here.instructions += tallies.warps[block]
            here.thread_instructions += tallies.on.get(step, tallies.lanes[block])
            if program.steps[step].opcode in {"bra", "brx"} and program.steps[step].guard is not None:
                here.branches += tallies.warps[block]
    for step, count in tallies.divergent.items():
        here = at(step)
        if here is not None:
            here.divergent_branches += count
    for step, traffic in accesses_of(program, run):
        here = at(step)
        if here is not None:
            here.add(traffic)
    return tuple(total.line(*place, InstructionSet.PTX) for place, total in sorted(sums.items(), key=lambda s: s[0]))


def accesses_of(program: Program, run: Run) -> Iterator[tuple[int, Traffic]]:
    """What each step of a run did to global, shared and local memory; a step that copies is there twice."""
    for (step, space), counted in run.tallies.traffic.items():
        instruction = program.steps[step]
        # What is passed to a function is no access: the machine does it in registers.
        if space in _SPACES and "param" not in instruction.modifiers:
            counts = (counted.requests, counted.lanes, counted.moved, counted.ideal)
            yield step, _traffic(_SPACES[space], _kind(instruction, space), counted.bytes, *counts)


def _kind(instruction: Instruction, space: str) -> AccessKind:
    """What an instruction does to a space; an asynchronous copy reads one and writes the other."""
    name = {"cp": f"cp {space}", "wmma": f"wmma.{instruction.modifiers[0]}"}.get(instruction.opcode, instruction.opcode)
    return _KINDS.get(name, AccessKind.ATOMIC)


def _traffic(space: Space, kind: AccessKind, size: int, requests: int, lanes: int, moved: int, ideal: int) -> Traffic:
    if space is Space.SHARED:
        return Traffic(space, kind, size, requests, lanes, wavefronts=moved, ideal_wavefronts=ideal)
    return Traffic(space, kind, size, requests, lanes, sectors=moved, ideal_sectors=ideal)
