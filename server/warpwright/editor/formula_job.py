"""The work behind writing a formula that stands in a comment: kernels, a launch function, and whether they compute
it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from warpwright.assist.worded_formula import Reading
from warpwright.editor.analysis import Analysis, compiled_as
from warpwright.editor.file_style import as_lines
from warpwright.editor.formula_comment import formula_at
from warpwright.editor.job_request import JobError, Json, analysed, edits_answer
from warpwright.editor.limited import Limited
from warpwright.editor.read_as import read_as
from warpwright.formulas.model import Formula
from warpwright.progress import CancelledError, IsCancelled, Progress
from warpwright.syntax.edits import TextEdit
from warpwright.syntax.encoding import encoded
from warpwright.syntax.source import Source
from warpwright.verify.formulas import (
    Asked,
    FormulaNotWrittenError,
    Written,
    checked_first,
    said_of_search,
    written_best,
)
from warpwright.verify.report import PASSED, Report, Status
from warpwright.writer.names import function_name

_INCLUDE = re.compile(r"^#include .*\n", re.MULTILINE)


def write_formula(request: Json, progress: Progress, is_cancelled: IsCancelled) -> Json:
    """Writes what the comment at the byte "formula_at" says. The answer is that of `search_job.search`, with one
    candidate and one choice. Raises JobError."""
    progress("Reading the document", 0.0)
    analysis, settings = analysed(request)
    found = formula_at(analysis.source, request["formula_at"])
    if found is None:
        raise JobError("The comment holds no formula any more.")
    arch = compiled_as(analysis.source.path, settings)[0].arch
    return written_readings(analysis, [Reading(found.formula)], found.placed, arch, progress, is_cancelled)


def written_readings(
    analysis: Analysis,
    readings: Sequence[Reading],
    placed: int,
    arch: str,
    progress: Progress,
    is_cancelled: IsCancelled,
    are_of_words: bool = False,
    limited: Limited | None = None,
) -> Json:
    """The kernels of readings as the answer of `search_job.search`, each a candidate and a choice: those that are
    proved right before those that nothing could run. Raises JobError where none is left that is right and keeps to its
    limits."""
    from warpwright.optimize.outcome import Candidate, Outcome

    source = analysis.source
    made: list[tuple[Reading, Written, Report, tuple[str, ...]]] = []
    reason = ""
    for reading in readings:
        name = _free_name(source, function_name(reading.name or reading.formula.outputs[0].name))
        sizes = limited.sizes(reading.formula) if limited is not None else {}
        written = _made(reading.formula, Asked(name, arch, sizes), progress, is_cancelled)
        assert written.report is not None
        limits = limited.judged(written, is_cancelled) if limited is not None else []
        broken = "; ".join(each.text for each in limits if not each.holds)
        if written.report.status in (*PASSED, Status.NOT_RUN) and not broken:
            made.append((reading, written, written.report, tuple(each.text for each in limits)))
        reason = reason or written.report.reason or broken
    if not made:
        raise JobError(f"The kernel is not shown: {reason}")
    made.sort(key=lambda each: each[2].status not in PASSED)
    candidates, choices = [], []
    for number, (reading, written, report, kept) in enumerate(made):
        head = f"{read_as(reading)}\n" if are_of_words else ""
        edit = TextEdit(placed, placed, inserted(source, placed, written, head))
        whose = f" by the model ({reading.votes} answers)" if reading.votes else ""
        searched = said_of_search(written.search)
        notes = (
            *([searched] if searched else []),
            *([f"Read{whose} as {reading.formula.text}"] if are_of_words else []),
            *kept,
            *written.formula.promises,
        )
        candidates.append(Candidate((), notes, source, source.edited([edit]), report))
        choices.append(
            {
                "candidate": number,
                "title": f"{report.kernel}: {_origin(reading, are_of_words)}",
                "badge": report.badge(),
                "explanation": "\n".join([*notes, written.explanation]),
                **edits_answer(analysis.program, (), source, [edit]),
            }
        )
    kernel = made[0][2].kernel
    outcome = Outcome(kernel, "generate", None, "No plan is made for a formula.", tuple(candidates), 0)
    return {"outcome": outcome.to_json(), "choices": choices}


def _origin(reading: Reading, is_of_words: bool) -> str:
    if reading.votes:
        return f"draft, as {reading.votes} answers of the model read the words"
    return f"written from {'words' if is_of_words else 'its formula'}"


def checked_kernel(
    source: Source, reading: Reading, arch: str, progress: Progress, is_cancelled: IsCancelled
) -> Written:
    """The kernels of a reading, compiled and found to compute its formula on each of their paths. Raises JobError."""
    name = _free_name(source, function_name(reading.name or reading.formula.outputs[0].name))
    asked = Asked(name, arch, is_checked=False)
    made = _made(reading.formula, asked, progress, is_cancelled)
    report = checked_first(made.formula, made.code, made.text, asked, progress, is_cancelled)
    if is_cancelled():
        raise CancelledError
    if report.status not in PASSED:
        raise JobError(report.reason or report.badge())
    return replace(made, report=report)


def _made(formula: Formula, asked: Asked, progress: Progress, is_cancelled: IsCancelled) -> Written:
    try:
        made = written_best(formula, asked, progress, is_cancelled)
    except FormulaNotWrittenError as error:
        raise JobError(str(error)) from None
    if is_cancelled():
        raise CancelledError
    return made


def _free_name(source: Source, name: str) -> str:
    """The name, or one with a number behind it where the file has that."""
    taken = set(re.findall(rb"[A-Za-z_]\w*", source.code))
    names = (name, *(f"{name}_{number}" for number in range(2, 100)))
    return next((each for each in names if encoded(each) not in taken), name)


def inserted(source: Source, at: int, made: Written, head: str = "") -> str:
    """The text behind a head as whole lines, without the includes that the file has."""
    text = _INCLUDE.sub(lambda line: "" if line[0].strip() in source.text() else line[0], made.text).lstrip("\n")
    return as_lines(source, at, head + text)
