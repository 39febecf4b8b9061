"""The search for a better version of a kernel: a plan orders it, facts bound it, verification judges it.

Round by round: every applicable rewrite is tried on the best version so far (at first the user's own text), the
results are verified against the user's own text, several at once, and the best that may be offered starts the next
round. The search ends when a round brings nothing better, or when its time is up.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from warpwright.assist.engine import Engine, EngineError
from warpwright.assist.plan import Plan, make_plan
from warpwright.facts.analyze import analyze
from warpwright.facts.model import Assumptions, Kernel, Program
from warpwright.missing import Missing
from warpwright.optimize.outcome import Candidate, Outcome
from warpwright.optimize.rank import Rank, is_gain, rank_of
from warpwright.progress import CancelledError, IsCancelled, Progress, never_cancelled, silent
from warpwright.rewrites.base import Rewrite
from warpwright.rewrites.registry import applicable, proposals, propose
from warpwright.rules.base import Finding
from warpwright.rules.registry import run_rules
from warpwright.syntax.edits import unified_diff
from warpwright.syntax.flags import parse_flags
from warpwright.syntax.source import Source, include_reader
from warpwright.verify.report import Report
from warpwright.verify.several import Trial, verify_several
from warpwright.verify.verify import acceptable

BUDGET_SECONDS = 300.0
MAX_ROUNDS = 4
_WISHES = {"speed": "makes it faster", "memory": "makes it use less memory", "fix": "repairs it"}


@dataclass(frozen=True, slots=True)
class _Version:
    """One version of the kernel: the program it is in, how it came to be, and the one file that was changed for it."""

    program: Program
    kernel: Kernel
    changed: str | None = None
    rewrites: tuple[str, ...] = ()
    explanations: tuple[str, ...] = ()


def optimize(
    program: Program,
    kernel: Kernel,
    goal: str,
    *,
    engine: Engine | Missing | None = None,
    progress: Progress = silent,
    is_cancelled: IsCancelled = never_cancelled,
    budget_seconds: float = BUDGET_SECONDS,
    arch: str | None = None,
    flags: tuple[str, ...] = (),
) -> Outcome:
    """Search for a version of `kernel` that serves `goal` ("speed", "memory" or "fix") and passes verification.

    `engine` orders the search; a Missing says why there is none. Files are compiled and analysed for `arch` with
    nvcc's `flags`, see verify. Never raises CancelledError: what was verified before
    the caller stopped it, or before the budget was spent, is the outcome.
    """
    deadline = time.monotonic() + budget_seconds

    def must_stop() -> bool:
        return is_cancelled() or time.monotonic() > deadline

    progress(f"Looking for what {_WISHES[goal]}", 0.0)
    first, declined = proposals(kernel, goal)
    if not first:
        reason = f"No rewrite that is known here {_WISHES[goal]}: none applies to {kernel.name}."
        return Outcome(
            kernel.name, goal, None, "There was nothing to ask the model about.", (), None, reason, tuple(declined)
        )
    findings = _findings(program, kernel)
    plan, plan_missing = _plan(engine, kernel, findings, first, goal, progress, must_stop)
    cures = [fix.rewrite for finding in findings for fix in finding.fixes]
    wanted = list(dict.fromkeys([*(plan.optimizations if plan else ()), *cures]))

    tried: list[Candidate] = []
    seen: set[tuple[str, bytes]] = set()
    best: int | None = None
    best_rank: Rank | None = None
    version = _Version(program, kernel)
    for number in range(MAX_ROUNDS):
        steps = first if number == 0 else applicable(version.kernel, goal)
        next_version: _Version | None = None
        trials: list[tuple[Rewrite, Trial]] = []
        for step in _ordered(steps, wanted):
            after = step.apply()
            if version.changed not in (None, after.path) or (after.path, after.data) in seen:
                continue
            seen.add((after.path, after.data))
            said = f"Trying {' + '.join((*version.rewrites, step.rewrite))}"
            before = _original(program, after.path)
            trials.append((step, Trial(said, before, after, _cured(findings, step, version, kernel))))
        reports = verify_several(
            [trial for _, trial in trials],
            kernel=kernel.name,
            goal=goal,
            progress=_part(progress, 0.2 + 0.8 * number / MAX_ROUNDS, 0.8 / MAX_ROUNDS),
            is_cancelled=must_stop,
            arch=arch,
            flags=flags,
        )
        for (step, trial), report in zip(trials, reports, strict=True):
            if report is None:
                continue
            result = _stepped(version, step, trial.candidate, arch, flags)
            tried.append(_candidate(result, trial.original, trial.candidate, report))
            if not acceptable(report, goal) or not is_gain(report, goal):
                continue
            rank = rank_of(report, goal, _findings(result.program, result.kernel))
            if best_rank is None or rank > best_rank:
                best, best_rank, next_version = len(tried) - 1, rank, result
        if next_version is None:
            break
        version = next_version
    reason = "" if best is not None else _why_none(tried, goal, must_stop())
    return Outcome(kernel.name, goal, plan, plan_missing, tuple(tried), best, reason, tuple(declined))


def _ordered(steps: Sequence[Rewrite], wanted: Sequence[str]) -> list[Rewrite]:
    """What is wanted first, in that order: what the plan names, then what cures a finding; then the others."""
    places = {name: place for place, name in enumerate(wanted)}
    return sorted(steps, key=lambda step: places.get(step.rewrite, len(places)))


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
        return None, "No model was used. Install one with `pip install 'warpwright[model]'`."
    choices = "a rewrite that applies" if len(steps) == 1 else f"{len(steps)} rewrites that apply"
    progress(f"Asking {engine.model.name} for a plan: {choices}", 0.05)
    try:
        return make_plan(engine, kernel, findings, steps, goal, is_cancelled=must_stop), ""
    except EngineError as error:
        return None, str(error)
    except CancelledError:
        return None, "The search was stopped before the model answered."


def _part(progress: Progress, start: float, width: float) -> Progress:
    """The progress of one round as a part of the whole search's."""

    def report(message: str, share: float | None) -> None:
        progress(message, start + width * share if share is not None else None)

    return report


