"""f16 and bf16 arithmetic against fractions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import exact
from support.exact import BF16, F16, Value
from support.examples import examples
from support.patterns import rows
from warpwright.emulator.numerics import halves


@pytest.fixture(autouse=True)
def _quiet() -> Any:
    with np.errstate(all="ignore"):
        yield


def sub(a: Value, b: Value) -> Value:
    return exact.add(a, exact.mul(b, exact.Fraction(-1)))


OPERATIONS: dict[str, tuple[int, Callable[..., Value]]] = {
    "add": (2, exact.add), "sub": (2, sub), "mul": (2, exact.mul), "fma": (3, exact.fma),
}  # fmt: skip


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.parametrize("form", (F16, BF16), ids=("f16", "bf16"))
@examples(60)
@given(data=st.data())
def test_rounded_once(data: st.DataObject, form: exact.Format, name: str) -> None:
    count, expected = OPERATIONS[name]
    table = data.draw(rows(form, count))
    kind = np.float16 if form is F16 else np.uint16
    function = getattr(halves, f"{name}_{'f16' if form is F16 else 'bf16'}")
    columns = [np.array(column, np.uint16).view(kind) for column in zip(*table, strict=True)]
    got = function(*columns).view(np.uint16).tolist()
    wanted = []
    for row in table:
        want = exact.encode(expected(*(exact.decode(value, form) for value in row)), form)
        wanted.append(0x7FFF if want is None else want)
    assert got == wanted
    assert function(*(column[0] for column in columns)).view(np.uint16) == wanted[0]
    words = [np.array([v | v << 16 for v in column], np.uint32) for column in zip(*table, strict=True)]
    packed = halves.pairs(function, kind)
    assert packed(*words).tolist() == [v | v << 16 for v in wanted]
    assert packed(*(word[0] for word in words)) == wanted[0] | wanted[0] << 16
    assert packed(words[0][0], *(word[:1] for word in words[1:])).tolist() == [wanted[0] | wanted[0] << 16]


@pytest.mark.parametrize("name", ("f16", "bf16"))
def test_the_smaller_and_the_larger(name: str) -> None:
    form, kind = (F16, np.float16) if name == "f16" else (BF16, np.uint16)
    one, two, nan = exact.encode(exact.Fraction(1), form), exact.encode(exact.Fraction(2), form), 0x7FFF
    a = np.array([one, 0, 0x8000, nan, nan], np.uint16).view(kind)
    b = np.array([two, 0x8000, 0, one, nan], np.uint16).view(kind)

    def bits(function: str) -> list[int]:
        result: list[int] = getattr(halves, f"{function}_{name}")(a, b).view(np.uint16).tolist()
        return result

    assert bits("minimum") == [one, 0x8000, 0x8000, one, nan]
    assert bits("maximum") == [two, 0, 0, one, nan]
    assert bits("minimum_nan") == [one, 0x8000, 0x8000, nan, nan]
    assert bits("maximum_nan") == [two, 0, 0, nan, nan]


@pytest.mark.parametrize("name", ("f16", "bf16"))
def test_relu_of_every_value(name: str) -> None:
    form, kind = (F16, np.float16) if name == "f16" else (BF16, np.uint16)
    every = np.arange(1 << 16).astype(np.uint16)
    got = getattr(halves, f"relu_{name}")(every.view(kind)).view(np.uint16).tolist()
    for code, result in enumerate(got):
        nan = exact.decode(code, form) == "nan"
        assert result == (0x7FFF if nan else 0 if code >> 15 else code)


def test_every_f16_is_its_f32() -> None:
    every = np.arange(1 << 16).astype(np.uint16)
    wide = halves.f32_of_f16(every.view(np.float16))
    numbers = ~np.isnan(every.view(np.float16))
    assert (wide[numbers] == every.view(np.float16)[numbers].astype(np.float32)).all()
    assert set(wide[~numbers].view(np.uint32).tolist()) == {0x7FFFFFFF}
    assert halves.f16_of(wide)[numbers].view(np.uint16).tolist() == every[numbers].tolist()


def test_approximate_functions() -> None:
    every = np.arange(-16, 16, 0.125).astype(np.float16)
    wide = every.astype(np.float64)
    powers = halves.ex2_f16(every[every > -14]).astype(np.float64)
    assert (np.abs(powers / np.exp2(wide[wide > -14]) - 1)).max() < 2.0**-9.9
    assert np.abs(halves.tanh_f16(every).astype(np.float64) - np.tanh(wide)).max() < 2.0**-10.987
    bits = (every.astype(np.float32).view(np.uint32) >> np.uint32(16)).astype(np.uint16)

    def value(a: Any) -> Any:
        return halves.f32_of_bf16(a).astype(np.float64)

    assert np.abs(value(halves.ex2_bf16(bits)) / np.exp2(value(bits)) - 1).max() <= 2.0**-7
    assert np.abs(value(halves.tanh_bf16(bits)) - np.tanh(value(bits))).max() <= 2.0**-8
    assert halves.ex2_bf16(np.uint16(0xFF80)) == 0


@pytest.mark.parametrize("name", ("f16", "bf16"))
def test_neg_and_abs_of_every_value(name: str) -> None:
    form, kind = (F16, np.float16) if name == "f16" else (BF16, np.uint16)
    every = np.arange(1 << 16).astype(np.uint16)
    nan = [exact.decode(code, form) == "nan" for code in range(1 << 16)]
    for function, sign in (("negate", lambda code: code ^ 0x8000), ("absolute", lambda code: code & 0x7FFF)):
        got = getattr(halves, f"{function}_{name}")(every.view(kind)).view(np.uint16).tolist()
        assert got == [0x7FFF if unknown else sign(code) for code, unknown in enumerate(nan)]


@examples(30)
@given(data=st.data())
def test_results_that_are_below_the_normal_numbers_are_flushed(data: st.DataObject) -> None:
    near = st.tuples(st.integers(0x3BF0, 0x3C10), st.integers(0x400, 0x420), st.sampled_from([0, 0x400, 0x8400, 0x401]))
    a, b, c = zip(*data.draw(st.lists(near, min_size=1, max_size=40)), strict=True)
    lanes = [np.array(column, np.uint16).view(np.float16) for column in (a, b, c)]
    values = [[exact.decode(code, F16) for code in column] for column in (a, b, c)]
    products = [exact.flushed(exact.mul(x, y), F16) for x, y in zip(values[0], values[1], strict=True)]
    assert halves.mul_ftz_f16(*lanes[:2]).view(np.uint16).tolist() == products
    sums = [exact.flushed(exact.fma(*row), F16) for row in zip(*values, strict=True)]
    assert halves.fma_ftz_f16(*lanes).view(np.uint16).tolist() == sums


def test_subnormals_are_flushed() -> None:
    assert halves.flush_f16(np.array([0x03FF, 0x8001, 0x0400], np.uint16).view(np.float16)).tolist() == [0, 0, 2.0**-14]
    assert halves.flush_bf16(np.array([0x007F, 0x8001, 0x0080], np.uint16)).tolist() == [0, 0x8000, 0x0080]
