from __future__ import annotations

import importlib.util

import pytest

if importlib.util.find_spec("torch") is None:
    pytest.skip("not installed: torch", allow_module_level=True)

from warpwright_harness.extension.judge import CandidateError
from warpwright_harness.extension.timing import _confirm, _Times, require_same_clock

DISTURBED = [0.0, 900.0, 3.0, 40.0, 1.0, 0.0, 7.0, 300.0, 2.0, 5.0]


def times(baseline_us: float, candidate_us: float, *, claims_us: float) -> _Times:
    """Ten rounds of eight calls: what they take, what the candidate says, and a judge's clock that is disturbed."""
    walls = {"baseline": baseline_us, "candidate": candidate_us}
    return _Times(
        {"baseline": [baseline_us] * 10, "candidate": [claims_us] * 10},
        {side: [5000.0 + 8 * took + late for late in DISTURBED] for side, took in walls.items()},
    )


def test_a_saving_that_both_clocks_see_is_one() -> None:
    _confirm(times(42.0, 29.0, claims_us=29.0), 8)
    _confirm(times(42.0, 60.0, claims_us=60.0), 8)


def test_a_saving_that_only_its_own_clock_sees_is_none() -> None:
    with pytest.raises(CandidateError, match="the judge's clock says 0 us"):
        _confirm(times(42.0, 42.0, claims_us=29.0), 8)


def test_a_clock_that_shows_less_is_seen_by_what_a_spinning_kernel_takes() -> None:
    original = [5.0e-4, 5.1e-4, 9.0e-4, 5.0e-4, 4.9e-4]
    require_same_clock(original, [each * 0.99 for each in original])
    for shown in ([each * 0.7 for each in original], [float("nan")] * 5, [0.0] * 5):
        with pytest.raises(CandidateError, match="is not the judge's clock"):
            require_same_clock(original, shown)
