"""Schedules of a formula in the order of the cost model: the figures are near those of a GPU, and are kept."""

from __future__ import annotations

from pathlib import Path

import pytest
from warpwright.formulas.resolve import formula_of
from warpwright.progress import never_cancelled, silent
from warpwright.verify.schedule_search import RULES, Found, searched

SOFTMAX = "y[r, c] = exp(x[r, c] - m[r]) / s[r] where m[r] = max[c] x[r, c], s[r] = sum[c] exp(x[r, c] - m[r])"


def found(text: str, sizes: dict[str, int]) -> Found:
    made = searched(formula_of(text), sizes, "sm_90", None, 1.0, silent, never_cancelled)
    assert isinstance(made, Found), made
    return made


@pytest.mark.slow
@pytest.mark.nvcc
def test_the_cost_model_orders_schedules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An H200 takes 18.1 us with the best schedule, and twice that with 8 lanes for a row of 1024."""
    monkeypatch.setenv("WARPWRIGHT_CACHE_DIR", str(tmp_path))
    made = found(SOFTMAX, {"R": 8192, "C": 1024})
    times = {each.schedule: each.predicted_us for each in made.candidates}
    assert times[RULES] is not None
    assert 12 < times[RULES] < 27
    assert list(times.values()) == sorted(times.values(), key=lambda us: us or 0.0)
    slow = times["rows:lanes=8,rows=16,per_lane=32"]
    assert slow is not None
    assert slow > 1.5 * times[RULES]
    assert list((tmp_path / "schedules").iterdir())
    assert found(SOFTMAX, {"R": 8192, "C": 1024}) == made


@pytest.mark.nvcc
@pytest.mark.parametrize("kept", ["[]", "{}", '[{"schedule": 3}]', '[{"schedule": "rules", "predicted_us": "a"}]'])
def test_what_a_broken_cache_holds_is_found_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kept: str) -> None:
    monkeypatch.setenv("WARPWRIGHT_CACHE_DIR", str(tmp_path))
    first = found("y[i] = 2 * x[i]", {"I": 1000})
    next((tmp_path / "schedules").iterdir()).write_text(kept)
    assert found("y[i] = 2 * x[i]", {"I": 1000}) == first


@pytest.mark.nvcc
def test_arrays_that_are_too_large_are_one_sentence() -> None:
    made = searched(formula_of("y[i] = x[i]"), {"I": 1 << 40}, "sm_90", None, 1.0, silent, never_cancelled)
    assert not isinstance(made, Found)
    assert made.reason == "The arrays take 8,796,093,022,208 bytes; a search takes at most 1,073,741,824."
