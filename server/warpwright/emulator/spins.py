"""Loops in which lanes wait for other threads: a lock, a flag, a ticket.

The lanes that wait must let those run that they wait for, which stand later in the running order or in another block.
"""

from __future__ import annotations

from collections.abc import Sequence

from warpwright.emulator.flow import Block, reads_and_writes
from warpwright.emulator.ptx.model import Instruction

_FRESH = {"volatile", "relaxed", "acquire", "acq_rel", "mmio"}


def spin_headers(blocks: Sequence[Block]) -> frozenset[int]:
    """The first blocks of the loops that end when memory has changed: an exit depends on an atomic, on a volatile or
    ordered load, or, where the loop has a fence or sleeps, on any load of global or shared memory."""
    loops: dict[int, int] = {}
    for block in blocks:
        for goto in (*([block.next] if block.next else []), *block.taken):
            if goto.block <= block.index:
                loops[goto.block] = max(loops.get(goto.block, 0), int(goto.rank))
    return frozenset(first for first, last in loops.items() if _spins(blocks[first : last + 1]))


def _spins(loop: Sequence[Block]) -> bool:
    inside = {block.index for block in loop}
    body = [i for block in loop for i in block.instructions]
    waits = any(i.opcode in {"nanosleep", "fence", "membar"} for i in body)
    tainted: set[str] = set()
    grows = True
    while grows:
        before = len(tainted)
        for instruction in body:
            reads, writes = reads_and_writes(instruction)
            if _is_fresh(instruction, waits) or reads & tainted:
                tainted |= writes
        grows = len(tainted) > before
    return any(
        block.last is not None
        and block.last.guard is not None
        and block.last.guard.register in tainted
        and (not set(block.successors) <= inside or block.last.opcode in {"ret", "exit"})
        for block in loop
    )


def _is_fresh(instruction: Instruction, waits: bool) -> bool:
    """Whether it reads what another thread may have changed since the last time."""
    if instruction.opcode == "atom":
        return True
    if instruction.opcode != "ld" or {"local", "param", "const"} & set(instruction.modifiers):
        return False
    return waits or bool(_FRESH & set(instruction.modifiers))
