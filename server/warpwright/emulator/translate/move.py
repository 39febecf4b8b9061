"""`mov`, `selp`, `slct`, `set`, `setp`, `cvta`, `isspacep` and predicate logic."""

from __future__ import annotations

import numpy as np

from warpwright.emulator.machine.group import Array
from warpwright.emulator.machine.memory import BLOCK_WINDOW, LOCAL_WINDOW, SHARED_WINDOW, WINDOW_BYTES
from warpwright.emulator.numerics import floats
from warpwright.emulator.ptx.model import Instruction, Pair, Vector
from warpwright.emulator.translate.registry import translates
from warpwright.emulator.translate.writer import Writer, kind_of, raw, width

WINDOWS = {"shared": SHARED_WINDOW, "local": LOCAL_WINDOW}


@translates("mov")
def move(w: Writer, i: Instruction) -> None:
    """Also packs and unpacks: `mov.b64 %rd1, {%r1, %r2}` and `mov.b64 {%r1, %r2}, %rd1` (PTX ISA, "mov")."""
    kind = raw(kind_of(i.modifiers[-1]))
    target, source = i.operands
    if isinstance(source, Vector):
        part = f"u{width(kind) // len(source.items)}"
        dtype = w.dtype(kind)
        terms = [
            f"({w.value(item, part)}.astype({dtype}) << {w.constant(kind, 8 * width(part) * place)})"
            for place, item in enumerate(source.items)
        ]
        w.result(target, kind, " | ".join(terms))
    elif isinstance(target, Vector):
        part = f"u{width(kind) // len(target.items)}"
        value = w.local(w.value(source, kind))
        for place, item in enumerate(target.items):
            shifted = f"({value} >> {w.constant(kind, 8 * width(part) * place)})"
            w.result(item, part, f"{shifted}.astype({w.dtype(part)})")
    else:
        w.alias(target, kind, w.value(source, kind))


@translates("cvta")
def convert_address(w: Writer, i: Instruction) -> None:
    """Between a space's own addresses and generic ones; those of global, const and param memory are the same."""
    space = next(m for m in i.modifiers if m.split("::")[0] in {"global", "shared", "local", "const", "param"})
    kind = kind_of(i.modifiers[-1])
    target, source = i.operands
    window = WINDOWS.get(space.split("::")[0])
    if window is None:
        w.alias(target, kind, w.value(source, kind))
        return
    sign = "-" if "to" in i.modifiers else "+"
    w.result(target, kind, f"{w.value(source, kind)} {sign} {w.constant(kind, window)}")


@translates("isspacep")
def is_in_space(w: Writer, i: Instruction) -> None:
    space = i.modifiers[0].split("::")[0]
    address = w.local(w.value(i.operands[1], "u8"))
    window = WINDOWS.get(space)
    if window is None:
        w.result(i.operands[0], "b1", f"{address} >= {w.constant('u8', LOCAL_WINDOW + WINDOW_BYTES)}")
        return
    own = BLOCK_WINDOW if i.modifiers[0] in {"shared", "shared::cta"} else WINDOW_BYTES
    low, high = w.constant("u8", window), w.constant("u8", window + own)
    w.result(i.operands[0], "b1", f"({address} >= {low}) & ({address} < {high})")


@translates("selp")
def select(w: Writer, i: Instruction) -> None:
    kind = raw(kind_of(i.modifiers[-1]))
    target, yes, no, predicate = i.operands
    w.result(target, kind, f"where({w.value(predicate, 'b1')}, {w.value(yes, kind)}, {w.value(no, kind)})")


@translates("slct")
def select_by_sign(w: Writer, i: Instruction) -> None:
    kind, by = raw(kind_of(i.modifiers[-2])), kind_of(i.modifiers[-1])
    target, yes, no, sign = i.operands
    test = f"{w.value(sign, by)} >= {w.constant(by, 0)}"
    w.result(target, kind, f"where({test}, {w.value(yes, kind)}, {w.value(no, kind)})")


_SIGNS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_UNSIGNED = {"lo": "<", "ls": "<=", "hi": ">", "hs": ">="}
_FLIPPED = {"ltu": "ge", "leu": "gt", "gtu": "le", "geu": "lt"}


