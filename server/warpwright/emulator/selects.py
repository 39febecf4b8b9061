"""Loads that the compiler makes in every lane, and of which a `selp` takes the value in some: the source may read there
in those lanes alone, as in `threadIdx.x == 0 ? word : 0` (LLVM, "SimplifyCFG", which hoists what cannot fault).

What the other lanes read is no read of the program's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from warpwright.emulator.flow import WRITES_NOTHING, Block, reads_and_writes, registers_in
from warpwright.emulator.machine.effects import ACCESSES, is_strong
from warpwright.emulator.ptx.model import Instruction, Negated, Register

_ARITHMETIC = {
    "mov", "cvt", "add", "sub", "mul", "mad", "fma", "min", "max", "neg", "abs", "and", "or", "xor", "not", "shl", "shr"
}  # fmt: skip
"""What may stand between a load and its select, each of which one instruction alone uses the result."""


@dataclass(frozen=True, slots=True)
class _Selected:
    """A load, what is computed of it up to its select, and where the predicate says that the value is taken."""

    members: tuple[Instruction, ...]
    select: Instruction
    when: Register | Negated


def with_selects(block: Block) -> tuple[list[Instruction], dict[int, Register | Negated]]:
    """The block's body, and for each load whose value a select takes or leaves, by its `id`, where it takes it. Such a
    load is moved behind what sets the predicate, with what is computed of it; one that cannot be moved is left out."""
    body = list(block.body)
    when: dict[int, Register | Negated] = {}
    if not any(i.opcode == "selp" for i in body):
        return body, when
    users = _sole_users(block)
    for load in block.body:
        selected = _selected(load, users)
        if selected is None:
            continue
        start, end = _at(body, load), _at(body, selected.select)
        own = {id(member) for member in selected.members}
        rest = [i for i in body[start:end] if id(i) not in own]
        if any(set(registers_in(selected.when)) & reads_and_writes(i)[1] for i in rest):
            if not _may_change_places(rest, selected.members):
                continue
            body[start:end] = [*rest, *selected.members]
        when[id(load)] = selected.when
    return body, when


def _sole_users(block: Block) -> dict[str, Instruction]:
    """The one instruction that reads a register, of those that the block writes once and that nothing else reads."""
    written: Counter[str] = Counter()
    users: dict[str, list[Instruction]] = {}
    for instruction in block.instructions:
        reads, writes = reads_and_writes(instruction)
        for name in reads:
            users.setdefault(name, []).append(instruction)
            if not written[name]:
                written[name] = 2  # it comes from another block
        written.update(writes)
    return {
        name: found[0]
        for name, found in users.items()
        if written[name] == 1 and len(found) == 1 and name not in block.live_out
    }


def _selected(load: Instruction, users: Mapping[str, Instruction]) -> _Selected | None:
    if load.opcode not in {"ld", "ldu"} or load.guard is not None or is_strong(load):
        return None
    members, value = [load], load.operands[0]
    while isinstance(value, Register) and value.name in users:
        user = users[value.name]
        if user.opcode == "selp":
            when = _taken(user, value)
            return None if when is None else _Selected(tuple(members), user, when)
        if user.opcode not in _ARITHMETIC or "cc" in user.modifiers or user.guard is not None:
            return None
        members.append(user)
        value = user.operands[0]
    return None


def _taken(select: Instruction, value: Register) -> Register | Negated | None:
    """Where `selp d, a, b, p` gives the value; None where it does so everywhere, or not in every lane at all."""
    _, first, second, predicate = select.operands
    if not isinstance(predicate, Register) or first == second or select.guard is not None:
        return None
    return predicate if first == value else Negated(predicate)


def _may_change_places(others: Sequence[Instruction], members: Sequence[Instruction]) -> bool:
    """Whether instructions that stand among the members may as well come before all of them."""
    used = set[str]().union(*(read | written for read, written in map(reads_and_writes, members)))
    return not any(
        i.opcode in (ACCESSES - {"ld"}) | WRITES_NOTHING or is_strong(i) or reads_and_writes(i)[1] & used
        for i in others
    )


def _at(body: Sequence[Instruction], instruction: Instruction) -> int:
    return next(place for place, i in enumerate(body) if i is instruction)
