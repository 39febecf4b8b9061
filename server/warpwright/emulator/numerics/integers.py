"""Integer, bit-field, shift and permute instructions (PTX ISA 9.7.1 integer, 9.7.2 extended precision, 9.7.8 logic and
shift, 9.7.9 prmt). The operands' dtype is the instruction's type.

`a + b`, `a & b`, `~a`, `-a`, `numpy.minimum` are PTX's add, and, not, neg and min on these dtypes, so they have no
function here. The file is long because the instruction set is: each function is short and stands alone.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

from warpwright.emulator.numerics.lanes import Lanes, mend

_WIDER = {
    np.dtype(narrow): np.dtype(wide)
    for narrow, wide in (
        (np.uint8, np.uint16), (np.int8, np.int16), (np.uint16, np.uint32), (np.int16, np.int32),
        (np.uint32, np.uint64), (np.int32, np.int64),
    )
}  # fmt: skip
_UNSIGNED = {size: np.dtype(f"u{size}") for size in (1, 2, 4, 8)}
_SIGNED = {size: np.dtype(f"i{size}") for size in (1, 2, 4, 8)}


def _bits(a: Lanes) -> int:
    return int(a.dtype.itemsize) * 8


def _unsigned(a: Lanes) -> Lanes:
    return a.view(_UNSIGNED[a.dtype.itemsize])


def _signed(a: Lanes) -> Lanes:
    return a.view(_SIGNED[a.dtype.itemsize])


# Arithmetic


def mul_wide(a: Lanes, b: Lanes) -> Lanes:
    """mul.wide: the whole product, in twice the width.

    >>> mul_wide(np.uint32(0xFFFFFFFF), np.uint32(2))
    np.uint64(8589934590)
    """
    wide = _WIDER[a.dtype]
    return a.astype(wide) * b.astype(wide)


def mul_hi(a: Lanes, b: Lanes) -> Lanes:
    """mul.hi: the upper half of the product.

    >>> mul_hi(np.int32(-1), np.int32(5)), mul_hi(np.uint64(1 << 63), np.uint64(6))
    (np.int32(-1), np.uint64(3))
    """
    if a.dtype.itemsize < 8:
        return (mul_wide(a, b) >> np.uint8(_bits(a))).astype(a.dtype)
    high = _mul_hi_u64(_unsigned(a), _unsigned(b))
    if a.dtype == np.uint64:
        return high
    # As two's complement, a = unsigned(a) - 2^64 [a < 0]: each negative operand takes the other from the upper half.
    return high.view(np.int64) - (b & (a >> np.int64(63))) - (a & (b >> np.int64(63)))


def _mul_hi_u64(a: Lanes, b: Lanes) -> Lanes:
    low, half = np.uint64(0xFFFFFFFF), np.uint64(32)
    a_low, a_high, b_low, b_high = a & low, a >> half, b & low, b >> half
    middle = a_high * b_low + ((a_low * b_low) >> half)
    return a_high * b_high + (middle >> half) + ((a_low * b_high + (middle & low)) >> half)


def mad_hi_sat(a: Lanes, b: Lanes, c: Lanes) -> Lanes:
    """mad.hi.sat.s32: the sum of mul.hi and c, clamped to the type's range."""
    return add_sat(mul_hi(a, b), c)


def mul24_lo(a: Lanes, b: Lanes) -> Lanes:
    """mul24.lo: the lower 32 bits of the product of the operands' lower 24 bits.

    >>> mul24_lo(np.uint32(0xFF000003), np.uint32(5)), mul24_lo(np.int32(0xFFFFFF), np.int32(5))
    (np.uint32(15), np.int32(-5))
    """
    return _low24(a) * _low24(b)


def mul24_hi(a: Lanes, b: Lanes) -> Lanes:
    """mul24.hi: bits 47 to 16 of the 48-bit product of the operands' lower 24 bits.

    >>> mul24_hi(np.uint32(0xFFFFFF), np.uint32(0x10000))
    np.uint32(16777215)
    """
    return (mul_wide(_low24(a), _low24(b)) >> np.uint8(16)).astype(a.dtype)


def _low24(a: Lanes) -> Lanes:
    return (a << a.dtype.type(8)) >> a.dtype.type(8)


