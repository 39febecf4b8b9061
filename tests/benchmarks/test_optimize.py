"""Results of several GPUs are joined into one, and what is said of it counts every kernel."""

from __future__ import annotations

from typing import Any

import pytest
from optimize import merged, part_of
from optimize_page import cells, figures, plan_table

H200 = {"name": "NVIDIA H200", "uuid": "a", "driver": "13.0", "torch": "2.11"}


def row(name: str, speedup: float | None) -> dict[str, Any]:
    """A kernel of 100 us at 40 % of its bound, and a candidate, which is offered where it is faster."""
    candidate: dict[str, Any] = {"rewrites": ["r"], "status": "faster", "reason": "", "predicted": None}
    took = 100.0 / (speedup or 1.0)
    timed = {"speedups": [speedup or 1.0], "ci95": [[0.9, 9.0]], "baseline_us": [100.0], "candidate_us": [took]}
    return {
        "kernel": name,
        "seconds": 1.0,
        "best": 0 if speedup else None,
        "reason": "" if speedup else "The only candidate is correct and no faster.",
        "own_us": 100.0,
        "own_share": 0.4,
        "peers": {"eager_us": 60.0, "compile_us": 20.0},
        "candidates": [{**candidate, **timed, "shares": [0.4 * 100.0 / took]}],
    }


def result(*rows: dict[str, Any]) -> dict[str, Any]:
    return {"command": "c", "hardware": H200, "versions": {}, "left_out": [], "kernels": list(rows)}


def test_figures_count_every_kernel() -> None:
    first, ours, eager, compiled, shares = figures(result(row("a", 2.0), row("b", 2.0), row("c", None), row("d", None)))
    assert "4 kernels: geometric mean 1.41x, median 1.50x; 1.2x or more on 2 (50%), 2x or more on 2 (50%)." in first
    assert "4 candidates" in ours
    assert "0 of 4 before, 2 after" in eager, "50 us are less than 60"
    assert "0 of 4 before, 0 after" in compiled
    assert "40% before, 60% after" in shares
    assert cells(row("c", None))[-1] == "The only candidate is correct and no faster."


def test_parts_are_joined() -> None:
    names = ["a", "b", "c", "d", "e"]
    parts = [part_of(names, f"{k}/3") for k in (1, 2, 3)]
    assert sorted(name for part in parts for name in part) == names
    one = merged([result(row("c", 2.0), row("a", None)), result(row("a", 3.0))], names)
    assert [each["kernel"] for each in one["kernels"]] == ["a", "c"]
    assert one["kernels"][0]["candidates"][0]["speedups"] == [3.0], "the last result that has it"
    assert one["left_out"] == ["b", "d", "e"]
    other = {**result(row("b", None)), "hardware": {**H200, "name": "NVIDIA H100"}}
    with pytest.raises(ValueError, match="different hardware"):
        merged([result(row("a", None)), other], names)


def test_who_orders_the_candidates_is_told_by_budget() -> None:
    kernel = {"kernel": "a", "fixed": [1.0, 2.0], "model": [4.0, 2.0], "chance": [1.0, 2.0], "all": 4.0}
    other = {"kernel": "b", "fixed": [1.0, 2.0], "model": [1.0, 1.0], "chance": [1.0, 2.0], "all": 4.0}
    *_, one, two, whole = plan_table({"budgets": [1, 2], "kernels": [kernel, other]})
    assert one == "| 1 | 1.000x | 2.000x | 1.000x | 1 | 0 |"
    assert two == "| 2 | 2.000x | 1.414x | 2.000x | 0 | 1 |"
    assert whole == "| all | 4.000x | 4.000x | 4.000x | 0 | 0 |"
