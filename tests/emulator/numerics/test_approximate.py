"""The approximate functions: the manual's tables of special values, and its error bounds against doubles."""

from __future__ import annotations

from collections.abc import Callable
from math import inf, nan, pi
from typing import Any

import numpy as np
import pytest
from warpwright.emulator.numerics import approximate, floats

TINY = 2.0**-140


@pytest.fixture(autouse=True)
def _quiet() -> Any:
    with np.errstate(all="ignore"):
        yield


# PTX ISA 9.7.3: the table of each instruction, for operands -inf, -subnormal, -0, +0, +subnormal, +inf, NaN.
SPECIAL = (-inf, -TINY, -0.0, 0.0, TINY, inf, nan)
FLUSHED_TABLES: dict[str, tuple[float, ...]] = {
    "ex2": (0.0, 1, 1, 1, 1, inf, nan),
    "lg2": (nan, -inf, -inf, -inf, -inf, inf, nan),
    "sin": (nan, -0.0, -0.0, 0.0, 0.0, nan, nan),
    "cos": (nan, 1, 1, 1, 1, nan, nan),
    "tanh": (-1, -0.0, -0.0, 0.0, 0.0, 1, nan),
    "rcp": (-0.0, -inf, -inf, inf, inf, 0.0, nan),
    "rsqrt": (nan, -inf, -inf, inf, inf, 0.0, nan),
    "sqrt": (nan, -0.0, -0.0, 0.0, 0.0, inf, nan),
}


@pytest.mark.parametrize("name", FLUSHED_TABLES)
def test_special_values_under_ftz(name: str) -> None:
    function = getattr(approximate, name)
    got = floats.flush(function(floats.flush(np.array(SPECIAL, np.float32))))
    wanted = floats.canonical(np.array(FLUSHED_TABLES[name], np.float32))
    assert got.view(np.uint32).tolist() == wanted.view(np.uint32).tolist()
    assert [function(floats.flush(np.float32(v))).view(np.uint32) for v in SPECIAL] == got.view(np.uint32).tolist()


def test_subnormals_count_without_ftz() -> None:
    tiny = np.float32(TINY)
    assert approximate.lg2(tiny) == -140
    assert approximate.rcp(np.float32(2.0**-127)) == 2.0**127
    assert approximate.rsqrt(tiny) == 2.0**70
    assert approximate.sqrt(tiny) == 2.0**-70
    assert approximate.ex2(np.float32(-140)) == tiny


def ulps(got: Any, exact: Any) -> Any:
    return np.abs(got - exact) / np.spacing(np.abs(exact).astype(np.float32)).astype(np.float64)


def absolute(got: Any, exact: Any) -> Any:
    return np.abs(got - exact)


def relative(got: Any, exact: Any) -> Any:
    return np.abs(got - exact) / np.abs(exact)


@pytest.mark.parametrize(
    ("name", "exact", "low", "high", "error", "bound"),
    (
        ("ex2", np.exp2, -120, 120, ulps, 0.5), ("lg2", np.log2, 0.5, 2, absolute, 2.0**-24),
        ("lg2", np.log2, 2, 1e30, ulps, 0.51), ("sin", np.sin, -pi, pi, absolute, 2.0**-22),
        ("cos", np.cos, -pi, pi, absolute, 2.0**-22), ("sin", np.sin, -100, 100, absolute, 2.0**-22),
        ("tanh", np.tanh, -10, 10, relative, 2.0**-20), ("rsqrt", lambda x: 1 / np.sqrt(x), 1e-30, 1e30, ulps, 0.51),
        ("rcp", lambda x: 1 / x, 1e-30, 1e30, ulps, 0.5), ("sqrt", np.sqrt, 1e-30, 1e30, ulps, 0.5),
    ),
)  # fmt: skip
def test_error(
    name: str, exact: Callable[[Any], Any], low: float, high: float, error: Callable[[Any, Any], Any], bound: float
) -> None:
    lanes = np.random.default_rng(7).uniform(low, high, 20000).astype(np.float32)
    got = getattr(approximate, name)(lanes).astype(np.float64)
    assert error(got, exact(lanes.astype(np.float64))).max() <= bound


def test_division_by_a_huge_number() -> None:
    a, b = np.array([1, -2, inf, nan], np.float32), np.float32(2.0**127)
    assert floats.div(a, b)[0] == 2.0**-127
    for function in (approximate.div, approximate.div_ftz):
        got = function(a, b)
        assert got[:2].tolist() == [0, 0]
        assert got[2:].view(np.uint32).tolist() == [0x7FFFFFFF] * 2
    assert approximate.div(np.float32(1e38), np.float32(2.0**126)) == np.float32(1e38 / 2.0**126)


def test_gross_approximations_of_doubles_leave_the_lower_word_empty() -> None:
    lanes = np.random.default_rng(7).uniform(1e-3, 1e3, 1000)
    for function, exact in (
        (approximate.rcp_f64, lambda x: 1 / x), (approximate.rsqrt_f64, lambda x: 1 / np.sqrt(x)),
    ):  # fmt: skip
        got = function(lanes)
        assert not (got.view(np.uint64) & np.uint64(0xFFFFFFFF)).any()
        assert relative(got, exact(lanes)).max() < 2.0**-18
        assert function(np.array([nan, -nan])).view(np.uint64).tolist() == [0x7FFFFFFF00000000] * 2
    assert int(approximate.rsqrt_f64(np.float64(-1)).view(np.uint64)) == 0x7FFFFFFF00000000
    odd = np.array([0x7FF0000000000001, 0xBFF0000000000000], np.uint64).view(np.float64)
    assert approximate.rsqrt_full_f64(odd).view(np.uint64).tolist() == [0x7FF8000000000001, 0xFFF8000000000000]
    special = np.array([-inf, -1e-310, -0.0, 0.0, 1e-310, inf])
    assert approximate.rcp_f64(special).tolist() == [-0.0, -inf, -inf, inf, inf, 0.0]
    assert approximate.rsqrt_f64(special[1:]).tolist() == [-inf, -inf, inf, inf, 0.0]
