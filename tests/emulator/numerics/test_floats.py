"""f32 and f64 arithmetic against fractions, over bit patterns that crowd around the awkward places."""

from __future__ import annotations

from collections.abc import Callable
from math import isqrt
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import exact
from support.exact import F32, F64, Format, Value
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
    @settings(max_examples=20, deadline=None)
    @given(data=st.data())
    def test_add(self, data: st.DataObject, types: Any, mode: str) -> None:
        check(data.draw(rows(types[0], 2)), types, floats.add, lambda a, b: exact.add(a, b, mode), mode)

    @settings(max_examples=20, deadline=None)
    @given(data=st.data())
    def test_mul(self, data: st.DataObject, types: Any, mode: str) -> None:
        check(data.draw(rows(types[0], 2)), types, floats.mul, exact.mul, mode)

    @settings(max_examples=50, deadline=None)
    @given(data=st.data())
    def test_fma(self, data: st.DataObject, types: Any, mode: str) -> None:
        check(data.draw(rows(types[0], 3)), types, floats.fma, lambda a, b, c: exact.fma(a, b, c, mode), mode)

    @settings(max_examples=20, deadline=None)
    @given(data=st.data())
    def test_div(self, data: st.DataObject, types: Any, mode: str) -> None:
        check(data.draw(rows(types[0], 2)), types, floats.div, exact.div, mode)

    @settings(max_examples=20, deadline=None)
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


def test_payload_of_a_double_is_kept() -> None:
    odd = np.array([0x7FF0000000000123], np.uint64).view(np.float64)
    assert hex(floats.add(odd, np.float64(1)).view(np.uint64)[0]) == "0x7ff8000000000123"
    assert hex(floats.mul(np.float64(1), odd).view(np.uint64)[0]) == "0x7ff8000000000123"


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


@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_results_that_are_subnormal_before_rounding_are_flushed(data: st.DataObject) -> None:
    near_one = st.tuples(st.integers(-4, 4), st.integers(-4, 4), st.integers(-2, 2))
    table = data.draw(st.lists(near_one, min_size=1, max_size=40))
    least = 0x00800000
    a = np.array([0x3F800000 + row[0] for row in table], np.uint32).view(np.float32)
    b = np.array([least + abs(row[1]) for row in table], np.uint32).view(np.float32)
    c = np.array([least * row[2] % 2**32 & 0x80FFFFFF for row in table], np.uint32).view(np.float32)

    def expected(value: Value) -> int:
        tiny = not isinstance(value, str) and abs(value) < exact.Fraction(2) ** -126
        bits = exact.encode(value, F32)
        assert bits is not None
        return bits & 0x80000000 if tiny else bits

    x, y, z = ([exact.decode(int(v), F32) for v in lane.view(np.uint32)] for lane in (a, b, floats.flush(c)))
    products = [expected(exact.mul(*row)) for row in zip(x, y, strict=True)]
    assert floats.mul_ftz(a, b).view(np.uint32).tolist() == products
    sums = [expected(exact.fma(*row)) for row in zip(x, y, z, strict=True)]
    assert floats.fma_ftz(a, b, c).view(np.uint32).tolist() == sums


def test_a_finite_product_beyond_the_range_and_an_infinite_addend() -> None:
    huge, low = np.array([1.7e308, -1.7e308]), np.float64(-np.inf)
    assert floats.fma(huge, np.float64(1e10), low).tolist() == [low, low]