def comparison(operator: str, type_name: str, a: str, b: str) -> str:
    """The text of a comparison (PTX ISA, "setp"). An unordered one holds where either operand is NaN."""
    if operator in _SIGNS and not (operator == "ne" and type_name[0] == "f"):
        return f"({a} {_SIGNS[operator]} {b})"
    if operator in _UNSIGNED:
        return f"({a} {_UNSIGNED[operator]} {b})"
    if operator == "ne":  # ordered: both are numbers
        return f"(({a} < {b}) | ({a} > {b}))"
    if operator == "neu":
        return f"({a} != {b})"
    if operator == "equ":
        return f"~(({a} < {b}) | ({a} > {b}))"
    if operator in _FLIPPED:
        return f"~({a} {_SIGNS[_FLIPPED[operator]]} {b})"
    if operator == "num":
        return f"(({a} == {a}) & ({b} == {b}))"
    assert operator == "nan"
    return f"(({a} != {a}) | ({b} != {b}))"


@translates("setp", "set")
def compare(w: Writer, i: Instruction) -> None:
    """`setp.cmp{.boolop}{.ftz}.type p|q, a, b{, c}` and `set`, which gives a number."""
    is_set = i.opcode == "set"
    modifiers = [m for m in i.modifiers if m != "ftz"]
    type_name = modifiers[-1]
    operator = modifiers[0]
    combine = next((m for m in modifiers[1:-1] if m in {"and", "or", "xor"}), None)
    target, left, right, *third = i.operands
    if type_name in {"f16", "f16x2", "bf16", "bf16x2"}:
        compare_halves(w, i, operator, type_name, combine)
        return
    kind = kind_of(type_name)
    a, b = (w.local(w.value(operand, kind)) for operand in (left, right))
    if "ftz" in i.modifiers:
        a, b = (w.local(w.call(floats.flush, value)) for value in (a, b))
    holds = w.local(comparison(operator, type_name, a, b))
    other = f"~{holds}"
    if combine is not None:
        c = w.local(w.value(third[0], "b1"))
        sign = {"and": "&", "or": "|", "xor": "^"}[combine]
        holds, other = w.local(f"{holds} {sign} {c}"), f"({other}) {sign} {c}"
    if is_set:
        result = kind_of(modifiers[-2])
        one = 0x3F800000 if result == "f4" else -1
        w.result(target, result, f"where({holds}, {w.constant(result, one)}, {w.constant(result, 0)})")
    elif isinstance(target, Pair):
        other = w.local(other)
        w.result(target.first, "b1", holds)
        w.result(target.second, "b1", other)
    else:
        w.result(target, "b1", holds)


def compare_halves(w: Writer, i: Instruction, operator: str, type_name: str, combine: str | None) -> None:
    """Halves are compared as float, which holds each of them; of a packed pair each half gives a predicate."""
    target, left, right, *third = i.operands
    if i.opcode == "set":
        raise ValueError(type_name)
    packed = type_name.endswith("x2")
    source = w.local(w.value(left, "u4" if packed else "u2")), w.local(w.value(right, "u4" if packed else "u2"))
    widen = _bf16_as_float if type_name.startswith("bf") else _f16_as_float
    targets = [target.first, target.second] if isinstance(target, Pair) else [target]
    for place, one in enumerate(targets):
        shift = w.constant("u4", 16 * place)
        values = [
            w.local(w.call(widen, f"({value} >> {shift}).astype({w.dtype('u2')})" if packed else value))
            for value in source
        ]
        holds = comparison(operator, "f32", *values)
        if not packed and place:
            holds = f"~{holds}"
        if combine is not None:
            holds = f"{holds} {({'and': '&', 'or': '|', 'xor': '^'})[combine]} {w.value(third[0], 'b1')}"
        w.result(one, "b1", holds)


def _f16_as_float(bits: Array) -> Array:
    """
    >>> float(_f16_as_float(np.uint16(0x3C00)))
    1.0
    """
    return bits.view(np.float16).astype(np.float32)


def _bf16_as_float(bits: Array) -> Array:
    """
    >>> float(_bf16_as_float(np.uint16(0x3F80)))
    1.0
    """
    return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32)


@translates("and", "or", "xor")
def logic(w: Writer, i: Instruction) -> None:
    kind = raw(kind_of(i.modifiers[-1]))
    target, a, b = i.operands
    sign = {"and": "&", "or": "|", "xor": "^"}[i.opcode]
    w.result(target, kind, f"{w.value(a, kind)} {sign} {w.value(b, kind)}")


@translates("not")
def invert(w: Writer, i: Instruction) -> None:
    kind = raw(kind_of(i.modifiers[-1]))
    w.result(i.operands[0], kind, f"~{w.value(i.operands[1], kind)}")