def sad(a: Lanes, b: Lanes, c: Lanes) -> Lanes:
    """sad: c plus the absolute difference of a and b.

    >>> sad(np.uint32(3), np.uint32(5), np.uint32(10)), sad(np.int32(-3), np.int32(5), np.int32(10))
    (np.uint32(12), np.int32(18))
    """
    return c + (np.maximum(a, b) - np.minimum(a, b))


def add_sat(a: Lanes, b: Lanes) -> Lanes:
    """add.sat.s32: the sum clamped to the type's range.

    >>> add_sat(np.int32(2**31 - 1), np.int32(1))
    np.int32(2147483647)
    """
    return _clamped(_wide(a) + _wide(b), a.dtype)


def sub_sat(a: Lanes, b: Lanes) -> Lanes:
    """sub.sat.s32: the difference clamped to the type's range."""
    return _clamped(_wide(a) - _wide(b), a.dtype)


def _wide(a: Lanes) -> Lanes:
    return a.astype(np.int64)


def _clamped(wide: Lanes, dtype: np.dtype) -> Lanes:
    limits = np.iinfo(dtype)
    return np.clip(wide, limits.min, limits.max).astype(dtype)


def div(a: Lanes, b: Lanes) -> Lanes:
    """div: the quotient, rounded toward zero. By zero it is all ones, at every width and sign.

    The ISA leaves division by zero to the machine; all ones is what the code that ptxas emits for it gives (sm_75 to
    sm_90: a select of ~b where b is 0).

    >>> div(np.int32(-7), np.int32(2)), div(np.uint32(7), np.array([0, 2], np.uint32)).tolist()
    (np.int32(-3), [4294967295, 3])
    """
    if a.dtype.kind == "u":
        return mend(_quotient(a, b), b == 0, lambda x: ~np.zeros_like(x), a)
    # By -1 the least number overflows, which processors convert from a double differently; it is its own negative.
    return mend(_quotient(a, b), _unsigned(b + b.dtype.type(1)) < 2, lambda x, y: np.where(y == 0, y - 1, -x), a, b)


def rem(a: Lanes, b: Lanes) -> Lanes:
    """rem: what div leaves, with a's sign. By zero it is all ones, for the reason given at `div`.

    >>> rem(np.int32(-7), np.int32(2)), rem(np.uint32(7), np.array([0, 2], np.uint32)).tolist()
    (np.int32(-1), [4294967295, 1])
    """
    if a.dtype.kind == "u":
        return mend(a - _quotient(a, b) * b, b == 0, lambda x: ~np.zeros_like(x), a)
    return mend(
        a - _quotient(a, b) * b, _unsigned(b + b.dtype.type(1)) < 2, lambda x: np.where(x == 0, x - 1, x + 1), b
    )


def _quotient(a: Lanes, b: Lanes) -> Lanes:
    """a / b toward zero, where b is not 0 and the quotient is in range."""
    if a.dtype.itemsize < 8:
        # 32-bit operands are exact in f64, and a quotient that is no integer is at least 2^-32 of itself away from the
        # next one, so that rounding to 53 bits never reaches it.
        if a.dtype.kind == "u" and np.ndim(b) == 0:
            return a // b
        quotient = a.astype(np.float64) / b.astype(np.float64)
        return quotient.astype(np.int64 if a.dtype.kind == "u" and a.dtype.itemsize == 4 else np.int32).astype(a.dtype)
    quotient = a // b
    if a.dtype.kind == "u":
        return quotient
    return quotient + ((quotient < 0) & (quotient * b != a))


# Carry chains: the carry is a bool for each lane


def add_cc(a: Lanes, b: Lanes) -> tuple[Lanes, Lanes]:
    """add.cc: the sum and the carry out.

    >>> add_cc(np.uint32(0xFFFFFFFF), np.uint32(2))
    (np.uint32(1), np.True_)
    """
    a, b = _unsigned(a), _unsigned(b)
    total = a + b
    return total, total < a


def addc_cc(a: Lanes, b: Lanes, carry: Lanes) -> tuple[Lanes, Lanes]:
    """addc.cc (and addc, whose carry out nobody reads): a + b + carry, and the carry out.

    >>> addc_cc(np.uint32(0xFFFFFFFF), np.uint32(0), np.True_)
    (np.uint32(0), np.True_)
    """
    total, first = add_cc(a, b)
    sum_ = total + carry
    return sum_, first | (sum_ < total)


def sub_cc(a: Lanes, b: Lanes) -> tuple[Lanes, Lanes]:
    """sub.cc: the difference and the borrow out.

    >>> sub_cc(np.uint32(0), np.uint32(1))
    (np.uint32(4294967295), np.True_)
    """
    a, b = _unsigned(a), _unsigned(b)
    return a - b, a < b


