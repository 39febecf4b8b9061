"""f32 and f64 arithmetic against fractions, over bit patterns that crowd around the awkward places."""

from __future__ import annotations

from collections.abc import Callable
from math import isqrt
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import exact
from support.exact import F32, F64, Format, Value
from support.examples import examples
from support.patterns import rows
from warpwright.emulator.numerics import floats

MODES = ("rn", "rz", "rm", "rp")
FORMATS = ((F32, np.uint32, np.float32), (F64, np.uint64, np.float64))


@pytest.fixture(autouse=True)
def _quiet() -> Any:
    with np.errstate(all="ignore"):
        yield


def check(
    table: list[tuple[int, ...]],
    types: tuple[Format, Any, Any],
    function: Callable[..., Any],
    expected: Callable[..., Value],
    mode: str,
) -> None:
    form, word, kind = types
    columns = [np.array(column, word).view(kind) for column in zip(*table, strict=True)]
    got = function(*columns, mode).view(word).tolist()
    for row, bits in zip(table, got, strict=True):
        want = exact.encode(expected(*(exact.decode(value, form) for value in row)), form, mode)
        shown = [hex(value) for value in row]
        if want is None:
            assert exact.decode(bits, form) == "nan", (shown, hex(bits))
        else:
            assert bits == want, (shown, hex(bits), hex(want), mode)
    first = function(*(column[0] for column in columns), mode)
    assert isinstance(first, np.generic)
    assert first.view(word) == got[0]
    if len(columns) > 1:
        mixed = function(columns[0][0], *columns[1:], mode)
        assert mixed.shape == columns[1].shape
        assert mixed.view(word)[0] == got[0]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("types", FORMATS, ids=("f32", "f64"))
class TestArithmetic:
    @examples(20)
    @given(data=st.data())
    def test_add(self, data: st.DataObject, types: Any, mode: str) -> None:
        check(data.draw(rows(types[0], 2)), types, floats.add, lambda a, b: exact.add(a, b, mode), mode)

    @examples(20)
    @given(data=st.data())
    def test_mul(self, data: st.DataObject, types: Any, mode: str) -> None:
        check(data.draw(rows(types[0], 2)), types, floats.mul, exact.mul, mode)

    @examples(50)
    @given(data=st.data())
    def test_fma(self, data: st.DataObject, types: Any, mode: str) -> None:
        check(data.draw(rows(types[0], 3)), types, floats.fma, lambda a, b, c: exact.fma(a, b, c, mode), mode)

    @examples(20)
    @given(data=st.data())
    def test_div(self, data: st.DataObject, types: Any, mode: str) -> None:
        check(data.draw(rows(types[0], 2)), types, floats.div, exact.div, mode)

    @examples(20)
    @given(data=st.data())
    def test_sqrt(self, data: st.DataObject, types: Any, mode: str) -> None:
        check(data.draw(rows(types[0], 1)), types, floats.sqrt, _root, mode)


