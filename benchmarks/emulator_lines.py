"""The emulator's sectors and wavefronts beside Nsight Compute's, line by line, and why a line differs.

Nsight Compute lists an instruction under every line of its chain of inlined calls, in headers of the toolkit too, and
so does this: a total is of one line of any file. What the machine code's line table knows by the header's line alone
(often `atomicAdd`, `__pipeline_memcpy_async`, wmma) is compared there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import PurePath

from warpwright.emulator.launch import Run
from warpwright.emulator.lines import accesses_of
from warpwright.emulator.program import Program
from warpwright.emulator.ptx.model import Instruction
from warpwright.facts.model import Space
from warpwright.facts.profile import Traffic
from warpwright.toolchain.machine_code import MemoryInstruction
from warpwright.toolchain.ncu_profile import traffic_of
from warpwright.toolchain.ncu_tables import Instruction as Executed

Place = tuple[str, int]
"""A file's base name and a line."""

Row = tuple[str, int, str, str, int]
"""File (base name), line, space, kind, and the total: sectors of global and local memory, wavefronts of shared."""


class Cause(StrEnum):
    """Why the totals of one line differ."""

    ORDER = "order of threads"
    WMMA = "layout of wmma fragments"
    TABLE = "line table"
    REMOVED = "kept in registers"
    MERGED = "merged over iterations"
    SPLIT = "split"
    PARTIAL = "wide accesses of part of a warp"
    COPIED = "copied"
    UNKNOWN = "unknown"


SENTENCES = {
    Cause.ORDER: "a compare-and-swap that another thread wins is tried again, and who wins depends on the order",
    Cause.WMMA: "how `wmma` spreads a matrix over registers is the machine's own: it moves elements that lie side by "
    "side at once, the emulator one by one",
    Cause.TABLE: "the machine code has the access at another line",
    Cause.REMOVED: "ptxas left an access out: what a thread has just stored or loaded stays in a register",
    Cause.MERGED: "ptxas made one wider access of those of several iterations of a loop; PTX has them one by one",
    Cause.SPLIT: "ptxas made narrower ones of a vector access, some elements of which nobody uses",
    Cause.PARTIAL: "accesses of 8 and 16 bytes to shared memory with some lanes off: which lanes share a pass is not "
    "documented, and the emulator takes neighbours",
    Cause.COPIED: "ptxas copied an access (a loop unrolled or peeled, a branch on both sides), and the copies differ",
    Cause.UNKNOWN: "not explained",
}


@dataclass(frozen=True, slots=True)
class Compared:
    """The totals of one line and space, by the emulator and by Nsight Compute; `cause` where they differ."""

    file: str
    line: int
    space: str
    emulated: int
    measured: int
    cause: Cause | None = None


def measured_rows(executed: Iterable[Executed]) -> list[Row]:
    """What Nsight Compute counted of one launch, at every line of every file that it lists."""
    totals: Counter[tuple[str, int, str, str]] = Counter()
    for each in executed:
        for traffic in traffic_of(each.cells):
            for file, line in {(_name(file), line) for file, line in each.places if line}:
                totals[file, line, traffic.space.value, traffic.kind.value] += _moved(traffic)
    return [(*key, total) for key, total in sorted(totals.items()) if total]


def emulated_totals(program: Program, run: Run, measured: Iterable[Row]) -> Counter[tuple[str, int, str]]:
    """What the emulator counted at every line of each instruction's chain of calls.

    A place that Nsight Compute does not list is left out where it lists the line of a function that was inlined there:
    the line table of the machine code names that line alone.
    """
    listed = {(file, line, space) for file, line, space, _, _ in measured}
    totals: Counter[tuple[str, int, str]] = Counter()
    for step, traffic in accesses_of(program, run):
        keys = [(*place, traffic.space.value) for place in chain(program.steps[step])]
        inner = next((n for n, key in enumerate(keys) if key in listed), None)
        for n, key in enumerate(keys):
            if key in listed or inner is None or n < inner:
                totals[key] += _moved(traffic)
    return +totals


def chain(instruction: Instruction) -> list[Place]:
    """The lines that an instruction stands at: its own, then those that it was inlined into."""
    found: list[Place] = []
    place = instruction.place
    while place is not None:
        here = _name(place.file), place.line
        if place.line and here not in found:
            found.append(here)
        place = place.inlined_at
    return found


def compare(program: Program, run: Run, code: Sequence[MemoryInstruction], measured: Sequence[Row]) -> list[Compared]:
    """Each line and space that either counted. `code` is the kernel's machine code, empty where it is not known."""
    emulated = emulated_totals(program, run, measured)
    theirs: Counter[tuple[str, int, str]] = Counter()
    for file, line, space, _, total in measured:
        theirs[file, line, space] += total
    found = [Compared(*key, emulated[key], theirs[key]) for key in sorted(emulated.keys() | theirs.keys())]
    return [
        one if one.emulated == one.measured else replace(one, cause=cause_of(one, found, program, run, code))
        for one in found
    ]


def cause_of(
    compared: Compared, every: Sequence[Compared], program: Program, run: Run, code: Sequence[MemoryInstruction]
) -> Cause:
    """Why the totals of a line differ, from its PTX, what ran of it, its machine code, and the kernel's other lines."""
    here, space = (compared.file, compared.line), Space(compared.space)
    steps = [i for i in program.steps if here in chain(i)]
    if any(i.opcode == "wmma" for i in steps):
        return Cause.WMMA
    if any(i.opcode == "atom" and "cas" in i.modifiers for i in steps):
        return Cause.ORDER
    ran = [t for step, t in accesses_of(program, run) if t.space is space and here in chain(program.steps[step])]
    made = [i.width for i in code if i.space in (space, None) and here in _places(i)]
    asked = [t.bytes for t in ran]
    if not asked or not made:
        more_elsewhere = sum(max(0, o.measured - o.emulated) for o in every if o.space == compared.space)
        is_moved = not asked or more_elsewhere >= compared.emulated
        return Cause.UNKNOWN if not asked and not made else Cause.TABLE if is_moved else Cause.REMOVED
    if max(made) > max(asked):
        return Cause.MERGED
    if max(made) < max(asked):
        return Cause.SPLIT
    if len(made) < len(asked):
        return Cause.REMOVED
    if space is Space.SHARED and any(t.bytes >= 8 and t.lanes < 32 * t.requests for t in ran):
        return Cause.PARTIAL
    return Cause.COPIED if len(made) > len(asked) else Cause.UNKNOWN


def _places(instruction: MemoryInstruction) -> set[Place]:
    return {(_name(file), line) for file, line in ((instruction.file, instruction.line), *instruction.callers)}


def _name(path: str) -> str:
    return PurePath(path.replace("\\", "/")).name


def _moved(traffic: Traffic) -> int:
    return (traffic.wavefronts if traffic.space is Space.SHARED else traffic.sectors) or 0
