"""Which PTX accesses ptxas made one access of, given the widths in its machine code.

Four `ld.shared.f32` of neighbouring words are one `LDS.128`, and a profiler counts the wavefronts of that one. Here the
accesses of a basic block whose addresses are one sum of registers plus a constant are put together, as wide as the
machine code has accesses at their source lines, and no more of them than it has. What ptxas merged over the iterations
of a loop that it unrolled is not found: PTX has such a loop's access once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from warpwright.emulator.flow import reads_and_writes
from warpwright.emulator.ptx.model import Address, Immediate, Instruction, Operand, Place, Register, Symbol, Vector
from warpwright.emulator.ptx.types import bytes_per_lane
from warpwright.facts.model import AccessKind, Space
from warpwright.toolchain.machine_code import MemoryInstruction

WIDTHS = (32, 16, 8, 4, 2)
_SPACES = {"global": Space.GLOBAL, "shared": Space.SHARED, "local": Space.LOCAL}
_KINDS = {"ld": AccessKind.LOAD, "ldu": AccessKind.LOAD, "st": AccessKind.STORE}
_WORDS = {"s32", "u32", "b32", "s64", "u64", "b64"}
_ORDERED = {"volatile", "relaxed", "acquire", "release", "mmio"}


@dataclass(frozen=True, slots=True)
class LineAccess:
    """The accesses of one kind to one space at one line: innermost place, as `.loc` and the line table have it."""

    file: str
    line: int
    space: Space
    kind: AccessKind


@dataclass(frozen=True, slots=True)
class Merged:
    """One access of the machine code. `members` are the PTX instructions that it is, by number, the lowest address
    first; the machine code has it at the line of the member `at`. `width` is in bytes per lane, and begins `before`
    bytes before the first member: a wide load may have bytes that nobody uses."""

    members: tuple[int, ...]
    at: int
    width: int
    before: int = 0


def widths_of(instructions: Iterable[MemoryInstruction]) -> dict[LineAccess, Counter[int]]:
    """How many accesses of each width a kernel's machine code has at each line."""
    found: dict[LineAccess, Counter[int]] = {}
    for i in instructions:
        if i.space is not None:
            found.setdefault(LineAccess(i.file, i.line, i.space, i.kind), Counter())[i.width] += 1
    return found


def merge(blocks: Sequence[Sequence[Instruction]], widths: Mapping[LineAccess, Counter[int]]) -> list[Merged]:
    """The accesses that are one in the machine code. An instruction's number is its place in all blocks together.

    >>> def load(row, offset):
    ...     operands = Register("%f1"), Address(Register("%r7"), offset)
    ...     return Instruction("ld", ("shared", "f32"), operands, None, Place("a.cu", 5, 1), row)
    >>> chosen = {LineAccess("a.cu", 5, Space.SHARED, AccessKind.LOAD): Counter({8: 1, 4: 2})}
    >>> merge([[load(1, 12), load(2, 0), load(3, 4), load(4, 20)]], chosen)
    [Merged(members=(1, 2), at=1, width=8, before=0)]
    """
    accesses = _accesses(blocks)
    clusters = [cluster for cluster in _clusters(accesses) if len(cluster) > 1]
    left = _still_to_find(clusters, accesses, widths)
    found: list[Merged] = []
    for cluster in clusters:
        taken: set[int] = set()
        for width in WIDTHS:
            for members in _candidates(cluster, width):
                place = next((m for m in members if left[m.line_access][width] > 0), None)
                if place is not None and not taken.intersection(m.number for m in members):
                    left[place.line_access][width] -= 1
                    taken.update(m.number for m in members)
                    before = members[0].offset % width if _bytes_of(members) < width else 0
                    found.append(Merged(tuple(m.number for m in members), place.number, width, before))
    return sorted(found, key=lambda m: m.members[0])


def find_lines(
    blocks: Sequence[Sequence[Instruction]], instructions: Sequence[MemoryInstruction], merged: Iterable[Merged]
) -> dict[int, Place]:
    """Places for accesses that the compiler moved and gave line 0, by number: where the machine code has them.

    The line table has no line 0, so that such an instruction counts for the line of the code before it. Those lines
    have more accesses than PTX says. Where there are as many too many as there are without a line, of one kind and
    width, they are taken to be the same in order; elsewhere none is placed.
    """
    wanted: dict[tuple[Space, AccessKind, int], list[int]] = {}
    expected: Counter[tuple[LineAccess, int]] = Counter()
    joined = {number: m for m in merged for number in m.members}
    for access in _accesses(blocks):
        one = joined.get(access.number)
        key, width = access.line_access, one.width if one else access.width
        if one is not None and one.at != access.number:
            continue
        if key.line:
            expected[key, width] += 1
        else:
            wanted.setdefault((key.space, key.kind, width), []).append(access.number)
    spare: dict[tuple[Space, AccessKind, int], list[MemoryInstruction]] = {}
    for i in instructions:
        if i.space is None:
            continue
        at = LineAccess(i.file, i.line, i.space, i.kind), i.width
        if expected[at]:
            expected[at] -= 1
        else:
            spare.setdefault((i.space, i.kind, i.width), []).append(i)
    return {
        number: _place_of(i)
        for what, numbers in wanted.items()
        if len(numbers) == len(spare.get(what, ()))
        for number, i in zip(numbers, spare[what], strict=True)
    }