def subc_cc(a: Lanes, b: Lanes, borrow: Lanes) -> tuple[Lanes, Lanes]:
    """subc.cc (and subc): a - (b + borrow), and the borrow out."""
    difference, first = sub_cc(a, b)
    return difference - borrow, first | (difference < borrow)


# Counting and finding bits


def popc(a: Lanes) -> Lanes:
    """popc: the number of ones, as .u32.

    >>> popc(np.uint64(0xFF00FF))
    np.uint32(16)
    """
    return np.bitwise_count(_unsigned(a)).astype(np.uint32)


def clz(a: Lanes) -> Lanes:
    """clz: the number of zeros above the highest one, as .u32; the width for 0.

    >>> clz(np.array([0, 1, 0x80000000], np.uint32)).tolist()
    [32, 31, 0]
    """
    a = _unsigned(a)
    # The exponent of a as a double says it. Below the top one, a 64-bit value loses each bit that has a one above it,
    # so that rounding to 53 bits cannot carry into the next power of two.
    if a.dtype.itemsize == 8:
        a = a & ~(a >> np.uint64(1))
    exponent = (a.astype(np.float64).view(np.uint64) >> np.uint64(52)).astype(np.uint32)
    return np.minimum(np.uint32(1022 + _bits(a)) - exponent, np.uint32(_bits(a)))


def bfind(a: Lanes) -> Lanes:
    """bfind: the position of the highest bit that is no sign bit, as .u32; 0xffffffff where there is none.

    >>> bfind(np.uint32(0x10)), bfind(np.array([-1, -17], np.int32)).tolist()
    (np.uint32(4), [4294967295, 4])
    """
    return np.uint32(_bits(a) - 1) - clz(_significant(a))


def bfind_shiftamt(a: Lanes) -> Lanes:
    """bfind.shiftamt: how far left that bit must go to be the top one; 0xffffffff where there is none.

    >>> bfind_shiftamt(np.array([0, 1], np.uint32)).tolist()
    [4294967295, 31]
    """
    zeros = clz(_significant(a))
    return np.where(zeros == np.uint32(_bits(a)), np.uint32(0xFFFFFFFF), zeros)[()]


def _significant(a: Lanes) -> Lanes:
    return a ^ (a >> a.dtype.type(_bits(a) - 1)) if a.dtype.kind == "i" else a


def brev(a: Lanes) -> Lanes:
    """brev: the bits in reverse order.

    >>> hex(brev(np.uint32(0x1)))
    '0x80000000'
    """
    bits = _unsigned(a).byteswap()
    of = bits.dtype.type
    for step, mask in ((4, 0x0F), (2, 0x33), (1, 0x55)):
        repeated = of(int.from_bytes(bytes([mask]) * bits.dtype.itemsize))
        bits = ((bits >> of(step)) & repeated) | ((bits & repeated) << of(step))
    return bits


def fns(mask: Lanes, base: Lanes, offset: Lanes) -> Lanes:
    """fns.b32: the position of the |offset|-th one at or above (below, where negative) `base`; 0xffffffff if none.

    An offset of -2^31 gives 0 (measured on an H200).

    >>> fns(np.uint32(0b11010), np.uint32(1), np.int32(2)), fns(np.uint32(0b11010), np.uint32(0), np.int32(0))
    (np.uint32(3), np.uint32(4294967295))
    """
    mask, offset = _unsigned(mask), _signed(offset).astype(np.int64)
    position = _unsigned(base).astype(np.int64) + np.zeros_like(mask, np.int64) + np.zeros_like(offset)
    missing, step = np.maximum(np.abs(offset), 1), np.where(offset < 0, -1, 1)
    found = np.full_like(position, 0xFFFFFFFF)
    for turn in range(32):
        inside = (position >= 0) & (position < 32)
        one = inside & ((mask >> np.where(inside, position, 0).astype(np.uint32)) & np.uint32(1)).astype(bool)
        missing = missing - one
        found = np.where(one & (missing == 0), position, found)
        if turn == 0:  # an offset of 0 asks for the bit at the base alone
            missing = np.where(offset == 0, 0, missing)
        position = position + step
    return np.where(offset == -(2**31), 0, found).astype(np.uint32)[()]


# Bit fields


