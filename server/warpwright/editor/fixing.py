"""Fixing one file: each finding's fix is proposed, verified, and kept only if verification accepts it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from warpwright.editor.promised import answers, best_first
from warpwright.facts.model import Program
from warpwright.progress import CancelledError, IsCancelled, Progress
from warpwright.rewrites.base import Declined
from warpwright.rewrites.registry import goal_of
from warpwright.rules.base import Finding, Fix
from warpwright.syntax.source import Source
from warpwright.verify.acceptable import acceptable
from warpwright.verify.report import Report
from warpwright.verify.verify import verify

MOST_FIXES = 200  # for one file; a tree-wide clean-up of generated code is run again

LEAST_GAIN = 1.0
"""Predicted speedup below which a fix that is for speed is left alone."""

Key = tuple[str, str, str, str, int]


@dataclass(frozen=True, slots=True)
class Attempt:
    """One fix that was tried, at its finding's place in the text of that moment. `reason` is why it was refused."""

    file: str
    line: int
    rule: str
    kernel: str
    rewrite: str
    title: str
    applied: bool
    reason: str
    report: Report | None


@dataclass(frozen=True, slots=True)
class Fixed:
    """`unsafe_left` counts the fixes of `after` that were not tried because they may change results."""

    before: Source
    after: Source
    attempts: tuple[Attempt, ...]
    unsafe_left: int


@dataclass(frozen=True, slots=True)
class Reading:
    """How a text of the file is read: its program, the findings that are to be fixed, and how it is compiled."""

    program: Callable[[Source], Program]
    findings: Callable[[Program], Iterable[Finding]]
    flags: tuple[str, ...]
    arch: str | None = None


def fix_source(
    source: Source,
    reading: Reading,
    *,
    unsafe: bool,
    progress: Progress,
    is_cancelled: IsCancelled,
    made_one: Callable[[Attempt], None] = lambda _: None,
) -> Fixed:
    """Apply the fixes of `source`'s findings, one at a time: each next one is looked for in the text that is left.

    A fix that may change results is tried only with `unsafe`. Stopped by `is_cancelled`, it returns what was verified
    until then; `made_one` is told of each fix as it is accepted. A refusal is told where the finding is still there at
    the end, and once: what another fix cured, or what was tried again in the changed text, is none.
    """
    current = source
    refused: dict[Key, Attempt] = {}
    made: list[Attempt] = []
    tried = 0
    while tried < MOST_FIXES and not is_cancelled():
        tried += 1
        program = reading.program(current)
        fixes = _fixes(reading.findings(program))
        found = next(((key, at, fix) for key, at, fix in fixes if key not in refused and (fix.safe or unsafe)), None)
        if found is None:
            break
        key, finding, fix = found
        try:
            attempt, edited = _try(program, finding, fix, reading, progress, is_cancelled)
        except CancelledError:
            break
        if attempt.applied:
            made.append(attempt)
            made_one(attempt)
            current = edited
        else:
            refused[key] = attempt
    remaining = list(_fixes(reading.findings(reading.program(current))))
    told: dict[tuple[int, str, str, str], Attempt] = {}
    for attempt in (refused[key] for key, _, _ in remaining if key in refused):
        told.setdefault((attempt.line, attempt.rule, attempt.rewrite, attempt.reason), attempt)
    left = 0 if unsafe else len([fix for _, _, fix in remaining if not fix.safe])
    return Fixed(source, current, (*made, *told.values()), left)


def _fixes(findings: Iterable[Finding]) -> Iterator[tuple[Key, Finding, Fix]]:
    """Every finding's fixes. A key outlives edits elsewhere: it holds the line's words."""
    seen: Counter[tuple[str, str, str, str]] = Counter()
    for finding in findings:
        for fix in best_first(finding.fixes):
            words = " ".join(finding.span.source.line_text(finding.span.line).split())
            name = (finding.rule, fix.rewrite, finding.kernel, words)
            seen[name] += 1
            yield (*name, seen[name]), finding, fix


def _try(
    program: Program,
    finding: Finding,
    fix: Fix,
    reading: Reading,
    progress: Progress,
    is_cancelled: IsCancelled,
) -> tuple[Attempt, Source]:
    source = program.source

    def refused(reason: str, report: Report | None = None) -> tuple[Attempt, Source]:
        return attempt(applied=False, reason=reason, report=report), source

    def attempt(*, applied: bool, reason: str, report: Report | None) -> Attempt:
        span = finding.span
        return Attempt(
            span.path, span.line, finding.rule, finding.kernel, fix.rewrite, fix.title, applied, reason, report
        )

    progress(f"{source.path}:{finding.span.line}: {fix.title}", None)
    proposal = answers(program)(finding, fix)
    if isinstance(proposal, Declined):
        return refused(proposal.reason)
    candidate = proposal.apply()
    goal = goal_of(fix.rewrite)
    report = verify(
        source,
        candidate,
        kernel=finding.kernel,
        goal=goal,
        expect_gone=finding,
        progress=progress,
        is_cancelled=is_cancelled,
        arch=reading.arch,
        flags=reading.flags,
    )
    if not acceptable(report, goal):
        return refused(report.reason or f"verification ended with '{report.status}'", report)
    if goal == "speed" and report.predicted is not None and report.predicted.speedup < LEAST_GAIN:
        return refused(f"predicted {report.predicted.speedup:.2f}x ({report.predicted.gpu}): no gain", report)
    return attempt(applied=True, reason="", report=report), candidate
