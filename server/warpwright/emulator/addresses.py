"""Does a program's result hang on where its arrays lie? What it does with the bits of the addresses that it is handed.

An address may be added to, compared with another one or with null, and its lowest bits may be looked at, as code does
that tests an alignment: `(reinterpret_cast<uintptr_t>(p) & 15) == 0`. Whatever else is decided by its bits, or stored,
depends on where the arrays lie, which differs from run to run: `(unsigned long long)p >> 46`.

Each register gets the worst of what any instruction leaves in it, until nothing changes: the order of instructions does
not matter.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import IntEnum

from warpwright.emulator.ptx.model import Address, Function, Immediate, Instruction, Module, Operand, Register, Symbol
from warpwright.emulator.ptx.model import Pair as Two
from warpwright.emulator.ptx.model import Vector as Several

ALIGNMENT = 256
"""The driver gives memory at multiples of this: lower bits are the launch's, and not where the array lies."""


class _Bits(IntEnum):
    """What a register may hold: nothing of an address, an address, one less than nothing, something with its lowest
    bits in place, or other bits of it."""

    NONE = 0
    ADDRESS = 1
    NEGATED = 2
    LOW = 3
    OTHER = 4


_MOVES = frozenset({"mov", "cvta", "min", "max", "selp", "ld"})
_ACCESSES = frozenset({"ld", "ldu", "st", "atom", "red", "cp", "prefetch"})
_HELD = frozenset({"local", "shared", "param"})


def looks_at_addresses(module: Module) -> tuple[str, ...]:
    """The names of the functions in which something hangs on the bits of an address that they are handed."""
    return tuple(name for name, function in module.functions.items() if _looks(function))


def _looks(function: Function) -> bool:
    body = [each for each in function.body or () if isinstance(each, Instruction)]
    held: dict[str, _Bits] = {}
    roots = _pointers(body)
    keeps = any(each.opcode == "st" and _HELD & {*each.modifiers} for each in body)
    changed = True
    while changed:
        changed = False
        for instruction in body:
            left = _result(instruction, held, roots, keeps)
            for name in _targets(instruction) if left else ():
                if held.get(name, _Bits.NONE) < left:
                    held[name], changed = left, True
    return any(_is_decided(instruction, held) for instruction in body)


def _pointers(body: Sequence[Instruction]) -> frozenset[tuple[str, int]]:
    """The parameters, with their offset in bytes, that are used as addresses."""
    used = {
        operand.base.name
        for each in body
        for operand in each.operands
        if each.opcode in _ACCESSES and isinstance(operand, Address) and isinstance(operand.base, Register)
    }
    for each in reversed(body):
        if each.opcode in ("cvta", "mov") and isinstance(each.operands[0], Register):
            source = each.operands[1]
            if isinstance(source, Register) and (each.opcode == "cvta" or each.operands[0].name in used):
                used.add(source.name)
    for each in body:  # what an address is taken from is one, too, though nobody reads there
        if each.opcode == "sub" and isinstance(each.operands[2], Register) and each.operands[2].name in used:
            used |= {source.name for source in each.operands[1:2] if isinstance(source, Register)}
    return frozenset(
        place for each in body if (place := _parameter(each)) is not None and any(n in used for n in _targets(each))
    )


def _parameter(instruction: Instruction) -> tuple[str, int] | None:
    if instruction.opcode != "ld" or "param" not in instruction.modifiers:
        return None
    source = instruction.operands[1]
    if not isinstance(source, Address) or not isinstance(source.base, Symbol):
        return None
    return source.base.name, source.base.offset + source.offset


def _targets(instruction: Instruction) -> Iterator[str]:
    if instruction.opcode in ("st", "red", "bra", "call", "ret") or not instruction.operands:
        return
    target = instruction.operands[0]
    for each in target.items if isinstance(target, Several) else (target,):
        if isinstance(each, Register):
            yield each.name
        elif isinstance(each, Two):
            yield from (each.first.name, each.second.name)


def _of(operand: Operand, held: dict[str, _Bits]) -> _Bits:
    if isinstance(operand, Register):
        return held.get(operand.name, _Bits.NONE)
    if isinstance(operand, Several):
        return max((_of(each, held) for each in operand.items), default=_Bits.NONE)
    return _Bits.NONE


def _result(instruction: Instruction, held: dict[str, _Bits], roots: frozenset[tuple[str, int]], keeps: bool) -> _Bits:
    """What an instruction leaves in its target."""
    opcode, sources = instruction.opcode, instruction.operands[1:]
    if opcode == "ld":
        if (place := _parameter(instruction)) in roots and place is not None:
            return _Bits.ADDRESS
        is_pointer = keeps and "local" in instruction.modifiers and instruction.modifiers[-1] in ("u64", "b64", "s64")
        return _Bits.ADDRESS if is_pointer and _Bits.ADDRESS in held.values() else _Bits.NONE
    given = [_of(each, held) for each in sources]
    most = max(given, default=_Bits.NONE)
    if most is _Bits.NONE or opcode in ("setp", "set", "atom", "call"):
        return _Bits.NONE
    if opcode == "mov" and isinstance(instruction.operands[0], Several):
        return _Bits.OTHER
    if most is _Bits.OTHER or opcode in _MOVES:
        return most
    addresses = sum(each is _Bits.ADDRESS for each in given)
    match opcode:
        case "add" | "sub":
            is_difference = addresses == 2 if opcode == "sub" else {*given} == {_Bits.ADDRESS, _Bits.NEGATED}
            return _Bits.NONE if is_difference else most if _Bits.NONE in given else _Bits.LOW
        case "not" | "neg" if most is _Bits.ADDRESS:
            return _Bits.NEGATED
        case "mad" if given[:2] == [_Bits.NONE, _Bits.NONE]:
            return most
        case "and":
            mask = next((each.value for each in sources if isinstance(each, Immediate)), None)
            if mask is None:
                return _Bits.LOW if _Bits.NONE not in given else _Bits.OTHER
            return _Bits.NONE if 0 <= mask < ALIGNMENT else _Bits.LOW if -ALIGNMENT <= mask < 0 else _Bits.OTHER
        case "or" | "xor" | "not" | "neg":
            return _Bits.LOW
        case "cvt" if not any(part.startswith(("f", "bf")) for part in instruction.modifiers):
            return _Bits.LOW
    return _Bits.OTHER


def _is_decided(instruction: Instruction, held: dict[str, _Bits]) -> bool:
    """Whether something hangs on bits of an address: a condition, a place in memory, or what memory holds."""
    operands = instruction.operands
    if instruction.opcode in ("setp", "set"):
        compared = [each for each in operands[1:] if _of(each, held)]
        if not compared:
            return False
        others = [each for each in operands[1:3] if each not in compared]
        is_null = all(isinstance(each, Immediate) and each.value == 0 for each in others)
        return not is_null or any(_of(each, held) is not _Bits.ADDRESS for each in compared)
    if instruction.opcode in _ACCESSES:
        places = [each.base for each in operands if isinstance(each, Address)]
        if any(_of(place, held) > _Bits.ADDRESS for place in places):
            return True
    if instruction.opcode == "st":
        stored = _of(operands[1], held)
        return stored > _Bits.ADDRESS or (stored is _Bits.ADDRESS and not _HELD & {*instruction.modifiers})
    if instruction.opcode in ("atom", "red"):
        return any(_of(each, held) for each in operands[1:])
    return instruction.opcode in ("brx", "shfl", "vote", "match") and any(_of(each, held) for each in operands)
