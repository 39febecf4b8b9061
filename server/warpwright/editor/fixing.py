"""Fixing one file: each finding's fix is proposed, verified, and kept only if verification accepts it. Edits that leave
all device code as it is are verified at once, the others one at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace

from warpwright.editor.promised import Answer, answers, best_first, writes_device_code
from warpwright.facts.model import Program
from warpwright.progress import CancelledError, IsCancelled, Progress
from warpwright.rewrites.base import Declined, Rewrite
from warpwright.rewrites.registry import goal_of
from warpwright.rules.base import Finding, Fix
from warpwright.syntax.edits import TextEdit
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
    """How a text of the file is read: its program, which may be of a file that includes it, the findings that are to be
    fixed, and how it is compiled."""

    program: Callable[[Source], Program]
    findings: Callable[[Program], Iterable[Finding]]
    flags: tuple[str, ...]
    arch: str | None = None


@dataclass(frozen=True, slots=True)
class _Proposed:
    """A finding's fix with its edits."""

    key: Key
    finding: Finding
    fix: Fix
    made: Rewrite

    def attempt(self, *, applied: bool, reason: str, report: Report | None) -> Attempt:
        fix = replace(self.fix, title=self.made.title)
        return _attempt(self.finding, fix, applied=applied, reason=reason, report=report)


@dataclass(slots=True)
class _Tried:
    """What was tried of a file so far. `reports` are those of refused candidates, by their text."""

    made: list[Attempt] = field(default_factory=list[Attempt])
    refused: dict[Key, Attempt] = field(default_factory=dict[Key, Attempt])
    reports: dict[bytes, Report] = field(default_factory=dict[bytes, Report])
    count: int = 0


def fix_source(
    source: Source,
    reading: Reading,
    *,
    unsafe: bool,
    progress: Progress,
    is_cancelled: IsCancelled,
    trying: Callable[[Attempt], None] = lambda _: None,
    made_one: Callable[[Attempt], None] = lambda _: None,
) -> Fixed:
    """Apply the fixes of `source`'s findings: each next one is looked for in the text that is left.

    A fix that may change results is tried only with `unsafe`. Stopped by `is_cancelled`, it returns what was verified
    until then; `trying` is told of a fix before it is verified, `made_one` as it is accepted. A refusal is told where
    the finding is still there at the end, and once: what another fix cured, or what was tried again in the changed
    text, is none.
    """
    current = source
    tried = _Tried()
    while tried.count < MOST_FIXES:
        try:
            edited = _step(current, reading, tried, unsafe, progress, is_cancelled, trying, made_one)
        except CancelledError:
            break
        if edited is None:
            break
        current = edited
    remaining = list(_fixes(reading.findings(reading.program(current))))
    told: dict[tuple[int, str, str, str], Attempt] = {}
    for attempt in (tried.refused[key] for key, _, _ in remaining if key in tried.refused):
        told.setdefault((attempt.line, attempt.rule, attempt.rewrite, attempt.reason), attempt)
    left = 0 if unsafe else len([fix for _, _, fix in remaining if not fix.safe])
    return Fixed(source, current, (*tried.made, *told.values()), left)


def _step(
    source: Source,
    reading: Reading,
    tried: _Tried,
    unsafe: bool,
    progress: Progress,
    is_cancelled: IsCancelled,
    trying: Callable[[Attempt], None],
    made_one: Callable[[Attempt], None],
) -> Source | None:
    """The text with the first edits that are accepted, None where there are no more."""
    if is_cancelled():
        raise CancelledError
    program = reading.program(source)
    answer = answers(program, source)
    unit = program.source if program.source.path != source.path else None
    fixes = [each for each in _fixes(reading.findings(program)) if each[2].safe or unsafe]
    for batch in _batches(program, fixes, answer, tried.refused):
        if is_cancelled():
            raise CancelledError
        candidate = source.edited(_joined(batch))
        report = tried.reports.get(candidate.data)
        if report is None:
            tried.count += 1
            first = batch[0]
            progress(f"{source.path}:{first.finding.span.line}: {first.fix.title}", None)
            for each in batch:
                trying(each.attempt(applied=False, reason="", report=None))
            report = _verified(source, candidate, unit, first, reading, progress, is_cancelled)
        if reason := _refusal(report, goal_of(batch[0].fix.rewrite)):
            tried.reports[candidate.data] = report
            if len(batch) == 1:
                tried.refused[batch[0].key] = batch[0].attempt(applied=False, reason=reason, report=report)
            continue
        for each in batch:
            tried.made.append(each.attempt(applied=True, reason="", report=report))
            made_one(tried.made[-1])
        return candidate
    return None


