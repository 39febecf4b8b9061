"""The work behind writing a formula that stands in a comment: kernels, a launch function, and whether they compute
it."""

from __future__ import annotations

import re

from warpwright.assist.worded_formula import Reading
from warpwright.editor.analysis import compiled_as
from warpwright.editor.formula_comment import formula_at
from warpwright.editor.job_request import JobError, Json, analysed, edits_answer
from warpwright.formulas.model import Formula
from warpwright.progress import CancelledError, IsCancelled, Progress
from warpwright.syntax.edits import TextEdit
from warpwright.syntax.encoding import encoded
from warpwright.syntax.source import Source
from warpwright.verify.formulas import Asked, FormulaNotWrittenError, Written, written_and_checked
from warpwright.verify.report import PASSED, Status
from warpwright.writer.names import function_name

_INCLUDE = re.compile(r"^#include .*\n", re.MULTILINE)


def write_formula(request: Json, progress: Progress, is_cancelled: IsCancelled) -> Json:
    """Writes what the comment at the byte "formula_at" says. The answer is that of `search_job.search`, with one
    candidate and one choice. Raises JobError."""
    from warpwright.optimize.outcome import Candidate, Outcome

    progress("Reading the document", 0.0)
    analysis, settings = analysed(request)
    source = analysis.source
    found = formula_at(source, request["formula_at"])
    if found is None:
        raise JobError("The comment holds no formula any more.")
    name = _free_name(source, function_name(found.formula.outputs[0].name))
    made = _made(found.formula, Asked(name, compiled_as(source.path, settings)[0].arch), progress, is_cancelled)
    report = made.report
    assert report is not None
    if report.status not in (*PASSED, Status.NOT_RUN):
        raise JobError(f"The kernel is not shown: {report.reason}")
    edit = TextEdit(found.placed, found.placed, inserted(source, found.placed, made))
    notes = tuple(made.formula.promises)
    candidate = Candidate((), notes, source, source.edited([edit]), report)
    outcome = Outcome(report.kernel, "generate", None, "No plan is made for a formula.", (candidate,), 0)
    choice = {
        "candidate": 0,
        "title": f"{report.kernel}: written from its formula",
        "badge": report.badge(),
        "explanation": "\n".join([*notes, made.explanation]),
        **edits_answer(analysis.program, (), source, [edit]),
    }
    return {"outcome": outcome.to_json(), "choices": [choice]}


def checked_kernel(
    source: Source, reading: Reading, arch: str, progress: Progress, is_cancelled: IsCancelled
) -> Written:
    """The kernels of a reading, compiled and found to compute its formula. Raises JobError."""
    name = function_name(reading.name or reading.formula.outputs[0].name)
    made = _made(reading.formula, Asked(_free_name(source, name), arch), progress, is_cancelled)
    assert made.report is not None
    if made.report.status not in PASSED:
        raise JobError(made.report.reason or made.report.badge())
    return made


def _made(formula: Formula, asked: Asked, progress: Progress, is_cancelled: IsCancelled) -> Written:
    try:
        made = written_and_checked(formula, asked, progress, is_cancelled)
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
    end = "\r\n" if b"\r\n" in source.data else "\n"
    text = _INCLUDE.sub(lambda line: "" if line[0].strip() in source.text() else line[0], made.text).lstrip("\n")
    before = "" if at == 0 or source.data[at - 1 : at] == b"\n" else "\n"
    return (before + head + text).replace("\n", end)
