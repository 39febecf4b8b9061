"""The work behind *Fix all*: every safe fix of a document's findings that verification accepts, as one change."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from warpwright.editor.analysis import Analysis, compiled_as, compiler_options
from warpwright.editor.fixing import Attempt, Fixed, Reading, fix_source
from warpwright.editor.includes import open_first, with_folders
from warpwright.editor.job_request import JobError, Json, analysed, edits_answer, opened_in
from warpwright.editor.rebase import line_edits
from warpwright.editor.settings import Settings
from warpwright.facts.analyze import analyze
from warpwright.facts.model import Program
from warpwright.progress import CancelledError, IsCancelled, Progress
from warpwright.rewrites.registry import goal_of
from warpwright.rules.base import Finding
from warpwright.rules.registry import run_rules
from warpwright.syntax.source import Source
from warpwright.verify.acceptable import acceptable
from warpwright.verify.report import Report
from warpwright.verify.verify import verify


def fix_all(request: Json, progress: Progress, is_cancelled: IsCancelled) -> Json:
    """Fix what the request's `rule` found in the document; null is every rule.

    Each fix is verified where it is made, and of a kernel that takes several the result once more, against the user's
    own text: tolerances must not add up. Fixes that may change results are not tried. The answer is that of
    `search_job.search`, with one candidate for each kernel and at most one choice, which has them all. Raises JobError.
    """
    from warpwright.optimize.outcome import Candidate, Outcome

    progress("Reading the document", 0.0)
    analysis, settings = analysed(request)
    reading = _reading(request, analysis, settings)
    fixed = fix_source(analysis.source, reading, unsafe=False, progress=progress, is_cancelled=is_cancelled)
    if is_cancelled():
        raise CancelledError
    made = [attempt for attempt in fixed.attempts if attempt.applied]
    candidates = []
    for kernel in dict.fromkeys(attempt.kernel for attempt in made):
        own = [attempt for attempt in made if attempt.kernel == kernel]
        report = _of_all(fixed, own, len(made), reading, progress, is_cancelled)
        titles = tuple(attempt.title for attempt in own)
        candidates.append(Candidate(tuple(a.rewrite for a in own), titles, fixed.before, fixed.after, report))
    left = "\n".join(_left(fixed))
    what = request["rule"] or "all findings"
    best = 0 if candidates else None
    reason = "" if candidates else left or "No finding here has a fix that is safe."
    outcome = Outcome(what, "fixAll", None, "No model was asked.", tuple(candidates), best, reason)
    choice = {
        "candidate": 0,
        "title": _title(len(made), request["rule"]),
        "badge": "; ".join(dict.fromkeys(each.report.badge() for each in candidates)),
        "explanation": "\n".join([*(f"{a.rule}: {a.title}" for a in made), *filter(None, [left])]),
        **edits_answer(
            analysis.program,
            [*dict.fromkeys(attempt.kernel for attempt in made)],
            fixed.before,
            line_edits(fixed.before.data, fixed.after.data),
        ),
    }
    return {"outcome": outcome.to_json(), "choices": [choice] if made else []}


def _reading(request: Json, analysis: Analysis, settings: Settings) -> Reading:
    """The document as the editor reads it, with the findings that are asked for and lie in it."""
    path, rule = analysis.source.path, request["rule"]
    assume, folders = compiled_as(path, settings)
    include = with_folders(open_first(opened_in(request)), folders)

    def program(source: Source) -> Program:
        return analyze(source, include, assume)

    def findings(program: Program) -> Iterable[Finding]:
        every = run_rules(program, settings.select, settings.ignore)
        return [f for f in every if f.span.path == path and rule in (None, f.rule)]

    return Reading(program, findings, compiler_options(path, settings), analysis.program.assume.arch)


def _of_all(
    fixed: Fixed, own: list[Attempt], count: int, reading: Reading, progress: Progress, is_cancelled: IsCancelled
) -> Report:
    """What is proved of one kernel with all that was fixed. Raises JobError where that is refuted."""
    if count == 1 and own[0].report is not None:
        return own[0].report
    kernel = own[0].kernel
    goals = [goal_of(attempt.rewrite) for attempt in own]
    goal = "fix" if "fix" in goals else goals[0]
    report = verify(
        fixed.before,
        fixed.after,
        kernel=kernel,
        goal=goal,
        progress=progress,
        is_cancelled=is_cancelled,
        arch=reading.arch,
        flags=reading.flags,
    )
    if not acceptable(report, goal):
        why = report.reason or report.badge()
        raise JobError(f"Each fix of {kernel} passed, but not all of them at once: {why} Fix them one by one.")
    return report


def _title(count: int, rule: str | None) -> str:
    """`2 findings of bank-conflict fixed`."""
    return f"{count} finding{'s' if count > 1 else ''}{f' of {rule}' if rule else ''} fixed"


def _left(fixed: Fixed) -> Iterator[str]:
    yield from (f"Line {a.line}, {a.rule}: {a.reason}" for a in fixed.attempts if not a.applied)
    if fixed.unsafe_left:
        many = "fixes" if fixed.unsafe_left > 1 else "fix"
        yield f"{fixed.unsafe_left} {many} that may change results: not tried."
