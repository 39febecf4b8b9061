"""Matrix products of a warpgroup."""

from __future__ import annotations

import re

from warpwright.emulator.numerics.warpgroup import depth_of
from warpwright.emulator.ptx.model import Immediate, Instruction, Operand, Vector
from warpwright.emulator.translate.memory import parts_of
from warpwright.emulator.translate.registry import UnsupportedError, translates
from warpwright.emulator.translate.writer import Writer

_SHAPE = re.compile(r"m64n(\d+)k(\d+)$")
_TYPES = {
    ("f32", "f16", "f16"), ("f16", "f16", "f16"), ("f32", "bf16", "bf16"), ("f32", "tf32", "tf32"),
    ("s32", "s8", "s8"), ("s32", "u8", "u8"),
}  # fmt: skip


@translates("wgmma")
def warpgroup(w: Writer, i: Instruction) -> None:
    """`wgmma.fence`, `.mma_async`, `.commit_group` and `.wait_group`."""
    if w.mask is not None:
        raise UnsupportedError(f"{i.name} is not emulated under a guard")
    match i.modifiers[0]:
        case "fence":
            w.emit(f"m.warpgroups.fence({w.step}, g)")
        case "commit_group":
            w.emit(f"m.warpgroups.commit({w.step}, g)")
        case "wait_group":
            w.emit(f"m.warpgroups.wait({w.step}, g, {_number(i.operands[0])})")
        case "mma_async":
            _multiply(w, i)
        case _:
            raise UnsupportedError(f"{i.name} is not emulated")


def _multiply(w: Writer, i: Instruction) -> None:
    """`wgmma.mma_async.sync.aligned.shape.d.a.b d, a, b, scale-d, imm-scale-a, imm-scale-b{, turned-a}{, turned-b}`."""
    types = (i.modifiers[-3], i.modifiers[-2], i.modifiers[-1])
    shape = next((found for found in map(_SHAPE.match, i.modifiers) if found), None)
    if types not in _TYPES or shape is None or int(shape[2]) != depth_of(types[1]) or "sp" in i.modifiers:
        raise UnsupportedError(f"{i.name} is not emulated")
    d, a, b, scale, *rest = i.operands
    numbers = [_number(each) for each in rest]
    signs = (numbers[0], numbers[1]) if len(numbers) > 1 else (1, 1)
    turned = [bool(each) for each in numbers[2:]]
    turned = [False] * (2 - len(turned)) + turned
    is_scaled = w.constant("b1", _number(scale)) if isinstance(scale, Immediate) else w.value(scale, "b1")
    left = _tuple([w.value(item, "u4") for item in parts_of(a)]) if isinstance(a, Vector) else w.value(a, "u8")
    sums = _tuple([w.value(item, "u4") for item in parts_of(d)])
    arguments = f"(64, {shape[1]}, {shape[2]}), {types[:2]}, {left}, {w.value(b, 'u8')}, {sums}, {is_scaled}"
    found = w.local(f"m.warpgroups.multiply({w.step}, g, {arguments}, {signs}, {tuple(turned)})")
    for place, target in enumerate(parts_of(d)):
        w.result(target, "u4", f"{found}[{place}]")


def _number(operand: Operand) -> int:
    assert isinstance(operand, Immediate)
    return int(operand.value)


def _tuple(values: list[str]) -> str:
    return f"({', '.join(values)},)"
