"""What a search found, for people: the plan in the model's words, each candidate's verdict, the best as a diff."""

from __future__ import annotations

from collections.abc import Iterator

import click

from warpwright.assist.plan import Plan
from warpwright.cli.diff import coloured, source_diff
from warpwright.cli.findings_text import printable
from warpwright.cli.report_text import overview_text, report_text
from warpwright.optimize.outcome import Candidate, Outcome


def outcome_text(outcome: Outcome, *, details: bool = False) -> str:
    """The verdict and the diff; with `details` the plan and every candidate before them."""
    return "\n".join([*(_details(outcome) if details else ()), *_answer(outcome, details=details)])


def _answer(outcome: Outcome, *, details: bool) -> Iterator[str]:
    if outcome.best is None:
        yield click.style(outcome.reason, fg="yellow", bold=True)
        if not details:
            yield from (click.style(line, dim=True) for line in _declined(outcome))
        return
    best = outcome.candidates[outcome.best]
    yield f"{_head(' + '.join(best.rewrites))}: {click.style(best.report.badge(), bold=True)}"
    yield from (line for line in (best.report.coverage(),) if line)
    yield coloured(source_diff(best.source_before, best.source_after)).rstrip("\n")


def _details(outcome: Outcome) -> Iterator[str]:
    yield _head("Plan")
    if outcome.plan:
        yield from _plan(outcome.plan)
    else:
        yield outcome.plan_missing
    yield from (click.style(line, dim=True) for line in _declined(outcome))
    for index, candidate in enumerate(outcome.candidates):
        yield ""
        yield from _candidate(candidate, index, chosen=index == outcome.best)
    if len(outcome.candidates) > 1:
        named = [(" + ".join(each.rewrites), each.report.to_json()) for each in outcome.candidates]
        yield overview_text("candidate", named)
    yield ""
    if outcome.best is not None:
        yield _head("Result")


def _declined(outcome: Outcome) -> Iterator[str]:
    """What does not apply: with its reasons where nothing does, else by name."""
    if outcome.candidates:
        names = ", ".join(declined.rewrite for declined in outcome.declined)
        if names:
            yield f"{len(outcome.declined)} other rewrites do not apply (`--format json` says why): {names}."
    else:
        yield from (f"{declined.rewrite} does not apply: {declined.reason}" for declined in outcome.declined)


def _plan(plan: Plan) -> Iterator[str]:
    """What the plan comes to, then every word of the model as it came: a guess, numbers included."""
    if plan.optimizations:
        guess = f" (its guess: {plan.estimated_speedup:g}x)" if plan.estimated_speedup else ""
        yield f"The model would try {', '.join(plan.optimizations)}{guess}. Its own words, which nothing has checked:"
        yield from (click.style(f"  {printable(line)}", dim=True) for line in plan.raw.splitlines())
    else:
        yield printable(plan.analysis)


def _candidate(candidate: Candidate, index: int, *, chosen: bool) -> Iterator[str]:
    mark = ", chosen" if chosen else ""
    yield _head(f"Candidate {index + 1}{mark}: {' + '.join(candidate.rewrites)}")
    yield from candidate.explanations
    yield report_text(candidate.report.to_json(), whole=chosen)


def _head(text: str) -> str:
    return click.style(text, bold=True, underline=True)
