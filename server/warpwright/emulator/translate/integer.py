"""Integer arithmetic, shifts and bit operations, on `numerics.integers`."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from warpwright.emulator.numerics import integers
from warpwright.emulator.ptx.model import Immediate, Instruction
from warpwright.emulator.translate import floating
from warpwright.emulator.translate.registry import translates
from warpwright.emulator.translate.writer import Writer, kind_of, raw, width

_FLOATS = {"f16", "f16x2", "bf16", "bf16x2", "f32", "f64"}
_PAIRS = {"u16x2", "s16x2"}


def _is_float(i: Instruction) -> bool:
    return i.modifiers[-1] in _FLOATS


@translates("add", "sub")
def add(w: Writer, i: Instruction) -> None:
    if _is_float(i):
        floating.arithmetic(w, i)
        return
    target, a, b = i.operands
    kind = kind_of(i.modifiers[-1])
    left, right = w.value(a, kind), w.value(b, kind)
    if "cc" in i.modifiers:
        function = integers.add_cc if i.opcode == "add" else integers.sub_cc
        _with_carry(w, i, kind, w.call(function, left, right))
    elif "sat" in i.modifiers:
        w.result(target, kind, w.call(integers.add_sat if i.opcode == "add" else integers.sub_sat, left, right))
    elif i.modifiers[-1] in _PAIRS:
        _halves(w, i, np.add)
    else:
        w.result(target, kind, f"{left} {'+' if i.opcode == 'add' else '-'} {right}")


@translates("addc", "subc")
def add_with_carry(w: Writer, i: Instruction) -> None:
    kind = kind_of(i.modifiers[-1])
    _, a, b = i.operands
    function = integers.addc_cc if i.opcode == "addc" else integers.subc_cc
    _with_carry(w, i, kind, w.call(function, w.value(a, kind), w.value(b, kind), w.carry()))


def _with_carry(w: Writer, i: Instruction, kind: str, expression: str) -> None:
    """Write the result of an operation that gives (result, carry); the carry is kept where the text says `.cc`."""
    found = w.local(expression)
    w.result(i.operands[0], kind, f"{found}[0]")
    if "cc" in i.modifiers:
        w.set_carry(w.local(f"{found}[1]"))


def _halves(w: Writer, i: Instruction, function: Callable[..., object]) -> None:
    """An operation on both 16-bit halves of a register."""
    kind = "s2" if i.modifiers[-1].startswith("s") else "u2"
    values = [w.value(operand, "u4") for operand in i.operands[1:]]
    low, high = (
        w.local(
            f"{w.names.object(function.__name__, function)}("
            + ", ".join(
                f"({value} >> {w.constant('u4', shift)}).astype({w.dtype('u2')}).view({w.dtype(kind)})"
                for value in values
            )
            + ")"
        )
        for shift in (0, 16)
    )
    parts = [f"{half}.astype({w.dtype('u2')}).astype({w.dtype('u4')})" for half in (low, high)]
    w.result(i.operands[0], "u4", f"{parts[0]} | ({parts[1]} << {w.constant('u4', 16)})")


@translates("mul")
def multiply(w: Writer, i: Instruction) -> None:
    if _is_float(i):
        floating.arithmetic(w, i)
        return
    _multiply_add(w, i, None)


@translates("mad")
def multiply_add(w: Writer, i: Instruction) -> None:
    if _is_float(i):
        floating.fused(w, i)
        return
    _multiply_add(w, i, i.operands[3])


@translates("madc")
def multiply_add_with_carry(w: Writer, i: Instruction) -> None:
    kind = kind_of(i.modifiers[-1])
    product = _product(w, i, kind)
    function = integers.addc_cc
    _with_carry(w, i, kind, w.call(function, product, w.value(i.operands[3], kind), w.carry()))


def _product(w: Writer, i: Instruction, kind: str) -> str:
    a, b = (w.value(operand, kind) for operand in i.operands[1:3])
    return w.local(f"{a} * {b}" if "lo" in i.modifiers else w.call(integers.mul_hi, a, b))


def _multiply_add(w: Writer, i: Instruction, addend: object) -> None:
    kind = kind_of(i.modifiers[-1])
    target, a, b, *_ = i.operands
    left, right = w.value(a, kind), w.value(b, kind)
    if "wide" in i.modifiers:
        kind = f"{kind[0]}{2 * width(kind)}"
        wide = w.dtype(kind)
        product = f"{left}.astype({wide}) * {right}.astype({wide})"
    elif "lo" in i.modifiers:
        product = f"{left} * {right}"
    else:
        product = w.call(integers.mul_hi, left, right)
    if addend is None:
        w.result(target, kind, product)
        return
    c = w.value(i.operands[3], kind)
    if "sat" in i.modifiers:
        w.result(target, kind, w.call(integers.mad_hi_sat, left, right, c))
    elif "cc" in i.modifiers:
        _with_carry(w, i, kind, w.call(integers.add_cc, w.local(product), c))
    else:
        w.result(target, kind, f"{product} + {c}")


@translates("mul24", "mad24")
def multiply_24(w: Writer, i: Instruction) -> None:
    kind = kind_of(i.modifiers[-1])
    target, a, b, *c = i.operands
    function = integers.mul24_lo if "lo" in i.modifiers else integers.mul24_hi
    product = w.call(function, w.value(a, kind), w.value(b, kind))
    w.result(target, kind, f"{product} + {w.value(c[0], kind)}" if c else product)


def _simple(function: Callable[..., object]) -> Callable[[Writer, Instruction], None]:
    """A translator for an operation whose operands all have the instruction's type."""

    def translate(w: Writer, i: Instruction) -> None:
        kind = kind_of(i.modifiers[-1])
        w.result(i.operands[0], kind, w.call(function, *(w.value(operand, kind) for operand in i.operands[1:])))

    return translate


