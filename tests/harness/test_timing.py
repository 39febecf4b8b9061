"""A time below what the hardware can do is no time."""

from __future__ import annotations

import pytest

pytest.importorskip("torch", reason="not installed: torch")

from warpwright_harness.buffers import ArraySpec
from warpwright_harness.timing.bounds import bound_of
from warpwright_harness.timing.rounds import Samples, TimedWrongError, reject_impossible

RATES = {"dram_bytes": 4e12, "l2_bytes": 8e12, "fp32": 60e12, "fp64": 60e12, "fp16_tensor": 800e12}
COUNT = 1 << 26
COPY = bound_of(
    [ArraySpec("in", "float32", 1, "in", COUNT, None), ArraySpec("out", "float32", 1, "out", COUNT, None)],
    0.0,
    RATES,
    60 << 20,
)
assert COPY is not None


def samples(cold: float, warm: float) -> Samples:
    return Samples([cold * (1 + step / 1000) for step in range(16)], [warm * (1 + step / 1000) for step in range(16)])


def test_a_time_at_the_bound_is_possible() -> None:
    original = samples(1.5 * COPY.us, 1.5 * COPY.us)
    reject_impossible({"baseline": original, "candidate": samples(COPY.us, COPY.us)}, COPY)


@pytest.mark.parametrize(("cold", "warm", "word"), [(0.5, 1.0, "cold"), (1.0, 0.3, "warm")])
def test_a_time_below_what_memory_can_do_is_not(cold: float, warm: float, word: str) -> None:
    original = samples(1.5 * COPY.us, 1.5 * COPY.us)
    with pytest.raises(TimedWrongError, match=f"faster than this GPU can be: .* with {word} caches"):
        reject_impossible({"baseline": original, "candidate": samples(cold * COPY.us, warm * COPY.us)}, COPY)


def test_an_original_that_is_below_it_too_does_not_touch_all_of_its_arrays() -> None:
    part = samples(0.4 * COPY.us, 0.3 * COPY.us)
    reject_impossible({"baseline": part, "candidate": samples(0.3 * COPY.us, 0.2 * COPY.us)}, COPY)


def test_nothing_is_impossible_where_nothing_was_measured() -> None:
    reject_impossible({"baseline": samples(2.0, 2.0), "candidate": samples(0.001, 0.001)}, None)