def _findings(program: Program, kernel: Kernel) -> list[Finding]:
    return [finding for finding in run_rules(program) if finding.kernel == kernel.name]


def _cured(findings: Sequence[Finding], step: Rewrite, version: _Version, kernel: Kernel) -> Finding | None:
    """The finding of the user's own text that a first step is the cure of; None where it cures none in particular."""
    if version.rewrites:
        return None
    for finding in findings:
        if any(fix.rewrite == step.rewrite for fix in finding.fixes):
            proposal = propose(step.rewrite, kernel, finding.span)
            if isinstance(proposal, Rewrite) and proposal.edits == step.edits:
                return finding
    return None


def _original(program: Program, path: str) -> Source:
    return program.source if program.source.path == path else program.sources[path]


def _stepped(version: _Version, step: Rewrite, after: Source, arch: str | None, flags: tuple[str, ...]) -> _Version:
    """The version after one more rewrite, analysed anew."""
    program = version.program
    main = after if after.path == program.source.path else program.source
    given = parse_flags(flags, Path())
    assume = Assumptions(arch=arch or Assumptions().arch).compiled_with(given)
    analysed = analyze(main, include_reader({**program.sources, after.path: after}, given.folders), assume)
    return _Version(
        analysed,
        analysed.kernel(version.kernel.name) or version.kernel,
        after.path,
        (*version.rewrites, step.rewrite),
        (*version.explanations, step.explanation),
    )


def _candidate(result: _Version, before: Source, after: Source, report: Report) -> Candidate:
    diff = unified_diff(before.text(), after.text(), Path(before.path).name)
    return Candidate(result.rewrites, result.explanations, before, after, diff, report)


def _why_none(tried: Sequence[Candidate], goal: str, stopped: bool) -> str:
    if not tried:
        return "The search was stopped before a candidate was verified."
    ended = "before the search was stopped " if stopped else ""
    if any(acceptable(candidate.report, goal) for candidate in tried):
        return "What passed verification is predicted to be slower than your own."
    if len(tried) == 1:
        return f"The only candidate {ended}did not pass verification."
    return f"None of the {len(tried)} candidates {ended}passed verification."
