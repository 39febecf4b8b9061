"""Floating-point arithmetic, on `numerics.floats`, `numerics.halves` and `numerics.approximate`."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from warpwright.emulator.numerics import approximate, floats, halves
from warpwright.emulator.ptx.model import Instruction
from warpwright.emulator.translate.registry import translates
from warpwright.emulator.translate.writer import Writer, kind_of

ROUNDINGS = ("rn", "rz", "rm", "rp")
HALVES = {"f16", "f16x2", "bf16", "bf16x2"}


def rounding_of(i: Instruction) -> str:
    """The rounding that an instruction names; to nearest, even, for none."""
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


@cache
def half_operation(stem: str, type_name: str, after: tuple[str, ...]) -> Callable[..., Any]:
    """An operation on halves, followed by `ftz`, `sat` or `relu`; of a packed type, on both halves of a register."""
    single = type_name.removesuffix("x2")
    if "flush" in after and stem in {"mul", "fma"}:
        stem, after = f"{stem}_ftz", tuple(name for name in after if name != "flush")
    steps = [getattr(halves, f"{name}_{single}") for name in after]
    function: Callable[..., Any] = getattr(halves, f"{stem}_{single}")

    def finished(*operands: Any) -> Any:
        if "flush_f16" in {step.__name__ for step in steps}:
            operands = tuple(halves.flush_f16(operand) for operand in operands)
        found = function(*operands)
        for step in steps:
            found = step(found)
        return found

    whole = finished if steps else function
    if not type_name.endswith("x2"):
        return whole
    return halves.pairs(whole, np.float16 if single == "f16" else np.uint16)


_AFTER = {"ftz": "flush", "sat": "saturate", "relu": "relu"}


def on_halves(w: Writer, i: Instruction, stem: str) -> None:
    """Write an operation of `numerics.halves`."""
    type_name = i.modifiers[-1]
    after = tuple(_AFTER[m] for m in i.modifiers if m in _AFTER)
    kind = kind_of(type_name)
    function = half_operation(stem, type_name, after)
    name = w.names.object("_".join((stem, type_name, *after)), function)
    values = ", ".join(w.value(operand, kind) for operand in i.operands[1:])
    w.result(i.operands[0], kind, f"{name}({values})")


def _compute(w: Writer, i: Instruction, function: Callable[..., Any]) -> None:
    kind = kind_of(i.modifiers[-1])
    rounding = rounding_of(i)
    extra = [] if rounding == "rn" else [repr(rounding)]
    if "ftz" in i.modifiers and function in _FLUSHING:
        values = [w.value(operand, kind) for operand in i.operands[1:]]
        found = w.call(_FLUSHING[function], *values, *extra)
        w.result(i.operands[0], kind, w.call(floats.saturate, found) if "sat" in i.modifiers else found)
        return
    _finish(w, i, kind, w.call(function, *_operands(w, i, kind), *extra))


# Whether a result that is rounded up to the least normal number is flushed, its exact value alone says.
_FLUSHING = {
    floats.mul: floats.mul_ftz, floats.fma: floats.fma_ftz, floats.div: floats.div_ftz, floats.rcp: floats.rcp_ftz,
}  # fmt: skip


def arithmetic(w: Writer, i: Instruction) -> None:
    """`add`, `sub` and `mul`."""
    if i.modifiers[-1] in HALVES:
        on_halves(w, i, i.opcode)
    else:
        _compute(w, i, {"add": floats.add, "sub": floats.sub, "mul": floats.mul}[i.opcode])


@translates("fma")
def fused(w: Writer, i: Instruction) -> None:
    if i.modifiers[-1] in HALVES:
        on_halves(w, i, "fma")
    else:
        _compute(w, i, floats.fma)


def divide(w: Writer, i: Instruction) -> None:
    """`div`, also `.approx` and `.full`, which are within 2 units in the last place."""
    if "approx" not in i.modifiers and "full" not in i.modifiers:
        _compute(w, i, floats.div)
        return
    ftz = "ftz" in i.modifiers
    if "approx" in i.modifiers:
        function = approximate.div_ftz if ftz else approximate.div
    else:
        function = floats.div_ftz if ftz else floats.div
    w.result(i.operands[0], "f4", w.call(function, *(w.value(operand, "f4") for operand in i.operands[1:])))


_APPROXIMATE = {
    "rcp": approximate.rcp,
    "rsqrt": approximate.rsqrt,
    "sqrt": approximate.sqrt,
    "ex2": approximate.ex2,
    "lg2": approximate.lg2,
    "sin": approximate.sin,
    "cos": approximate.cos,
    "tanh": approximate.tanh,
}


@translates("rcp", "sqrt", "rsqrt", "ex2", "lg2", "sin", "cos", "tanh")
def function_of_one(w: Writer, i: Instruction) -> None:
    type_name = i.modifiers[-1]
    if type_name in HALVES:
        on_halves(w, i, i.opcode)
    elif type_name == "f64" and "approx" in i.modifiers:
        ftz = {"rcp": approximate.rcp_f64, "rsqrt": approximate.rsqrt_f64}[i.opcode]
        function = approximate.rsqrt_full_f64 if i.opcode == "rsqrt" and "ftz" not in i.modifiers else ftz
        w.result(i.operands[0], "f8", w.call(function, w.value(i.operands[1], "f8")))
    elif "approx" in i.modifiers:
        _finish(w, i, "f4", w.call(_APPROXIMATE[i.opcode], *_operands(w, i, "f4")))
    else:
        _compute(w, i, {"rcp": floats.rcp, "sqrt": floats.sqrt}[i.opcode])


def sign(w: Writer, i: Instruction) -> None:
    """`abs` and `neg`."""
    if i.modifiers[-1] in HALVES:
        on_halves(w, i, "absolute" if i.opcode == "abs" else "negate")
        return
    kind = kind_of(i.modifiers[-1])
    function = floats.absolute if i.opcode == "abs" else floats.negate
    _finish(w, i, kind, w.call(function, *_operands(w, i, kind)))


def extreme(w: Writer, i: Instruction) -> None:
    """`min` and `max`."""
    name = {"min": "minimum", "max": "maximum"}[i.opcode] + ("_nan" if "NaN" in i.modifiers else "")
    if i.modifiers[-1] in HALVES:
        if "xorsign" in i.modifiers:
            raise ValueError(i.name)
        on_halves(w, i, name)
        return
    kind = kind_of(i.modifiers[-1])
    function = getattr(floats, name)
    signed = _operands(w, i, kind)
    values = [w.local(w.call(floats.absolute, value)) for value in signed] if "abs" in i.modifiers else signed
    found = w.local(w.call(function, values[0], values[1]))
    for value in values[2:]:
        found = w.local(w.call(function, found, value))
    if "xorsign" in i.modifiers:
        found = w.call(floats.with_xor_sign, found, *signed[:2])
    w.result(i.operands[0], kind, found)


@translates("copysign")
def copy_sign(w: Writer, i: Instruction) -> None:
    """`copysign d, a, b`: the sign of a on b."""
    kind = kind_of(i.modifiers[-1])
    a, b = (w.value(operand, kind) for operand in i.operands[1:])
    w.result(i.operands[0], kind, w.call(floats.copysign, a, b))


@translates("testp")
def test_property(w: Writer, i: Instruction) -> None:
    kind = kind_of(i.modifiers[-1])
    value = w.local(w.value(i.operands[1], kind))
    tests = {
        "finite": "isfinite({0})",
        "infinite": "isinf({0})",
        "number": "({0} == {0})",
        "notanumber": "({0} != {0})",
    }
    for name in ("isfinite", "isinf"):
        w.names.object(name, getattr(np, name))
    small = f"(abs({value}) < {w.constant(kind, int(np.finfo(_FLOAT[kind]).tiny.view(_BITS[kind])))})"
    tests["subnormal"] = f"({small} & ({value} != {w.constant(kind, 0)}))"
    tests["normal"] = f"(isfinite({{0}}) & ~{tests['subnormal']})"
    w.result(i.operands[0], "b1", tests[i.modifiers[0]].format(value))


_FLOAT: dict[str, Any] = {"f4": np.float32, "f8": np.float64}
_BITS: dict[str, Any] = {"f4": np.uint32, "f8": np.uint64}