@translates("div", "rem")
def divide(w: Writer, i: Instruction) -> None:
    if _is_float(i):
        floating.divide(w, i)
        return
    _simple(integers.div if i.opcode == "div" else integers.rem)(w, i)


@translates("sad")
def sum_of_differences(w: Writer, i: Instruction) -> None:
    _simple(integers.sad)(w, i)


@translates("cnot")
def logical_not(w: Writer, i: Instruction) -> None:
    kind = raw(kind_of(i.modifiers[-1]))
    w.result(i.operands[0], kind, w.call(integers.cnot, w.value(i.operands[1], kind)))


@translates("abs", "neg")
def sign(w: Writer, i: Instruction) -> None:
    if _is_float(i):
        floating.sign(w, i)
        return
    kind = kind_of(i.modifiers[-1])
    value = w.value(i.operands[1], kind)
    w.result(i.operands[0], kind, f"abs({value})" if i.opcode == "abs" else f"-{value}")


@translates("min", "max")
def extreme(w: Writer, i: Instruction) -> None:
    if _is_float(i):
        floating.extreme(w, i)
        return
    function = np.minimum if i.opcode == "min" else np.maximum
    if i.modifiers[-1] in _PAIRS:
        _halves(w, i, function)
        return
    kind = kind_of(i.modifiers[-1])
    values = [w.value(operand, kind) for operand in i.operands[1:]]
    found = w.call(function, *values[:2])
    if "relu" in i.modifiers:
        found = w.call(function if i.opcode == "max" else np.maximum, found, w.constant(kind, 0))
    w.result(i.operands[0], kind, found)


@translates("popc", "clz", "bfind", "brev")
def count_bits(w: Writer, i: Instruction) -> None:
    function = {"popc": integers.popc, "clz": integers.clz, "bfind": integers.bfind, "brev": integers.brev}[i.opcode]
    if "shiftamt" in i.modifiers:
        function = integers.bfind_shiftamt
    kind = kind_of(i.modifiers[-1])
    result = kind if i.opcode == "brev" else "u4"
    w.result(i.operands[0], result, w.call(function, w.value(i.operands[1], kind)))


@translates("fns")
def find_nth(w: Writer, i: Instruction) -> None:
    _, mask, base, offset = i.operands
    arguments = w.value(mask, "u4"), w.value(base, "u4"), w.value(offset, "s4")
    w.result(i.operands[0], "u4", w.call(integers.fns, *arguments))


@translates("bfe")
def extract(w: Writer, i: Instruction) -> None:
    kind = kind_of(i.modifiers[-1])
    _, value, position, length = i.operands
    arguments = w.value(value, kind), w.value(position, "u4"), w.value(length, "u4")
    w.result(i.operands[0], kind, w.call(integers.bfe, *arguments))


