"""f32 and f64 arithmetic, comparison and selection (PTX ISA 9.7.3 and 9.7.6), bit for bit.

`rounding` is "rn", "rz", "rm" or "rp". `.ftz` is `flush` on each operand and on the result, but for mul, fma, div and
rcp, which have functions of their own for it; `.sat` is `saturate` on the result.

f32 operations yield one NaN, 0x7fffffff. Those on f64 keep the sign and the payload of a NaN operand and make it quiet:
of b before a, in fma of b before c before a, in div of a before b. A NaN that no operand brings is 0xfff8000000000000.
Measured on an H200.
"""

from __future__ import annotations

from collections.abc import Callable
from math import isnan

import numpy as np

from warpwright.emulator.numerics.lanes import Lanes, mend, select
from warpwright.emulator.numerics.rounding import directed, exact_div, exact_fma, to_f32, to_odd, two_product, two_sum

NAN32: Lanes = np.uint32(0x7FFFFFFF).view(np.float32)
NAN64: Lanes = np.uint64(0xFFF8000000000000).view(np.float64)

_SIGN = {4: np.uint32(1 << 31), 8: np.uint64(1 << 63)}
_WORD = {4: np.dtype(np.uint32), 8: np.dtype(np.uint64)}
_QUIET = np.uint64(1 << 51)
_TIE = np.int64(-(2**63))


def canonical(result: Lanes) -> Lanes:
    """f32 with its NaNs as the hardware writes them.

    A NaN that only other f32 arithmetic, comparisons or conversions read need not be canonical: plain `a + b` will do.

    >>> hex(canonical(np.float32(np.nan)).view(np.uint32))
    '0x7fffffff'
    """
    if not _has_nan(result):
        return result
    return mend(result, np.isnan(result), lambda lane: np.full_like(lane, NAN32), result)


def _has_nan(a: Lanes) -> bool:
    """The largest of numbers is NaN where one is: one pass over the lanes, which leaves no array behind."""
    return isnan(a.max(initial=-np.inf))


def with_nan(result: Lanes, *operands: Lanes) -> Lanes:
    """The result of f32 or f64 arithmetic with the NaN that the hardware gives: of f64, that of the last operand."""
    if result.dtype == np.float32:
        return canonical(result)
    if not _has_nan(result):
        return result
    return mend(result, np.isnan(result), _last_nan, *operands)


def _last_nan(*operands: Lanes) -> Lanes:
    result = np.full_like(operands[0], NAN64)
    for operand in operands:
        result = np.where(np.isnan(operand), (operand.view(np.uint64) | _QUIET).view(np.float64), result)
    return result


# Arithmetic


def add(a: Lanes, b: Lanes, rounding: str = "rn") -> Lanes:
    """add: a + b. An exact sum of 0 is +0, under .rm -0, unless both operands are zeros of one sign.

    >>> add(np.float32(1), np.float32(2**-30), "rp").item().hex()
    '0x1.0000020000000p+0'
    """
    if rounding == "rn":
        return with_nan(a + b, a, b)
    return with_nan(_directed_sum(a, b, rounding), a, b)


def _directed_sum(a: Lanes, b: Lanes, rounding: str) -> Lanes:
    one, two = a.astype(np.float64), b.astype(np.float64)
    total, error = two_sum(one, two)
    if a.dtype == np.float32:
        result = to_f32(to_odd(total, error), rounding)
    else:
        result = directed(total, _error_of_huge(total, error, one, two), rounding)
    return _zero_below(result, rounding, one, two)


def sub(a: Lanes, b: Lanes, rounding: str = "rn") -> Lanes:
    """sub: a - b, as add of -b.

    >>> sub(np.float32(1), np.float32(2**-30), "rz").item().hex()
    '0x1.fffffe0000000p-1'
    """
    if rounding == "rn":
        return with_nan(a - b, a, b)
    return with_nan(_directed_sum(a, -b, rounding), a, b)


