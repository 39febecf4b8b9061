"""Shuffles, votes, matches, reductions of a warp, and its barrier."""

from __future__ import annotations

from warpwright.emulator.machine import warp
from warpwright.emulator.ptx.model import Immediate, Instruction, Operand, Pair
from warpwright.emulator.translate.registry import UnsupportedError, translates
from warpwright.emulator.translate.writer import Writer, kind_of


def _meet(w: Writer, members: Operand) -> None:
    """Lanes of a warp meet, as at `bar.warp.sync`: those that are here, the others were waited for before."""
    w.emit(f"m.sync_warp(g, {w.mask})")
    names_all = isinstance(members, Immediate) and int(members.value) & 0xFFFFFFFF == 0xFFFFFFFF
    if not names_all:
        w.emit(f"m.need_own_lane({w.step}, g, {w.value(members, 'u4')}, {w.mask})")


def _both_results(w: Writer, target: Operand, found: str) -> None:
    """Write a value and whether it holds, which `d|p` asks for and `d` does not."""
    if isinstance(target, Pair):
        w.result(target.first, "u4", f"{found}[0]")
        w.result(target.second, "b1", f"{found}[1]")
    else:
        w.result(target, "u4", f"{found}[0]")


@translates("shfl")
def shuffle(w: Writer, i: Instruction) -> None:
    """`shfl.sync.mode.b32 d|p, a, b, c, membermask`."""
    target, value, distance, clamp, *members = i.operands
    if members:
        _meet(w, members[0])
    mode = next(m for m in i.modifiers if m in {"up", "down", "bfly", "idx"})
    numbers = ", ".join(w.value(operand, "u4") for operand in (value, distance, clamp))
    found = w.local(f"{w.names.object('shuffle', warp.shuffle)}(g, {mode!r}, {numbers})")
    if members:
        w.emit(f"m.need_lanes({w.step}, g, {found}[2], {w.value(members[0], 'u4')}, {w.mask})")
    _both_results(w, target, found)


@translates("vote")
def vote(w: Writer, i: Instruction) -> None:
    target, predicate, *members = i.operands
    mode = next(m for m in i.modifiers if m in {"all", "any", "uni", "ballot"})
    mask = w.value(members[0], "u4") if members else w.constant("u4", 0xFFFFFFFF)
    if members:
        _meet(w, members[0])
    kind = "u4" if mode == "ballot" else "b1"
    w.result(target, kind, f"{w.names.object('vote', warp.vote)}(g, {mode!r}, {w.value(predicate, 'b1')}, {mask})")


@translates("match")
def match(w: Writer, i: Instruction) -> None:
    target, value, members = i.operands
    kind = kind_of(i.modifiers[-1])
    _meet(w, members)
    arguments = f"g, {w.value(value, kind)}, {w.value(members, 'u4')}"
    if "any" in i.modifiers:
        w.result(target, "u4", f"{w.names.object('match_any', warp.match_any)}({arguments})")
        return
    found = w.local(f"{w.names.object('match_all', warp.match_all)}({arguments})")
    _both_results(w, target, found)


@translates("redux")
def reduce(w: Writer, i: Instruction) -> None:
    target, value, members = i.operands
    operation = next(m for m in i.modifiers if m in {"add", "min", "max", "and", "or", "xor"})
    kind = kind_of(i.modifiers[-1])
    if kind[0] == "f":
        raise UnsupportedError(f"{i.name} is not emulated")
    _meet(w, members)
    arguments = f"g, {operation!r}, {w.value(value, kind)}, {w.value(members, 'u4')}"
    w.result(target, kind, f"{w.names.object('reduce', warp.reduce)}({arguments})")


@translates("activemask")
def active_mask(w: Writer, i: Instruction) -> None:
    w.result(i.operands[0], "u4", f"{w.names.object('present', warp.present)}(g)")


@translates("bar", "barrier")
def barrier(w: Writer, i: Instruction) -> None:
    """`bar.warp.sync`, `bar.arrive` and `barrier.cluster.arrive`, at which nobody waits; others end a block."""
    kinds = set(i.modifiers)
    if "warp" in kinds:
        _meet(w, i.operands[-1])
        return
    if {"cluster", "arrive"} <= kinds:
        w.need_cluster()
        w.emit(f"m.clusters.arrive(g, {w.mask})")
        return
    if "arrive" in kinds:
        numbers = ", ".join(w.value(operand, "u4") for operand in i.operands)
        w.emit(f"m.arrive({w.step}, g, ({numbers},), {w.mask})")
        return
    raise UnsupportedError(f"{i.name} is not emulated")


@translates("nanosleep", "pmevent")
def wait(w: Writer, i: Instruction) -> None:
    """Time does not pass."""
