"""The approximate functions on f32 and f64 (PTX ISA 9.7.3: .approx and .full forms); those on halves are in `halves`.

The hardware's tables are not public. Each function here is as good as its type allows, or a few units in the last place
off where the manual documents a larger error; the special values are those of the manual's tables. `.ftz` is
`floats.flush` on operands and result.
"""

from __future__ import annotations

import numpy as np

from warpwright.emulator.numerics import floats
from warpwright.emulator.numerics.floats import canonical
from warpwright.emulator.numerics.lanes import Lanes, mend

_ONE = np.float32(1)
_HIGH = np.uint64(0xFFFFFFFF00000000)
_NAN_UPPER: Lanes = np.uint64(0x7FFFFFFF00000000).view(np.float64)  # measured on an H200


def ex2(a: Lanes) -> Lanes:
    """ex2.approx.f32: 2 to the a. The manual: 2 ulp.

    >>> ex2(np.float32(-1))
    np.float32(0.5)
    """
    return canonical(np.exp2(a.astype(np.float64)).astype(np.float32))


def lg2(a: Lanes) -> Lanes:
    """lg2.approx.f32: the logarithm to base 2. The manual: 2^-22 absolute in (0.5, 2), 2^-22 relative elsewhere."""
    return canonical(np.log2(a.astype(np.float64)).astype(np.float32))


def sin(a: Lanes) -> Lanes:
    """sin.approx.f32. The manual: 2^-20.5 absolute in [-pi, pi]."""
    return canonical(np.sin(a))


def cos(a: Lanes) -> Lanes:
    """cos.approx.f32. The manual: 2^-20.5 absolute in [-pi, pi]."""
    return canonical(np.cos(a))


def tanh(a: Lanes) -> Lanes:
    """tanh.approx.f32. The manual: 2^-11 relative."""
    return canonical(np.tanh(a))


def rcp(a: Lanes) -> Lanes:
    """rcp.approx.f32: 1 / a. The manual: 1 ulp."""
    return canonical(_ONE / a)


def rsqrt(a: Lanes) -> Lanes:
    """rsqrt.approx.f32: 1 / sqrt(a); infinity of the operand's sign for a zero. The manual: 2^-22.9 relative."""
    return canonical((np.float64(1) / np.sqrt(a.astype(np.float64))).astype(np.float32))


def sqrt(a: Lanes) -> Lanes:
    """sqrt.approx.f32. The manual: 2^-23 relative."""
    return canonical(np.sqrt(a))


def div(a: Lanes, b: Lanes) -> Lanes:
    """div.approx.f32: a * (1 / b), where the reciprocal of |b| above 2^126 is 0. The manual: 2 ulp."""
    return canonical(_no_subnormal_reciprocal(a / b, a, b))


def div_ftz(a: Lanes, b: Lanes) -> Lanes:
    """div.approx.ftz.f32, operands and result flushed."""
    return canonical(_no_subnormal_reciprocal(floats.div_ftz(a, b), a, b))


def _no_subnormal_reciprocal(quotient: Lanes, a: Lanes, b: Lanes) -> Lanes:
    return mend(quotient, np.abs(b) > np.float32(2**126), lambda x, y: x * np.copysign(np.float32(0), y), a, b)


def rcp_f64(a: Lanes) -> Lanes:
    """rcp.approx.ftz.f64: of the upper word of a, and only the upper word of the result. The manual: 2^-20 or so."""
    return _upper(np.float64(1) / _flushed(a))


def rsqrt_f64(a: Lanes) -> Lanes:
    """rsqrt.approx.ftz.f64: of the upper word of a, and only the upper word of the result."""
    return _upper(np.float64(1) / np.sqrt(_flushed(a)))


def rsqrt_full_f64(a: Lanes) -> Lanes:
    """rsqrt.approx.f64. The manual: 2 ulp. A NaN keeps its sign and payload (measured on an H200)."""
    return floats.with_nan(np.float64(1) / np.sqrt(a), a)


def _flushed(a: Lanes) -> Lanes:
    upper = (a.view(np.uint64) & _HIGH).view(np.float64)
    return mend(upper, np.abs(upper) < np.float64(2.0**-1022), lambda lane: np.copysign(np.float64(0), lane), upper)


def _upper(a: Lanes) -> Lanes:
    rounded = a.view(np.uint64) + np.uint64(1 << 31)
    bits = np.where(np.isfinite(a), rounded, a.view(np.uint64)) & _HIGH
    flushed = _flushed(bits[()].view(np.float64))
    return mend(flushed, np.isnan(flushed), lambda lane: np.full_like(lane, _NAN_UPPER), flushed)
