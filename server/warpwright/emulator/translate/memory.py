"""Loads, stores, atomics, and what orders them."""

from __future__ import annotations

from dataclasses import replace

from warpwright.emulator.ptx.model import Address, Instruction, Operand, Symbol, Vector
from warpwright.emulator.ptx.types import space_of, vector_length
from warpwright.emulator.translate.registry import UnsupportedError, translates
from warpwright.emulator.translate.writer import Writer, kind_of, raw, width


def parts_of(operand: Operand) -> tuple[Operand, ...]:
    """The registers of `{a, b}`; of another operand itself."""
    return operand.items if isinstance(operand, Vector) else (operand,)


@translates("ld", "ldu")
def load(w: Writer, i: Instruction) -> None:
    target, source = i.operands[:2]
    assert isinstance(source, Address)
    kind = kind_of(i.modifiers[-1])
    space = space_of(i)
    if space == "const" and "param" in i.modifiers:
        if isinstance(source.base, Symbol) and w.is_parameter(source.base.name):
            _load_parameter(w, kind, target, source)
            return
        space = "local"
    base = w.address(source)
    arguments = f"{w.step}, g, {space!r}, {base}, {width(kind)}, {vector_length(i)}, {w.mask}"
    taken = w.taken(i)
    values = w.local(f"m.load({arguments}{f', {taken}' if taken else ''})")
    for place, item in enumerate(parts_of(target)):
        value = f"{values}[{place}]"
        w.result(item, kind, value if kind == raw(kind) else f"{value}.view({w.dtype(kind)})")


def _load_parameter(w: Writer, kind: str, target: Operand, source: Address) -> None:
    """A kernel's own parameter: one number for all lanes."""
    assert isinstance(source.base, Symbol)
    for place, item in enumerate(parts_of(target)):
        offset = source.offset + place * width(kind)
        w.result(item, kind, f"m.parameter({source.base.name!r}, {offset}, {w.dtype(kind)})")


@translates("st")
def store(w: Writer, i: Instruction) -> None:
    target, source = i.operands[:2]
    kind = raw(kind_of(i.modifiers[-1]))
    space = space_of(i)
    if space == "const":
        space = "local"  # a parameter that is passed to a device function
    values = ", ".join(w.value(item, kind) for item in parts_of(source))
    base = w.address(target)
    w.emit(f"m.store({w.step}, g, {space!r}, {base}, {width(kind)}, ({values},), {w.mask})")


ATOMICS = {"add", "min", "max", "and", "or", "xor", "exch", "cas", "inc", "dec"}


@translates("atom", "red")
def atomic(w: Writer, i: Instruction) -> None:
    """`atom` gives what it found; `red` does not."""
    operation = next(m for m in i.modifiers if m in ATOMICS)
    type_name = i.modifiers[-1]
    is_half = type_name in {"f16", "f16x2", "bf16", "bf16x2"}
    if is_half and operation != "add":
        raise UnsupportedError(f"{i.name} is not emulated")
    kind = kind_of(type_name)
    if is_half:
        operation = f"add_{type_name}"
    has_result = i.opcode == "atom"
    place, *operands = i.operands[has_result:]
    assert isinstance(place, Address)
    for number in range(vector_length(i)):  # the elements of a vector are changed each by itself
        values = ", ".join(w.value(parts_of(operand)[number], kind) for operand in operands)
        base = w.address(replace(place, offset=place.offset + number * width(kind)))
        arguments = f"{w.step}, g, {space_of(i)!r}, {base}, {kind!r}, {operation!r}, ({values},), {w.mask}"
        found = w.local(f"m.atomic({arguments})")
        if has_result:
            w.result(parts_of(i.operands[0])[number], kind, found)


@translates("membar", "fence")
def fence(w: Writer, i: Instruction) -> None:
    """Memory is one and in order here; a fence counts for what blocks may know of each other."""
    if {"proxy", "async"} <= set(i.modifiers):
        w.emit(f"m.fence_proxy(g, {w.mask})")
    elif not {"cta", "proxy"} & set(i.modifiers):
        w.emit(f"m.fence(g, {w.mask})")


@translates("prefetch", "prefetchu", "discard", "applypriority")
def hint(w: Writer, i: Instruction) -> None:
    """There is no cache."""
