"""Which of a kernel's accesses to local memory are spilled registers, and which are arrays.

Both are LDL and STL. ptxas reaches a spilled register at the stack pointer plus a constant, `[R1+0x40]`, and says how
many bytes it spills and reloads; an array that a run-time value indexes has an address in another register. An array's
element at a constant index, and an argument of printf, look like a spill: they are told apart by the marks that newer
versions of ptxas leave in the cubin, else by the sums.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from warpwright.facts.model import AccessKind, Space
from warpwright.facts.resources import KernelResources
from warpwright.toolchain.machine_code import MachineInstruction
from warpwright.toolchain.opcodes import memory_uses, width_of

_ADDRESS = re.compile(r"\[([^\]]*)\]")
_ON_STACK = re.compile(r"R1(?:\+(-?0x[0-9a-f]+))?")


class LocalPurpose(StrEnum):
    """What an access to local memory is for. ARRAY is any object with an address, printf's arguments among them."""

    SPILL = "spill"
    ARRAY = "array"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class LocalAccess:
    """One LDL or STL. `width` is in bytes per lane."""

    instruction: MachineInstruction
    kind: AccessKind
    width: int
    use: LocalPurpose

    @property
    def file(self) -> str:
        """Of the innermost place; "" where the compiler gives none."""
        return self.instruction.places[0][0] if self.instruction.places else ""

    @property
    def line(self) -> int:
        """Of the innermost place; 0 where the compiler gives none."""
        return self.instruction.places[0][1] if self.instruction.places else 0


def local_traffic(
    code: Iterable[MachineInstruction], resources: KernelResources, marked: Collection[int] = ()
) -> tuple[LocalAccess, ...]:
    """A kernel's accesses to local memory in the order of its code, each with what it is for.

    `marked` are the offsets of the instructions that the cubin marks as spills (`cubin_info`); where they add up to the
    bytes that ptxas says it spills and reloads, they are the spills. Without them exact where ptxas spilled nothing,
    where the address is not the stack pointer's, and where the accesses at the stack pointer, all of them or those
    above one offset, add up to those bytes; UNKNOWN where no such offset or more than one splits them. What a called
    function does is UNKNOWN where the kernel spills: the numbers are the kernel's own.

    >>> def at(opcode, operands):
    ...     return MachineInstruction(0, opcode, operands)
    >>> spilling = KernelResources("k", "k", 32, 8, 4, 64, 0, 0, 0)
    >>> spilled = [at("STL.64", "[R1+0x30], R4"), at("LDL.LU", "R4, [R1+0x30]")]
    >>> others = [at("LDL", "R5, [R7]"), at("STL", "[R1], R2")]
    >>> [access.use.value for access in local_traffic([*spilled, *others], spilling)]
    ['spill', 'spill', 'array', 'array']
    """
    found: list[tuple[MachineInstruction, AccessKind, int, int | None]] = []
    for each in code:
        for use in memory_uses(each.opcode):
            if use.space is Space.LOCAL and not each.is_never_executed:
                found.append((each, use.kind, width_of(each.opcode), stack_offset(each)))
    spills = resources.spill_store_bytes, resources.spill_load_bytes
    own = [(kind, width, offset) for i, kind, width, offset in found if offset is not None and not i.function]
    first = _first_spilled(own, spills) if any(spills) else None
    by_mark = [(kind, width, 0) for i, kind, width, _ in found if i.offset in marked]
    is_marked = any(spills) and (_bytes(by_mark, AccessKind.STORE, 0), _bytes(by_mark, AccessKind.LOAD, 0)) == spills

    def use_of(instruction: MachineInstruction, offset: int | None) -> LocalPurpose:
        if is_marked:
            return LocalPurpose.SPILL if instruction.offset in marked else LocalPurpose.ARRAY
        if offset is None or not any(spills):
            return LocalPurpose.ARRAY
        if first is None or instruction.function:
            return LocalPurpose.UNKNOWN
        return LocalPurpose.SPILL if offset >= first else LocalPurpose.ARRAY

    return tuple(LocalAccess(i, kind, width, use_of(i, offset)) for i, kind, width, offset in found)


def stack_offset(instruction: MachineInstruction) -> int | None:
    """Where in the stack frame an instruction accesses, in bytes; None for an address in another register.

    >>> [stack_offset(MachineInstruction(0, "LDL", operands)) for operands in ("R0, [R1+0x100]", "R0, [R12]")]
    [256, None]
    """
    address = _ADDRESS.search(instruction.operands)
    match = _ON_STACK.fullmatch(address[1]) if address else None
    return None if match is None else int(match[1] or "0", 16)


def _first_spilled(accesses: Sequence[tuple[AccessKind, int, int]], spills: tuple[int, int]) -> int | None:
    """The offset from which on the accesses are spills: arrays lie below, at the bottom of the frame.

    None where no offset, or more than one that parts them differently, makes the sums those that ptxas gives.
    """
    fitting = [
        offset
        for offset in sorted({offset for _, _, offset in accesses})
        if (_bytes(accesses, AccessKind.STORE, offset), _bytes(accesses, AccessKind.LOAD, offset)) == spills
    ]
    return fitting[0] if len(fitting) == 1 else None


def _bytes(accesses: Iterable[tuple[AccessKind, int, int]], kind: AccessKind, first: int) -> int:
    return sum(width for each, width, offset in accesses if each is kind and offset >= first)
