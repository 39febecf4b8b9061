"""The order of the search, over real rewrites of a real kernel and verdicts that are given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from warpwright.facts.analyze import analyze
from warpwright.facts.resources import KernelResources
from warpwright.optimize.search import Asked, Tried, search
from warpwright.optimize.version import Version
from warpwright.optimize.wish import Wish
from warpwright.progress import IsCancelled, Progress, silent
from warpwright.rewrites.registry import applicable, proposals
from warpwright.syntax.source import Source, read_include, read_source
from warpwright.verify.report import Compilation, CompiledKernel, Level, Report, Speed, Status
from warpwright.verify.several import Trial

COLUMN = Path(__file__).parents[2] / "csrc_samples/memory/copy_column/kernel.cu"
SPEED = Asked("speed", Wish())
SWAP, RESTRICT, COARSEN = "swap-thread-axes", "add-restrict", "coarsen-rows"


def verdict(speedup: float) -> Report:
    levels = (Level.PARSED, Level.COMPILED, Level.ANALYSED, Level.CORRECT)
    status = Status.FASTER if speedup > 1.02 else Status.SLOWER if speedup < 0.98 else Status.INCONCLUSIVE
    speed = Speed({"n": 4096}, 100.0, 100.0 / speedup, speedup, (speedup, speedup))
    return Report(status, levels, backend="cuda:a GPU", speed=(speed,))


def searched(
    speedups: Mapping[tuple[str, ...], float], asked: Asked = SPEED, stop_after: int = 1000
) -> tuple[dict[tuple[str, ...], Tried], tuple[str, ...] | None]:
    """What was tried, by its rewrites, and those of the best. What is not among `speedups` changes nothing."""
    program = analyze(read_source(COLUMN), read_include)
    (kernel,) = program.defined_kernels
    verified: list[str] = []

    def judge(trials: Sequence[Trial], progress: Progress, is_cancelled: IsCancelled) -> list[Report | None]:
        reports: list[Report | None] = []
        for trial in trials:
            names = tuple(trial.name.removeprefix("Trying ").split(" + "))
            reports.append(None if is_cancelled() else verdict(speedups.get(names, 1.0)))
            verified.append(trial.name)
        return reports

    root, first = Version.of(program, kernel), applicable(kernel, "speed")
    outcome = search(root, first, (), asked, judge, silent, lambda: len(verified) >= stop_after)
    tried, best = outcome.tried, outcome.best
    found = {each.version.rewrites: each for each in tried}
    assert len(found) == len(tried)
    assert len({each.trial.candidate.data for each in tried}) == len(tried), "no text is verified twice"
    return found, tried[best].version.rewrites if best is not None else None


def test_a_step_that_gains_nothing_is_found_where_another_needs_it() -> None:
    assert {(SWAP,), (RESTRICT,)} <= set(searched({})[0])
    tried, best = searched({(SWAP,): 4.0, (SWAP, RESTRICT): 3.9, (SWAP, RESTRICT, COARSEN): 6.5})
    assert best == (SWAP, RESTRICT, COARSEN)
    assert (RESTRICT, COARSEN) not in tried, "the longer sequence has tried it"
    assert (RESTRICT, SWAP) not in tried, "the other order gives the same text"


def test_an_enabling_step_may_cost_a_little_and_not_much() -> None:
    tried, best = searched({(RESTRICT,): 0.95, (RESTRICT, COARSEN): 1.5})
    assert best == (RESTRICT, COARSEN)
    tried, best = searched({(SWAP,): 0.5, (SWAP, RESTRICT): 0.5, (RESTRICT,): 0.85, (RESTRICT, COARSEN): 1.5})
    assert (RESTRICT, COARSEN) not in tried
    aggressive = Asked("speed", Wish(aggressive=True))
    tried, best = searched({(SWAP,): 0.5, (RESTRICT,): 0.85, (RESTRICT, COARSEN): 1.5}, aggressive)
    assert best == (RESTRICT, COARSEN)


def test_what_gains_nothing_is_not_in_the_answer() -> None:
    assert searched({(SWAP,): 4.0, (SWAP, RESTRICT): 4.05})[1] == (SWAP,)
    assert searched({})[1] is None


def test_the_order_decides_what_a_small_budget_verifies() -> None:
    speedups = {(SWAP,): 4.0, (RESTRICT,): 1.5}
    for order, expected in (((SWAP,), (SWAP,)), ((RESTRICT,), (RESTRICT,))):
        tried, best = searched(speedups, Asked("speed", Wish(), order, most=1))
        assert (list(tried), best) == ([expected], expected)


@pytest.mark.parametrize("stop_after", [1, 2, 3])
def test_interrupted_it_has_the_best_so_far(stop_after: int) -> None:
    tried, best = searched({(SWAP,): 4.0, (RESTRICT,): 1.5}, Asked("speed", Wish(), (RESTRICT, SWAP)), stop_after)
    assert len(tried) == stop_after
    assert best == ((RESTRICT,) if stop_after == 1 else (SWAP,))


def test_a_readable_version_is_short() -> None:
    speedups = {(SWAP,): 4.0, (SWAP, RESTRICT): 5.0, (SWAP, RESTRICT, COARSEN): 6.5}
    tried, best = searched(speedups, Asked("speed", Wish(readable=True)))
    assert best == (SWAP, RESTRICT)
    assert max(map(len, tried)) == 2


def test_its_progress_says_what_there_is_already() -> None:
    program = analyze(read_source(COLUMN), read_include)
    (kernel,) = program.defined_kernels
    said: list[str] = []

    def judge(trials: Sequence[Trial], progress: Progress, is_cancelled: IsCancelled) -> list[Report | None]:
        progress(trials[0].name, 0.0)
        return [verdict(4.0 if trial.name == f"Trying {SWAP}" else 1.0) for trial in trials]

    first = applicable(kernel, "speed")
    search(Version.of(program, kernel), first, (), SPEED, judge, lambda message, _: said.append(message), lambda: False)
    assert "best so far" not in said[0]
    assert said[1].endswith(f" (best so far: {SWAP}, {verdict(4.0).badge()})")


def test_an_exact_search_assumes_nothing() -> None:
    tried, _ = searched({(SWAP,): 4.0}, Asked("speed", Wish(exact=True)))
    assert tried and not any(RESTRICT in rewrites for rewrites in tried)


CROWDED = """__global__ void step(float *out, const float *in, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    out[i] = 0.5f * in[i];
}
void run(float *out, const float *in, int n) { step<<<(n + 255) / 256, 256>>>(out, in, n); }
"""


def test_what_only_a_compiled_kernel_shows_is_tried_after_the_first_round() -> None:
    taken = CompiledKernel(KernelResources("step", "step", 66, 0, 0, 0, 0, 0, 0, "sm_90"), None)
    program = analyze(Source("k.cu", CROWDED.encode()))
    (kernel,) = program.defined_kernels
    rounds: list[list[str]] = []

    def judge(trials: Sequence[Trial], progress: Progress, is_cancelled: IsCancelled) -> list[Report | None]:
        rounds.append([trial.name for trial in trials])
        return [replace(verdict(1.0), compilation=Compilation("nvcc", "sm_90", (), taken, taken)) for _ in trials]

    first, declined = proposals(kernel, "speed")
    assert "add-launch-bounds" in {each.rewrite for each in declined}
    found = search(Version.of(program, kernel), first, (), SPEED, judge, silent, lambda: False)
    assert "Trying add-launch-bounds" not in rounds[0]
    assert rounds[1][0] == "Trying add-launch-bounds"
    assert found.declined is not None
    assert "add-launch-bounds" not in {each.rewrite for each in found.declined}
