"""The harness's judgement on the CPU: what it must not let pass, and what it must not reject."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="not installed: torch")

from warpwright_harness.buffers import (  # noqa: E402
    GUARD_BYTES,
    POISONS,
    ArraySpec,
    Buffer,
    bits,
    coarser,
    fingerprint,
    guards_broken,
    perturbed,
    poisons_of,
)
from warpwright_harness.checks.compare import compare, is_exact, largest_gap, largest_ulp, relative_l2  # noqa: E402
from warpwright_harness.drawn import DISTRIBUTIONS, SENTINELS, make_values  # noqa: E402


def spec(scalar: str = "float32", count: int = 1000, role: str = "out", limit: int | None = None) -> ArraySpec:
    return ArraySpec("a", scalar, 1, role, count, limit)


def verdict(candidate: Any, baseline: Any, tolerance: float = 0.0, scalar: str = "float32") -> str:
    written = torch.ones(candidate.numel(), dtype=torch.bool)
    return compare(spec(scalar, candidate.numel()), candidate, baseline, (written, written), tolerance).why


def test_equal_outputs_are_equal() -> None:
    values = torch.randn(1000)
    assert verdict(values.clone(), values) == ""


def test_one_wrong_value_is_found_and_named() -> None:
    values = torch.randn(1000)
    wrong = values.clone()
    wrong[700] += 1
    why = verdict(wrong, values, tolerance=1e-3)
    assert why.startswith("a[700] is ")
    assert "1 of 1,000 values differ" in why


@pytest.mark.parametrize(
    ("first", "second"), [(float("nan"), 0.0), (0.0, float("nan")), (float("inf"), float("-inf")), (3e38, float("inf"))]
)
def test_nan_and_infinity_are_compared_by_place(first: float, second: float) -> None:
    a, b = torch.zeros(10), torch.zeros(10)
    a[3], b[3] = first, second
    assert "stands at other places: a[3]" in verdict(a, b, tolerance=1e30)


def test_nan_at_the_same_place_agrees() -> None:
    a = torch.tensor([1.0, float("nan"), float("inf")])
    assert verdict(a.clone(), a) == ""


def test_a_constant_does_not_pass_for_small_values() -> None:
    values = torch.randn(1000) * 1e-6
    assert verdict(torch.zeros(1000), values) != ""


def test_whole_numbers_must_be_equal() -> None:
    values = torch.arange(100, dtype=torch.int32)
    wrong = values.clone()
    wrong[5] += 1
    assert verdict(values.clone(), values, scalar="int32") == ""
    assert "a[5] is 6 and should be 5" in verdict(wrong, values, scalar="int32")


def test_a_negative_tolerance_asks_for_equality() -> None:
    values = torch.full((10,), 3.0)
    assert verdict(values + 4e-7, values, tolerance=0.0) == ""
    assert verdict(values + 4e-7, values, tolerance=-1.0) != ""


def test_an_element_that_only_one_side_wrote_is_wrong() -> None:
    values = torch.zeros(10)
    all_written = torch.ones(10, dtype=torch.bool)
    but_one = all_written.clone()
    but_one[4] = False
    assert compare(spec(count=10), values, values, (but_one, all_written), 0.0).why == "a[4] was not written"
    assert "should not be" in compare(spec(count=10), values, values, (all_written, but_one), 0.0).why


def test_small_whole_numbers_stay_exact_through_sums_and_not_through_division() -> None:
    values = make_values(spec(count=4096), "integers", 1, "cpu")
    assert is_exact(spec(), values.reshape(64, 64).sum(dim=1))
    assert not is_exact(spec(), values / 3)


def test_one_unit_in_the_last_place_moves_less_than_the_next_lower_precision() -> None:
    described = spec(role="in")
    values = make_values(described, "normal", 1, "cpu")
    noise = largest_gap(perturbed(described, values, 2), values)
    assert 0 < noise < largest_gap(coarser(described, values), values) / 100


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
@pytest.mark.parametrize("scalar", ["float32", "float64", "float16", "bfloat16", "int32", "uint8", "int64", "bool"])
def test_values_come_from_their_seed(distribution: str, scalar: str) -> None:
    described = spec(scalar, 5000, "in")
    first = make_values(described, distribution, 7, "cpu")
    assert bool((bits(first) == bits(make_values(described, distribution, 7, "cpu"))).all())
    assert first.numel() == 5000
    if distribution not in ("zeros", "equal"):
        assert bool((bits(first) != bits(make_values(described, distribution, 8, "cpu"))).any())
    if distribution == "special" and "float" in scalar:
        assert bool(torch.isnan(first).any())
        assert bool(torch.isinf(first).any())
    elif "float" in scalar:
        assert bool(torch.isfinite(first).all())


def test_indices_stay_below_their_limit() -> None:
    for distribution in DISTRIBUTIONS:
        values = make_values(spec("int32", 5000, "in", limit=17), distribution, 3, "cpu")
        assert int(values.min()) >= 0
        assert int(values.max()) == 16 or distribution == "equal"


@pytest.mark.parametrize("distribution", SENTINELS)
def test_indices_that_are_none_are_tried_where_the_original_looks_at_them(distribution: str) -> None:
    looked_at = ArraySpec("a", "int32", 1, "in", 5000, 17, is_guarded=True)
    values = make_values(looked_at, distribution, 3, "cpu")
    outside = sorted(set(values[(values < 0) | (values > 16)].tolist()))
    assert outside == {
        "sentinel": [-1], "below": [-(1 << 31), -2, -1], "beyond": [17, 18, (1 << 31) - 1]
    }[distribution]  # fmt: skip
    assert len(outside) < int(((values < 0) | (values > 16)).sum()) <= 5000 // 8


@pytest.mark.parametrize("count", [1, 3, 64, 1000, 1009])
@pytest.mark.parametrize("scalar", ["float32", "uint8", "float64", "float16"])
def test_guard_zones_tell_a_write_one_element_before_or_behind(scalar: str, count: int) -> None:
    for poison in POISONS:
        for offset in (-1, "end"):
            buffer = Buffer(spec(scalar, count), "cpu")
            buffer.fill(poison, None)
            assert not bool(guards_broken([buffer], poison))
            assert bool(buffer.poisoned(poison).all())
            buffer.data.zero_()
            assert not bool(guards_broken([buffer], poison))
            assert not bool(buffer.poisoned(poison).any())
            at = GUARD_BYTES + (buffer.bytes if offset == "end" else -1)
            buffer._raw[at] = 0
            assert bool(guards_broken([buffer], poison))


def test_the_poisons_are_secret_differ_in_each_byte_and_one_alone_is_not_a_number() -> None:
    drawn = {poisons_of(seed) for seed in range(200)}
    assert len(drawn) == 200
    for first, second in (POISONS, *drawn):
        assert all((first >> at) & 255 != (second >> at) & 255 for at in (0, 8, 16, 24))
        for word, is_number in ((first, False), (second, True)):
            assert bool(torch.isfinite(torch.tensor([word], dtype=torch.int32).view(torch.float32)).all()) == is_number
            twice = torch.tensor([word, word], dtype=torch.int32).view(torch.float64)
            assert bool(torch.isfinite(twice).all()) == is_number


@pytest.mark.parametrize("scalar", ["float32", "float64", "float16", "uint8"])
@pytest.mark.parametrize("count", [1, 7, 64, 5000, 70_001])
def test_a_fingerprint_tells_one_changed_value_and_two_that_changed_places(scalar: str, count: int) -> None:
    values = make_values(spec(scalar, count, "in"), "normal", 1, "cpu")
    assert fingerprint(values) == fingerprint(values.clone())
    assert fingerprint(values[:0]) == 0
    for place in {0, count // 2, count - 1}:
        other = values.clone()
        bits(other)[place] += 1
        assert fingerprint(other) != fingerprint(values)
    if count > 7:
        other = values.clone()
        at = next(i for i in range(1, count) if bits(values)[i] != bits(values)[0])
        other[0], other[at] = values[at], values[0]
        assert fingerprint(other) != fingerprint(values)


def test_units_in_the_last_place_are_counted() -> None:
    for scalar in ("float32", "float64", "float16", "bfloat16"):
        one = torch.ones(3, dtype=spec(scalar).dtype)
        near = one.clone()
        bits(near)[1] += 5
        assert largest_ulp(near, one) == 5
    assert largest_ulp(torch.tensor([-0.0]), torch.tensor([0.0])) == 0
    assert relative_l2(torch.tensor([3.0, 0.0]), torch.tensor([3.0, 4.0])) == pytest.approx(0.8)