def mul(a: Lanes, b: Lanes, rounding: str = "rn") -> Lanes:
    """mul: a * b.

    >>> mul(np.float32(3e38), np.float32(10), "rz").item()
    3.4028234663852886e+38
    """
    if rounding == "rn":
        return with_nan(a * b, a, b)
    if a.dtype == np.float32:
        return canonical(to_f32(a.astype(np.float64) * b.astype(np.float64), rounding))
    return with_nan(_fma_f64(a, b, np.copysign(np.float64(0), a * b), rounding), a, b)


def fma(a: Lanes, b: Lanes, c: Lanes, rounding: str = "rn") -> Lanes:
    """fma: a * b + c, rounded once. (mad.f32 and mad.f64 are the same since sm_20.)

    >>> fma(np.float32(1 + 2**-12), np.float32(1 + 2**-12), np.float32(-1)).item().hex()
    '0x1.0008000000000p-11'
    """
    if a.dtype == np.float32:
        return _fma_f32(a, b, c, rounding)
    return with_nan(_fma_f64(a, b, c, rounding), a, c, b)


def _fma_f32(a: Lanes, b: Lanes, c: Lanes, rounding: str) -> Lanes:
    """The product is exact as a double and the sum is rounded to one. Rounding that to f32 differs from rounding the
    exact sum only where it is inexact and lies half-way between two f32 (29 bits below the last one are 100...0; other
    bits in the subnormal range, whose results raise the underflow flag): those lanes go through the odd neighbour.
    """
    product, addend = a.astype(np.float64) * b.astype(np.float64), c.astype(np.float64)
    total = product + addend
    if rounding != "rn":
        result = to_f32(to_odd(*two_sum(product, addend)), rounding)
        return canonical(_zero_below(result, rounding, product, addend))
    rare = (total.view(np.int64) << np.int64(35)) == _TIE
    try:
        with np.errstate(under="raise"):
            result = total.astype(np.float32)
    except FloatingPointError:
        result = total.astype(np.float32)
        rare = rare | (np.abs(total) < np.float64(2**-126))
    if rare.any():
        rare = rare & ((total - product != addend) | (total - addend != product))
        result = mend(result, rare, lambda x, y: to_odd(*two_sum(x, y)).astype(np.float32), product, addend)
    return canonical(result)


def _fma_f64(a: Lanes, b: Lanes, c: Lanes, rounding: str) -> Lanes:
    """Error-free transforms (after Boldo and Melquiond 2008): a * b + c = high + (low + rest), exactly.

    Where high is much smaller than the product, low is 0; else low and rest are below two units of high's last place,
    so that their sum, rounded to odd, has all the bits that decide. Adding the nearest double to `low + rest` instead
    is right unless that double is inexact and the sum then exactly half-way between two doubles. A part that overflows
    leaves a NaN, and a product below 2^-960 has a remainder that no double holds: those lanes are computed with
    integers.
    """
    product, rest = two_product(a, b)
    high, low = two_sum(product, c)
    if rounding == "rn":
        tail = low + rest
        result = high + tail
        left = tail - (result - high)
        rare = (left.view(np.int64) << np.int64(12)) == 0
        if rare.any() and (rare := rare & (left != 0)).any():
            rare = rare & ((tail - low != rest) | (tail - rest != low))
            result = mend(result, rare, lambda x, y, z: x + to_odd(*two_sum(y, z)), high, low, rest)
    else:
        result, left = two_sum(high, to_odd(*two_sum(low, rest)))
        result = directed(result, left, rounding)
    tiny, finite = np.abs(product) < np.float64(2.0**-960), np.isfinite(result)
    if tiny.any():
        result = mend(result, tiny & (result == 0), np.add, product, c)  # the sum of two zeros has a sign of its own
        tiny = tiny & (a != 0) & (b != 0)
    elif finite.all():
        return _zero_below(result, rounding, product, c)
    result = _zero_below(result, rounding, product, c)
    return mend(result, tiny | ~finite, lambda x, y, z: _fma_lanes(x, y, z, rounding), a, b, c)


