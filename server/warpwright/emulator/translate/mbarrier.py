"""Barriers in shared memory, and addresses of other blocks' shared memory in a cluster."""

from __future__ import annotations

from warpwright.emulator.ptx.model import Address, Immediate, Instruction
from warpwright.emulator.ptx.types import space_of
from warpwright.emulator.translate.registry import UnsupportedError, translates
from warpwright.emulator.translate.writer import Writer, kind_of


@translates("mbarrier")
def mbarrier(w: Writer, i: Instruction) -> None:
    """`mbarrier.init`, `.inval`, `.arrive`, `.arrive_drop`, `.expect_tx` and `.complete_tx`; waits end a block."""
    what = i.modifiers[0]
    place = next(operand for operand in i.operands if isinstance(operand, Address))
    rest = i.operands[i.operands.index(place) + 1 :]
    given = rest[0] if rest else Immediate(1)
    arguments = f"{w.step}, g, {space_of(i)!r}, {w.address(place)}"
    match what:
        case "init":
            w.emit(f"m.mbarriers.start({arguments}, {w.value(given, 'u4')}, {w.mask})")
        case "inval":
            w.emit(f"m.mbarriers.end({arguments}, {w.mask})")
        case "expect_tx" | "complete_tx":
            sign = 1 if what == "expect_tx" else -1
            w.emit(f"m.mbarriers.expect({arguments}, {w.value(given, 'u4')}, {sign}, {w.mask})")
        case "arrive" | "arrive_drop":
            one = Immediate(1)
            count, more_bytes = (one, given) if "expect_tx" in i.modifiers else (given, Immediate(0))
            numbers = f"{w.value(count, 'u4')}, {w.value(more_bytes, 'u4')}, {what == 'arrive_drop'}"
            found = w.local(f"m.mbarriers.arrive({arguments}, {numbers}, {w.mask})")
            if i.operands[0] is not place:
                w.result(i.operands[0], "u8", found)
        case _:
            raise UnsupportedError(f"{i.name} is not emulated")


def arrive_when_copied(w: Writer, i: Instruction) -> None:
    """`cp.async.mbarrier.arrive`: the copies are made at once. Without `.noinc` one arrival more is expected for it."""
    w.emit(f"m.copies.wait(g, None, {w.mask})")
    if "noinc" in i.modifiers:
        one, none = w.constant("u4", 1), w.constant("u4", 0)
        place = w.address(i.operands[0])
        w.emit(f"m.mbarriers.arrive({w.step}, g, {space_of(i)!r}, {place}, {one}, {none}, False, {w.mask})")


@translates("mapa")
def map_address(w: Writer, i: Instruction) -> None:
    """`mapa.u64 d, a, rank`."""
    w.need_cluster()
    target, address, rank = i.operands
    kind = kind_of(i.modifiers[-1])
    w.result(target, kind, f"m.clusters.address(g, {w.value(address, kind)}, {w.value(rank, 'u4')})")


@translates("getctarank")
def rank_of_address(w: Writer, i: Instruction) -> None:
    w.need_cluster()
    target, address = i.operands
    w.result(target, "u4", f"m.clusters.rank(g, {w.value(address, kind_of(i.modifiers[-1]))})")
