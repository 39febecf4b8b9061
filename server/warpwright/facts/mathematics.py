"""Functions of CUDA's math library and integer intrinsics, of numbers that are known.

Names and meanings are those of the CUDA Math API. Numbers are computed in double precision; what is done with an index
needs no more.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable

from warpwright.facts.lanes import Data, Number, lanes, simplify, wrapped
from warpwright.facts.model import WARP
from warpwright.facts.types import DOUBLE, FLOAT, HALF, INT, LONG, UINT, ULONG, CType

_CONVERSION = re.compile(
    r"__(?:float|double|int|uint|ll|ull|half|bfloat16)2(int|uint|ll|ull|float|double|half)(?:_(r[nzud]))?$"
)
_ROUNDED = re.compile(r"__([fd])(add|sub|mul|div|ma|maf)_(?:r[nzud])$")
_TYPES = {"int": INT, "uint": UINT, "ll": LONG, "ull": ULONG, "float": FLOAT, "double": DOUBLE, "half": HALF}
_ROUNDINGS: dict[str | None, Callable[[float], int]] = {
    "rn": round, "rz": math.trunc, "ru": math.ceil, "rd": math.floor, None: math.trunc,
}  # fmt: skip
_WORD, _LONG_WORD = (1 << 32) - 1, (1 << 64) - 1


def computed(name: str, arguments: list[Data]) -> tuple[Data, CType | None] | None:
    """What a function makes of known numbers, lane by lane, and its type; None for the type where it is that of the
    argument, and None for a function that is not known or takes other arguments.

    >>> computed("__float2int_rn", [2.5])[0], computed("__umulhi", [1 << 31, 6])[0], computed("tgamma", [1])
    (2, 3, None)
    """
    function, kind = _function(name)
    if function is None or not arguments or any(argument is None for argument in arguments):
        return None
    try:
        if not any(isinstance(argument, list) for argument in arguments):
            data: Data = _one(function, *arguments)
        else:
            columns = zip(*map(lanes, arguments), strict=True)
            data = simplify([_one(function, *column) for column in columns])
    except TypeError:  # another number of arguments
        return None
    return (wrapped(data, kind) if kind is not None else data), kind


def _one(function: Callable[..., Number], *numbers: object) -> Number | None:
    if any(number is None for number in numbers):
        return None
    try:
        found = function(*numbers)
        return None if isinstance(found, complex) else found  # a root of a negative number
    except (ValueError, OverflowError, ZeroDivisionError):
        return None


def _function(name: str) -> tuple[Callable[..., Number] | None, CType | None]:
    conversion = _CONVERSION.match(name)
    if conversion is not None:
        kind = _TYPES[conversion[1]]
        return (float if kind.kind == "float" else _ROUNDINGS[conversion[2]]), kind
    rounded = _ROUNDED.match(name)
    if rounded is not None:
        return _ARITHMETIC[rounded[2]], FLOAT if rounded[1] == "f" else DOUBLE
    known = _INTEGER.get(name)
    if known is not None:
        return known
    plain = name.removeprefix("__")
    if plain in _REAL:
        return _REAL[plain], None
    if plain.endswith("f") and plain[:-1] in _REAL:
        return _REAL[plain[:-1]], FLOAT
    whole = plain.removesuffix("f")
    return (_WHOLE[whole], LONG) if whole in _WHOLE else (None, None)


def _away(number: float) -> float:
    return math.copysign(math.floor(abs(number) + 0.5), number)


def _bits(form: str, into: str) -> Callable[[Number], Number]:
    return lambda number: struct.unpack(into, struct.pack(form, number))[0]


def _word_bits(into: str) -> Callable[[Number], Number]:
    return lambda number: struct.unpack(into, struct.pack("I", int(number) & _WORD))[0]


def _permuted(x: int, y: int, selector: int) -> int:
    """__byte_perm: each nibble of the selector picks one of the eight bytes of x and y."""
    whole = (x & _WORD) | (y & _WORD) << 32
    return sum((whole >> 8 * (selector >> 4 * i & 7) & 255) << 8 * i for i in range(4))


def _funnel(left: bool, clamps: bool) -> Callable[[int, int, int], int]:
    def shift(low: int, high: int, by: int) -> int:
        by = min(by, WARP) if clamps else by & 31
        whole = (low & _WORD) | (high & _WORD) << 32
        return (whole << by >> 32 if left else whole >> by) & _WORD

    return shift


_ARITHMETIC: dict[str, Callable[..., Number]] = {
    "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b, "div": lambda a, b: a / b,
    "ma": lambda a, b, c: a * b + c, "maf": lambda a, b, c: a * b + c,
}  # fmt: skip
_REAL: dict[str, Callable[..., Number]] = {
    "sqrt": math.sqrt, "floor": math.floor, "ceil": math.ceil, "fabs": abs, "exp": math.exp, "log": math.log,
    "log2": math.log2, "log10": math.log10, "sin": math.sin, "cos": math.cos, "tan": math.tan, "atan2": math.atan2,
    "trunc": math.trunc, "rint": round, "nearbyint": round, "round": _away, "pow": lambda a, b: float(a) ** float(b),
    "exp2": lambda a: 2.0**a, "exp10": lambda a: 10.0**a, "fma": lambda a, b, c: a * b + c, "fmod": math.fmod,
    "fdivide": lambda a, b: a / b, "rsqrt": lambda a: 1 / math.sqrt(a), "hypot": math.hypot,
    "fdim": lambda a, b: max(a - b, 0.0), "copysign": math.copysign, "ldexp": lambda a, b: math.ldexp(a, int(b)),
    "saturate": lambda a: min(max(a, 0.0), 1.0),
}  # fmt: skip
_WHOLE: dict[str, Callable[[float], Number]] = {
    "lrint": round, "llrint": round, "lround": _away, "llround": _away,
}  # fmt: skip
_INTEGER: dict[str, tuple[Callable[..., Number], CType]] = {
    "__umulhi": (lambda a, b: (a & _WORD) * (b & _WORD) >> 32, UINT),
    "__mulhi": (lambda a, b: a * b >> 32, INT),
    "__umul64hi": (lambda a, b: (a & _LONG_WORD) * (b & _LONG_WORD) >> 64, ULONG),
    "__mul64hi": (lambda a, b: a * b >> 64, LONG),
    "__sad": (lambda a, b, c: abs(a - b) + c, UINT),
    "__usad": (lambda a, b, c: abs(a - b) + c, UINT),
    "__byte_perm": (_permuted, UINT),
    "__funnelshift_l": (_funnel(left=True, clamps=False), UINT),
    "__funnelshift_r": (_funnel(left=False, clamps=False), UINT),
    "__funnelshift_lc": (_funnel(left=True, clamps=True), UINT),
    "__funnelshift_rc": (_funnel(left=False, clamps=True), UINT),
    "__float_as_int": (_bits("f", "i"), INT),
    "__float_as_uint": (_bits("f", "I"), UINT),
    "__int_as_float": (_word_bits("f"), FLOAT),
    "__uint_as_float": (_word_bits("f"), FLOAT),
    "__double_as_longlong": (_bits("d", "q"), LONG),
    "__longlong_as_double": (_bits("q", "d"), DOUBLE),
}
