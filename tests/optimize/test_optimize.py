"""The search over real kernels, rewrites and nvcc; the model only where a test says so."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.kernels import SEARCHED
from warpwright.assist.child_engine import ChildEngine
from warpwright.assist.weights import ModelFile
from warpwright.facts.analyze import analyze
from warpwright.facts.model import Kernel, Program
from warpwright.missing import Missing
from warpwright.optimize.optimize import optimize
from warpwright.rewrites.base import Rewrite
from warpwright.rules.registry import run_rules
from warpwright.syntax.source import Source, read_include, read_source

SAMPLES = Path(__file__).parents[2] / "csrc_samples"

TWO_TILES = """\
__global__ void two(float *out, const float *in, int n) {
  __shared__ float a[32][32];
  __shared__ float b[32][32];
  int x = blockIdx.x * 32 + threadIdx.x;
  int y = blockIdx.y * 32 + threadIdx.y;
  a[threadIdx.y][threadIdx.x] = in[y * n + x];
  b[threadIdx.y][threadIdx.x] = in[y * n + x] * 2.0f;
  __syncthreads();
  x = blockIdx.y * 32 + threadIdx.x;
  y = blockIdx.x * 32 + threadIdx.y;
  out[y * n + x] = a[threadIdx.x][threadIdx.y] + b[threadIdx.x][threadIdx.y];
}
"""
TWO_TILES_LAUNCH = """\
void run(float *out, const float *in, int n) {
  two<<<dim3(n / 32, n / 32), dim3(32, 32)>>>(out, in, n);
}
"""


def sample(name: str) -> tuple[Program, Kernel]:
    return only_kernel(analyze(read_source(SAMPLES / name / "kernel.cu"), read_include))


def text(code: str) -> tuple[Program, Kernel]:
    return only_kernel(analyze(Source("own.cu", code.encode())))


def padding(step: Rewrite) -> bool:
    """One rewrite alone, where it does not matter which are tried: each costs seconds in the emulator."""
    return step.rewrite == "pad-shared-array"


def only_kernel(program: Program) -> tuple[Program, Kernel]:
    (kernel,) = program.defined_kernels
    return program, kernel


@pytest.mark.nvcc
@pytest.mark.parametrize("name", ["searched", pytest.param("memory/transpose_tiled", marks=pytest.mark.slow)])
def test_transpose_for_speed(name: str) -> None:
    program, kernel = text(SEARCHED) if name == "searched" else sample(name)
    said: list[str] = []
    outcome = optimize(
        program,
        kernel,
        "speed",
        progress=lambda message, share: said.append(message),
        is_wanted=lambda step: step.rewrite != "add-restrict",
    )
    assert outcome.best is not None, outcome.reason
    best = outcome.candidates[outcome.best]
    assert best.rewrites == ("pad-shared-array",)
    assert best.source_before is program.source
    assert not [f for f in run_rules(analyze(best.source_after)) if f.rule == "bank-conflict"]
    assert [line for line in best.diff.splitlines() if line[0] in "+-"][2:] == [
        line for line in best.diff.splitlines() if "__shared__" in line
    ], "the declaration is all that changes"
    assert outcome.plan is None
    assert outcome.plan_missing.startswith("No model was asked")
    assert any("pad-shared-array" in message for message in said)
    written = json.loads(json.dumps(outcome.to_json()))
    assert written["best"] == outcome.best
    assert written["candidates"][outcome.best]["report"]["status"]


@pytest.mark.nvcc
def test_a_launch_is_fixed() -> None:
    program, kernel = sample("elementwise/scale_unchecked")
    outcome = optimize(program, kernel, "fix")
    assert outcome.best is not None, outcome.reason
    best = outcome.candidates[outcome.best]
    assert best.rewrites == ("check-launch",)
    assert "unchecked-launch" not in {finding.rule for finding in run_rules(analyze(best.source_after))}


@pytest.mark.nvcc
def test_a_sequence_builds_on_the_best_so_far() -> None:
    outcome = optimize(*text(TWO_TILES + TWO_TILES_LAUNCH), "speed", is_wanted=padding)
    assert outcome.best is not None, outcome.reason
    best = outcome.candidates[outcome.best]
    assert best.rewrites == ("pad-shared-array", "pad-shared-array")
    assert len(best.explanations) == 2
    assert best.diff.count("32 + 1") == 2
    texts = [candidate.source_after.data for candidate in outcome.candidates]
    assert len(texts) == len(set(texts)), "no version is verified twice"


@pytest.mark.nvcc
def test_a_kernel_in_a_header_is_changed_there(tmp_path: Path) -> None:
    (tmp_path / "two.cuh").write_text("#pragma once\n" + TWO_TILES)
    (tmp_path / "main.cu").write_text('#include "two.cuh"\n' + TWO_TILES_LAUNCH)
    program = analyze(read_source(tmp_path / "main.cu"), read_include)
    kernel = program.kernel("two")
    assert kernel is not None
    outcome = optimize(program, kernel, "speed", is_wanted=padding)
    assert outcome.candidates
    assert {Path(candidate.source_before.path).name for candidate in outcome.candidates} == {"two.cuh"}
    assert outcome.candidates[0].diff.startswith("--- a/two.cuh\n")


@pytest.mark.nvcc
def test_what_verification_rejects_is_reported_and_never_chosen() -> None:
    outcome = optimize(*text(TWO_TILES.replace("int n)", "unknown_type n)") + TWO_TILES_LAUNCH), "speed")
    assert outcome.best is None
    assert outcome.candidates
    for candidate in outcome.candidates:
        assert candidate.report.status == "does-not-compile"
        assert "unknown_type" in candidate.report.reason
    tried = len(outcome.candidates)
    assert outcome.reason == f"None of the {tried} candidates is better: {tried} did not compile."


def test_nothing_applicable_is_said_with_reasons(unused_engine: ChildEngine) -> None:
    program, kernel = text("__global__ void add(float *a) { a[threadIdx.x] += 1; }")
    outcome = optimize(program, kernel, "speed", engine=unused_engine)
    assert (outcome.candidates, outcome.best, outcome.plan) == ((), None, None)
    assert outcome.reason == "No rewrite that is known here makes it faster: none applies to add."
    assert {declined.rewrite for declined in outcome.declined} >= {"pad-shared-array", "swap-thread-axes"}
    assert all(declined.reason.endswith(".") for declined in outcome.declined)
    assert unused_engine.pid is None, "the model was not asked"


@pytest.mark.parametrize("budget", [0.0, 1000.0])
def test_stopped_before_anything_was_tried(budget: float) -> None:
    program, kernel = sample("memory/transpose_tiled")
    outcome = optimize(program, kernel, "speed", is_cancelled=lambda: budget > 0, budget_seconds=budget)
    assert (outcome.candidates, outcome.best) == ((), None)
    assert outcome.reason == "The search was stopped before a candidate was verified."


@pytest.mark.nvcc
def test_cancel_keeps_the_best_so_far() -> None:
    program, kernel = text(TWO_TILES + TWO_TILES_LAUNCH)
    rounds: list[str] = []
    outcome = optimize(
        program,
        kernel,
        "speed",
        progress=lambda message, share: rounds.append(message),
        is_wanted=padding,
        is_cancelled=lambda: any("pad-shared-array + pad-shared-array" in message for message in rounds),
    )
    assert outcome.best is not None
    assert outcome.candidates[outcome.best].rewrites == ("pad-shared-array",)


@pytest.mark.nvcc
def test_a_model_that_is_missing_or_broken_leaves_the_search(tmp_path: Path) -> None:
    program, kernel = text(TWO_TILES + TWO_TILES_LAUNCH)
    missing = optimize(
        program, kernel, "speed", engine=Missing("model", "It is not there.", "Install it."), is_wanted=padding
    )
    assert missing.plan_missing == "It is not there. Install it."
    (tmp_path / "bad.gguf").write_bytes(b"GGUF")
    with ChildEngine(ModelFile(tmp_path / "bad.gguf", "bad")) as engine:
        broken = optimize(program, kernel, "speed", engine=engine, is_wanted=padding)
    assert "bad.gguf could not be loaded" in broken.plan_missing or "llama" in broken.plan_missing
    assert missing.best is not None
    assert broken.best == missing.best


@pytest.mark.slow
@pytest.mark.llm
@pytest.mark.nvcc
def test_the_models_plan_is_in_the_outcome_in_its_own_words(engine: ChildEngine) -> None:
    program, kernel = sample("memory/transpose_tiled")
    outcome = optimize(program, kernel, "speed", engine=engine)
    assert outcome.plan is not None, outcome.plan_missing
    assert outcome.plan_missing == ""
    assert json.loads(outcome.plan.raw)["optimizations"] in (["pad-shared-array"], ["swizzle-shared-array"])
    assert outcome.best is not None
    assert outcome.candidates[outcome.best].rewrites[0] in ("pad-shared-array", "swizzle-shared-array")
    assert outcome.to_json()["plan"] == outcome.plan.to_json()