def _place_of(instruction: MemoryInstruction) -> Place:
    """Where an instruction of the machine code stands; the line table has no columns, so it is the first."""
    caller: Place | None = None
    for file, line in reversed(instruction.callers):
        caller = Place(file, line, 1, caller)
    return Place(instruction.file, instruction.line, 1, caller)


# The accesses of PTX, with addresses as sums


@dataclass(frozen=True, slots=True)
class _Sum:
    """Registers and symbols by their factors, plus a constant in bytes."""

    terms: frozenset[tuple[str, int]] = frozenset()
    constant: int = 0

    def plus(self, other: _Sum, factor: int = 1) -> _Sum:
        terms = dict(self.terms)
        for name, times in other.terms:
            terms[name] = terms.get(name, 0) + factor * times
        kept = frozenset((name, times) for name, times in terms.items() if times)
        return _Sum(kept, self.constant + factor * other.constant)

    def times(self, factor: int) -> _Sum:
        return _Sum().plus(self, factor)


@dataclass(frozen=True, slots=True)
class _Access:
    """One load or store. Two with the same `base` differ by their `offset` alone, in one block, under one guard."""

    number: int
    base: tuple[object, ...]
    offset: int
    width: int
    line_access: LineAccess


def _accesses(blocks: Sequence[Sequence[Instruction]]) -> list[_Access]:
    values = _Values(Counter(name for block in blocks for i in block for name in reads_and_writes(i)[1]))
    found: list[_Access] = []
    number = 0
    for place, block in enumerate(blocks):
        values.start_block(place)
        for instruction in block:
            address = _address(instruction)
            space = next((_SPACES[m] for m in instruction.modifiers if m in _SPACES), None)
            at = instruction.place
            if address is not None and space is not None and at is not None:
                total = values.of(address.base)
                base = (place, space, instruction.opcode, instruction.guard, total.terms)
                key = LineAccess(at.file, at.line, space, _KINDS[instruction.opcode])
                offset = total.constant + address.offset
                found.append(_Access(number, base, offset, bytes_per_lane(instruction), key))
            values.step(instruction)
            number += 1
    return found


def _address(instruction: Instruction) -> Address | None:
    """The address of a load or store that ptxas may merge with others."""
    if instruction.opcode not in _KINDS or _ORDERED.intersection(instruction.modifiers):
        return None
    operand = instruction.operands[instruction.opcode != "st"]
    return operand if isinstance(operand, Address) else None


@dataclass(slots=True)
class _Values:
    """What registers hold, as sums of registers whose values are not followed.

    One that is written once means the same everywhere; of others only what the block itself wrote is known.
    """

    writes: Mapping[str, int]
    known: dict[str, _Sum] = field(default_factory=dict)
    of_block: dict[str, _Sum] = field(default_factory=dict)
    versions: int = 0
    block: int = 0

    def start_block(self, block: int) -> None:
        self.of_block = {}
        self.block = block

    def of(self, operand: Operand) -> _Sum:
        match operand:
            case Immediate(value, None):
                return _Sum(constant=int(value))
            case Symbol(name, offset):
                return _Sum(frozenset({(name, 1)}), offset)
            case Register(name):
                known = self.of_block.get(name) or self.known.get(name)
                if known is not None:
                    return known
                only_here = f"{name} in {self.block}" if self.writes.get(name, 0) > 1 else name
                return _Sum(frozenset({(only_here, 1)}))
        return self._unknown()

    def step(self, instruction: Instruction) -> None:
        """Follow one instruction's result."""
        for name in reads_and_writes(instruction)[1]:
            value = self._result(instruction) if instruction.guard is None else self._unknown()
            if self.writes.get(name, 0) > 1:
                self.of_block[name] = value
            else:
                self.known[name] = value

    def _unknown(self) -> _Sum:
        self.versions += 1
        return _Sum(frozenset({(f"value {self.versions}", 1)}))

    def _result(self, i: Instruction) -> _Sum:
        """Whole-number sums, with no regard for overflow: an address that wrapped would be no neighbour's."""
        if not i.modifiers or i.modifiers[-1] not in _WORDS or any(isinstance(o, Vector) for o in i.operands):
            return self._unknown()
        values = [self.of(o) for o in i.operands[1:]]
        constants = [v.constant if not v.terms else None for v in values]
        match i.opcode:
            case "mov" | "cvta":
                return values[0]
            case "cvt" if i.modifiers[-2] in _WORDS:
                return values[0]
            case "add":
                return values[0].plus(values[1])
            case "sub":
                return values[0].plus(values[1], -1)
            case "or" if constants[1] is not None and 0 <= constants[1] < _step(values[0]):
                return values[0].plus(values[1])
            case "shl" if constants[1] is not None and 0 <= constants[1] < 64:
                return values[0].times(1 << constants[1])
            case "mul" if "hi" not in i.modifiers and constants[1] is not None:
                return values[0].times(constants[1])
            case "mad" if "hi" not in i.modifiers and constants[1] is not None:
                return values[0].times(constants[1]).plus(values[2])
        return self._unknown()