def _root(value: Value) -> Value:
    """The square root to 200 bits with a sticky bit, which rounds as the root itself does."""
    if isinstance(value, str):
        return {"-inf": "nan"}.get(value, value)
    if value <= 0:
        return "nan" if value else value
    shift = 400 + 2 * value.denominator.bit_length()
    scaled = (value.numerator << shift) * value.denominator
    root = isqrt(scaled)
    top = 2 * root + (root * root != scaled)
    return exact.Fraction(top, 2 * value.denominator << (shift // 2))


def test_f32_fma_of_a_sum_half_way_between_two_numbers() -> None:
    """Through a double the tail that breaks the tie is lost; so it is for 1 + 2^-23 * 2^-1 + 2^-60."""
    a, b, c = np.float32(2**-24 + 2**-47), np.float32(1 + 2**-23), np.float32(1 + 2**-23)
    lanes = np.full(1000, a)
    want = exact.encode(exact.Fraction(float(a)) * exact.Fraction(float(b)) + exact.Fraction(float(c)), F32)
    assert set(floats.fma(lanes, b, c).view(np.uint32).tolist()) == {want}


def test_nan_is_canonical() -> None:
    odd = np.array([0x7FC12345, 0xFF800001, 0x3F800000], np.uint32).view(np.float32)
    one = np.float32(1)
    for got in (floats.add(odd, one), floats.mul(odd, one), floats.fma(odd, one, one), floats.div(odd, one)):
        assert got.view(np.uint32).tolist()[:2] == [0x7FFFFFFF] * 2
    assert floats.minimum(odd, odd).view(np.uint32).tolist() == [0x7FFFFFFF, 0x7FFFFFFF, 0x3F800000]
    assert floats.minimum(odd, one).tolist() == [1, 1, 1]


@pytest.mark.parametrize("mode", MODES)
def test_which_nan_operand_of_doubles_is_kept(mode: str) -> None:
    """Measured on an H200: add, sub, mul, min and max keep b's, fma b's, then c's, div a's."""
    a, b, c = np.array([0x7FF0000000000123, 0xFFF8000000000456, 0x7FFFFFFFFFFFFFFF], np.uint64).view(np.float64)
    one, infinite = np.float64(1), np.float64(np.inf)
    of_a, of_b, of_c = 0x7FF8000000000123, 0xFFF8000000000456, 0x7FFFFFFFFFFFFFFF

    def nan(function: Callable[..., Any], *operands: Any) -> int:
        lanes = function(np.repeat(operands[0], 3), *operands[1:])
        assert set(lanes.view(np.uint64).tolist()) == {int(function(*operands).view(np.uint64))}
        return int(lanes.view(np.uint64)[0])

    for function in (floats.add, floats.sub, floats.mul):
        assert nan(lambda x, y, f=function: f(x, y, mode), a, one) == of_a
        assert nan(lambda x, y, f=function: f(x, y, mode), one, b) == of_b
        assert nan(lambda x, y, f=function: f(x, y, mode), a, b) == of_b
    for function in (floats.minimum, floats.maximum):
        assert (nan(function, a, b), nan(function, a, a)) == (of_b, of_a)
    for operands, kept in (((a, b, c), of_b), ((a, one, c), of_c), ((a, one, one), of_a), ((one, b, c), of_b)):
        assert nan(lambda x, y, z: floats.fma(x, y, z, mode), *operands) == kept
    assert nan(lambda x, y: floats.div(x, y, mode), a, b) == of_a
    assert nan(lambda x, y: floats.add(x, y, mode), infinite, -infinite) == 0xFFF8000000000000


def test_nan_under_neg_and_abs() -> None:
    singles = np.array([0xFF800001, 0x7FC00005], np.uint32).view(np.float32)
    doubles = np.array([0xFFF0000000000001, 0x7FF8000000000005], np.uint64).view(np.float64)
    for function in (floats.negate, floats.absolute):
        assert function(singles).view(np.uint32).tolist() == [0x7FFFFFFF] * 2
        assert function(doubles).view(np.uint64).tolist() == [0xFFF8000000000001, 0x7FF8000000000005]
    assert floats.with_xor_sign(singles, singles, -singles).view(np.uint32).tolist() == [0x7FFFFFFF] * 2


def test_zero_is_normal_to_testp() -> None:
    lanes = np.array([0.0, -0.0, 1e-40, 1, np.inf, np.nan], np.float32)
    assert floats.TESTS["normal"](lanes).tolist() == [True, True, False, True, False, False]
    assert floats.TESTS["subnormal"](lanes).tolist() == [False, False, True, False, False, False]


def test_a_directed_sum_whose_error_overflows_on_the_way() -> None:
    """Knuth's error term of two finite numbers near the end of the range is infinite, though their sum is not."""
    huge, rows = 0x7FEFFFFFFFFFFFFF, [0xC340000000000001, 0xFC90000000000001, 0xFCA0000000000001, 0xBFF0000000000001]
    a, b = np.array([huge] * 4, np.uint64).view(np.float64), np.array(rows, np.uint64).view(np.float64)
    for mode in MODES:
        for x, y in ((a, b), (b, a)):
            wanted = [exact.encode(exact.add(*(exact.decode(int(v), F64) for v in pair), mode), F64, mode)
                      for pair in zip(x.view(np.uint64), y.view(np.uint64), strict=True)]  # fmt: skip
            assert floats.add(x, y, mode).view(np.uint64).tolist() == wanted, mode


def test_zeros_order() -> None:
    zeros = np.array([0.0, -0.0, 0.0, -0.0], np.float32)
    others = np.array([0.0, 0.0, -0.0, -0.0], np.float32)
    assert np.signbit(floats.minimum(zeros, others)).tolist() == [False, True, True, True]
    assert np.signbit(floats.maximum(zeros, others)).tolist() == [False, False, False, True]


@pytest.mark.parametrize("name", floats.COMPARE)
def test_comparisons(name: str) -> None:
    values = np.array([-np.inf, -1, -0.0, 0.0, 1e-45, 1, np.inf, np.nan], np.float32)
    base = {"equ": "eq", "neu": "ne", "ltu": "lt", "leu": "le", "gtu": "gt", "geu": "ge"}.get(name, name)
    for a in values:
        for b in values:
            unordered = bool(np.isnan(a) or np.isnan(b))
            table = {"eq": a == b, "ne": a != b, "lt": a < b, "le": a <= b, "gt": a > b, "ge": a >= b}
            ordered = {**table, "num": True, "nan": False}[base]
            want = (name != base or name == "nan") if unordered else ordered
            assert bool(floats.COMPARE[name](a, b)) == bool(want), (a, b)


@pytest.mark.parametrize("mode", MODES)
@examples(30)
@given(data=st.data())
def test_results_that_are_below_the_normal_numbers_are_flushed(data: st.DataObject, mode: str) -> None:
    near_one = st.tuples(st.integers(-4, 4), st.integers(-4, 4), st.integers(-2, 2))
    table = data.draw(st.lists(near_one, min_size=1, max_size=40))
    least = 0x00800000
    a = np.array([0x3F800000 + row[0] for row in table], np.uint32).view(np.float32)
    b = np.array([least + abs(row[1]) for row in table], np.uint32).view(np.float32)
    c = np.array([least * row[2] % 2**32 & 0x80FFFFFF for row in table], np.uint32).view(np.float32)

    def expected(value: Value) -> int:
        return 0x80000000 if isinstance(value, str) else exact.flushed(value, F32, mode)

    x, y, z = ([exact.decode(int(v), F32) for v in lane.view(np.uint32)] for lane in (a, b, floats.flush(c)))
    products = [expected(exact.mul(*row)) for row in zip(x, y, strict=True)]
    assert floats.mul_ftz(a, b, mode).view(np.uint32).tolist() == products
    quotients = [expected(exact.div(*row)) for row in zip(y, x, strict=True)]
    assert floats.div_ftz(b, a, mode).view(np.uint32).tolist() == quotients
    sums = [expected(exact.fma(*row, mode)) for row in zip(x, y, z, strict=True)]
    assert floats.fma_ftz(a, b, c, mode).view(np.uint32).tolist() == sums


def test_flushed_results_of_an_h200() -> None:
    """Rounding modes and operands as bits, and what the GPU gave."""
    rows = (
        (floats.fma_ftz, "rn", (0xAEC60000, 0x81000000, 0x80800000), 0x80800000),
        (floats.fma_ftz, "rm", (0x800001, 0x25AB3B2D, 0x80800000), 0x80800000),
        (floats.fma_ftz, "rp", (0x89D5C9D5, 0x800001, 0x800000), 0x800000),
        (floats.div_ftz, "rn", (0xFFFFFF, 0xC0000000), 0x80000000),
        (floats.div_ftz, "rm", (0x800000, 0xBF800001), 0x80000000),
        (floats.div_ftz, "rp", (0x800000, 0x3F800001), 0),
    )
    for function, mode, operands, wanted in rows:
        got = function(*(np.uint32(bits).view(np.float32) for bits in operands), mode)
        assert int(got.view(np.uint32)) == wanted, (mode, operands)


def test_a_finite_product_beyond_the_range_and_an_infinite_addend() -> None:
    huge, low = np.array([1.7e308, -1.7e308]), np.float64(-np.inf)
    assert floats.fma(huge, np.float64(1e10), low).tolist() == [low, low]
