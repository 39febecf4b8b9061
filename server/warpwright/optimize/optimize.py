"""The search for a better version of a kernel: an order or a plan leads it, facts bound it, verification judges it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from warpwright.assist.engine import Engine, EngineError
from warpwright.assist.plan import Plan, make_plan
from warpwright.facts.compiled import with_compiled
from warpwright.facts.model import Kernel, Program
from warpwright.missing import Missing
from warpwright.optimize.order import fixed_order
from warpwright.optimize.outcome import Candidate, Outcome
from warpwright.optimize.search import Asked, Judge, Tried, search
from warpwright.optimize.verdicts import why_none
from warpwright.optimize.version import Version
from warpwright.optimize.wish import Wish
from warpwright.problems.infer import find_problem
from warpwright.progress import CancelledError, IsCancelled, Progress, never_cancelled, silent
from warpwright.rewrites.base import Declined, Rewrite
from warpwright.rewrites.registry import proposals
from warpwright.rules.base import Finding
from warpwright.verify.peers import beside_torch
from warpwright.verify.ready import getting_ready
from warpwright.verify.report import Report
from warpwright.verify.several import Trial, verify_several

BUDGET_SECONDS = 300.0
TORCH_SECONDS = 20.0
"""Beyond the budget, for what the reference takes in torch."""

_WISHES = {"speed": "makes it faster", "memory": "makes it use less memory", "fix": "repairs it"}
_NO_WISH = Wish()


def optimize(
    program: Program,
    kernel: Kernel,
    goal: str,
    *,
    wish: Wish = _NO_WISH,
    engine: Engine | Missing | None = None,
    progress: Progress = silent,
    is_cancelled: IsCancelled = never_cancelled,
    budget_seconds: float = BUDGET_SECONDS,
    arch: str | None = None,
    flags: tuple[str, ...] = (),
    is_wanted: Callable[[Rewrite], bool] = bool,
) -> Outcome:
    """Search for a version of `kernel` that serves `goal` ("speed", "memory" or "fix") and passes verification.

    `wish` says how to search; a goal in it counts before `goal`. With an `engine` the model's plan orders the search;
    a Missing says why there is none. No step is tried that is not `is_wanted`. Files are compiled and analysed for
    `arch` with nvcc's `flags`, see verify. Never raises CancelledError: what was verified before the caller stopped it,
    or before the budget was spent, is the outcome.
    """
    deadline = time.monotonic() + budget_seconds
    goal = wish.goal or goal

    def must_stop() -> bool:
        return is_cancelled() or time.monotonic() > deadline

    progress(f"Looking for what {_WISHES[goal]}", 0.0)
    with getting_ready(program.source, arch, flags, must_stop) as compiled:
        root = Version.of(program, kernel)
        first, declined = proposals(root.kernel, goal)
        if not first:  # perhaps what can be said only of a compiled kernel
            resources = compiled()
            root = replace(root, read=lambda: with_compiled(program, resources))
            first, declined = proposals(root.kernel, goal)
        outcome = _searched(
            root, first, declined, goal, wish, engine, progress, must_stop, arch=arch, flags=flags, is_wanted=is_wanted
        )
    return _beside_torch(
        outcome,
        program,
        kernel,
        progress,
        is_cancelled=lambda: is_cancelled() or time.monotonic() > deadline + TORCH_SECONDS,
    )


def _searched(
    root: Version,
    first: Sequence[Rewrite],
    declined: Sequence[Declined],
    goal: str,
    wish: Wish,
    engine: Engine | Missing | None,
    progress: Progress,
    must_stop: IsCancelled,
    *,
    arch: str | None,
    flags: tuple[str, ...],
    is_wanted: Callable[[Rewrite], bool],
) -> Outcome:
    kernel = root.kernel
    if not first:
        reason = f"No rewrite that is known here {_WISHES[goal]}: none applies to {kernel.name}."
        return Outcome(
            kernel.name, goal, None, "There was nothing to ask the model about.", (), None, reason, tuple(declined)
        )
    findings = root.findings()
    plan, plan_missing = _plan(engine, kernel, findings, first, goal, progress, must_stop)
    order = fixed_order(goal, findings)
    if plan is not None:
        order = tuple(dict.fromkeys((*plan.optimizations, *order)))
    asked = Asked(goal, wish, order, arch=arch, flags=flags, is_wanted=is_wanted)
    found = search(root, first, findings, asked, _judge(kernel.name, goal, arch, flags), progress, must_stop)
    tried, best = found.tried, found.best
    reason = "" if best is not None else why_none([each.report for each in tried], goal, must_stop())
    candidates = tuple(map(_candidate, tried))
    return Outcome(kernel.name, goal, plan, plan_missing, candidates, best, reason, tuple(found.declined or declined))


def _judge(kernel: str, goal: str, arch: str | None, flags: tuple[str, ...]) -> Judge:
    def judge(trials: Sequence[Trial], progress: Progress, is_cancelled: IsCancelled) -> list[Report | None]:
        verified = partial(verify_several, kernel=kernel, goal=goal, arch=arch, flags=flags)
        return verified(trials, progress=progress, is_cancelled=is_cancelled)

    return judge


def _plan(
    engine: Engine | Missing | None,
    kernel: Kernel,
    findings: Sequence[Finding],
    steps: Sequence[Rewrite],
    goal: str,
    progress: Progress,
    must_stop: IsCancelled,
) -> tuple[Plan | None, str]:
    """The model's plan, or None and one or two sentences that say why there is none."""
    if isinstance(engine, Missing):
        return None, str(engine)
    if engine is None:
        return None, "No model was asked: what gained most on other kernels is tried first."
    choices = "a rewrite that applies" if len(steps) == 1 else f"{len(steps)} rewrites that apply"
    progress(f"Asking {engine.model.name} for a plan: {choices}", 0.05)
    try:
        return make_plan(engine, kernel, findings, steps, goal, is_cancelled=must_stop), ""
    except EngineError as error:
        return None, str(error)
    except CancelledError:
        return None, "The search was stopped before the model answered."


def _beside_torch(
    outcome: Outcome, program: Program, kernel: Kernel, progress: Progress, is_cancelled: IsCancelled
) -> Outcome:
    """With what the kernel's reference takes in torch beside all that was timed, where there is time for that."""
    reports = [each.report for each in outcome.candidates]
    if not any(report.speed for report in reports):
        return outcome
    try:
        reports = beside_torch(reports, find_problem(program, kernel), progress=progress, is_cancelled=is_cancelled)
    except CancelledError:
        return outcome
    candidates = (replace(each, report=report) for each, report in zip(outcome.candidates, reports, strict=True))
    return replace(outcome, candidates=tuple(candidates))


def _candidate(tried: Tried) -> Candidate:
    version, trial = tried.version, tried.trial
    return Candidate(version.rewrites, version.explanations, trial.original, trial.candidate, tried.report)
