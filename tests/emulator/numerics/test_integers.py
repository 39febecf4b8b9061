"""Integer instructions against Python's integers and the pseudo-code of the PTX ISA."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.examples import examples
from warpwright.emulator.numerics import integers

TYPES = (np.uint16, np.int16, np.uint32, np.int32, np.uint64, np.int64)
WORDS = (np.uint32, np.int32, np.uint64, np.int64)


@pytest.fixture(autouse=True)
def _quiet() -> Any:
    with np.errstate(all="ignore"):
        yield


def values(bits: int) -> st.SearchStrategy[int]:
    return st.one_of(
        st.sampled_from([0, 1, 2, 2**bits - 1, 2**bits - 2, 2 ** (bits - 1), 2 ** (bits - 1) - 1]),
        st.integers(0, bits - 1).map(lambda i: 1 << i),
        st.integers(0, 2**bits - 1),
        st.integers(0, 40),
    )


def rows(*widths: int) -> st.SearchStrategy[list[tuple[int, ...]]]:
    return st.lists(st.tuples(*(values(bits) for bits in widths)), min_size=1, max_size=40)


def check(table: list[tuple[int, ...]], kinds: tuple[Any, ...], function: Callable[..., Any], expected: Any) -> None:
    """`expected` gives a Python integer for each row; the function is tried on arrays, scalars and both together."""
    columns = [
        np.array(column, f"u{np.dtype(kind).itemsize}").view(kind)
        for column, kind in zip(zip(*table, strict=True), kinds, strict=True)
    ]
    got = function(*columns)
    size = got.dtype.itemsize * 8
    wanted = [expected(*row) % 2**size for row in zip(*(column.tolist() for column in columns), strict=True)]
    assert got.view(f"u{got.dtype.itemsize}").tolist() == wanted
    scalar = function(*(column[0] for column in columns))
    assert isinstance(scalar, np.generic)
    assert scalar.dtype == got.dtype
    assert int(scalar) % 2**size == wanted[0]
    for place in range(len(columns)):
        mixed = [column[0] if i == place else column[:1] for i, column in enumerate(columns)]
        result = function(*mixed)
        assert result.shape == (() if len(columns) == 1 else (1,))
        assert int(result.reshape(1)[0]) % 2**size == wanted[0]


def bits_of(kind: Any) -> int:
    return np.dtype(kind).itemsize * 8


def quotient(a: int, b: int) -> int:
    if b == 0:
        return -1
    return abs(a) // abs(b) * (-1 if (a < 0) != (b < 0) else 1)


@examples(30)
@given(data=st.data())
@pytest.mark.parametrize("kind", TYPES)
def test_division(data: st.DataObject, kind: Any) -> None:
    table = data.draw(rows(bits_of(kind), bits_of(kind)))
    check(table, (kind, kind), integers.div, quotient)
    check(table, (kind, kind), integers.rem, lambda a, b: -1 if b == 0 else a - quotient(a, b) * b)


@examples(20)
@given(data=st.data())
@pytest.mark.parametrize("kind", TYPES)
def test_products(data: st.DataObject, kind: Any) -> None:
    bits = bits_of(kind)
    table = data.draw(rows(bits, bits))
    check(table, (kind, kind), integers.mul_hi, lambda a, b: a * b >> bits)
    if bits < 64:
        check(table, (kind, kind), integers.mul_wide, lambda a, b: a * b)
    table = data.draw(rows(bits, bits, bits))
    check(table, (kind, kind, kind), integers.sad, lambda a, b, c: c + abs(a - b))


@examples(20)
@given(data=st.data())
@pytest.mark.parametrize("kind", (np.uint32, np.int32))
def test_words_only(data: st.DataObject, kind: Any) -> None:
    def low24(a: int) -> int:
        a &= 0xFFFFFF
        return a - (1 << 24) if np.dtype(kind).kind == "i" and a >> 23 else a

    table = data.draw(rows(32, 32))
    check(table, (kind, kind), integers.mul24_lo, lambda a, b: low24(a) * low24(b))
    check(table, (kind, kind), integers.mul24_hi, lambda a, b: low24(a) * low24(b) >> 16)
    limits = np.iinfo(kind)
    check(table, (kind, kind), integers.add_sat, lambda a, b: max(int(limits.min), min(int(limits.max), a + b)))
    check(table, (kind, kind), integers.sub_sat, lambda a, b: max(int(limits.min), min(int(limits.max), a - b)))


@examples(20)
@given(data=st.data())
@pytest.mark.parametrize("kind", (np.uint32, np.uint64))
def test_carries(data: st.DataObject, kind: Any) -> None:
    bits = bits_of(kind)
    table = data.draw(rows(bits, bits, 1))
    a, b, flag = (np.array(column, t) for column, t in zip(zip(*table, strict=True), (kind, kind, bool), strict=True))
    total, out = integers.addc_cc(a, b, flag)
    assert [int(t) + (int(o) << bits) for t, o in zip(total, out, strict=True)] == [
        sum(row[:2]) + bool(row[2]) for row in table
    ]
    left, borrow = integers.subc_cc(a, b, flag)
    assert [int(t) - (int(o) << bits) for t, o in zip(left, borrow, strict=True)] == [
        row[0] - row[1] - bool(row[2]) for row in table
    ]
    plain = integers.add_cc(a, b), integers.sub_cc(a, b)
    without = integers.addc_cc(a, b, np.False_), integers.subc_cc(a, b, np.False_)
    assert [x.tolist() for pair in plain for x in pair] == [x.tolist() for pair in without for x in pair]


@examples(20)
@given(data=st.data())
@pytest.mark.parametrize("kind", WORDS)
def test_counts(data: st.DataObject, kind: Any) -> None:
    bits = bits_of(kind)
    table = data.draw(rows(bits))
    check(table, (kind,), integers.popc, lambda a: (a % 2**bits).bit_count())
    check(table, (kind,), integers.clz, lambda a: bits - (a % 2**bits).bit_length())
    check(table, (kind,), integers.brev, lambda a: int(f"{a % 2**bits:0{bits}b}"[::-1], 2))
    check(table, (kind,), integers.bfind, lambda a: (a if a >= 0 else ~a).bit_length() - 1)
    check(
        table, (kind,), integers.bfind_shiftamt, lambda a: bits - n if (n := (a if a >= 0 else ~a).bit_length()) else -1
    )
    check(table, (kind,), integers.cnot, lambda a: a == 0)


@examples(40)
@given(data=st.data())
@pytest.mark.parametrize("kind", WORDS)
def test_fields(data: st.DataObject, kind: Any) -> None:
    bits = bits_of(kind)

    def counted(amount: int) -> int:
        return amount if bits == 64 else amount & 0xFF  # measured on an H200

    def bfe(a: int, b: int, c: int) -> int:
        position, length, top = counted(b), counted(c), bits - 1
        a %= 2**bits
        sign = a >> min(position + length - 1, top) & 1 if np.dtype(kind).kind == "i" and length else 0
        return sum(
            (a >> (position + i) & 1 if i < length and position + i <= top else sign) << i for i in range(bits)
        )  # fmt: skip

    def bfi(a: int, b: int, c: int, d: int) -> int:
        position, length = counted(c), counted(d)
        for i in range(min(length, bits)):
            if position + i < bits:
                b = b & ~(1 << (position + i)) | (a >> i & 1) << (position + i)
        return b

    check(data.draw(rows(bits, 32, 32)), (kind, np.uint32, np.uint32), integers.bfe, bfe)
    check(data.draw(rows(bits, bits, 32, 32)), (kind, kind, np.uint32, np.uint32), integers.bfi, bfi)


@examples(40)
@given(table=rows(32, 32))
def test_masks(table: list[tuple[int, ...]]) -> None:
    ones = 2**32 - 1
    pair = (np.uint32, np.uint32)
    check(table, pair, integers.bmsk_wrap, lambda a, b: ((1 << b % 32) - 1) << a % 32)
    check(table, pair, integers.bmsk_clamp, lambda a, b: ((1 << min(b, 32)) - 1) << min(a, 32) & ones)
    check(table, pair, integers.szext_wrap, lambda a, b: a & ((1 << b % 32) - 1))
    check(table, pair, integers.szext_clamp, lambda a, b: a & ((1 << min(b, 32)) - 1))

    def extended(a: int, b: int) -> int:
        low = a & ((1 << b) - 1)
        return low - (1 << b) if b and low >> (b - 1) else low

    signed = (np.int32, np.uint32)
    check(table, signed, integers.szext_wrap, lambda a, b: extended(a, b % 32))
    check(table, signed, integers.szext_clamp, lambda a, b: extended(a, min(b, 32)))


@examples(40)
@given(table=st.lists(st.tuples(values(32), st.integers(0, 31), st.integers(-20, 20)), min_size=1))
def test_fns(table: list[tuple[int, int, int]]) -> None:
    def fns(mask: int, base: int, offset: int) -> int:
        if offset == 0:
            return base if mask >> base & 1 else 2**32 - 1
        position, count, step = base, abs(offset) - 1, 1 if offset > 0 else -1
        while 0 <= position < 32:
            if mask >> position & 1:
                if count == 0:
                    return position
                count -= 1
            position += step
        return 2**32 - 1

    wrapped = [(mask, base, offset % 2**32) for mask, base, offset in table]
    check(wrapped, (np.uint32, np.uint32, np.int32), integers.fns, fns)
    assert integers.fns(np.uint32(0xFFFFFFF3), np.uint32(15), np.int32(-(2**31))) == 0  # measured on an H200


@examples(20)
@given(data=st.data())
@pytest.mark.parametrize("kind", TYPES)
def test_shifts(data: st.DataObject, kind: Any) -> None:
    bits = bits_of(kind)
    table = data.draw(rows(bits, 32))
    check(table, (kind, np.uint32), integers.shl, lambda a, b: a << min(b, bits))
    check(table, (kind, np.uint32), integers.shr, lambda a, b: a >> min(b, bits))


@examples(40)
@given(table=rows(32, 32, 32))
def test_funnel_shifts(table: list[tuple[int, ...]]) -> None:
    kinds = (np.uint32,) * 3
    check(table, kinds, integers.shf_l_wrap, lambda a, b, c: (b << 32 | a) << c % 32 >> 32)
    check(table, kinds, integers.shf_l_clamp, lambda a, b, c: (b << 32 | a) << min(c, 32) >> 32)
    check(table, kinds, integers.shf_r_wrap, lambda a, b, c: (b << 32 | a) >> c % 32)
    check(table, kinds, integers.shf_r_clamp, lambda a, b, c: (b << 32 | a) >> min(c, 32))


def test_every_table_of_lop3() -> None:
    lanes = (np.array([value], np.uint32) for value in (0xF0, 0xCC, 0xAA))
    a, b, c = lanes
    assert [int(integers.lop3(a, b, c, table)[0]) & 0xFF for table in range(256)] == list(range(256))


def prmt(a: int, b: int, c: int) -> int:
    data, result = b << 32 | a, 0
    for place in range(4):
        nibble = c >> 4 * place & 15
        byte = data >> 8 * (nibble & 7) & 0xFF
        result |= (0xFF * (byte >> 7) if nibble & 8 else byte) << 8 * place
    return result


@examples(40)
@given(table=rows(32, 32, 32))
def test_prmt(table: list[tuple[int, ...]]) -> None:
    check(table, (np.uint32,) * 3, integers.prmt, prmt)
    column = np.array([row[:2] for row in table], np.uint32).T
    selector = table[0][2]
    got = integers.prmt(*column, np.uint32(selector))
    assert got.tolist() == [prmt(a, b, selector) for a, b, _ in table]


@pytest.mark.parametrize(
    ("mode", "bytes_"),
    (
        ("f4e", ("3210", "4321", "5432", "6543")), ("b4e", ("5670", "6701", "7012", "0123")),
        ("rc8", ("0000", "1111", "2222", "3333")), ("ecl", ("3210", "3211", "3222", "3333")),
        ("ecr", ("0000", "1110", "2210", "3210")), ("rc16", ("1010", "3232", "1010", "3232")),
    ),
)  # fmt: skip
def test_modes_of_prmt(mode: str, bytes_: tuple[str, ...]) -> None:
    """Against the table in the PTX ISA, prmt, d.b3 first."""
    a, b = np.uint32(0x33221100), np.uint32(0x77665544)
    for selector in (np.arange(8, dtype=np.uint32), *map(np.uint32, range(4))):
        got = integers.prmt_mode(a, b, selector, mode)
        wanted = [int("".join(2 * digit for digit in bytes_[s & 3]), 16) for s in np.atleast_1d(selector).tolist()]
        assert np.atleast_1d(got).tolist() == wanted


@examples(20)
@given(data=st.data())
@pytest.mark.parametrize("a_kind", (np.uint32, np.int32))
@pytest.mark.parametrize("b_kind", (np.uint32, np.int32))
def test_dot_products(data: st.DataObject, a_kind: Any, b_kind: Any) -> None:
    def parts(value: int, kind: Any, width: int, count: int) -> list[int]:
        signed = np.dtype(kind).kind == "i"
        fields = [value >> width * i & (2**width - 1) for i in range(count)]
        return [f - (1 << width) if signed and f >> (width - 1) else f for f in fields]

    def dot(start: int, a_width: int, count: int) -> Callable[[int, int, int], int]:
        def function(a: int, b: int, c: int) -> int:
            left = parts(a, a_kind, a_width, count)
            return c + sum(x * y for x, y in zip(left, parts(b, b_kind, 8, 4)[start : start + count], strict=True))

        return function

    kind = np.int32 if np.int32 in (a_kind, b_kind) else np.uint32
    table, kinds = data.draw(rows(32, 32, 32)), (a_kind, b_kind, kind)
    check(table, kinds, integers.dp4a, dot(0, 8, 4))
    check(table, kinds, integers.dp2a_lo, dot(0, 16, 2))
    check(table, kinds, integers.dp2a_hi, dot(2, 16, 2))
