"""Arithmetic done slowly and exactly, to hold the emulator's against: fractions, and rounding spelled out.

Shares no code with warpwright.emulator. A value is a Fraction, or one of the strings "+inf", "-inf", "nan", "-0".
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import floor

Value = Fraction | str


@dataclass(frozen=True)
class Format:
    """A binary floating-point format: bits of exponent and of fraction."""

    exponent: int
    fraction: int

    @property
    def width(self) -> int:
        return 1 + self.exponent + self.fraction

    @property
    def bias(self) -> int:
        return 2 ** (self.exponent - 1) - 1


F16, BF16, F32, F64 = Format(5, 10), Format(8, 7), Format(8, 23), Format(11, 52)


def decode(bits: int, form: Format) -> Value:
    """What the bits stand for."""
    negative = bits >> (form.width - 1)
    exponent = bits >> form.fraction & (2**form.exponent - 1)
    fraction = bits & (2**form.fraction - 1)
    if exponent == 2**form.exponent - 1:
        return "nan" if fraction else ("-inf" if negative else "+inf")
    if exponent == 0:
        magnitude = Fraction(fraction, 2**form.fraction) * Fraction(2) ** (1 - form.bias)
    else:
        magnitude = (1 + Fraction(fraction, 2**form.fraction)) * Fraction(2) ** (exponent - form.bias)
    if magnitude == 0:
        return "-0" if negative else Fraction(0)
    return -magnitude if negative else magnitude


def to_integer(value: Fraction, mode: str) -> int:
    """Rounded to an integer: rn (ties to even), rna (ties away from zero), rz, rm, rp."""
    low = floor(value)
    rest = value - low
    if rest == 0 or mode == "rm":
        return low
    if mode == "rp":
        return low + 1
    if mode == "rz":
        return low if value > 0 else low + 1
    if rest != Fraction(1, 2):
        return low + (rest > Fraction(1, 2))
    if mode == "rna":
        return low + 1 if value > 0 else low
    return low + low % 2


def encode(value: Value, form: Format, mode: str = "rn") -> int | None:
    """The bits of the value rounded to the format; None for NaN."""
    sign = 1 << (form.width - 1)
    infinity = (2**form.exponent - 1) << form.fraction
    if isinstance(value, str):
        return {"+inf": infinity, "-inf": sign | infinity, "-0": sign}.get(value)
    if value == 0:
        return 0
    negative, magnitude = value < 0, abs(value)
    # The power of two at or below the magnitude, and the weight of the last bit that the format keeps there.
    top = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
    top -= magnitude < Fraction(2) ** top
    last = max(top, 1 - form.bias) - form.fraction
    count = abs(to_integer(value / Fraction(2) ** last, mode))
    # Counted in units of the last bit, the encodings follow each other: a carry into the next binade comes out right.
    bits = count + ((last + form.fraction - (1 - form.bias)) << form.fraction)
    if bits >= infinity:
        outward = mode in ("rn", "rna") or (mode == "rm" and negative) or (mode == "rp" and not negative)
        bits = infinity if outward else infinity - 1
    return bits | sign if negative else bits


def flushed(value: Value, form: Format, mode: str = "rn") -> int:
    """The bits under .ftz: zero where the value, rounded with an exponent that has no least, is below the normal ones.

    >>> [hex(flushed(Fraction(2) ** -126 * (1 - Fraction(1, 2**n)), F32)) for n in (24, 25)]
    ['0x0', '0x800000']
    """
    bits, wide = encode(value, form, mode), Format(form.exponent + 6, form.fraction)
    unbounded = encode(value, wide, mode)
    assert bits is not None and unbounded is not None
    rounded = decode(unbounded, wide)
    tiny = not isinstance(rounded, str) and abs(rounded) < Fraction(2) ** (1 - form.bias)
    return bits & (1 << (form.width - 1)) if tiny else bits


def add(a: Value, b: Value, mode: str = "rn") -> Value:
    """a + b as IEEE 754 has it; the sign of a zero depends on the rounding mode."""
    if "nan" in (a, b) or {a, b} == {"+inf", "-inf"}:
        return "nan"
    for value in (a, b):
        if value in ("+inf", "-inf"):
            return value
    if a == b == "-0":
        return "-0"
    total = _number(a) + _number(b)
    if total == 0 and mode == "rm" and not (a == b == 0):
        return "-0"
    return total


def mul(a: Value, b: Value) -> Value:
    if "nan" in (a, b):
        return "nan"
    negative = _negative(a) != _negative(b)
    infinite = [value in ("+inf", "-inf") for value in (a, b)]
    zero = [not infinite[i] and _number(value) == 0 for i, value in enumerate((a, b))]
    if any(infinite):
        return "nan" if any(zero) else ("-inf" if negative else "+inf")
    if any(zero):
        return "-0" if negative else Fraction(0)
    return _number(a) * _number(b)


def fma(a: Value, b: Value, c: Value, mode: str = "rn") -> Value:
    return add(mul(a, b), c, mode)


def div(a: Value, b: Value) -> Value:
    if "nan" in (a, b):
        return "nan"
    negative = _negative(a) != _negative(b)
    if b in ("+inf", "-inf"):
        return "nan" if a in ("+inf", "-inf") else ("-0" if negative else Fraction(0))
    if a in ("+inf", "-inf"):
        return "-inf" if negative else "+inf"
    if _number(b) == 0:
        return "nan" if _number(a) == 0 else ("-inf" if negative else "+inf")
    if _number(a) == 0:
        return "-0" if negative else Fraction(0)
    return _number(a) / _number(b)


def _number(value: Value) -> Fraction:
    return Fraction(0) if value == "-0" else Fraction(value)


def _negative(value: Value) -> bool:
    return value in ("-inf", "-0") or (not isinstance(value, str) and value < 0)