def bfe(a: Lanes, position: Lanes, length: Lanes) -> Lanes:
    """bfe: `length` bits of a from `position` up, extended by zeros or (signed) by the field's top bit.

    Of position and length the lower 8 bits count for 32-bit types, all bits for 64-bit ones (measured on an H200).

    >>> bfe(np.uint32(0xABCD), np.uint32(4), np.uint32(8)), bfe(np.int32(0xF0), np.uint32(4), np.uint32(4))
    (np.uint32(188), np.int32(-1))
    """
    position, length = _amount(position, a), _amount(length, a)
    if a.dtype.kind == "u":
        return (a >> position) & _mask(length)
    rest = a.dtype.type(_bits(a)) - np.minimum(length, a.dtype.type(_bits(a)))
    return ((a >> position) << rest) >> rest


def bfi(a: Lanes, b: Lanes, position: Lanes, length: Lanes) -> Lanes:
    """bfi: b with `length` bits from `position` up replaced by the lowest bits of a; these two as in `bfe`.

    >>> hex(bfi(np.uint32(0xF), np.uint32(0), np.uint32(8), np.uint32(4)))
    '0xf00'
    """
    position, length = _amount(position, a), _amount(length, a)
    return b ^ ((b ^ (a << position)) & (_mask(length) << position))


def _amount(amount: Lanes, a: Lanes) -> Lanes:
    return amount.astype(a.dtype) if a.dtype.itemsize == 8 else (amount & amount.dtype.type(0xFF)).astype(a.dtype)


def _mask(length: Lanes) -> Lanes:
    """`length` ones; NumPy shifts by the width or more give 0, and 0 - 1 is all ones."""
    one = length.dtype.type(1)
    return (one << length) - one


def bmsk_wrap(a: Lanes, b: Lanes) -> Lanes:
    """bmsk.wrap.b32: b ones from position a up, both modulo 32.

    >>> hex(bmsk_wrap(np.uint32(36), np.uint32(4)))
    '0xf0'
    """
    return _mask(b & np.uint32(31)) << (a & np.uint32(31))


def bmsk_clamp(a: Lanes, b: Lanes) -> Lanes:
    """bmsk.clamp.b32: b ones from position a up, as far as they lie in the word.

    >>> hex(bmsk_clamp(np.uint32(4), np.uint32(99))), hex(bmsk_clamp(np.uint32(36), np.uint32(4)))
    ('0xfffffff0', '0x0')
    """
    return _mask(b) << a


def szext_wrap(a: Lanes, b: Lanes) -> Lanes:
    """szext.wrap: the lower b bits (modulo 32) of a, extended by zeros or (s32) by their top bit.

    >>> szext_wrap(np.int32(0xF), np.uint32(4)), szext_wrap(np.uint32(0xFF), np.uint32(36))
    (np.int32(-1), np.uint32(15))
    """
    return szext_clamp(a, b & b.dtype.type(31))


def szext_clamp(a: Lanes, b: Lanes) -> Lanes:
    """szext.clamp: the lower b bits of a, all of a where b is 32 or more, extended as by `szext_wrap`."""
    rest = (np.uint32(32) - np.minimum(_unsigned(b), np.uint32(32))).astype(a.dtype)
    return (a << rest) >> rest


# Shifts


def shl(a: Lanes, amount: Lanes) -> Lanes:
    """shl: zeros come in from below; an amount (.u32) of the width or more gives 0.

    >>> shl(np.uint32(1), np.array([4, 32, 2**32 - 1], np.uint32)).tolist()
    [16, 0, 0]
    """
    return a << _clamp(amount, a)


def shr(a: Lanes, amount: Lanes) -> Lanes:
    """shr: zeros, or copies of the sign where a is signed, come in from above; the amount (.u32) is clamped.

    >>> shr(np.int32(-16), np.array([2, 32, 2**32 - 1], np.uint32)).tolist()
    [-4, -1, -1]
    """
    return a >> _clamp(amount, a)


def _clamp(amount: Lanes, a: Lanes) -> Lanes:
    """In a's type. NumPy defines shifts by the width and more as PTX does, negative ones among them."""
    if a.dtype.itemsize < amount.dtype.itemsize:
        amount = np.minimum(amount, amount.dtype.type(_bits(a)))
    return amount.view(a.dtype) if amount.dtype.itemsize == a.dtype.itemsize else amount.astype(a.dtype)