def _batches(
    program: Program, fixes: Iterable[tuple[Key, Finding, Fix]], answer: Answer, refused: dict[Key, Attempt]
) -> Iterator[list[_Proposed]]:
    """What to verify at once: all that leaves device code as it is, and then, one at a time, whatever there is."""
    waiting: list[tuple[Key, Finding, Fix]] = []
    beside: list[_Proposed] = []
    for key, finding, fix in fixes:
        kernel = program.kernel(finding.kernel)
        if key in refused or goal_of(fix.rewrite) != "fix" or kernel is None:
            waiting.append((key, finding, fix))
            continue
        made = _proposed(key, finding, fix, answer, refused)
        if made is not None and not writes_device_code(made.made, kernel) and _is_apart(made.made, beside):
            beside.append(made)
        elif made is not None:
            waiting.append((key, finding, fix))
    if beside:
        yield beside
    if len(beside) > 1:
        yield from ([each] for each in beside)
    for key, finding, fix in waiting:
        if key not in refused and (found := _proposed(key, finding, fix, answer, refused)) is not None:
            yield [found]


def _proposed(key: Key, finding: Finding, fix: Fix, answer: Answer, refused: dict[Key, Attempt]) -> _Proposed | None:
    made = answer(finding, fix)
    if isinstance(made, Declined):
        refused[key] = _attempt(finding, fix, applied=False, reason=made.reason, report=None)
        return None
    return _Proposed(key, finding, fix, made)


def _is_apart(made: Rewrite, others: Iterable[_Proposed]) -> bool:
    """Whether its edits touch none of the others', those aside that are the same, such as an include."""
    theirs = {edit for other in others for edit in other.made.edits}
    own = set(made.edits) - theirs
    return not any(edit.start <= other.end and other.start <= edit.end for edit in own for other in theirs)


def _joined(batch: Iterable[_Proposed]) -> list[TextEdit]:
    return sorted({edit for each in batch for edit in each.made.edits}, key=lambda edit: edit.start)


def _verified(
    source: Source,
    candidate: Source,
    unit: Source | None,
    first: _Proposed,
    reading: Reading,
    progress: Progress,
    is_cancelled: IsCancelled,
) -> Report:
    return verify(
        source,
        candidate,
        kernel=first.finding.kernel,
        goal=goal_of(first.fix.rewrite),
        expect_gone=first.finding,
        progress=progress,
        is_cancelled=is_cancelled,
        arch=reading.arch,
        flags=reading.flags,
        unit=unit,
    )


def _refusal(report: Report, goal: str) -> str:
    """Why a candidate is not taken; "" where it is."""
    if not acceptable(report, goal):
        uncovered = next((each.text for each in report.uncovered), "")
        return report.reason or uncovered or f"verification ended with '{report.status}'"
    if goal == "speed" and report.predicted is not None and report.predicted.speedup < LEAST_GAIN:
        return f"predicted {report.predicted.speedup:.2f}x ({report.predicted.gpu}): no gain"
    return ""


def _fixes(findings: Iterable[Finding]) -> Iterator[tuple[Key, Finding, Fix]]:
    """Every finding's fixes. A key outlives edits elsewhere: it holds the line's words."""
    seen: Counter[tuple[str, str, str, str]] = Counter()
    for finding in findings:
        for fix in best_first(finding.fixes):
            words = " ".join(finding.span.source.line_text(finding.span.line).split())
            name = (finding.rule, fix.rewrite, finding.kernel, words)
            seen[name] += 1
            yield (*name, seen[name]), finding, fix


def _attempt(finding: Finding, fix: Fix, *, applied: bool, reason: str, report: Report | None) -> Attempt:
    span = finding.span
    return Attempt(span.path, span.line, finding.rule, finding.kernel, fix.rewrite, fix.title, applied, reason, report)
