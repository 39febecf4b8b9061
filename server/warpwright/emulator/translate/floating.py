"""Floating-point arithmetic, on `numerics.floats`, `numerics.halves` and `numerics.approximate`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from warpwright.emulator.numerics import floats
from warpwright.emulator.ptx.model import Instruction
from warpwright.emulator.translate.registry import translates
from warpwright.emulator.translate.writer import Writer, kind_of

ROUNDINGS = ("rn", "rz", "rm", "rp")


def rounding_of(i: Instruction) -> str:
    return next((m for m in i.modifiers if m in ROUNDINGS), "rn")


def _operands(w: Writer, i: Instruction, kind: str) -> list[str]:
    values = [w.value(operand, kind) for operand in i.operands[1:]]
    if "ftz" in i.modifiers:
        values = [w.local(w.call(floats.flush, value)) for value in values]
    return values


def _finish(w: Writer, i: Instruction, kind: str, expression: str) -> None:
    """Flush and saturate as the modifiers say, and write."""
    if "ftz" in i.modifiers:
        expression = w.call(floats.flush, expression)
    if "sat" in i.modifiers:
        expression = w.call(floats.saturate, expression)
    w.result(i.operands[0], kind, expression)


def _compute(w: Writer, i: Instruction, function: Callable[..., Any]) -> None:
    kind = kind_of(i.modifiers[-1])
    rounding = rounding_of(i)
    extra = [] if rounding == "rn" else [repr(rounding)]
    _finish(w, i, kind, w.call(function, *_operands(w, i, kind), *extra))


def arithmetic(w: Writer, i: Instruction) -> None:
    """`add`, `sub` and `mul`."""
    if i.modifiers[-1] not in {"f32", "f64"}:
        raise ValueError(i.name)
    _compute(w, i, {"add": floats.add, "sub": floats.sub, "mul": floats.mul}[i.opcode])


@translates("fma")
def fused(w: Writer, i: Instruction) -> None:
    if i.modifiers[-1] not in {"f32", "f64"}:
        raise ValueError(i.name)
    _compute(w, i, floats.fma)


def divide(w: Writer, i: Instruction) -> None:
    _compute(w, i, floats.div)


@translates("rcp", "sqrt")
def root(w: Writer, i: Instruction) -> None:
    _compute(w, i, {"rcp": floats.rcp, "sqrt": floats.sqrt}[i.opcode])


def sign(w: Writer, i: Instruction) -> None:
    """`abs` and `neg`."""
    kind = kind_of(i.modifiers[-1])
    function = floats.absolute if i.opcode == "abs" else floats.negate
    _finish(w, i, kind, w.call(function, *_operands(w, i, kind)))


def extreme(w: Writer, i: Instruction) -> None:
    """`min` and `max`."""
    kind = kind_of(i.modifiers[-1])
    plain, with_nan = (
        (floats.minimum, floats.minimum_nan) if i.opcode == "min" else (floats.maximum, floats.maximum_nan)
    )
    values = _operands(w, i, kind)
    function = with_nan if "NaN" in i.modifiers else plain
    found = w.local(w.call(function, values[0], values[1]))
    for value in values[2:]:
        found = w.local(w.call(function, found, value))
    if "xorsign" in i.modifiers:
        found = w.call(floats.with_xor_sign, found, *values[:2])
    w.result(i.operands[0], kind, found)


@translates("copysign")
def copy_sign(w: Writer, i: Instruction) -> None:
    kind = kind_of(i.modifiers[-1])
    a, b = (w.value(operand, kind) for operand in i.operands[1:])
    w.result(i.operands[0], kind, w.call(floats.copysign, a, b))
