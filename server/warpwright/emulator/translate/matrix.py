"""Matrix instructions and asynchronous copies."""

from __future__ import annotations

import re

from warpwright.emulator.machine import matrix
from warpwright.emulator.numerics.matrix import BITS, Shape, fragment
from warpwright.emulator.ptx.model import Immediate, Instruction, Operand
from warpwright.emulator.ptx.types import space_of
from warpwright.emulator.translate.mbarrier import arrive_when_copied
from warpwright.emulator.translate.memory import parts_of
from warpwright.emulator.translate.registry import UnsupportedError, translates
from warpwright.emulator.translate.writer import Writer

_SHAPE = re.compile(r"m(\d+)n(\d+)k(\d+)$")
_SHAPES = {"m16n8k4", "m16n8k8", "m16n8k16", "m16n8k32", "m8n8k4"}
_TYPES = {"f16", "bf16", "tf32", "u8", "s8", "f64"}


def _shape(i: Instruction) -> tuple[int, int, int]:
    found = next(m for m in map(_SHAPE.match, i.modifiers) if m)
    return int(found[1]), int(found[2]), int(found[3])


def _tuple(values: list[str]) -> str:
    return f"({', '.join(values)},)"


@translates("ldmatrix")
def load_matrices(w: Writer, i: Instruction) -> None:
    if "m8n8" not in i.modifiers or i.modifiers[-1] != "b16" or w.mask is not None:
        raise UnsupportedError(f"{i.name} is not emulated")
    targets = parts_of(i.operands[0])
    base = w.address(i.operands[1])
    name = w.names.object("load_matrices", matrix.load_matrices)
    arguments = f"m, {w.step}, g, 'shared', {base}, {len(targets)}, {'trans' in i.modifiers}"
    found = w.local(f"{name}({arguments})")
    for place, target in enumerate(targets):
        w.result(target, "u4", f"{found}[{place}]")


@translates("stmatrix")
def store_matrices(w: Writer, i: Instruction) -> None:
    if "m8n8" not in i.modifiers or i.modifiers[-1] != "b16" or w.mask is not None:
        raise UnsupportedError(f"{i.name} is not emulated")
    values = _tuple([w.value(item, "u4") for item in parts_of(i.operands[1])])
    base = w.address(i.operands[0])
    name = w.names.object("store_matrices", matrix.store_matrices)
    w.emit(f"{name}(m, {w.step}, g, 'shared', {base}, {values}, {'trans' in i.modifiers})")


@translates("mma")
def multiply(w: Writer, i: Instruction) -> None:
    """`mma.sync.aligned.shape.row.col{.satfinite}.d.a.b.c d, a, b, c`."""
    types = i.modifiers[-4:]
    shape = next(m for m in i.modifiers if m.startswith("m") and m[1:2].isdigit())
    known = shape in _SHAPES and set(types[1:3]) <= _TYPES and "sp" not in i.modifiers and w.mask is None
    if not known or "xor" in i.modifiers or (shape == "m8n8k4") != (types[1] == "f64"):
        raise UnsupportedError(f"{i.name} is not emulated")
    _multiply(w, i, False, (types[0], types[1], types[2], types[3]))


@translates("wmma")
def warp_matrix(w: Writer, i: Instruction) -> None:
    """`wmma.load`, `wmma.mma` and `wmma.store`."""
    if w.mask is not None:
        raise UnsupportedError(f"{i.name} is not emulated under a guard")
    match i.modifiers[0]:
        case "mma":
            types = [m for m in i.modifiers if m in BITS]
            if len(types) == 2:  # of f16 only d and c are named
                types = [types[0], "f16", "f16", types[1]]
            _multiply(w, i, True, (types[0], types[1], types[2], types[3]))
        case "load":
            _load_fragment(w, i)
        case "store":
            _store_fragment(w, i)
        case _:
            raise UnsupportedError(f"{i.name} is not emulated")