def _fma_lanes(a: Lanes, b: Lanes, c: Lanes, rounding: str) -> Lanes:
    factors = np.isfinite(a) & np.isfinite(b)
    # A product of finite factors that overflows is still less than an infinite c.
    result = np.where(factors & np.isinf(c), c, a * b + c)
    return mend(result, factors & np.isfinite(c), lambda x, y, z: exact_fma(x, y, z, rounding), a, b, c)


def _error_of_huge(total: Lanes, error: Lanes, a: Lanes, b: Lanes) -> Lanes:
    """`error` with the right sign where two_sum overflows on finite operands."""

    def ordered(total: Lanes, a: Lanes, b: Lanes) -> Lanes:
        swapped = np.abs(a) < np.abs(b)
        larger, smaller = np.where(swapped, b, a), np.where(swapped, a, b)
        return np.where(np.isinf(total), -total, smaller - (total - larger))

    return mend(error, ~np.isfinite(error) & np.isfinite(a) & np.isfinite(b), ordered, total, a, b)


def _zero_below(result: Lanes, rounding: str, a: Lanes, b: Lanes) -> Lanes:
    """Under .rm, a + b that cancels exactly is -0."""
    if rounding != "rm":
        return result
    return mend(result, (result == 0) & (a == -b) & (np.signbit(a) != np.signbit(b)), lambda x: -np.abs(x), result)


def div(a: Lanes, b: Lanes, rounding: str = "rn") -> Lanes:
    """div: a / b, correctly rounded.

    >>> div(np.float32(1), np.float32(3), "rp").item().hex()
    '0x1.5555560000000p-2'
    """
    if rounding == "rn":
        return with_nan(a / b, b, a)
    if a.dtype == np.float32:
        # A quotient of two 24-bit numbers that is not exact is at least 2^-49 of itself away from any f32.
        return canonical(to_f32(a.astype(np.float64) / b.astype(np.float64), rounding))
    ordinary = np.isfinite(a) & np.isfinite(b) & (b != 0)
    return with_nan(mend(a / b, ordinary, lambda x, y: _div_f64(x, y, rounding), a, b), b, a)


def _div_f64(a: Lanes, b: Lanes, rounding: str) -> Lanes:
    """Finite a and b, b not 0. The remainder a - q * b says on which side of the quotient q the exact one lies."""
    quotient = a / b
    remainder = _fma_f64(-quotient, b, a, "rn")
    result = directed(quotient, remainder * np.sign(b), rounding)
    middling = [(np.abs(x) > np.float64(2.0**-900)) & (np.abs(x) < np.float64(2.0**900)) for x in (a, b, quotient)]
    extreme = ~(middling[0] & middling[1] & middling[2])
    return mend(result, extreme, lambda x, y: exact_div(x, y, rounding), a, b)


def rcp(a: Lanes, rounding: str = "rn") -> Lanes:
    """rcp: 1 / a, correctly rounded."""
    return div(a.dtype.type(1), a, rounding)


def sqrt(a: Lanes, rounding: str = "rn") -> Lanes:
    """sqrt: the square root, correctly rounded; NaN below 0, and -0 of -0.

    >>> sqrt(np.float32(2), "rp").item().hex(), sqrt(np.float64(2), "rm").item().hex()
    ('0x1.6a09e80000000p+0', '0x1.6a09e667f3bccp+0')
    """
    if rounding == "rn":
        return with_nan(np.sqrt(a), a)
    if a.dtype == np.float32:
        # A root of a 24-bit number that is not exact is at least 2^-49 of itself away from any f32.
        return canonical(to_f32(np.sqrt(a.astype(np.float64)), rounding))
    # A power of four brings the operand to a range where the remainder a - root * root is exact.
    scale = np.where(a < 2.0**-500, 2.0**600, np.where(a > 2.0**500, 2.0**-600, 1.0))
    scaled = a * scale
    root = np.sqrt(scaled)
    result = directed(root, _fma_f64(-root, root, scaled, "rn"), rounding) / np.sqrt(scale)
    return with_nan(result[()], a)