@translates("bfi")
def insert(w: Writer, i: Instruction) -> None:
    kind = kind_of(i.modifiers[-1])
    _, field, base, position, length = i.operands
    arguments = w.value(field, kind), w.value(base, kind), w.value(position, "u4"), w.value(length, "u4")
    w.result(i.operands[0], kind, w.call(integers.bfi, *arguments))


@translates("bmsk", "szext")
def mask_bits(w: Writer, i: Instruction) -> None:
    functions = {
        ("bmsk", "wrap"): integers.bmsk_wrap,
        ("bmsk", "clamp"): integers.bmsk_clamp,
        ("szext", "wrap"): integers.szext_wrap,
        ("szext", "clamp"): integers.szext_clamp,
    }
    kind = kind_of(i.modifiers[-1])
    _, a, b = i.operands
    w.result(i.operands[0], kind, w.call(functions[i.opcode, i.modifiers[0]], w.value(a, kind), w.value(b, "u4")))


@translates("shl", "shr")
def shift(w: Writer, i: Instruction) -> None:
    """Amounts of the type's bits and more give 0, or the sign (PTX ISA, "shl" and "shr")."""
    kind = kind_of(i.modifiers[-1])
    target, value, amount = i.operands
    if isinstance(amount, Immediate) and 0 <= amount.value < 8 * width(kind):
        by = w.constant(kind, int(amount.value))
        w.result(target, kind, f"{w.value(value, kind)} {'<<' if i.opcode == 'shl' else '>>'} {by}")
        return
    function = integers.shl if i.opcode == "shl" else integers.shr
    w.result(target, kind, w.call(function, w.value(value, kind), w.value(amount, "u4")))


@translates("shf")
def funnel_shift(w: Writer, i: Instruction) -> None:
    functions = {
        ("l", "wrap"): integers.shf_l_wrap,
        ("l", "clamp"): integers.shf_l_clamp,
        ("r", "wrap"): integers.shf_r_wrap,
        ("r", "clamp"): integers.shf_r_clamp,
    }
    arguments = [w.value(operand, "u4") for operand in i.operands[1:]]
    w.result(i.operands[0], "u4", w.call(functions[i.modifiers[0], i.modifiers[1]], *arguments))


@translates("lop3")
def look_up(w: Writer, i: Instruction) -> None:
    """`lop3{.boolop}.b32 d{|p}, a, b, c, table{, q}`; the table is a constant, so its expression is written out."""
    target, a, b, c, table, *_ = i.operands
    assert isinstance(table, Immediate)
    if any(m in {"and", "or"} for m in i.modifiers):
        raise ValueError(i.name)
    names = dict(zip("abc", (w.local(w.value(operand, "u4")) for operand in (a, b, c)), strict=True))
    expression = integers.lop3_expression(int(table.value) & 0xFF)
    if expression in {"0", "~0"}:
        w.result(target, "u4", w.constant("u4", 0 if expression == "0" else -1))
        return
    text = "".join(names.get(character, character) for character in expression)
    w.result(target, "u4", text)


@translates("prmt")
def permute(w: Writer, i: Instruction) -> None:
    arguments = [w.value(operand, "u4") for operand in i.operands[1:]]
    mode = next((m for m in i.modifiers if m in {"f4e", "b4e", "rc8", "ecl", "ecr", "rc16"}), None)
    if mode is None:
        w.result(i.operands[0], "u4", w.call(integers.prmt, *arguments))
    else:
        w.result(i.operands[0], "u4", w.call(integers.prmt_mode, *arguments, repr(mode)))


@translates("dp4a", "dp2a")
def dot(w: Writer, i: Instruction) -> None:
    """`dp4a.atype.btype d, a, b, c`; the sum is signed where either is."""
    types = [m for m in i.modifiers if m in {"u32", "s32"}]
    a, b = (w.value(operand, kind_of(t)) for operand, t in zip(i.operands[1:3], types, strict=True))
    kind = "s4" if "s32" in types else "u4"
    function = integers.dp4a
    if i.opcode == "dp2a":
        function = integers.dp2a_lo if "lo" in i.modifiers else integers.dp2a_hi
    w.result(i.operands[0], kind, w.call(function, a, b, w.value(i.operands[3], kind)))
