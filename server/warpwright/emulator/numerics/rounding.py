"""Rounding of an exact value that is held as a double and what the double leaves out (PTX ISA 9.7.3: .rn .rz .rm .rp).

A sum or product that a double cannot hold is kept as its nearest double and the sign of the error. Rounded *to odd* (an
inexact value takes the neighbour whose last bit is one) it can be rounded again, in any direction and to any format of
at most 51 bits, as if the exact value were rounded once: Boldo and Melquiond, "Emulation of a FMA and correctly rounded
sums", IEEE Transactions on Computers 57(4), 2008.
"""

from __future__ import annotations

from math import copysign, inf, ldexp

import numpy as np

from warpwright.emulator.numerics.lanes import Lanes, mend

ROUNDINGS = ("rn", "rz", "rm", "rp")

_HALF, _UPPER = np.int64(1 << 26), np.int64(-1 << 27)
_MANTISSA_BITS = 52
_MAX_EXPONENT = 1023


def two_sum(a: Lanes, b: Lanes) -> tuple[Lanes, Lanes]:
    """The nearest double to a + b and what it leaves out, exactly (Knuth)."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def two_product(a: Lanes, b: Lanes) -> tuple[Lanes, Lanes]:
    """The nearest double to a * b and what it leaves out: exact where the product's magnitude is above 2^-960 and
    finite (Dekker). a is split by rounding to 26 bits and 26 more with a sign, b by cutting to 26 and 27.
    """
    product = a * b
    a_high = ((a.view(np.int64) + _HALF) & _UPPER).view(np.float64)
    a_low = a - a_high
    b_high = (b.view(np.int64) & _UPPER).view(np.float64)
    b_low = b - b_high
    error = a_high * b_high
    error -= product
    error += a_high * b_low
    error += a_low * b_high
    error += a_low * b_low
    return product, error


def to_odd(value: Lanes, error: Lanes) -> Lanes:
    """value + error rounded to odd, where value is the nearest double to the sum.

    >>> to_odd(np.float64(1), np.float64(1e-30)).hex(), to_odd(np.float64(1), np.float64(0)).hex()
    ('0x1.0000000000001p+0', '0x1.0000000000000p+0')
    """
    bits = value.view(np.int64)
    inexact = (error < 0) | (error > 0)
    away = (error > 0) == (value > 0)
    # An odd last bit stays; an even one moves to the neighbour on the error's side.
    step = np.where(inexact & ((bits & np.int64(1)) == 0), np.where(away, np.int64(1), np.int64(-1)), np.int64(0))
    return (bits + step).view(np.float64)


def to_f32(value: Lanes, rounding: str) -> Lanes:
    """A double as float32.

    >>> float(to_f32(np.float64(1e300), "rz")), float(to_f32(np.float64(-1e-300), "rm"))
    (3.4028234663852886e+38, -1.401298464324817e-45)
    """
    nearest = value.astype(np.float32)
    if rounding == "rn":
        return nearest
    return directed(nearest, value - nearest.astype(np.float64), rounding)


def directed(nearest: Lanes, error: Lanes, rounding: str) -> Lanes:
    """The neighbour of `nearest` that .rz, .rm or .rp asks for; the sign of `error` says where the exact value lies.

    An infinite `nearest` of a finite value has an error toward zero, which leads back to the largest finite number.
    """
    if rounding == "rn":
        return nearest
    if rounding == "rm":
        return mend(nearest, error < 0, lambda lane: np.nextafter(lane, lane.dtype.type(-inf)), nearest)
    if rounding == "rp":
        return mend(nearest, error > 0, lambda lane: np.nextafter(lane, lane.dtype.type(inf)), nearest)
    inward = ((error < 0) & (nearest > 0)) | ((error > 0) & (nearest < 0))
    return mend(nearest, inward, lambda lane: np.nextafter(lane, lane.dtype.type(0)), nearest)


def exact_fma(a: Lanes, b: Lanes, c: Lanes, rounding: str) -> Lanes:
    """a * b + c of finite doubles by Python's integers, for the lanes where error-free transforms lose bits.

    >>> exact_fma(np.array([5e-324]), np.array([0.5]), np.array([5e-324]), "rn").tolist()
    [1e-323]
    """
    rows = zip(a.tolist(), b.tolist(), c.tolist(), strict=True)
    return np.array([_fma(*row, rounding) for row in rows], np.float64)


def exact_div(a: Lanes, b: Lanes, rounding: str) -> Lanes:
    """a / b of finite doubles, b not 0, by Python's integers."""
    return np.array([_div(*row, rounding) for row in zip(a.tolist(), b.tolist(), strict=True)], np.float64)


def _fma(a: float, b: float, c: float, rounding: str) -> float:
    (a_top, a_bottom), (b_top, b_bottom), (c_top, c_bottom) = (v.as_integer_ratio() for v in (a, b, c))
    top = a_top * b_top * c_bottom + c_top * a_bottom * b_bottom
    if top == 0:
        signs = {copysign(1, a) * copysign(1, b), copysign(1, c)} if c == 0 else {1, -1}
        return -0.0 if signs == {-1} or (len(signs) == 2 and rounding == "rm") else 0.0
    return _rounded(top, a_bottom * b_bottom * c_bottom, rounding)


def _div(a: float, b: float, rounding: str) -> float:
    if a == 0:
        return a / b
    (a_top, a_bottom), (b_top, b_bottom) = a.as_integer_ratio(), b.as_integer_ratio()
    sign = -1 if b_top < 0 else 1
    return _rounded(sign * a_top * b_bottom, sign * b_top * a_bottom, rounding)


def _rounded(top: int, bottom: int, rounding: str) -> float:
    """top / bottom as a double; bottom > 0 and top is not 0."""
    negative, top = top < 0, abs(top)
    exponent = top.bit_length() - bottom.bit_length()
    if top << max(0, -exponent) < bottom << max(0, exponent):
        exponent -= 1
    # The last bit of the result counts 2^last.
    last = max(exponent, 1 - _MAX_EXPONENT) - _MANTISSA_BITS
    whole, rest = divmod(top << max(0, -last), bottom << max(0, last))
    half = (2 * rest > bottom << max(0, last)) - (2 * rest < bottom << max(0, last))
    up = {
        "rn": half > 0 or (half == 0 and whole % 2 == 1),
        "rz": False,
        "rm": negative and rest > 0,
        "rp": not negative and rest > 0,
    }[rounding]
    whole += up
    if whole.bit_length() + last > _MAX_EXPONENT + 1:
        outward = rounding in ("rn", "rm" if negative else "rp")
        magnitude = inf if outward else ldexp(2**53 - 1, _MAX_EXPONENT - _MANTISSA_BITS)
    else:
        magnitude = ldexp(whole, last)
    return -magnitude if negative else magnitude
