"""The bound of a shape: what it counts, and below which time nothing can be."""

from __future__ import annotations

import pytest

pytest.importorskip("torch", reason="not installed: torch")

from warpwright_harness.buffers import ArraySpec
from warpwright_harness.timing.bounds import Bound, bound_of

RATES = {"dram_bytes": 4e12, "l2_bytes": 8e12, "fp32": 60e12, "fp64": 60e12, "fp16_tensor": 800e12}
MIB = 1 << 20
L2 = 60 * MIB


def array(role: str, mib: int, scalar: str = "float32", limit: int | None = None) -> ArraySpec:
    size = {"float16": 2, "float32": 4, "int32": 4, "float64": 8}[scalar]
    return ArraySpec(f"{role}{mib}", scalar, 1, role, mib * MIB // size, limit)


def bound(*arrays: ArraySpec, operations: float = 0.0) -> Bound:
    found = bound_of(arrays, operations, RATES, L2)
    assert found is not None
    return found


def test_every_array_moves_once_and_one_that_is_read_and_written_twice() -> None:
    copy = bound(array("in", 100), array("out", 100))
    assert copy.bytes == 200 * MIB
    assert copy.us == pytest.approx(200 * MIB / 4e12 * 1e6)
    assert bound(array("in", 100), array("in-out", 100)).bytes == 300 * MIB
    assert copy.limited_by == "memory"
    assert "operations not counted" in copy.what


def test_what_may_stay_in_the_cache_is_no_reason_to_call_a_time_impossible() -> None:
    copy = bound(array("in", 100), array("out", 100))
    assert copy.least_cold_us == pytest.approx((100 + 40) * MIB / 4e12 * 1e6 / 1.1)
    assert bound(array("in", 1), array("out", 20)).least_cold_us == pytest.approx(1 * MIB / 4e12 * 1e6 / 1.1)
    assert copy.least_warm_us == pytest.approx(200 * MIB / 8e12 * 1e6 / 1.1)


def test_an_index_array_says_that_others_are_read_in_places() -> None:
    gather = bound(array("in", 100), array("in", 1, "int32", limit=7), array("out", 1))
    assert gather.least_cold_us == gather.least_warm_us == 0.0
    assert gather.us > 0


@pytest.mark.parametrize(("scalar", "rate"), [("float32", 60e12), ("float64", 60e12), ("float16", 800e12)])
def test_operations_count_at_the_rate_of_their_type(scalar: str, rate: float) -> None:
    product = bound(array("in", 1, scalar), array("out", 1, scalar), operations=1e12)
    assert product.limited_by == "arithmetic"
    assert product.us == pytest.approx(1e12 / rate * 1e6)
    fastest = 60e12 if scalar == "float64" else 800e12  # tensor cores can stand in for FP32, in pieces
    assert product.least_cold_us == pytest.approx(1e12 / fastest * 1e6 / 1.1)


def test_without_rates_there_is_no_bound() -> None:
    assert bound_of([array("in", 1)], 0.0, {}, L2) is None


def test_the_rates_of_memory_bound_what_no_operations_were_counted_of() -> None:
    memory = {name: RATES[name] for name in ("dram_bytes", "l2_bytes")}
    arrays = [array("in", 100), array("out", 100)]
    assert bound_of(arrays, 0.0, memory, L2) == bound(*arrays)
    assert bound_of(arrays, 1e12, memory, L2) is None