def flush(a: Lanes) -> Lanes:
    """.ftz: subnormal numbers become zeros of their sign.

    >>> flush(np.array([1e-40, -1e-40, 1.0], np.float32)).tolist()
    [0.0, -0.0, 1.0]
    """
    magnitude = np.abs(a)
    rare = magnitude < np.finfo(a.dtype).smallest_normal
    if not rare.any():
        return a
    return mend(a.copy(), rare & (magnitude > 0), lambda lane: lane * lane.dtype.type(0), a)


def mul_ftz(a: Lanes, b: Lanes, rounding: str = "rn") -> Lanes:
    """mul.ftz.f32: a result is 0 if it is below 2^-126 after rounding to 24 bits with no least exponent.

    So one that would have 23 bits as a subnormal, and rounds up to 2^-126 for that alone, is 0. Measured on an H200.

    >>> mul_ftz(np.float32(2**-125 - 2**-149), np.float32(0.5))
    np.float32(0.0)
    """
    a, b = flush(a), flush(b)
    return _flush_tiny(mul(a, b, rounding), rounding, lambda x, y: x * y, a, b)


def fma_ftz(a: Lanes, b: Lanes, c: Lanes, rounding: str = "rn") -> Lanes:
    """fma.ftz.f32 (mad.ftz.f32): by the rule of `mul_ftz`."""
    a, b, c = flush(a), flush(b), flush(c)
    return _flush_tiny(fma(a, b, c, rounding), rounding, lambda x, y, z: to_odd(*two_sum(x * y, z)), a, b, c)


def div_ftz(a: Lanes, b: Lanes, rounding: str = "rn") -> Lanes:
    """div.ftz.f32: by the rule of `mul_ftz`."""
    a, b = flush(a), flush(b)
    return _flush_tiny(div(a, b, rounding), rounding, lambda x, y: x / y, a, b)


def rcp_ftz(a: Lanes, rounding: str = "rn") -> Lanes:
    """rcp.ftz.f32: by the rule of `mul_ftz`."""
    return div_ftz(a.dtype.type(1), a, rounding)


def _flush_tiny(result: Lanes, rounding: str, exact: Callable[..., Lanes], *operands: Lanes) -> Lanes:
    """Flush f32 results by the rule of `mul_ftz`; `exact` gives them from doubles, good for one more rounding."""
    least = np.float32(2**-126)
    magnitude = np.abs(result)
    rare = magnitude <= least
    if not rare.any():
        return result

    def flushed(lane: Lanes, *given: Lanes) -> Lanes:
        scaled = to_f32(exact(*(operand.astype(np.float64) for operand in given)) * np.float64(2**64), rounding)
        return np.where(np.abs(scaled) < np.float32(2**-62), np.copysign(np.float32(0), lane), lane)

    return mend(result, rare & (magnitude > 0), flushed, result, *operands)


def saturate(a: Lanes) -> Lanes:
    """.sat: clamped to [0, 1]; NaN and -0 become +0.

    >>> saturate(np.array([2, 0.5, -3, np.nan], np.float32)).tolist()
    [1.0, 0.5, 0.0, 0.0]
    """
    of = a.dtype.type
    return np.fmin(np.fmax(a, of(0)), of(1)) + of(0)


def negate(a: Lanes) -> Lanes:
    """neg: the sign flipped, but of NaN, which is treated as by any f32 or f64 arithmetic (measured on an H200).

    >>> negate(np.float32(1)), hex(negate(np.float32(np.nan)).view(np.uint32))
    (np.float32(-1.0), '0x7fffffff')
    """
    return with_nan(-a, a)


def absolute(a: Lanes) -> Lanes:
    """abs: the sign cleared, but of NaN, as `negate`."""
    return with_nan(np.abs(a), a)


def minimum(a: Lanes, b: Lanes) -> Lanes:
    """min: the smaller one; the other where one is NaN; -0 is below +0.

    >>> minimum(np.float32(np.nan), np.float32(1)), minimum(np.float32(0.0), np.float32(-0.0))
    (np.float32(1.0), np.float32(-0.0))
    """
    return _zeros(_other_than_nan(np.fmin(a, b), a, b), a, b, np.bitwise_or)


def maximum(a: Lanes, b: Lanes) -> Lanes:
    """max: the larger one; the other where one is NaN; +0 is above -0."""
    return _zeros(_other_than_nan(np.fmax(a, b), a, b), a, b, np.bitwise_and)


