"""Arithmetic on f16 and bf16, one value or two packed in a word (PTX ISA 9.7.4, half precision; 9.7.3 for bf16 forms).

f16 values are float16, bf16 values their bits as uint16. A packed word is uint32 with the first element below;
`pairs` turns an operation on single values into one on packed words. NaN is 0x7fff in both formats. Subnormal numbers
count in full; `.ftz` is `flush_f16` on operands and result, but for mul and fma, which have functions of their own for
it; `.sat` is `saturate_f16`, `.relu` is `relu_f16` and `relu_bf16`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from warpwright.emulator.numerics import floats
from warpwright.emulator.numerics.lanes import Lanes, mend
from warpwright.emulator.numerics.rounding import to_odd, two_sum

NAN16 = np.uint16(0x7FFF)
_INFINITY_F16, _INFINITY_BF16 = np.uint16(0x7C00), np.uint16(0x7F80)

# Each f16 as f32: a table is faster than NumPy's conversion.
_F32_OF_F16: Lanes = np.arange(1 << 16, dtype=np.uint32).astype(np.uint16).view(np.float16).astype(np.float32)
_F32_OF_F16[np.isnan(_F32_OF_F16)] = floats.NAN32


def pairs(function: Callable[..., Lanes], kind: type = np.float16) -> Callable[..., Lanes]:
    """`function`, on values of `kind` (numpy.float16, or numpy.uint16 for bf16), for both halves of packed words.

    >>> hex(pairs(add_f16)(np.uint32(0x3C004000), np.uint32(0x3C003C00)))
    '0x40004200'
    """

    def packed(*words: Lanes) -> Lanes:
        result = function(*(np.reshape(word, (-1, 1)).view(kind) for word in words))
        if not any(np.ndim(word) for word in words):
            return result.view(np.uint32)[0, 0]
        return np.ascontiguousarray(result).view(np.uint32)[:, 0]

    return packed


# f16


def f32_of_f16(a: Lanes) -> Lanes:
    """The same value as float32; NaN is canonical."""
    return _F32_OF_F16.take(a.view(np.uint16), mode="wrap")


def f16_of(a: Lanes) -> Lanes:
    """float32 or float64, rounded to nearest even; NaN becomes 0x7fff.

    >>> f16_of(np.array([65519.9, 65520])).tolist()
    [65504.0, inf]
    """
    return mend(a.astype(np.float16), np.isnan(a), lambda lane: np.full(lane.shape, NAN16).view(np.float16), a)


# The sum and the product of two f16, rounded to f32 first, round to the right f16: 24 bits are at least 2 * 11 + 2.


def add_f16(a: Lanes, b: Lanes) -> Lanes:
    """add.f16

    >>> add_f16(np.float16(2048), np.float16(1)).item()
    2048.0
    """
    return f16_of(f32_of_f16(a) + f32_of_f16(b))


def sub_f16(a: Lanes, b: Lanes) -> Lanes:
    """sub.f16"""
    return f16_of(f32_of_f16(a) - f32_of_f16(b))


def mul_f16(a: Lanes, b: Lanes) -> Lanes:
    """mul.f16"""
    return f16_of(f32_of_f16(a) * f32_of_f16(b))


def fma_f16(a: Lanes, b: Lanes, c: Lanes) -> Lanes:
    """fma.rn.f16: a * b + c, rounded once.

    A double holds the sum, or else rounds off bits so far below it that no sum comes to lie half-way between two f16:
    c then is more than 2^31 times the product, or the result is infinite.
    """
    return f16_of(_sum_of_product(a, b, c))


def _sum_of_product(a: Lanes, b: Lanes, c: Lanes) -> Lanes:
    return (f32_of_f16(a) * f32_of_f16(b)).astype(np.float64) + f32_of_f16(c).astype(np.float64)


def mul_ftz_f16(a: Lanes, b: Lanes) -> Lanes:
    """mul.ftz.f16: a result is 0 if it is below 2^-14 after rounding to 11 bits with no least exponent, as in
    `floats.mul_ftz` (measured on an H200).

    >>> mul_ftz_f16(np.float16(2**-13 - 2**-24), np.float16(0.5))
    np.float16(0.0)
    """
    a, b = flush_f16(a), flush_f16(b)
    return _flush_tiny(f32_of_f16(a) * f32_of_f16(b))


def fma_ftz_f16(a: Lanes, b: Lanes, c: Lanes) -> Lanes:
    """fma.ftz.f16: by the rule of `mul_ftz_f16`."""
    return _flush_tiny(_sum_of_product(flush_f16(a), flush_f16(b), flush_f16(c)))


def _flush_tiny(exact: Lanes) -> Lanes:
    result = f16_of(exact)
    tiny = np.abs(f16_of(exact * exact.dtype.type(2**12))) < np.float16(2**-2)
    return mend(result, tiny, lambda lane: np.copysign(np.float16(0), lane), result)


def minimum_f16(a: Lanes, b: Lanes) -> Lanes:
    """min.f16, by the rules of `floats.minimum`; so the others below."""
    return f16_of(floats.minimum(f32_of_f16(a), f32_of_f16(b)))


def maximum_f16(a: Lanes, b: Lanes) -> Lanes:
    """max.f16"""
    return f16_of(floats.maximum(f32_of_f16(a), f32_of_f16(b)))


def minimum_nan_f16(a: Lanes, b: Lanes) -> Lanes:
    """min.NaN.f16"""
    return f16_of(floats.minimum_nan(f32_of_f16(a), f32_of_f16(b)))


def maximum_nan_f16(a: Lanes, b: Lanes) -> Lanes:
    """max.NaN.f16"""
    return f16_of(floats.maximum_nan(f32_of_f16(a), f32_of_f16(b)))


def negate_f16(a: Lanes) -> Lanes:
    """neg.f16; NaN is canonical."""
    return _canonical(a.view(np.uint16) ^ np.uint16(0x8000), _INFINITY_F16).view(np.float16)


def absolute_f16(a: Lanes) -> Lanes:
    """abs.f16; NaN is canonical."""
    return _canonical(a.view(np.uint16) & np.uint16(0x7FFF), _INFINITY_F16).view(np.float16)


def _canonical(bits: Lanes, infinity: Lanes) -> Lanes:
    return mend(bits, (bits & np.uint16(0x7FFF)) > infinity, lambda lane: np.full(lane.shape, NAN16), bits)


def flush_f16(a: Lanes) -> Lanes:
    """.ftz: subnormal f16 become zeros of their sign."""
    bits = a.view(np.uint16)
    return np.where(bits & np.uint16(0x7C00), bits, bits & np.uint16(0x8000))[()].view(np.float16)


def saturate_f16(a: Lanes) -> Lanes:
    """.sat: clamped to [0, 1]; NaN and -0 become +0."""
    return floats.saturate(f32_of_f16(a)).astype(np.float16)


def relu_f16(a: Lanes) -> Lanes:
    """.relu: numbers below 0, and -0, become +0; NaN stays, canonical.

    >>> relu_f16(np.array([-1, 2], np.float16)).tolist()
    [0.0, 2.0]
    """
    return _relu(a.view(np.uint16), _INFINITY_F16).view(np.float16)


def satfinite_f16(a: Lanes) -> Lanes:
    """.satfinite: infinity becomes the largest finite number of its sign.

    >>> satfinite_f16(np.array([np.inf, -np.inf, 1], np.float16)).tolist()
    [65504.0, -65504.0, 1.0]
    """
    return _satfinite(a.view(np.uint16), _INFINITY_F16).view(np.float16)


def _satfinite(bits: Lanes, infinity: Lanes) -> Lanes:
    return bits - ((bits & np.uint16(0x7FFF)) == infinity)


def _relu(bits: Lanes, infinity: Lanes) -> Lanes:
    magnitude = bits & np.uint16(0x7FFF)
    clamped = bits * (bits == magnitude)
    return mend(clamped, magnitude > infinity, lambda lane: np.full(lane.shape, NAN16), bits)


def ex2_f16(a: Lanes) -> Lanes:
    """ex2.approx.f16. The manual: 2^-9.9 relative; here it is rounded correctly."""
    return f16_of(np.exp2(f32_of_f16(a).astype(np.float64)))


def tanh_f16(a: Lanes) -> Lanes:
    """tanh.approx.f16. The manual: 2^-10.987 absolute; here it is rounded correctly."""
    return f16_of(np.tanh(f32_of_f16(a).astype(np.float64)))


# bf16


def f32_of_bf16(a: Lanes) -> Lanes:
    """The same value as float32; a bf16 is the upper half of an f32."""
    return (a.astype(np.uint32) << np.uint32(16)).view(np.float32)


def bf16_of_f32(a: Lanes) -> Lanes:
    """float32 rounded to nearest even, as bits; NaN becomes 0x7fff.

    >>> hex(bf16_of_f32(np.float32(1.005)))
    '0x3f81'
    """
    bits = a.view(np.uint32)
    rounded = (bits + (np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1)))) >> np.uint32(16)
    return mend(rounded.astype(np.uint16), np.isnan(a), lambda lane: np.full(lane.shape, NAN16), a)


def _bf16_of_sum(a: Lanes, b: Lanes) -> Lanes:
    """The sum of two doubles as bf16, rounded once.

    Rounding to a double, to f32 and then to bf16 goes wrong only where the f32 is half-way between two bf16.
    """
    single = (a + b).astype(np.float32)
    rare = (single.view(np.uint32) & np.uint32(0xFFFF)) == np.uint32(0x8000)
    return mend(bf16_of_f32(single), rare, lambda x, y: bf16_of_f32(f32_to_odd(to_odd(*two_sum(x, y)))), a, b)


def f32_to_odd(a: Lanes) -> Lanes:
    """float64 to float32, an inexact value to its neighbour with an odd last bit, so that it may be rounded again."""
    nearest = a.astype(np.float32)
    back = nearest.astype(np.float64)
    bits = nearest.view(np.uint32)
    inward = (bits - (np.abs(back) > np.abs(a))) | np.uint32(1)
    return np.where(back == a, bits, inward)[()].view(np.float32)


def add_bf16(a: Lanes, b: Lanes) -> Lanes:
    """add.bf16: 24 bits are at least 2 * 8 + 2, so the f32 sum rounds to the right bf16."""
    return bf16_of_f32(f32_of_bf16(a) + f32_of_bf16(b))


def sub_bf16(a: Lanes, b: Lanes) -> Lanes:
    """sub.bf16"""
    return bf16_of_f32(f32_of_bf16(a) - f32_of_bf16(b))


def mul_bf16(a: Lanes, b: Lanes) -> Lanes:
    """mul.bf16"""
    product = f32_of_bf16(a).astype(np.float64) * f32_of_bf16(b).astype(np.float64)
    return _bf16_of_sum(product, np.copysign(np.float64(0), product))


def fma_bf16(a: Lanes, b: Lanes, c: Lanes) -> Lanes:
    """fma.rn.bf16: a * b + c, rounded once.

    >>> hex(fma_bf16(np.uint16(0x3F80), np.uint16(0x4000), np.uint16(0x3F80)))
    '0x4040'
    """
    product = f32_of_bf16(a).astype(np.float64) * f32_of_bf16(b).astype(np.float64)
    return _bf16_of_sum(product, f32_of_bf16(c).astype(np.float64))


def minimum_bf16(a: Lanes, b: Lanes) -> Lanes:
    """min.bf16"""
    return bf16_of_f32(floats.minimum(f32_of_bf16(a), f32_of_bf16(b)))


def maximum_bf16(a: Lanes, b: Lanes) -> Lanes:
    """max.bf16"""
    return bf16_of_f32(floats.maximum(f32_of_bf16(a), f32_of_bf16(b)))


def minimum_nan_bf16(a: Lanes, b: Lanes) -> Lanes:
    """min.NaN.bf16"""
    return bf16_of_f32(floats.minimum_nan(f32_of_bf16(a), f32_of_bf16(b)))


def maximum_nan_bf16(a: Lanes, b: Lanes) -> Lanes:
    """max.NaN.bf16"""
    return bf16_of_f32(floats.maximum_nan(f32_of_bf16(a), f32_of_bf16(b)))


def negate_bf16(a: Lanes) -> Lanes:
    """neg.bf16; NaN is canonical."""
    return _canonical(a ^ np.uint16(0x8000), _INFINITY_BF16)


def absolute_bf16(a: Lanes) -> Lanes:
    """abs.bf16; NaN is canonical."""
    return _canonical(a & np.uint16(0x7FFF), _INFINITY_BF16)


def relu_bf16(a: Lanes) -> Lanes:
    """.relu: numbers below 0, and -0, become +0; NaN stays, canonical."""
    return _relu(a, _INFINITY_BF16)


def satfinite_bf16(a: Lanes) -> Lanes:
    """.satfinite: infinity becomes the largest finite number of its sign."""
    return _satfinite(a, _INFINITY_BF16)


def flush_bf16(a: Lanes) -> Lanes:
    """.ftz: subnormal bf16 become zeros of their sign."""
    return np.where(a & np.uint16(0x7F80), a, a & np.uint16(0x8000))[()]


def ex2_bf16(a: Lanes) -> Lanes:
    """ex2.approx.ftz.bf16 before its results are flushed. The manual: 2^-7 relative; here it is rounded correctly.

    A subnormal operand gives 1, flushed or not.
    """
    return bf16_of_f32(f32_to_odd(np.exp2(f32_of_bf16(a).astype(np.float64))))


def tanh_bf16(a: Lanes) -> Lanes:
    """tanh.approx.bf16. The manual: 2^-8 absolute; here it is rounded correctly."""
    return bf16_of_f32(f32_to_odd(np.tanh(f32_of_bf16(a).astype(np.float64))))
