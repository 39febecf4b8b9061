"""cvt between integers, f16, bf16, f32 and f64, and the packed and narrow formats (PTX ISA 9.7.9, cvt).

`conversion` picks the function for a pair of types, once for an instruction. Types are PTX's names; f16 is float16,
bf16 its bits as uint16, an integer its dtype.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

import numpy as np

from warpwright.emulator.numerics import floats, halves
from warpwright.emulator.numerics.lanes import Lanes, mend, select
from warpwright.emulator.numerics.rounding import directed, to_f32, to_odd, two_sum

Conversion = Callable[[Lanes], Lanes]

INTEGERS = {f"{sign}{8 * size}": np.dtype(f"{sign.replace('s', 'i')}{size}") for sign in "us" for size in (1, 2, 4, 8)}
FLOATS = ("f16", "bf16", "f32", "f64")

_TO_INTEGRAL: dict[str, Callable[[Lanes], Lanes]] = {
    "rni": np.rint,
    "rzi": np.trunc,
    "rmi": np.floor,
    "rpi": np.ceil,
}

_DIRECTIONS = ("rn", "rz", "rm", "rp")
_ROUNDINGS = (*_DIRECTIONS, *_TO_INTEGRAL)


@cache
def conversion(target: str, source: str, modifiers: tuple[str, ...] = ()) -> Conversion:
    """The function of `cvt.<modifiers>.<target>.<source>`; ValueError, naming it, for one that PTX does not have.

    Integers are cut or extended as C does. Modifiers: rn rz rm rp, rni rzi rmi rpi, ftz, sat, satfinite, relu.
    NaN, as measured on an H200: an f64 keeps its sign and the upper bits of its payload and becomes quiet; so does any
    other float that becomes f64, but for .ftz; bf16 becomes f32 unchanged; all else is canonical.

    >>> conversion("s32", "f32", ("rzi",))(np.array([-1.5, 3e9], np.float32)).tolist()
    [-1, 2147483647]
    >>> conversion("u8", "s32", ("sat",))(np.int32(300))
    np.uint8(255)
    """
    rounding = next((m for m in modifiers if m in _ROUNDINGS), "")
    if not _exists(target, source, set(modifiers) - {rounding}, rounding):
        raise ValueError(f"cvt.{'.'.join((*modifiers, target, source))} is not a supported conversion")
    steps: list[Conversion] = []
    if "ftz" in modifiers and source == "f32":
        steps.append(floats.flush)
    if target in INTEGERS:
        steps.append(_into_integer(target, source, rounding, "sat" in modifiers))
    elif source in INTEGERS:
        steps.append(_from_integer(target, INTEGERS[source], rounding))
    else:
        steps.append(_between_floats(target, source, rounding, "ftz" in modifiers))
    if "ftz" in modifiers and target == "f32" and source not in ("f32", "f64"):
        steps.append(floats.flush)
    if target in FLOATS:
        steps += [_AFTER[name, target] for name in ("sat", "satfinite", "relu") if name in modifiers]
    return steps[0] if len(steps) == 1 else _chain(steps)


def _exists(target: str, source: str, others: set[str], rounding: str) -> bool:
    """Whether there is such a conversion; a rounding is needed wherever the target cannot hold every value."""
    if not {target, source} <= {*INTEGERS, *FLOATS} or not others <= {"ftz", "sat", "satfinite", "relu"}:
        return False
    if "satfinite" in others and source != "f32":
        return False
    if target in INTEGERS:
        return not others & {"relu", "satfinite"} and (rounding in _TO_INTEGRAL if source in FLOATS else not rounding)
    if any(name in others and (name, target) not in _AFTER for name in ("sat", "satfinite", "relu")):
        return False
    if source in INTEGERS:
        return rounding in _DIRECTIONS
    if _loses(target, source):
        return rounding in _DIRECTIONS
    return not rounding or (target == source and rounding in _TO_INTEGRAL)


def _loses(target: str, source: str) -> bool:
    return target != source and (target, source) not in {
        ("f32", "f16"), ("f64", "f16"), ("f32", "bf16"), ("f64", "bf16"), ("f64", "f32"),
    }  # fmt: skip


def _chain(steps: Sequence[Conversion]) -> Conversion:
    def chained(a: Lanes) -> Lanes:
        for step in steps:
            a = step(a)
        return a

    return chained


_AFTER: dict[tuple[str, str], Conversion] = {
    ("sat", "f16"): halves.saturate_f16,
    ("sat", "f32"): floats.saturate,
    ("sat", "f64"): floats.saturate,
    ("relu", "f16"): halves.relu_f16,
    ("relu", "bf16"): halves.relu_bf16,
    ("satfinite", "f16"): halves.satfinite_f16,
    ("satfinite", "bf16"): halves.satfinite_bf16,
}


# To integers


def _into_integer(target: str, source: str, rounding: str, saturating: bool) -> Conversion:
    kind = INTEGERS[target]
    if source in INTEGERS:
        given = INTEGERS[source]
        return lambda a: integer_to_integer_sat(a.astype(given), kind) if saturating else a.astype(given).astype(kind)
    integral = _TO_INTEGRAL[rounding]
    if source == "f16":
        return lambda a: float_to_integer(integral(halves.f32_of_f16(a)), kind)
    if source == "bf16":
        return lambda a: float_to_integer(integral(halves.f32_of_bf16(a)), kind)
    return lambda a: float_to_integer(integral(a), kind)


def integer_to_integer_sat(a: Lanes, kind: np.dtype) -> Lanes:
    """cvt.sat: clamped to the range of `kind`.

    >>> integer_to_integer_sat(np.int64(-5), np.dtype(np.uint32))
    np.uint32(0)
    """
    here, there = np.iinfo(a.dtype), np.iinfo(kind)
    low, high = max(int(here.min), int(there.min)), min(int(here.max), int(there.max))
    return np.minimum(np.maximum(a, a.dtype.type(low)), a.dtype.type(high)).astype(kind)


def float_to_integer(a: Lanes, kind: np.dtype) -> Lanes:
    """A float32 or float64 that is integral already, clamped to the range of `kind`.

    NaN is 0 where the source is no .f64 and the target no 64-bit integer; otherwise the target's top bit alone.
    """
    limits = np.iinfo(kind)
    top = a.dtype.type(2.0 ** (limits.bits - (kind.kind == "i")))
    inside = (a >= a.dtype.type(int(limits.min))) & (a < top)
    nan = 0 if a.dtype == np.float32 and kind.itemsize < 8 else 1 << (limits.bits - 1)
    unknown = np.array(nan, f"u{kind.itemsize}").view(kind)

    def clamped(lane: Lanes) -> Lanes:
        ends = np.where(lane > 0, kind.type(limits.max), kind.type(limits.min))
        return np.where(np.isnan(lane), unknown, ends)

    return mend(a.astype(kind), ~inside, clamped, a)


# From integers


def _from_integer(target: str, kind: np.dtype, rounding: str) -> Conversion:
    if target == "f64" and (rounding == "rn" or kind.itemsize < 8):
        return lambda a: a.astype(kind).astype(np.float64)
    if target == "f32" and rounding == "rn":
        return lambda a: a.astype(kind).astype(np.float32)
    if target == "f64":
        return lambda a: directed(*_two_parts(a.astype(kind)), rounding)
    narrow = _FROM_F64[target]
    if kind.itemsize < 8:
        return lambda a: narrow(a.astype(kind).astype(np.float64), rounding)
    return lambda a: narrow(to_odd(*_two_parts(a.astype(kind))), rounding)


def _two_parts(a: Lanes) -> tuple[Lanes, Lanes]:
    """A 64-bit integer as the nearest double and what that leaves out."""
    high, low = a >> a.dtype.type(32), a & a.dtype.type(0xFFFFFFFF)
    return two_sum(high.astype(np.float64) * np.float64(2**32), low.astype(np.float64))


# Between floats


def _between_floats(target: str, source: str, rounding: str, ftz: bool) -> Conversion:
    if rounding in _TO_INTEGRAL and target == source:
        return _integral(source, _TO_INTEGRAL[rounding])
    wide = _TO_WIDE[source]
    if target == source:
        return lambda a: a
    if target == "f32" and source != "f64":
        return wide
    if target == "f64":
        # Under .ftz the f32 goes through arithmetic first, which makes its NaN canonical.
        return (lambda a: _double(floats.canonical(a), "f32")) if ftz else lambda a: _double(a, source)
    if (target, source) == ("bf16", "f32") and rounding == "rn":
        return halves.bf16_of_f32
    narrow = _FROM_F64[target]
    if source == "f64" and ftz:
        return lambda a: _with_payload(_flush_tiny(narrow(a, rounding), a, rounding), a, "f64", "f32")
    if source == "f64":
        return lambda a: _with_payload(narrow(a, rounding), a, "f64", target)
    return lambda a: narrow(wide(a).astype(np.float64), rounding)


def _double(a: Lanes, source: str) -> Lanes:
    wide = _TO_WIDE[source](a)
    return mend(wide.astype(np.float64), np.isnan(wide), lambda lane: _moved_nan(lane, source, "f64"), a)


def _with_payload(result: Lanes, a: Lanes, source: str, target: str) -> Lanes:
    return mend(result, np.isnan(a), lambda lane: _moved_nan(lane, source, target), a)


# The type of a format's bits, its fraction's bits, and infinity.
_LAYOUT: dict[str, tuple[np.dtype, int, int]] = {
    "f16": (np.dtype(np.uint16), 10, 0x7C00),
    "bf16": (np.dtype(np.uint16), 7, 0x7F80),
    "f32": (np.dtype(np.uint32), 23, 0x7F800000),
    "f64": (np.dtype(np.uint64), 52, 0x7FF0000000000000),
}


def _moved_nan(a: Lanes, source: str, target: str) -> Lanes:
    """NaNs of one format in another one, quiet, with the sign and the upper bits of the payload."""
    (word, fraction, _), (kind, wanted, infinity) = _LAYOUT[source], _LAYOUT[target]
    bits = a.view(word).astype(np.uint64)
    payload = bits & np.uint64((1 << fraction) - 1)
    moved = payload << np.uint64(max(0, wanted - fraction)) >> np.uint64(max(0, fraction - wanted))
    sign = bits >> np.uint64(8 * word.itemsize - 1) << np.uint64(8 * kind.itemsize - 1)
    return (sign | np.uint64(infinity | 1 << (wanted - 1)) | moved).astype(kind).view(_KIND[target])


def _flush_tiny(result: Lanes, a: Lanes, rounding: str) -> Lanes:
    """.ftz of f64 to f32: below 2^-126 after rounding to 24 bits with no least exponent, as in `floats.mul_ftz`."""
    if not (rare := np.abs(result) <= np.float32(2**-126)).any():
        return result

    def flushed(lane: Lanes, exact: Lanes) -> Lanes:
        scaled = to_f32(exact * np.float64(2**64), rounding)
        return np.where(np.abs(scaled) < np.float32(2**-62), np.copysign(np.float32(0), lane), lane)

    return mend(result, rare, flushed, result, a)


def _integral(kind: str, function: Callable[[Lanes], Lanes]) -> Conversion:
    if kind == "f16":
        return lambda a: halves.f16_of(function(halves.f32_of_f16(a)))
    if kind == "bf16":
        return lambda a: halves.bf16_of_f32(function(halves.f32_of_bf16(a)))
    return (lambda a: floats.canonical(function(a))) if kind == "f32" else function


def to_f16(a: Lanes, rounding: str) -> Lanes:
    """float64 as float16.

    >>> to_f16(np.float64(0.1), "rp") - to_f16(np.float64(0.1), "rz")
    np.float16(6.104e-05)
    """
    nearest = halves.f16_of(a)
    return directed(nearest, a - nearest.astype(np.float64), rounding)


def to_bf16(a: Lanes, rounding: str) -> Lanes:
    """float64 as the bits of a bf16.

    >>> hex(to_bf16(np.float64(1.9999), "rz"))
    '0x3fff'
    """
    return _narrowed(a, 8, 7, rounding, 0x7FFF).astype(np.uint16)


_TO_WIDE: dict[str, Conversion] = {
    "f16": halves.f32_of_f16,
    "bf16": halves.f32_of_bf16,
    "f32": lambda a: a,
    "f64": lambda a: a,
}
_KIND: dict[str, type] = {"f16": np.float16, "bf16": np.uint16, "f32": np.float32, "f64": np.float64}
_FROM_F64: dict[str, Callable[[Lanes, str], Lanes]] = {
    "f16": to_f16,
    "bf16": to_bf16,
    "f32": lambda a, rounding: floats.canonical(to_f32(a, rounding)),
}


def _narrowed(a: Lanes, exponent_bits: int, fraction_bits: int, rounding: str, nan: int) -> Lanes:
    """The bits (int64) of doubles in a format with a bias, infinities and NaNs as IEEE 754 has them."""
    negative, finite = np.signbit(a), np.isfinite(a)
    infinity = (2**exponent_bits - 1) << fraction_bits
    count = _counted(np.where(finite, a, 0), 2 - 2 ** (exponent_bits - 1), fraction_bits, rounding)
    outward = negative == (rounding == "rm") if rounding in ("rm", "rp") else rounding != "rz"
    count = np.where(count >= infinity, np.where(outward, infinity, infinity - 1), count)
    count = np.where(finite, count, infinity) | (negative.astype(np.int64) << np.int64(exponent_bits + fraction_bits))
    return select(np.isnan(a), np.int64(nan), count)


def _counted(a: Lanes, least: int, fraction_bits: int, rounding: str) -> Lanes:
    """The place of |a| among the numbers of a format, from 0 up, which encodes it. Normal ones begin at 2^least."""
    magnitude = np.abs(a)
    exponent = np.maximum((magnitude.view(np.int64) >> np.int64(52)) - np.int64(1023), np.int64(least))
    places = np.ldexp(magnitude, (np.int64(fraction_bits) - exponent).astype(np.int32))
    whole = np.floor(places)
    rest = places - whole
    if rounding == "rn":
        up = (rest > 0.5) | ((rest == 0.5) & (whole % 2 == 1))
    else:
        up = (rest > 0) & (np.False_ if rounding == "rz" else np.signbit(a) == (rounding == "rm"))
    return (whole + up).astype(np.int64) + ((exponent - np.int64(least)) << np.int64(fraction_bits))


# Packed and narrow formats


def pack_f16x2(a: Lanes, b: Lanes, modifiers: tuple[str, ...] = ("rn",)) -> Lanes:
    """cvt.rn.f16x2.f32 d, a, b: a in the upper half, b in the lower.

    >>> hex(pack_f16x2(np.float32(1), np.float32(2)))
    '0x3c004000'
    """
    narrow = conversion("f16", "f32", modifiers)
    return _joined(narrow(a).view(np.uint16), narrow(b).view(np.uint16))


def pack_bf16x2(a: Lanes, b: Lanes, modifiers: tuple[str, ...] = ("rn",)) -> Lanes:
    """cvt.rn.bf16x2.f32 d, a, b: a in the upper half, b in the lower."""
    narrow = conversion("bf16", "f32", modifiers)
    return _joined(narrow(a), narrow(b))


def _joined(upper: Lanes, lower: Lanes) -> Lanes:
    return (upper.astype(np.uint32) << np.uint32(16)) | lower


def to_tf32(a: Lanes, rounding: str = "rna", relu: bool = False) -> Lanes:
    """cvt.rna.tf32.f32 (also rn, rz, .relu): the bits of an f32 with 10 bits of fraction, the lower 13 being 0.

    NaN is 0x7fffe000, but under .rna its lower 13 bits are cleared and nothing else (measured on an H200).

    >>> hex(to_tf32(np.float32(1 + 2**-11)))
    '0x3f802000'
    """
    bits = a.view(np.uint32)
    if rounding == "rna":
        rounded = bits + np.uint32(0x1000)
    elif rounding == "rn":
        rounded = bits + (np.uint32(0xFFF) + ((bits >> np.uint32(13)) & np.uint32(1)))
    else:
        rounded = bits
    rounded = _cut(rounded)
    if relu:
        rounded = rounded * (bits < np.uint32(1 << 31))
    return mend(rounded, np.isnan(a), _cut if rounding == "rna" else _nan_tf32, bits)


def _cut(bits: Lanes) -> Lanes:
    return bits & np.uint32(0xFFFFE000)


def _nan_tf32(bits: Lanes) -> Lanes:
    return np.full(bits.shape, 0x7FFFE000, np.uint32)


def to_tf32_satfinite(a: Lanes) -> Lanes:
    """cvt.rna.satfinite.tf32.f32: as `to_tf32`, then 2^13 less where that is infinite or NaN, as ptxas writes it out.

    >>> hex(to_tf32_satfinite(np.float32(-np.inf)))
    '0xff7fe000'
    """
    bits = to_tf32(a)
    beyond = (bits & np.uint32(0x7FFFFFFF)) >= np.uint32(0x7F800000)
    return bits - (beyond * np.uint32(0x2000))


def pack_e4m3x2(a: Lanes, b: Lanes, relu: bool = False) -> Lanes:
    """cvt.rn.satfinite.e4m3x2.f32 d, a, b: uint16, a in the upper byte. Beyond 448 clamped; NaN is 0x7f.

    >>> hex(pack_e4m3x2(np.float32(1000), np.float32(-0.5)))
    '0x7eb0'
    """
    return (_e4m3(a, relu) << np.uint16(8)) | _e4m3(b, relu)


def pack_e5m2x2(a: Lanes, b: Lanes, relu: bool = False) -> Lanes:
    """cvt.rn.satfinite.e5m2x2.f32 d, a, b: uint16, a in the upper byte. Beyond 57344 clamped; NaN is 0x7f."""
    return (_e5m2(a, relu) << np.uint16(8)) | _e5m2(b, relu)


def _e4m3(a: Lanes, relu: bool) -> Lanes:
    return _byte(a, 448.0, -6, 3, relu)


def _e5m2(a: Lanes, relu: bool) -> Lanes:
    return _byte(a, 57344.0, -14, 2, relu)


def _byte(a: Lanes, largest: float, least: int, fraction_bits: int, relu: bool) -> Lanes:
    wide = a.astype(np.float64)
    limited = np.where(np.isnan(wide), 0, np.minimum(np.maximum(wide, 0.0 if relu else -largest), largest))
    negative = np.signbit(wide) & (not relu)
    bits = _counted(limited, least, fraction_bits, "rn") | (negative.astype(np.int64) << np.int64(7))
    return select(np.isnan(wide), np.int64(0x7F), bits).astype(np.uint16)


def pack_e4m3x2_of_f16x2(a: Lanes, relu: bool = False) -> Lanes:
    """cvt.rn.satfinite.e4m3x2.f16x2"""
    return pack_e4m3x2(*_f32_halves(a), relu)


def pack_e5m2x2_of_f16x2(a: Lanes, relu: bool = False) -> Lanes:
    """cvt.rn.satfinite.e5m2x2.f16x2"""
    return pack_e5m2x2(*_f32_halves(a), relu)


def _f32_halves(a: Lanes) -> tuple[Lanes, Lanes]:
    upper, lower = (a >> np.uint32(16)).astype(np.uint16), a.astype(np.uint16)
    return halves.f32_of_f16(upper), halves.f32_of_f16(lower)


def unpack_e4m3x2(a: Lanes, relu: bool = False) -> Lanes:
    """cvt.rn.f16x2.e4m3x2: both numbers exactly as f16, the upper byte's in the upper half.

    >>> hex(unpack_e4m3x2(np.uint16(0x7EB0)))
    '0x5f00b800'
    """
    return _unpacked(a, _F16_OF_E4M3, relu)


def unpack_e5m2x2(a: Lanes, relu: bool = False) -> Lanes:
    """cvt.rn.f16x2.e5m2x2: e5m2 is the upper byte of an f16."""
    return _unpacked(a, _F16_OF_E5M2, relu)


def _unpacked(a: Lanes, table: Lanes, relu: bool) -> Lanes:
    parts = [table[a >> np.uint16(8)], table[a & np.uint16(0xFF)]]
    if relu:
        parts = [halves.relu_f16(part.view(np.float16)).view(np.uint16) for part in parts]
    return _joined(*parts)


def _f16_of_e4m3() -> Lanes:
    codes = np.arange(256)
    exponent, fraction = codes >> 3 & 15, codes & 7
    magnitude = np.where(exponent == 0, fraction * 2.0**-9, (8 + fraction) * 2.0 ** (exponent - 10))
    bits = magnitude.astype(np.float16).view(np.uint16) | (codes >> 7 << 15).astype(np.uint16)
    return np.where(codes & 0x7F == 0x7F, halves.NAN16, bits)


def _f16_of_e5m2() -> Lanes:
    codes = (np.arange(256) << 8).astype(np.uint16)
    return np.where(np.isnan(codes.view(np.float16)), halves.NAN16, codes)


_F16_OF_E4M3, _F16_OF_E5M2 = _f16_of_e4m3(), _f16_of_e5m2()