def shf_l_wrap(low: Lanes, high: Lanes, amount: Lanes) -> Lanes:
    """shf.l.wrap.b32: the upper word of high:low shifted left by amount modulo 32.

    >>> hex(shf_l_wrap(np.uint32(0x80000000), np.uint32(1), np.uint32(33)))
    '0x3'
    """
    return _shift_left(low, high, amount & np.uint32(31))


def shf_l_clamp(low: Lanes, high: Lanes, amount: Lanes) -> Lanes:
    """shf.l.clamp.b32: the upper word of high:low shifted left by min(amount, 32)."""
    return _shift_left(low, high, np.minimum(amount, np.uint32(32)))


def shf_r_wrap(low: Lanes, high: Lanes, amount: Lanes) -> Lanes:
    """shf.r.wrap.b32: the lower word of high:low shifted right by amount modulo 32.

    >>> hex(shf_r_wrap(np.uint32(0x10), np.uint32(1), np.uint32(4)))
    '0x10000001'
    """
    return _shift_right(low, high, amount & np.uint32(31))


def shf_r_clamp(low: Lanes, high: Lanes, amount: Lanes) -> Lanes:
    """shf.r.clamp.b32: the lower word of high:low shifted right by min(amount, 32)."""
    return _shift_right(low, high, np.minimum(amount, np.uint32(32)))


def _shift_left(low: Lanes, high: Lanes, amount: Lanes) -> Lanes:
    return (high << amount) | (low >> (np.uint32(32) - amount))


def _shift_right(low: Lanes, high: Lanes, amount: Lanes) -> Lanes:
    return (low >> amount) | (high << (np.uint32(32) - amount))


# Logic


def cnot(a: Lanes) -> Lanes:
    """cnot: 1 where a is 0, else 0, in a's type."""
    return (a == 0).astype(a.dtype)


@cache
def lop3_expression(table: int) -> str:
    """A Python expression in a, b and c for the truth table of lop3.b32, with the fewest operators.

    >>> lop3_expression(0x96), lop3_expression(0x00)
    ('a ^ (b ^ c)', 'a ^ a')
    """
    return _expressions()[table]


