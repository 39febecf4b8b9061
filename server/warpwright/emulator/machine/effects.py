"""What an instruction's text says of memory: the spaces and bytes that it accesses, and what it orders."""

from __future__ import annotations

from collections.abc import Sequence

from warpwright.emulator.flow import reads_and_writes, registers_in
from warpwright.emulator.ptx.model import Instruction
from warpwright.emulator.ptx.types import bytes_per_lane

ACCESSES = {"ld", "ldu", "st", "atom", "red", "cp", "ldmatrix", "stmatrix", "wmma", "wgmma"}
_ORDERED = {"relaxed", "acquire", "release", "acq_rel", "mmio"}


def is_strong(instruction: Instruction) -> bool:
    """Whether two such accesses of one place are no race (PTX ISA, "Memory Consistency Model", strong operations).

    A volatile access of shared memory counts as plain: that is how code of one warp without `__syncwarp` is written.
    """
    kinds = set(instruction.modifiers)
    if instruction.opcode in {"atom", "red"} or kinds & _ORDERED:
        return True
    return "volatile" in kinds and "shared" not in kinds


def is_of_block(instruction: Instruction) -> bool:
    """Whether it is an atomic operation for the threads of its own block alone, such as `atomicAdd_block`."""
    return instruction.opcode in {"atom", "red"} and "cta" in instruction.modifiers


def first_guesses(steps: Sequence[Instruction]) -> set[int]:
    """The plain loads of what an `atom.cas` compares with, or of the place that it names in the same words, which
    finds out whether it has changed since: as in `old = *p; do { was = old; old = atomicCAS(p, was, f(was)); } while
    (old != was);`. They count as strong."""
    swaps = [i for i in steps if i.opcode == "atom" and "cas" in i.modifiers]
    wanted = {name for i in swaps for name in registers_in(i.operands[2])}
    places = {i.operands[1] for i in swaps}
    found = {step for step, i in enumerate(steps) if i.opcode == "ld" and i.operands[1] in places}
    grows = bool(wanted)
    while grows:
        before = len(wanted)
        for step, i in enumerate(steps):
            if i.opcode in {"mov", "selp", "ld"}:
                reads, writes = reads_and_writes(i)
                if writes & wanted:
                    if i.opcode == "ld":
                        found.add(step)
                    else:
                        wanted |= reads
        grows = len(wanted) > before
    return found


def is_acquiring(instruction: Instruction) -> bool:
    """Whether it may tell its thread that another block has come so far."""
    return instruction.opcode in {"atom", "ld"} and is_strong(instruction)


def is_fence(instruction: Instruction) -> bool:
    """Whether it makes what came before known to other blocks."""
    kinds = set(instruction.modifiers)
    if instruction.opcode in {"fence", "membar"}:
        return not kinds & {"cta", "proxy"}
    if instruction.opcode == "mbarrier":
        return bool(kinds & {"arrive", "arrive_drop"})
    if instruction.opcode == "cp":
        return "mbarrier" in kinds
    return instruction.opcode in {"atom", "red", "st"} and bool(kinds & {"release", "acq_rel"})


def spaces_of(instruction: Instruction) -> set[str]:
    """The spaces that an access may be of; a generic one those in which threads may meet."""
    if instruction.opcode == "wgmma":
        return {"shared"} if "mma_async" in instruction.modifiers else set()
    named = {m.split("::")[0] for m in instruction.modifiers} & {"global", "shared", "local", "const", "param"}
    return named or {"global", "shared"}


def stores_to(steps: Sequence[Instruction], space: str) -> bool:
    """Whether any instruction may change a space."""
    return any(i.opcode in ACCESSES - {"ld", "ldu", "ldmatrix", "wgmma"} and space in spaces_of(i) for i in steps)


def narrowest_access(steps: Sequence[Instruction], space: str) -> int:
    """The fewest bytes that a lane moves at once to or from a space, a power of two; 4 where nothing does."""
    return min((_bytes_of(i) for i in steps if i.opcode in ACCESSES and space in spaces_of(i)), default=4)


def _bytes_of(instruction: Instruction) -> int:
    """What a lane moves at once: 16 for `ld.v4.f32`. Of what is not a plain load or store the least, 4 bytes."""
    if instruction.opcode not in {"ld", "ldu", "st", "atom", "red"}:
        return 4
    return min(16, bytes_per_lane(instruction) or 4)