def minimum_nan(a: Lanes, b: Lanes) -> Lanes:
    """min.NaN: as min, but NaN where either is NaN."""
    return with_nan(_zeros(np.minimum(a, b), a, b, np.bitwise_or), a, b)


def maximum_nan(a: Lanes, b: Lanes) -> Lanes:
    """max.NaN: as max, but NaN where either is NaN."""
    return with_nan(_zeros(np.maximum(a, b), a, b, np.bitwise_and), a, b)


def _other_than_nan(result: Lanes, a: Lanes, b: Lanes) -> Lanes:
    """NumPy gives a NaN for a signaling one too, on some processors."""
    return mend(result, np.isnan(result), lambda x, y: with_nan(np.where(np.isnan(x), y, x), x, y), a, b)


def _zeros(result: Lanes, a: Lanes, b: Lanes, pick: Callable[[Lanes, Lanes], Lanes]) -> Lanes:
    """Of two zeros NumPy takes either; the bits' `pick` is the right one."""
    if not (equal := a == b).any():
        return result
    word = _WORD[a.dtype.itemsize]
    return mend(result, equal & (result == 0), lambda x, y: pick(x.view(word), y.view(word)).view(x.dtype), a, b)


def with_xor_sign(result: Lanes, a: Lanes, b: Lanes) -> Lanes:
    """.xorsign of min and max of f32: `result` with the product of a's and b's signs; NaN is canonical.

    `.xorsign.abs` is `with_xor_sign(minimum(absolute(a), absolute(b)), a, b)`.
    """
    word, sign = _WORD[a.dtype.itemsize], _SIGN[a.dtype.itemsize]
    signs = (a.view(word) ^ b.view(word)) & sign
    return canonical(((result.view(word) & ~sign) | signs).view(result.dtype))


def copysign(a: Lanes, b: Lanes) -> Lanes:
    """copysign: b with a's sign.

    >>> copysign(np.float32(-1), np.float32(3))
    np.float32(-3.0)
    """
    word, sign = _WORD[a.dtype.itemsize], _SIGN[a.dtype.itemsize]
    return ((a.view(word) & sign) | (b.view(word) & ~sign)).view(b.dtype)


# Comparison and selection


def _ordered_ne(a: Lanes, b: Lanes) -> Lanes:
    return (a < b) | (a > b)


COMPARE: dict[str, Callable[[Lanes, Lanes], Lanes]] = {
    "eq": np.equal,
    "ne": _ordered_ne,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "equ": lambda a, b: ~_ordered_ne(a, b),
    "neu": np.not_equal,
    "ltu": lambda a, b: ~(a >= b),
    "leu": lambda a, b: ~(a > b),
    "gtu": lambda a, b: ~(a <= b),
    "geu": lambda a, b: ~(a < b),
    "num": lambda a, b: ~(np.isnan(a) | np.isnan(b)),
    "nan": lambda a, b: np.isnan(a) | np.isnan(b),
}
"""The comparisons of set and setp on floats: false where an operand is NaN, except those that end in u, and nan.

>>> bool(COMPARE["ne"](np.float32(np.nan), np.float32(1))), bool(COMPARE["neu"](np.float32(np.nan), np.float32(1)))
(False, True)
"""


def slct(a: Lanes, b: Lanes, c: Lanes) -> Lanes:
    """slct: a where c (s32 or f32) is 0 or more, -0 among them, else b; NaN takes b."""
    return select(c >= 0, a, b)


def _subnormal(a: Lanes) -> Lanes:
    return (a != 0) & (np.abs(a) < np.finfo(a.dtype).smallest_normal)


# testp by its name.
TESTS: dict[str, Callable[[Lanes], Lanes]] = {
    "finite": np.isfinite,
    "infinite": np.isinf,
    "number": lambda a: ~np.isnan(a),
    "notanumber": np.isnan,
    "normal": lambda a: np.isfinite(a) & ~_subnormal(a),  # zeros too: measured on an H200
    "subnormal": _subnormal,
}
