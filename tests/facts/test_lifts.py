"""What would raise the occupancy: each step does what it says, and a smaller one does not."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from warpwright.facts.lifts import Footprint, Lift, lift_words, lifts
from warpwright.facts.occupancy import ARCHITECTURES

footprints = st.builds(
    Footprint,
    st.sampled_from([f"sm_{number}" for number in ARCHITECTURES]),
    st.integers(1, 255),
    st.integers(0, 96 << 10),
    st.integers(1, 1024),
    st.integers(0, 16),
    st.sampled_from((100, 50, 0)),
)


def _applied(now: Footprint, lift: Lift) -> Footprint:
    given = {"registers": lift.registers, "shared_bytes": lift.shared_bytes, "threads": lift.threads}
    changes = {name: value for name, value in {**given, "carveout": lift.carveout}.items() if value is not None}
    return replace(now, **changes)


@given(footprints)
def test_a_lift_gives_the_occupancy_that_it_says_and_more_warps_than_before(now: Footprint) -> None:
    for lift in lifts(now):
        assert _applied(now, lift).occupancy.warps >= lift.occupancy.warps > now.occupancy.warps


@given(footprints)
def test_a_step_is_the_nearest(now: Footprint) -> None:
    for lift in lifts(now):
        after = _applied(now, lift)
        if lift.registers is not None:
            assert replace(after, registers=lift.registers + 1).occupancy.warps <= now.occupancy.warps
        if lift.shared_bytes is not None:
            assert replace(after, shared_bytes=lift.shared_bytes + 1).occupancy.warps <= now.occupancy.warps


def test_a_block_is_no_larger_than_the_kernel_is_compiled_for() -> None:
    now = Footprint("sm_90", 32, 0, 32, most_threads=32)
    assert list(lifts(now)) == []
    assert [lift.threads for lift in lifts(replace(now, most_threads=64))] == [64]


def test_what_is_out_of_reach_is_not_proposed() -> None:
    assert list(lifts(Footprint("sm_90", 255, 0, 256))) == []  # 168 registers would be needed
    assert list(lifts(Footprint("sm_90", 32, 227 << 10, 1024))) == []  # less than half of it would be needed


def test_two_resources_that_run_out_together_are_lifted_together() -> None:
    now = Footprint("sm_90", 40, 34 << 10, 256)
    (lift,) = lifts(now)
    assert now.occupancy.limiters == ("registers", "shared memory")
    assert (lift.registers, lift.shared_bytes) == (32, 31.5 * 1024)
    assert lift_words(now, lift) == (
        "8 registers fewer per thread (32) and 2.5 KB less shared memory per block (31.5 KB) give 75 -> 87.5 %"
    )


@pytest.mark.parametrize(
    ("now", "words"),
    [
        (Footprint("sm_90", 45, 0, 64), "5 registers fewer per thread (40) give 62.5 -> 75 %"),
        (Footprint("sm_90", 33, 0, 1024), "1 register fewer per thread (32) gives 50 -> 100 %"),
        (Footprint("sm_90", 32, 47200, 256), "1.6 KB less shared memory per block (44.5 KB) gives 50 -> 62.5 %"),
        (Footprint("sm_90", 32, 0, 192), "blocks of 256 threads give 93.75 -> 100 %"),
        (
            Footprint("sm_90", 32, 6144, 256, 1, 0),
            "no preference of the host for L1 cache over shared memory gives 12.5 -> 100 %",
        ),
    ],
)
def test_words(now: Footprint, words: str) -> None:
    assert words in [lift_words(now, lift) for lift in lifts(now)]
