"""The last rung of `verify` and `optimize`: the program's own test, where the project's file names one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from warpwright.editor.project import project_of
from warpwright.progress import IsCancelled, Progress
from warpwright.syntax.source import Source
from warpwright.trust import is_trusted
from warpwright.verify.program_run import run_program
from warpwright.verify.report import ProgramOutcome, ProgramStatus, Report, Status

if TYPE_CHECKING:
    from warpwright.optimize.outcome import Outcome

_FAILED = (Status.WRONG, Status.UNSAFE, Status.DOES_NOT_COMPILE, Status.TIMEOUT)


def reports_with_program(
    reports: Sequence[Report], before: Source, after: Source, progress: Progress, is_cancelled: IsCancelled
) -> list[Report]:
    """The reports of one candidate with what its program's test says. It is not run where the candidate failed before,
    nor where the project names none. Raises CancelledError."""
    if any(report.status in _FAILED for report in reports):
        return list(reports)
    outcome = program_outcome(before, after, progress, is_cancelled)
    return [report.with_program(outcome) for report in reports] if outcome is not None else list(reports)


def outcome_with_program(outcome: Outcome, progress: Progress, is_cancelled: IsCancelled) -> Outcome:
    """What a search found, with what the program's test says of the version that it chose: one that fails there is not
    offered. Raises CancelledError."""
    if outcome.best is None:
        return outcome
    chosen = outcome.candidates[outcome.best]
    (report,) = reports_with_program([chosen.report], chosen.source_before, chosen.source_after, progress, is_cancelled)
    tried = tuple(replace(each, report=report) if each is chosen else each for each in outcome.candidates)
    if report.program is None or report.program.status is not ProgramStatus.DIFFERS:
        return replace(outcome, candidates=tried)
    return replace(outcome, candidates=tried, best=None, reason=report.program.reason)


def program_outcome(
    before: Source, after: Source, progress: Progress, is_cancelled: IsCancelled
) -> ProgramOutcome | None:
    """What the program's test says with `after` in the place of `before`, whichever of the two is the project's file;
    None where the project names no test. Raises CancelledError."""
    for place in dict.fromkeys((before.path, after.path)):
        test = project_of(place).program
        if test is not None:
            return run_program(
                test,
                _texts(before, place),
                _texts(after, place),
                is_trusted=is_trusted(test.folder),
                progress=progress,
                is_cancelled=is_cancelled,
            )
    return None


def _texts(side: Source, place: str) -> Mapping[Path, bytes]:
    """The files of one side that are not as they are on disk, with the side itself at `place`."""
    return {Path(place).absolute(): side.data, **{Path(each.path).absolute(): each.data for each in side.changed}}
