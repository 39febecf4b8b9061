"""C++ names of element types, and how a value is read, written and spelled."""

from __future__ import annotations

import math
import struct
from decimal import Decimal

from warpwright.formulas.types import TYPES, ElementType, computed

NAMES = {
    "f64": "double", "f32": "float", "f16": "__half", "bf16": "__nv_bfloat16", "f8e4m3": "__nv_fp8_e4m3",
    "f8e5m2": "__nv_fp8_e5m2", "i8": "int8_t", "i16": "int16_t", "i32": "int", "i64": "long long", "u8": "uint8_t",
    "u16": "uint16_t", "u32": "unsigned", "u64": "unsigned long long", "bool": "bool", "c64": "thrust::complex<float>",
    "c128": "thrust::complex<double>",
}  # fmt: skip
"""Of each type in C++."""

_HALVES = {"f16": ("__float2half", "__half2float"), "bf16": ("__float2bfloat16", "__bfloat162float")}
"""How a float is rounded to them, and how they become one."""
_WHOLE_TO_BFLOAT16 = {
    "i32": "__int2bfloat16_rn", "i64": "__ll2bfloat16_rn", "u32": "__uint2bfloat16_rn", "u64": "__ull2bfloat16_rn",
}  # fmt: skip
"""Of whole numbers that a float does not hold, rounded once. Those that an f16 holds a float does, too."""
_HEADERS = {
    "f16": "cuda_fp16.h", "bf16": "cuda_bf16.h", "f8e4m3": "cuda_fp8.h", "f8e5m2": "cuda_fp8.h", "c64":
    "thrust/complex.h", "c128": "thrust/complex.h",
}  # fmt: skip


def headers_for(types: set[str]) -> list[str]:
    """The headers that a text with these types includes, besides those that every text does."""
    return sorted({_HEADERS[each] for each in types if each in _HEADERS})


def read(kind: ElementType, place: str) -> str:
    """The value at a place of memory, in the type in which is computed.

    >>> read(TYPES["f16"], "x[i]"), read(TYPES["f32"], "x[i]")
    ('__half2float(x[i])', 'x[i]')
    """
    if kind.name in _HALVES:
        return f"{_HALVES[kind.name][1]}({place})"
    if kind.is_float and kind.bits == 8:
        return f"static_cast<float>({place})"
    return place


def written(kind: ElementType, value: str, own: ElementType) -> str:
    """The value, of type `own`, as what is stored in memory of type `kind`.

    >>> written(TYPES["bf16"], "y", TYPES["f32"]), written(TYPES["f16"], "y", TYPES["f64"])
    ('__float2bfloat16(y)', '__double2half(y)')
    """
    if kind.name in _HALVES:
        to, back = _HALVES[kind.name]
        if own.name == "f64":
            to = to.replace("float2", "double2", 1)
        elif kind.name == "bf16" and own.name in _WHOLE_TO_BFLOAT16:
            to = _WHOLE_TO_BFLOAT16[own.name]
        else:
            value = _single(value, own)
        return _inside(value, back) or f"{to}({value})"
    if kind.is_float and kind.bits == 8:
        return f"{NAMES[kind.name]}({value if own.name == 'f64' else _single(value, own)})"
    if computed(own) == computed(kind) and kind.bits >= 32:
        return value
    if kind.kind == own.kind == "bool":
        return value
    if kind.kind in ("float", "complex") and own.kind in ("integer", "bool", "float"):
        return value if own.kind != "float" or own.bits <= kind.bits else f"static_cast<{NAMES[kind.name]}>({value})"
    if own.is_float and kind.kind == "integer":
        return _whole(kind, value, own)
    return f"static_cast<{NAMES[kind.name]}>({value})"


def _inside(value: str, function: str) -> str:
    """The argument of a call that is the whole text; "" of another text.

    >>> _inside("f(x[g(i)])", "f"), _inside("f(x) + f(y)", "f")
    ('x[g(i)]', '')
    """
    if not value.startswith(f"{function}("):
        return ""
    depth = 0
    for place, letter in enumerate(value):
        depth += (letter == "(") - (letter == ")")
        if letter == ")" and depth == 0:
            return value[len(function) + 1 : -1] if place == len(value) - 1 else ""
    return ""


def gives_other_than_0_of_nan(own: ElementType, kind: ElementType) -> bool:
    """Whether a GPU's conversion between these types makes another number than 0 of a NaN (PTX, `cvt`)."""
    return own.is_float and kind.kind == "integer" and 64 in (computed(own).bits, kind.bits)


def _whole(kind: ElementType, value: str, own: ElementType) -> str:
    """A floating-point value as the nearest whole number of a type. A conversion to int saturates, and one from int to
    fewer bits drops bits.

    >>> _whole(TYPES["i8"], "y", TYPES["f32"]), _whole(TYPES["i64"], "y", TYPES["f32"])
    ('static_cast<int8_t>(max(-128, min(static_cast<int>(y), 127)))', 'whole_of<long long>(y)')
    """
    convert = "whole_of" if gives_other_than_0_of_nan(own, kind) else "static_cast"
    if kind.bits >= 32:
        return f"{convert}<{NAMES[kind.name]}>({value})"
    low, high = limits(kind)
    return f"static_cast<{NAMES[kind.name]}>(max({low}, min({convert}<int>({value}), {high})))"


def limits(kind: ElementType) -> tuple[int, int]:
    """The least and the largest value of a type of whole numbers."""
    return (-(1 << (kind.bits - 1)), (1 << (kind.bits - 1)) - 1) if kind.signed else (0, (1 << kind.bits) - 1)


def _single(value: str, own: ElementType) -> str:
    return value if computed(own).name == "f32" else f"static_cast<float>({value})"


def literal(value: int | float | bool, kind: ElementType) -> str:
    """A number of a type.

    >>> literal(2, TYPES["f32"]), literal(2, TYPES["i64"]), literal(-math.inf, TYPES["f64"])
    ('2.0f', '2', '-INFINITY')
    """
    if kind.kind == "bool":
        return "true" if value else "false"
    if kind.kind == "integer":
        if isinstance(value, float):
            return literal(value, TYPES["f32"])
        number = int(value)
        if number == -(2**63):
            return "LLONG_MIN"
        if number == -(2**31) and kind.bits == 32:
            return "INT_MIN"
        return f"{number}u" if not kind.signed and number > 2**31 - 1 else str(number)
    if kind.kind == "complex":
        return f"{NAMES[kind.name]}({literal(value, TYPES['f64' if kind.bits == 128 else 'f32'])})"
    if math.isinf(value):
        return "INFINITY" if value > 0 else "-INFINITY"
    if math.isnan(value):
        return "NAN"
    text = repr(float(value)) if kind.bits == 64 else _short(float(value))
    return text if kind.bits == 64 else f"{text}f"


def _short(value: float) -> str:
    """The shortest text that names the same float of 32 bits.

    >>> _short(0.1), _short(1 / 3), _short(3.0), _short(100.0), _short(-1e-12)
    ('0.1', '0.33333333', '3.0', '100.0', '-1e-12')
    """
    single = struct.pack("f", value)
    for digits in range(1, 10):
        text = f"{value:.{digits}g}"
        if struct.pack("f", float(text)) == single:
            break
    if value and not 1e-4 <= abs(value) < 1e9:
        digits_, _, exponent = f"{Decimal(text):e}".partition("e")
        return f"{digits_}e{int(exponent)}"
    text = f"{Decimal(text):f}"
    return text if "." in text else f"{text}.0"
