"""Integer constants: literals as C reads them, folding, and macro substitution."""

from __future__ import annotations

import re

from warpwright.algebra.integers import integer_operation
from warpwright.facts import ir
from warpwright.facts.preprocessor import Macro
from warpwright.facts.types import BOOL, DOUBLE, FLOAT, INT, LONG, UINT, ULONG, CType
from warpwright.syntax.source import Span


def substitute(macro: Macro, arguments: list[str]) -> str:
    """The body of a function-like macro with its arguments in place (C standard, 6.10.3).

    >>> substitute(Macro("IDX", ("i", "j"), "((i) * N + (j))"), ["y + 1", "x"])
    '((y + 1) * N + (x))'
    """
    names = dict(zip(macro.parameters or (), arguments, strict=False))
    if macro.parameters and macro.parameters[-1] == "...":
        names["__VA_ARGS__"] = ", ".join(arguments[len(macro.parameters) - 1 :])
    body = re.sub(r"\b[A-Za-z_]\w*\b", lambda m: names.get(m.group(0), m.group(0)), macro.body)
    return re.sub(r"\s*##\s*", "", body)


def number(text: str, span: Span) -> ir.Expr:
    """A literal as C reads it: suffixes, hexadecimal, octal, binary, digit separators."""
    clean = text.replace("'", "").lower()
    try:
        if clean.startswith("0x") and "p" not in clean:
            digits = clean.rstrip("ul")
            return ir.Const(span, int(digits, 16), _integer_type(int(digits, 16), clean[len(digits) :]))
        if clean.startswith("0b"):
            digits = clean.rstrip("ul")
            return ir.Const(span, int(digits, 2), _integer_type(int(digits, 2), clean[len(digits) :]))
        if any(c in clean for c in ".ep") or clean.endswith("f"):
            digits = clean.rstrip("fl")
            value = float.fromhex(digits) if digits.startswith("0x") else float(digits)
            return ir.Const(span, value, FLOAT if clean.endswith("f") else DOUBLE)
        digits = clean.rstrip("ul")
        value = int(digits, 8) if len(digits) > 1 and digits.startswith("0") else int(digits)
        return ir.Const(span, value, _integer_type(value, clean[len(digits) :]))
    except (ValueError, OverflowError):
        return ir.Const(span, None, INT)


def _integer_type(value: int, suffix: str) -> CType:
    wide = "l" in suffix or value > 0xFFFFFFFF
    if "u" in suffix:
        return ULONG if wide else UINT
    return LONG if wide or value > 0x7FFFFFFF else INT


def fold(expr: ir.Expr | None) -> int | None:
    """The value of an integer constant expression, or None."""
    match expr:
        case ir.Const(value=value):
            return value if isinstance(value, int) else None
        case ir.Cast(operand=operand, type=kind) if kind.is_integer:
            return fold(operand)
        case ir.Unary(op=op, operand=operand):
            value = fold(operand)
            if value is None:
                return None
            return {"-": -value, "+": value, "~": ~value, "!": int(not value)}.get(op)
        case ir.Conditional(condition=condition, then=then, otherwise=otherwise):
            chosen = fold(condition)
            return None if chosen is None else fold(then if chosen else otherwise)
        case ir.Logical(op=op, left=left, right=right):
            a, b = fold(left), fold(right)
            if a is None or b is None:
                return None
            return int(bool(a and b)) if op == "&&" else int(bool(a or b))
        case ir.Binary(op=op, left=left, right=right):
            a, b = fold(left), fold(right)
            return integer_operation(op, a, b) if a is not None and b is not None else None
        case ir.Call(name=name, arguments=[left, right]) if name in ("max", "min"):
            a, b = fold(left), fold(right)
            return (max if name == "max" else min)(a, b) if a is not None and b is not None else None
    return None


LIMITS: dict[str, tuple[int, CType]] = {
    "INT32_MAX": (2**31 - 1, INT), "INT32_MIN": (-(2**31), INT), "UINT32_MAX": (2**32 - 1, UINT),
    "INT64_MAX": (2**63 - 1, LONG), "LONG_MAX": (2**63 - 1, LONG), "LLONG_MAX": (2**63 - 1, LONG),
    "UINT64_MAX": (2**64 - 1, ULONG), "SIZE_MAX": (2**64 - 1, ULONG), "SHRT_MAX": (2**15 - 1, INT),
    "USHRT_MAX": (2**16 - 1, INT), "CHAR_BIT": (8, INT), "UCHAR_MAX": (255, INT),
    "INT_MAX": (2**31 - 1, INT), "INT_MIN": (-(2**31), INT), "UINT_MAX": (2**32 - 1, UINT),
    "true": (1, BOOL), "false": (0, BOOL), "NULL": (0, LONG), "nullptr": (0, LONG),
}  # fmt: skip
