"""Which candidate is preferred: proof before promise, then what the goal asks for."""

from __future__ import annotations

from dataclasses import replace

import pytest
from warpwright.facts.resources import KernelResources
from warpwright.optimize.rank import is_gain, rank_of
from warpwright.rules.base import Finding, Severity
from warpwright.syntax.source import Source, Span
from warpwright.verify.report import Compilation, CompiledKernel, Prediction, Report, Speed, Status

LEFT = Finding(Span(Source("a.cu", b"x"), 0, 1), "left", severity=Severity.WARNING)
HINT = replace(LEFT, severity=Severity.HINT)


def timed(status: Status, low: float, speedup: float) -> Report:
    return Report(status, speed=(Speed({"n": 4096}, 100.0 * speedup, 100.0, speedup, (low, speedup + 0.1)),))


def compiled(registers: int, shared: int, spills: int = 0) -> Report:
    resources = KernelResources("k", "k", registers, spills, spills, 0, shared, 0, 0)
    side = CompiledKernel(resources, None)
    return Report(Status.NOT_RUN, compilation=Compilation("nvcc", "sm_90", (), side, side))


@pytest.mark.parametrize("goal", ["speed", "memory", "fix"])
def test_proof_comes_first(goal: str) -> None:
    faster, correct, unrun = timed(Status.FASTER, 1.1, 1.2), Report(Status.CORRECT), Report(Status.NOT_RUN)
    assert rank_of(faster, goal, [LEFT]) > rank_of(correct, goal, []) > rank_of(unrun, goal, [])


def test_speed_is_what_is_certain_of_it() -> None:
    sure, hoped = timed(Status.FASTER, 1.5, 1.6), timed(Status.FASTER, 1.2, 2.0)
    assert rank_of(sure, "speed", []) > rank_of(hoped, "speed", [])
    noise = timed(Status.FASTER, 1.501, 1.6)
    assert rank_of(noise, "speed", []) == rank_of(sure, "speed", [])


@pytest.mark.parametrize("goal", ["speed", "fix"])
def test_without_a_gpu_fewer_findings_are_better_and_hints_do_not_count(goal: str) -> None:
    report = Report(Status.NOT_RUN)
    assert rank_of(report, goal, []) > rank_of(report, goal, [LEFT]) > rank_of(report, goal, [LEFT, LEFT])
    assert rank_of(report, goal, [HINT]) == rank_of(report, goal, [])


def test_without_a_gpu_what_is_predicted_to_be_faster_is_better_and_what_is_predicted_to_be_slower_is_none() -> None:
    twice, same, half = (Report(Status.CORRECT, predicted=Prediction(times, "H200")) for times in (2.0, 1.0, 0.5))
    assert rank_of(twice, "speed", [LEFT]) > rank_of(same, "speed", []) > rank_of(half, "speed", [])
    assert [is_gain(report, "speed") for report in (twice, same, half)] == [True, True, False]
    assert is_gain(half, "fix") and is_gain(half, "memory")


def test_memory_counts_bytes_with_spills_then_registers() -> None:
    ranks = [rank_of(report, "memory", []) for report in (compiled(32, 512), compiled(40, 512), compiled(16, 512, 4))]
    assert ranks == sorted(ranks, reverse=True)