@cache
def _expressions() -> dict[int, str]:
    """For each of the 256 truth tables of three inputs a cheapest formula, by number of operators."""
    best = {0xF0: "a", 0xCC: "b", 0xAA: "c"}
    levels = [dict(best)]
    while len(best) < 256:
        found: dict[int, str] = {}
        for table, text in levels[-1].items():
            _offer(found, best, table ^ 0xFF, f"~{_inner(text)}")
        for left, right in ((i, len(levels) - 1 - i) for i in range((len(levels) + 1) // 2)):
            for one, text in levels[left].items():
                for two, other in levels[right].items():
                    for sign, table in (("&", one & two), ("|", one | two), ("^", one ^ two)):
                        _offer(found, best, table, f"{_inner(text)} {sign} {_inner(other)}")
        best |= found
        levels.append(found)
    return best


def _offer(found: dict[int, str], best: dict[int, str], table: int, text: str) -> None:
    if table not in best:
        found.setdefault(table, text)


def _inner(text: str) -> str:
    return f"({text})" if " " in text else text


@cache
def _lop3(table: int) -> Callable[[Lanes, Lanes, Lanes], Lanes]:
    function: Callable[[Lanes, Lanes, Lanes], Lanes] = eval(f"lambda a, b, c: {lop3_expression(table)}")
    return function


def lop3(a: Lanes, b: Lanes, c: Lanes, table: int) -> Lanes:
    """lop3.b32: bit i of the result is bit (a[i] << 2 | b[i] << 1 | c[i]) of the table.

    An operand that the table does not depend on is not touched, so the result may be a scalar though that one is none.

    >>> hex(lop3(np.uint32(0xFF00), np.uint32(0x0FF0), np.uint32(0x00FF), 0x96))
    '0xf00f'
    """
    return _lop3(table & 0xFF)(a, b, c)


# Bytes

_MODES: dict[str, tuple[int, int, int, int]] = {
    "f4e": (0x3210, 0x4321, 0x5432, 0x6543),
    "b4e": (0x5670, 0x6701, 0x7012, 0x0123),
    "rc8": (0x0000, 0x1111, 0x2222, 0x3333),
    "ecl": (0x3210, 0x3211, 0x3222, 0x3333),
    "ecr": (0x0000, 0x1110, 0x2210, 0x3210),
    "rc16": (0x1010, 0x3232, 0x1010, 0x3232),
}


def prmt(a: Lanes, b: Lanes, selector: Lanes) -> Lanes:
    """prmt.b32: four bytes picked from b:a, one by each nibble of the selector; bit 3 of a nibble spreads its sign.

    >>> hex(prmt(np.uint32(0x33221100), np.uint32(0x77665544), np.uint32(0x5410)))
    '0x55441100'
    """
    if np.ndim(selector) == 0:
        return _prmt_constant(a, b, int(selector) & 0xFFFF)
    both = a.astype(np.uint64) | (b.astype(np.uint64) << np.uint64(32))
    result = np.uint32(0)
    for place in range(4):
        nibble = (selector >> np.uint32(4 * place)) & np.uint32(15)
        byte = (both >> ((nibble & np.uint32(7)) * np.uint32(8))).astype(np.uint32) & np.uint32(0xFF)
        byte = np.where(nibble & np.uint32(8), (byte >> np.uint32(7)) * np.uint32(0xFF), byte)
        result = result | (byte << np.uint32(8 * place))
    return result


def prmt_mode(a: Lanes, b: Lanes, selector: Lanes, mode: str) -> Lanes:
    """prmt.b32.mode (f4e, b4e, rc8, ecl, ecr, rc16): the lower two bits of the selector pick one of four patterns.

    >>> hex(prmt_mode(np.uint32(0x33221100), np.uint32(0x77665544), np.uint32(1), "f4e"))
    '0x44332211'
    """
    patterns = np.array(_MODES[mode], np.uint32)
    return prmt(a, b, patterns[selector & np.uint32(3)])


def _prmt_constant(a: Lanes, b: Lanes, selector: int) -> Lanes:
    """Bytes that move equally far from the same word move in one shift."""
    moves: dict[tuple[bool, int], int] = {}
    signs = []
    for place in range(4):
        nibble = (selector >> (4 * place)) & 15
        if nibble & 8:
            signs.append((place, nibble & 7))
            continue
        key = (nibble >= 4, 8 * (place - nibble % 4))
        moves[key] = moves.get(key, 0) | 0xFF << (8 * place)
    parts = []
    for (from_b, left), mask in moves.items():
        word = b if from_b else a
        word = word << np.uint32(left) if left > 0 else word >> np.uint32(-left)
        whole = (0xFFFFFFFF << left if left > 0 else 0xFFFFFFFF >> -left) & 0xFFFFFFFF
        parts.append(word if mask == whole else word & np.uint32(mask))
    for place, source in signs:
        byte = (b if source >= 4 else a) >> np.uint32(8 * (source % 4) + 7)
        parts.append(((byte & np.uint32(1)) * np.uint32(0xFF)) << np.uint32(8 * place))
    result = parts[0]
    for part in parts[1:]:
        result = result | part
    return result


def dp4a(a: Lanes, b: Lanes, c: Lanes) -> Lanes:
    """dp4a: c plus the products of the four bytes of a and b; bytes of an int32 operand are signed.

    >>> dp4a(np.int32(-1), np.uint32(0x01020304), np.int32(100))
    np.int32(90)
    """
    total = c.view(np.int32)
    for place in range(4):
        total = total + _field(a, 8 * place, 8) * _field(b, 8 * place, 8)
    return total.view(c.dtype)


def dp2a_lo(a: Lanes, b: Lanes, c: Lanes) -> Lanes:
    """dp2a.lo: c plus the products of the two halves of a with the lower two bytes of b.

    >>> dp2a_lo(np.uint32(0x00020003), np.uint32(0x09080504), np.uint32(1))
    np.uint32(23)
    """
    return _dp2a(a, b, c, 0)


def dp2a_hi(a: Lanes, b: Lanes, c: Lanes) -> Lanes:
    """dp2a.hi: c plus the products of the two halves of a with the upper two bytes of b."""
    return _dp2a(a, b, c, 16)


def _dp2a(a: Lanes, b: Lanes, c: Lanes, start: int) -> Lanes:
    total = c.view(np.int32)
    for place in range(2):
        total = total + _field(a, 16 * place, 16) * _field(b, start + 8 * place, 8)
    return total.view(c.dtype)


def _field(a: Lanes, start: int, length: int) -> Lanes:
    """`length` bits of a from `start` up, as int32, with the sign that a's type has."""
    return bfe(a, np.uint32(start), np.uint32(length)).view(np.int32)
