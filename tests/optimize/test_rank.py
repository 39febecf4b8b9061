"""Which candidate is preferred: proof before promise, then what the goal asks for."""

from __future__ import annotations

from dataclasses import replace

import pytest
from warpwright.facts.resources import KernelResources
from warpwright.optimize.rank import best_of, may_be_offered, score_of
from warpwright.rules.base import Finding, Severity
from warpwright.syntax.source import Source, Span
from warpwright.verify.report import EMULATOR, Compilation, CompiledKernel, Level, Prediction, Report, Speed, Status

LEFT = Finding(Span(Source("a.cu", b"x"), 0, 1), "left", {"bytes": 4}, severity=Severity.WARNING)
HINT = replace(LEFT, severity=Severity.HINT)


def timed(status: Status, low: float, speedup: float) -> Report:
    return Report(status, speed=(Speed({"n": 4096}, 100.0 * speedup, 100.0, speedup, (low, speedup + 0.1)),))


def compiled(registers: int, shared: int, spills: int = 0) -> Report:
    resources = KernelResources("k", "k", registers, spills, spills, 0, shared, 0, 0)
    side = CompiledKernel(resources, None)
    return Report(Status.NOT_RUN, compilation=Compilation("nvcc", "sm_90", (), side, side))


def best(goal: str, *candidates: tuple[Report, list[Finding], int]) -> int | None:
    """Of candidates as (report, findings that are left, rewrites) which is best."""
    return best_of([score_of(report, goal, findings, steps) for report, findings, steps in candidates])


def predicted(times: float) -> Report:
    return Report(Status.CORRECT, (Level.ANALYSED,), backend=EMULATOR, predicted=Prediction(times, "H200"))


@pytest.mark.parametrize("goal", ["speed", "memory", "fix"])
def test_proof_comes_first(goal: str) -> None:
    faster, correct, unrun = timed(Status.FASTER, 1.1, 1.2), Report(Status.CORRECT), Report(Status.NOT_RUN)
    assert best(goal, (unrun, [], 1), (correct, [], 1), (faster, [LEFT], 3)) == 2
    assert best(goal, (unrun, [], 1), (correct, [LEFT], 3)) == 1
    assert best(goal) is None


def test_speed_is_what_is_certain_of_it() -> None:
    sure, hoped = timed(Status.FASTER, 1.5, 1.6), timed(Status.FASTER, 1.2, 2.0)
    assert best("speed", (hoped, [], 1), (sure, [], 1)) == 1


def test_within_the_noise_the_shortest_sequence_is_the_best() -> None:
    short, long = timed(Status.FASTER, 1.50, 1.6), timed(Status.FASTER, 1.51, 1.6)
    assert best("speed", (long, [], 2), (short, [], 1), (short, [], 1)) == 1, "the first of equals"
    assert best("speed", (timed(Status.FASTER, 1.6, 1.7), [], 2), (short, [], 1)) == 0
    assert best("speed", (predicted(1.53), [LEFT], 2), (predicted(1.5), [LEFT], 1)) == 1
    assert best("speed", (predicted(1.53), [], 2), (predicted(1.5), [LEFT], 1)) == 0, "a prediction is no measurement"


@pytest.mark.parametrize("goal", ["speed", "fix"])
def test_without_a_gpu_fewer_findings_are_better_and_hints_do_not_count(goal: str) -> None:
    report = Report(Status.NOT_RUN)
    assert best(goal, (report, [LEFT, LEFT], 1), (report, [LEFT], 1), (report, [], 1)) == 2
    assert best(goal, (report, [], 1), (report, [HINT], 1)) == 0
    assert best(goal, (report, [HINT], 1), (report, [], 1)) == 0


def test_without_a_gpu_what_is_predicted_to_be_faster_is_better_and_what_is_predicted_to_be_slower_is_none() -> None:
    assert best("speed", (predicted(0.5), [], 1), (predicted(1.0), [], 1), (predicted(2.0), [LEFT], 1)) == 2
    offered = [may_be_offered(predicted(times), "speed", ["unroll-loop"]) for times in (2.0, 1.04, 1.0, 0.5)]
    assert offered == [True, False, False, False]
    assert may_be_offered(predicted(0.5), "fix", ["unroll-loop"])


@pytest.mark.parametrize(
    "hint", [["add-restrict"], ["fast-math-functions"], ["compute-in-float", "add-restrict"], ["capture-graph"]]
)
def test_what_tells_the_compiler_something_gives_up_digits_or_captures_launches_is_offered_with_figures_alone(
    hint: list[str],
) -> None:
    assert may_be_offered(timed(Status.FASTER, 1.1, 1.2), "speed", hint)
    assert may_be_offered(predicted(1.3), "speed", hint)
    assert not may_be_offered(predicted(1.0), "speed", hint)
    assert not may_be_offered(Report(Status.NOT_RUN, (Level.ANALYSED,)), "speed", hint)
    nothing_predicted = replace(predicted(1.0), predicted=None)
    assert not may_be_offered(nothing_predicted, "speed", hint)
    assert may_be_offered(nothing_predicted, "speed", [*hint, "unroll-loop"])


@pytest.mark.parametrize("goal", ["speed", "memory", "fix"])
def test_what_was_not_run_is_never_offered(goal: str) -> None:
    unrun = Report(Status.NOT_RUN, (Level.ANALYSED,), not_run_because="how to run it is not known")
    assert not may_be_offered(unrun, goal, ["unroll-loop"])


def test_memory_counts_bytes_with_spills_then_registers() -> None:
    few, more, spilled = compiled(32, 512), compiled(40, 512), compiled(16, 512, 4)
    assert best("memory", (spilled, [], 1), (more, [], 1), (few, [LEFT], 2)) == 2
    assert best("memory", (spilled, [], 1), (more, [LEFT], 2)) == 1
