"""cvt against fractions: every pair of types, every rounding."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import exact
from support.exact import BF16, F16, F32, F64, Format, Value
from support.examples import examples
from support.patterns import patterns
from warpwright.emulator.numerics import convert
from warpwright.emulator.numerics.convert import INTEGERS

FORMATS: dict[str, tuple[Format, Any, Any]] = {
    "f16": (F16, np.uint16, np.float16),
    "bf16": (BF16, np.uint16, np.uint16),
    "f32": (F32, np.uint32, np.float32),
    "f64": (F64, np.uint64, np.float64),
}
MODES = ("rn", "rz", "rm", "rp")


@pytest.fixture(autouse=True)
def _quiet() -> Any:
    with np.errstate(all="ignore"):
        yield


def given_integers(name: str) -> st.SearchStrategy[list[int]]:
    limits = np.iinfo(INTEGERS[name])
    low, high = int(limits.min), int(limits.max)
    shifts = st.tuples(st.integers(0, limits.bits - 1), st.integers(-2, 2), st.sampled_from([1, 3, -1]))
    near = shifts.map(lambda row: max(low, min(high, (row[2] << row[0]) + row[1])))
    return st.lists(st.one_of(near, st.integers(low, high)), min_size=1, max_size=40)


def same_bits(got: Any, name: str, wanted: list[int | None], rows: list[Any]) -> None:
    form, word, _ = FORMATS[name]
    for row, bits, want in zip(rows, np.atleast_1d(got).view(word).tolist(), wanted, strict=True):
        if want is None:
            assert exact.decode(bits, form) == "nan", row
        else:
            assert bits == want, (row, hex(bits), hex(want))


@examples(20)
@given(data=st.data())
@pytest.mark.parametrize(("source", "target"), [pair for pair in product(FORMATS, FORMATS) if pair[0] != pair[1]])
def test_float_to_float(data: st.DataObject, source: str, target: str) -> None:
    form, word, kind = FORMATS[source]
    rows = data.draw(st.lists(patterns(form), min_size=1, max_size=40))
    lanes = np.array(rows, word).view(kind)
    values = [exact.decode(row, form) for row in rows]
    widens = FORMATS[target][0].fraction > form.fraction and FORMATS[target][0].exponent >= form.exponent
    for mode in MODES:
        function = convert.conversion(target, source, () if widens else (mode,))
        same_bits(function(lanes), target, [exact.encode(v, FORMATS[target][0], mode) for v in values], rows)
        same_bits(function(lanes[0]), target, [exact.encode(values[0], FORMATS[target][0], mode)], rows[:1])


def integral(value: Value, mode: str, low: int, high: int, nan: int) -> int:
    if isinstance(value, str):
        return {"nan": nan, "+inf": high, "-inf": low, "-0": 0}[value]
    return max(low, min(high, exact.to_integer(value, mode)))


@examples(20)
@given(data=st.data())
@pytest.mark.parametrize("target", INTEGERS)
@pytest.mark.parametrize("source", FORMATS)
def test_float_to_integer(data: st.DataObject, source: str, target: str) -> None:
    form, word, kind = FORMATS[source]
    limits = np.iinfo(INTEGERS[target])
    near = given_integers(target).map(lambda values: [exact.encode(Fraction(2 * v + 1, 2), form) or 0 for v in values])
    rows = data.draw(st.one_of(st.lists(patterns(form), min_size=1, max_size=40), near))
    lanes = np.array(rows, word).view(kind)
    narrow = source != "f64" and target not in ("s64", "u64")
    nan = 0 if narrow else int(limits.min) if target[0] == "s" else 1 << (limits.bits - 1)
    for mode in MODES:
        function = convert.conversion(target, source, (f"{mode}i",))
        wanted = [integral(exact.decode(row, form), mode, int(limits.min), int(limits.max), nan) for row in rows]
        got = function(lanes)
        assert got.dtype == INTEGERS[target]
        assert got.tolist() == wanted
        assert int(function(lanes[0])) == wanted[0]


@examples(20)
@given(data=st.data())
@pytest.mark.parametrize("target", FORMATS)
@pytest.mark.parametrize("source", INTEGERS)
def test_integer_to_float(data: st.DataObject, source: str, target: str) -> None:
    rows = data.draw(given_integers(source))
    lanes = np.array(rows, INTEGERS[source])
    for mode in MODES:
        function = convert.conversion(target, source, (mode,))
        wanted = [exact.encode(Fraction(row), FORMATS[target][0], mode) for row in rows]
        same_bits(function(lanes), target, wanted, rows)
        same_bits(function(lanes[0]), target, wanted[:1], rows[:1])


@settings(max_examples=10, deadline=None)
@given(data=st.data())
@pytest.mark.parametrize("target", INTEGERS)
@pytest.mark.parametrize("source", INTEGERS)
def test_integer_to_integer(data: st.DataObject, source: str, target: str) -> None:
    rows = data.draw(given_integers(source))
    lanes = np.array(rows, INTEGERS[source])
    limits = np.iinfo(INTEGERS[target])
    low, high = int(limits.min), int(limits.max)
    cut = convert.conversion(target, source)(lanes)
    assert [int(v) % (1 << limits.bits) for v in cut] == [row % (1 << limits.bits) for row in rows]
    clamped = convert.conversion(target, source, ("sat",))(lanes)
    assert clamped.dtype == INTEGERS[target]
    assert clamped.tolist() == [max(low, min(high, row)) for row in rows]


@examples(20)
@given(data=st.data())
@pytest.mark.parametrize("kind", FORMATS)
def test_rounding_to_an_integral_float(data: st.DataObject, kind: str) -> None:
    form, word, dtype = FORMATS[kind]
    rows = data.draw(st.lists(patterns(form), min_size=1, max_size=40))
    lanes = np.array(rows, word).view(dtype)

    def rounded(value: Value, mode: str) -> Value:
        if isinstance(value, str):
            return value
        whole = Fraction(exact.to_integer(value, mode))
        return "-0" if whole == 0 and value < 0 else whole

    for mode in MODES:
        got = convert.conversion(kind, kind, (f"{mode}i",))(lanes)
        same_bits(got, kind, [exact.encode(rounded(exact.decode(row, form), mode), form) for row in rows], rows)


@examples(40)
@given(rows=st.lists(patterns(F32), min_size=1, max_size=40))
def test_tf32(rows: list[int]) -> None:
    form = Format(8, 10)
    lanes = np.array(rows, np.uint32).view(np.float32)
    for mode in ("rn", "rna", "rz"):
        got = convert.to_tf32(lanes, mode).tolist()
        for row, bits in zip(rows, got, strict=True):
            want = exact.encode(exact.decode(row, F32), form, mode)
            nan = row & 0xFFFFE000 if mode == "rna" else 0x7FFFE000  # measured on an H200
            assert bits == (nan if want is None else want << 13), (hex(row), mode)
    clamped = convert.to_tf32_satfinite(lanes).tolist()
    for bits, given_bits in zip(convert.to_tf32(lanes).tolist(), clamped, strict=True):
        assert given_bits == (bits if bits & 0x7FFFFFFF < 0x7F800000 else bits - 0x2000)


@pytest.mark.parametrize(
    ("target", "source", "modifiers", "given_bits", "wanted"),
    (
        ("f16", "f64", ("rn",), 0xFFF0000000000001, 0xFE00), ("f16", "f64", ("rz",), 0xFFFFFFFFFFFFFFFF, 0xFFFF),
        ("bf16", "f64", ("rp",), 0x7FF0000000000001, 0x7FC0), ("f32", "f64", ("rn",), 0xFFF8000000000005, 0xFFC00000),
        ("f32", "f64", ("rn", "ftz"), 0xFFFFFFFFFFFFFFFF, 0xFFFFFFFF), ("f32", "f64", ("rn", "sat"), 0xFFF8 << 48, 0),
        ("f64", "f16", (), 0x7C01, 0x7FF8040000000000), ("f64", "f16", (), 0xFFFE, 0xFFFFF80000000000),
        ("f64", "bf16", (), 0x7F81, 0x7FF8200000000000), ("f32", "bf16", (), 0xFF81, 0xFF810000),
        ("f64", "f32", (), 0xFF800001, 0xFFF8000020000000), ("f64", "f32", ("ftz",), 0xFF800001, 0x7FFFFFFFE0000000),
        ("f32", "f16", (), 0xFC01, 0x7FFFFFFF), ("f16", "f32", ("rn",), 0xFF800001, 0x7FFF),
        ("bf16", "f32", ("rz",), 0xFF800001, 0x7FFF),
    ),
)  # fmt: skip
def test_nan_as_an_h200_converts_it(
    target: str, source: str, modifiers: tuple[str, ...], given_bits: int, wanted: int
) -> None:
    (_, word, kind), (_, result, _) = FORMATS[source], FORMATS[target]
    lanes = np.array([given_bits, 0], word).view(kind)
    function = convert.conversion(target, source, modifiers)
    assert function(lanes).view(result).tolist() == [wanted, 0]
    assert int(function(lanes[0]).view(result)) == wanted


def test_doubles_near_the_least_normal_single_under_ftz() -> None:
    """ptxas multiplies what is below 2^-126 (1 - 2^-25) by 2^-126."""
    bits = [0x380FFFFFF0000000 + step for step in (-2, -1, 0, 1)]
    got = convert.conversion("f32", "f64", ("rn", "ftz"))(np.array(bits, np.uint64).view(np.float64))
    assert got.view(np.uint32).tolist() == [0, 0, 0x800000, 0x800000]


@examples(20)
@given(rows=st.lists(patterns(F32), min_size=1, max_size=40))
@pytest.mark.parametrize("target", ("f16", "bf16"))
def test_satfinite(rows: list[int], target: str) -> None:
    form, word, _ = FORMATS[target]
    lanes = np.array(rows, np.uint32).view(np.float32)
    largest = ((2**form.exponent - 1) << form.fraction) - 1
    for modifiers in (("rn", "satfinite"), ("rz", "satfinite"), ("rn", "satfinite", "relu")):
        got = convert.conversion(target, "f32", modifiers)(lanes).view(word).tolist()
        for row, bits in zip(rows, got, strict=True):
            want = exact.encode(exact.decode(row, F32), form, modifiers[0])
            if want is None:
                assert bits == 0x7FFF
            elif "relu" in modifiers and want >> 15:
                assert bits == 0
            else:
                assert bits == (want & 0x8000) | min(want & 0x7FFF, largest), hex(row)


def nearest(value: Value, codes: dict[int, Fraction], sign: int) -> int:
    """The code of the nearest number of a byte-wide format, the even code of two."""
    if value == "nan":
        return 0x7F
    if isinstance(value, str):
        return {"+inf": max(codes), "-inf": max(codes) | sign, "-0": sign}[value]
    distance = min(abs(abs(value) - number) for number in codes.values())
    code = min((c % 2, c) for c, number in codes.items() if abs(abs(value) - number) == distance)[1]
    return code | sign if value < 0 else code


def f32_of_f16(bits: int) -> int:
    return int(np.array([bits], np.uint16).view(np.float16).astype(np.float32).view(np.uint32)[0])


@examples(40)
@given(rows=st.lists(st.one_of(patterns(F32), patterns(F16).map(f32_of_f16)), min_size=1, max_size=40))
def test_byte_formats(rows: list[int]) -> None:
    lanes = np.array(rows, np.uint32).view(np.float32)
    e5m2 = {c: v for c in range(0x7C) if isinstance(v := exact.decode(c, Format(5, 2)), Fraction)}
    # e4m3 uses the top exponent too: the same numbers in a format of 5 bits of exponent lie 8 exponents higher.
    e4m3 = {c: v for c in range(0x78) if isinstance(v := exact.decode(c, Format(4, 3)), Fraction)}
    e4m3 |= {0x78 + i: Fraction(256 + 32 * i) for i in range(7)}
    for function, codes in ((convert.pack_e4m3x2, e4m3), (convert.pack_e5m2x2, e5m2)):
        got = function(lanes, np.float32(1)).tolist()
        one = next(code for code, value in codes.items() if value == 1)
        assert got == [nearest(exact.decode(row, F32), codes, 0x80) << 8 | one for row in rows]


def test_bytes_come_back() -> None:
    codes = np.arange(256, dtype=np.uint16)
    numbers = codes[(codes & 0x7F) != 0x7F]
    pairs = convert.unpack_e4m3x2(numbers | (numbers << np.uint16(8)))
    assert convert.pack_e4m3x2_of_f16x2(pairs).tolist() == (numbers * np.uint16(257)).tolist()
    finite = codes[(codes & 0x7F) < 0x7C]
    pairs = convert.unpack_e5m2x2(finite | (finite << np.uint16(8)))
    assert convert.pack_e5m2x2_of_f16x2(pairs).tolist() == (finite * np.uint16(257)).tolist()
    assert hex(convert.unpack_e4m3x2(np.uint16(0x7FFF))) == "0x7fff7fff"


@pytest.mark.parametrize(
    ("target", "source", "modifiers"),
    (
        ("f32", "f128", ("rn",)), ("s32", "f32", ()), ("s32", "f32", ("rn",)), ("f16", "f32", ()),
        ("f16", "f32", ("rni",)),
        ("f16", "f32", ("rna",)), ("f32", "s32", ()), ("f64", "f32", ("rn",)), ("bf16", "f32", ("rn", "sat")),
        ("s32", "s64", ("relu",)), ("f16", "f64", ("rn", "satfinite")),
        ("f16", "f32", ("rs",)), ("f32", "f64", ("rn", "satfinite")), ("s32", "f32", ("rzi", "satfinite")),
    ),
)  # fmt: skip
def test_a_conversion_that_is_not_known(target: str, source: str, modifiers: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match="is not a supported conversion"):
        convert.conversion(target, source, modifiers)
