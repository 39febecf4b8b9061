"""What is counted of a search over real programs: kernels with a pitfall that can be run, and their speedups."""

from __future__ import annotations

from typing import Any

from optimize_programs import gain_of, kernel_name, summary, told


def row(pitfalls: list[str], problem: str = "", speedup: float | None = None, predicted: float = 1.0) -> dict[str, Any]:
    tried = [{"rewrites": ["add-restrict"], "speedups": [] if speedup is None else [speedup], "predicted": predicted}]
    best = 0 if not problem else None
    return {
        "kernel": "p k", "pitfalls": pitfalls, "problem": problem, "best": best, "seconds": 1.0,
        "candidates": [] if problem else tried, "reason": problem,
    }  # fmt: skip


def test_names_are_those_of_the_text() -> None:
    assert kernel_name("void <unnamed>::fill<float, 2>(T1 *, int)") == "fill"
    assert kernel_name("(anonymous namespace)::tsa(float *)") == "tsa"
    assert kernel_name("saxpy(float, float *)") == "saxpy"


def test_only_kernels_with_a_pitfall_that_can_be_run_are_judged() -> None:
    rows = [row(["bank-conflict"], speedup=4.0), row([], speedup=9.0), row(["bank-conflict"], problem="not known")]
    found = summary([*rows, row(["pow-small-exponent"], predicted=1.0)])
    assert (found["kernels"], found["with_a_problem"], found["with_a_problem_and_a_pitfall"]) == (4, 3, 2)
    assert (found["at_least_1.2x"], found["at_least_2x"], found["geometric_mean"]) == (1, 1, 2.0)


def test_a_kernel_without_a_better_version_counts_as_it_is() -> None:
    assert gain_of(row(["x"], problem="not known")) == 1.0
    assert told(row(["x"], problem="not known")).endswith("0 tried  not known")