def _multiply(w: Writer, i: Instruction, is_wmma: bool, types: tuple[str, str, str, str]) -> None:
    register = "u8" if types[1] == "f64" else "u4"
    fragments = [_tuple([w.value(item, register) for item in parts_of(operand)]) for operand in i.operands[1:4]]
    name = w.names.object("multiply", matrix.multiply)
    arguments = f"m, {w.step}, g, {is_wmma}, {_shape(i)}, {types}, {_tuple(fragments)}, {'satfinite' in i.modifiers}"
    found = w.local(f"{name}({arguments})")
    for place, target in enumerate(parts_of(i.operands[0])):
        w.result(target, register, f"{found}[{place}]")


def _fragment_form(i: Instruction, registers: int) -> tuple[str, int, int, int]:
    """The matrix, an element's bytes, the elements of a register and those of a lane."""
    type_name = i.modifiers[-1]
    bits = BITS[type_name]
    size = bits // 8
    each = max(1, 32 // bits)
    return i.modifiers[1], size, each, registers * each


def _addresses(w: Writer, i: Instruction, operand: Operand, stride: Operand | None, slots: int, size: int) -> str:
    name, shape = i.modifiers[1], _shape(i)
    by_row = "row" in i.modifiers
    base = w.address(operand)
    if stride is None:
        rows, columns = fragment(name, Shape(*shape))
        step = w.constant("u4", columns if by_row else rows)
    else:
        step = w.value(stride, "u4")
    function = w.names.object("wmma_addresses", matrix.wmma_addresses)
    return w.local(f"{function}({name!r}, {shape}, {slots}, {size}, {by_row}, {base}, {step}, g)")


def _load_fragment(w: Writer, i: Instruction) -> None:
    targets = parts_of(i.operands[0])
    _, size, each, slots = _fragment_form(i, len(targets))
    stride = i.operands[2] if len(i.operands) > 2 else None
    there = _addresses(w, i, i.operands[1], stride, slots, size)
    for place, target in enumerate(targets):
        parts = []
        for part in range(each):
            address = f"{there}[{place * each + part}]"
            value = f"m.load({w.step}, g, {space_of(i)!r}, {address}, {size}, 1, None)[0]"
            if each > 1:
                value = f"({value}.astype({w.dtype('u4')}) << {w.constant('u4', 8 * size * part)})"
            parts.append(value)
        w.result(target, "u4" if size <= 4 else "u8", " | ".join(parts))


def _store_fragment(w: Writer, i: Instruction) -> None:
    values = parts_of(i.operands[1])
    _, size, each, slots = _fragment_form(i, len(values))
    stride = i.operands[2] if len(i.operands) > 2 else None
    there = _addresses(w, i, i.operands[0], stride, slots, size)
    for place, item in enumerate(values):
        value = w.local(w.value(item, "u4" if size <= 4 else "u8"))
        for part in range(each):
            address = f"{there}[{place * each + part}]"
            piece = value
            if each > 1:
                piece = f"({value} >> {w.constant('u4', 8 * size * part)}).astype({w.dtype(f'u{size}')})"
            w.emit(f"m.store({w.step}, g, {space_of(i)!r}, {address}, {size}, ({piece},), None)")


@translates("cp")
def copy(w: Writer, i: Instruction) -> None:
    """`cp.async.ca.shared.global [to], [from], size{, read}{, policy}` and its commits and waits."""
    kinds = set(i.modifiers)
    if "async" not in kinds or kinds & {"bulk", "reduce"}:
        raise UnsupportedError(f"{i.name} is not emulated")
    if "mbarrier" in kinds:
        arrive_when_copied(w, i)
        return
    if "commit_group" in kinds:
        w.emit(f"m.copies.commit(g, {w.mask})")
    elif "wait_all" in kinds:
        w.emit(f"m.copies.wait(g, None, {w.mask})")
    elif "wait_group" in kinds:
        count = i.operands[0]
        assert isinstance(count, Immediate)
        w.emit(f"m.copies.wait(g, {int(count.value)}, {w.mask})")
    else:
        to, source, size, *rest = i.operands
        assert isinstance(size, Immediate)
        read = w.constant("u4", int(size.value))
        if rest and "L2::cache_hint" not in kinds:
            read = w.value(rest[0], "u4")
        target, there = w.address(to), w.address(source)
        w.emit(f"m.copies.start({w.step}, g, {target}, {there}, {int(size.value)}, {read}, {w.mask})")
