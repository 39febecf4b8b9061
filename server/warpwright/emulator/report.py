"""What a run found wrong, by source line and in one sentence each, as profiles have it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import PurePath

from warpwright.emulator.launch import Run
from warpwright.emulator.lines import place_of
from warpwright.emulator.machine.faults import FoundFault
from warpwright.emulator.machine.special import GRID_BARRIER
from warpwright.emulator.program import Program
from warpwright.emulator.ptx.model import Instruction
from warpwright.emulator.ptx.model import Place as Position
from warpwright.facts.profile import Fault, FaultKind, Place

_READS, _CHANGES = ("reads", "has read"), ("changes by an atomic", "has changed by an atomic")
_VERBS = {"ld": _READS, "ldu": _READS, "ldmatrix": _READS, "atom": _CHANGES, "red": _CHANGES}
_LOCAL_NAME = re.compile(r"^_ZZ.*E(\d+)([A-Za-z_]\w*)$")


def faults_of(program: Program, run: Run, own: Mapping[str, str]) -> tuple[Fault, ...]:
    """The faults of a run, once for each kind and line, those that ended the run last.

    `own` names the user's files (see `place_of`); what stands in none of them is given where it stands.
    """
    merged: dict[tuple[object, ...], Fault] = {}
    for found in run.faults:
        fault = _fault(program, found, own)
        key = (fault.kind, fault.file, fault.line)
        first = merged.get(key)
        if first is None:
            merged[key] = fault
        else:
            merged[key] = replace(first, count=first.count + fault.count)
    return tuple(merged.values())


def said(fault: Fault) -> str:
    """A fault as the end of a sentence: `line 12: thread (0, 0, 0) of block (3, 0, 0) writes ...`."""
    sentence = fault.message[:1].lower() + fault.message[1:].removesuffix(".")
    if not fault.line:
        return sentence
    return f"line {fault.line} of {PurePath(fault.file).name}: {sentence}"


def _fault(program: Program, found: FoundFault, own: Mapping[str, str]) -> Fault:
    position = _position(program, found.step, own)
    other = None if found.other_step is None else _position(program, found.other_step, own)
    threads = tuple(thread for thread in (found.thread, found.other_thread) if thread is not None)
    array = None if found.array is None else plain_name(found.array)
    return Fault(
        found.kind,
        "" if position is None else position.file,
        0 if position is None else position.line,
        _sentence(program, found, own) + _calls(position) + ".",
        threads,
        found.address if array is None else found.offset,
        array,
        None if other is None else Place(other.file, other.line),
        found.count,
    )


def _position(program: Program, step: int, own: Mapping[str, str]) -> Position | None:
    """Where an instruction stands in the user's files; what stands in none of them, at its own place."""
    instruction = program.steps[step]
    return place_of(instruction, own) or instruction.place


def plain_name(name: str) -> str:
    """A variable as the source has it.

    >>> plain_name("_ZZ10block_sumsPKfPfiE7partial"), plain_name("tile")
    ('partial', 'tile')
    """
    local = _LOCAL_NAME.match(name)
    if local and len(local[2]) >= int(local[1]):
        return local[2][: int(local[1])]
    return name


def _calls(position: Position | None) -> str:
    """` (called from line 12, from line 30)`: the calls that inlined code stands in."""
    lines: list[int] = []
    caller = None if position is None else position.inlined_at
    while caller is not None:
        lines.append(caller.line)
        caller = caller.inlined_at
    return f" (called from line {', from line '.join(map(str, lines))})" if lines else ""


def _does(instruction: Instruction) -> str:
    return _VERBS.get(instruction.opcode, ("writes", "has written"))[0]


def _did(instruction: Instruction) -> str:
    return _VERBS.get(instruction.opcode, ("writes", "has written"))[1]


def _where(found: FoundFault) -> str:
    if found.array is not None and found.offset is not None:
        return f"byte {found.offset:,} of {plain_name(found.array)}"
    if found.address is None:
        return f"{found.space} memory"
    return f"{found.space} memory at {found.address:#x}"


def _values(found: FoundFault) -> str:
    """` (value 2)` of what is read, ` (3 over 2)` of what is written."""
    if not found.values:
        return ""
    return f" (value {found.values[0]})" if len(found.values) == 1 else f" ({found.values[1]} over {found.values[0]})"


def _sentence(program: Program, found: FoundFault, own: Mapping[str, str]) -> str:
    """What happened, without the full stop."""
    does = _does(program.steps[found.step])
    who = f"{found.thread}".capitalize() if found.thread is not None else "The kernel"
    match found.kind:
        case FaultKind.SHARED_RACE | FaultKind.GLOBAL_RACE | FaultKind.MISSING_SYNCWARP if found.other_thread:
            return _race(program, found, own, who)
        case FaultKind.UNINITIALISED_READ:
            return f"{who} {does} {_where(found)}, which nothing has written"
        case FaultKind.OUT_OF_BOUNDS | FaultKind.MISALIGNED:
            return f"{who} {does} {found.text}"
        case FaultKind.UNUSED_RESULT:
            name = "shared memory" if found.array is None else plain_name(found.array)
            if found.space == "global":
                return f"The output {name} is never written"
            return f"No thread loads from {name} what this line stores there"
        case FaultKind.ASSERTION:
            return f"{who} fails the assertion {found.text}"
        case FaultKind.DEADLOCK if found.address is not None:
            return _waiting(program, found, own, who)
        case FaultKind.TRAP:
            return f"{who} executes {found.text}"
    return f"{found.text[:1].upper()}{found.text[1:]}"


def _waiting(program: Program, found: FoundFault, own: Mapping[str, str], who: str) -> str:
    """Of lanes that go round a loop for ever."""
    if found.array == GRID_BARRIER:
        text = f"{who} waits at the barrier of the whole grid for threads that never come"
    else:
        text = f"{who} goes round a loop until {_where(found)} changes, and no thread changes it any more"
    text += f": {found.text}"
    position = None if found.other_step is None else _position(program, found.other_step, own)
    return text if position is None else f"{text}; {found.other_thread} waits at line {position.line}"


def _race(program: Program, found: FoundFault, own: Mapping[str, str], who: str) -> str:
    other, other_step = found.other_thread, found.other_step
    assert found.thread is not None and other is not None and other_step is not None
    is_block = other.block == found.thread.block
    whom = f"thread {other.thread} of the same block" if is_block else f"{other}"
    if other_step == found.step and _does(program.steps[found.step]) == "writes":
        return f"{who} and {whom} write different values to {_where(found)}{_values(found)} at once"
    position = _position(program, other_step, own)
    line = "" if position is None else f" at line {position.line}"
    text = f"{who} {_does(program.steps[found.step])} {_where(found)}{_values(found)}, which {whom}"
    text += f" {_did(program.steps[other_step])}{line}, "
    if found.kind is FaultKind.MISSING_SYNCWARP:
        return text + "with no __syncwarp() between: the lanes of a warp run in no fixed order"
    if is_block:
        return text + "with no __syncthreads() between"
    return text + "and nothing orders the two blocks"