def _step(value: _Sum) -> int:
    """The greatest power of two that divides a sum for sure; below it `or` of a constant is `+`."""
    total = value.constant
    for _, times in value.terms:
        total |= times
    return total & -total if total else 1 << 64


# Neighbours


def _clusters(accesses: Iterable[_Access]) -> list[list[_Access]]:
    """Accesses that are near enough to each other to be one, by address. Of two to one place the first counts."""
    by_base: dict[tuple[object, ...], dict[int, _Access]] = {}
    for access in accesses:
        by_base.setdefault(access.base, {}).setdefault(access.offset, access)
    clusters: list[list[_Access]] = []
    for group in by_base.values():
        end: int | None = None
        for offset in sorted(group):
            if end is None or offset - end >= WIDTHS[0]:
                clusters.append([])
            clusters[-1].append(group[offset])
            end = offset + group[offset].width
    return clusters


def _candidates(cluster: Sequence[_Access], width: int) -> Iterator[list[_Access]]:
    """Two accesses and more that may be one of `width` bytes, the likeliest first: those that fill it and begin at a
    multiple of it, those that fill it, and loads that leave bytes of it unused."""
    filling = [span for first in range(len(cluster)) if len(span := _span(cluster, first, width)) > 1]
    yield from (span for span in filling if span[0].offset % width == 0)
    yield from (span for span in filling if span[0].offset % width)
    if cluster[0].line_access.kind is AccessKind.LOAD:
        windows: dict[int, list[_Access]] = {}
        for access in cluster:
            window = windows.setdefault(access.offset // width, [])
            is_inside = (access.offset + access.width - 1) // width == access.offset // width
            if is_inside and (not window or window[-1].offset + window[-1].width <= access.offset):
                window.append(access)
        yield from (members for members in windows.values() if len(members) > 1 and _bytes_of(members) < width)


def _span(cluster: Sequence[_Access], first: int, width: int) -> list[_Access]:
    """The accesses from `first` on that fill just `width` bytes; none where they do not."""
    start = end = cluster[first].offset
    for last in range(first, len(cluster)):
        if cluster[last].offset != end:
            break
        end += cluster[last].width
        if end - start == width:
            return list(cluster[first : last + 1])
    return []


def _bytes_of(members: Iterable[_Access]) -> int:
    return sum(m.width for m in members)


def _still_to_find(
    clusters: Sequence[Sequence[_Access]], accesses: Iterable[_Access], widths: Mapping[LineAccess, Counter[int]]
) -> dict[LineAccess, Counter[int]]:
    """The accesses of the machine code that are no PTX instruction of the same width, for each line.

    Where ptxas unrolled a loop its code has them several times; lines whose accesses are neighbours are looked at
    together, and what PTX has once counts once.
    """
    asked: dict[LineAccess, Counter[int]] = {}
    for access in accesses:
        asked.setdefault(access.line_access, Counter())[access.width] += 1
    group_of = {key: key for key in asked}

    def root(key: LineAccess) -> LineAccess:
        while group_of[key] != key:
            key = group_of[key]
        return key

    for cluster in clusters:
        for access in cluster[1:]:
            group_of[root(access.line_access)] = root(cluster[0].line_access)
    wanted: Counter[LineAccess] = Counter()
    made: Counter[LineAccess] = Counter()
    for key, counts in asked.items():
        wanted[root(key)] += _bytes(counts)
        made[root(key)] += _bytes(widths.get(key, Counter()))
    left: dict[LineAccess, Counter[int]] = {}
    for key, counts in asked.items():
        copies = max(1, made[root(key)] // max(1, wanted[root(key)]))
        chosen = widths.get(key, Counter())
        left[key] = Counter({width: -(-n // copies) - counts[width] for width, n in chosen.items()})
    return left


def _bytes(counts: Mapping[int, int]) -> int:
    return sum(width * n for width, n in counts.items())
