"""The work behind writing a formula that stands in a comment: kernels, a launch function, and whether they compute
it."""

from __future__ import annotations

import re

from warpwright.editor.analysis import Analysis, compiled_as
from warpwright.editor.formula_comment import FormulaComment, formula_at
from warpwright.editor.job_request import JobError, Json, analysed, edits_answer
from warpwright.progress import CancelledError, IsCancelled, Progress
from warpwright.syntax.edits import TextEdit
from warpwright.syntax.encoding import encoded
from warpwright.syntax.source import Source
from warpwright.verify.formulas import Asked, FormulaNotWrittenError, Written, written_and_checked
from warpwright.verify.report import PASSED, Report, Status
from warpwright.writer.names import function_name

_INCLUDE = re.compile(r"^#include .*\n", re.MULTILINE)


def write_formula(request: Json, progress: Progress, is_cancelled: IsCancelled) -> Json:
    """Writes what the comment at the byte "formula_at" says. The answer is that of `search_job.search`, with one
    candidate and one choice. Raises JobError."""
    from warpwright.optimize.outcome import Candidate, Outcome

    analysis, found, made, report = _made(request, progress, is_cancelled)
    source = analysis.source
    if report.status not in (*PASSED, Status.NOT_RUN):
        raise JobError(f"The kernel is not shown: {report.reason}")
    edit = TextEdit(found.placed, found.placed, _inserted(source, found.placed, made))
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


def ghost(request: Json, progress: Progress, is_cancelled: IsCancelled) -> Json:
    """The "text" for the formula in the comment above the byte "formula_at". Only what was compiled and compared with
    the formula is shown. Raises JobError."""
    analysis, found, made, report = _made(request, progress, is_cancelled)
    if report.status not in PASSED:
        raise JobError(report.reason or report.badge())
    return {"text": _inserted(analysis.source, found.placed, made)}


def _made(
    request: Json, progress: Progress, is_cancelled: IsCancelled
) -> tuple[Analysis, FormulaComment, Written, Report]:
    progress("Reading the document", 0.0)
    analysis, settings = analysed(request)
    source = analysis.source
    found = formula_at(source, request["formula_at"])
    if found is None:
        raise JobError("The comment holds no formula any more.")
    asked = Asked(_free_name(source, found), compiled_as(source.path, settings)[0].arch)
    try:
        made = written_and_checked(found.formula, asked, progress, is_cancelled)
    except FormulaNotWrittenError as error:
        raise JobError(str(error)) from None
    if is_cancelled():
        raise CancelledError
    assert made.report is not None
    return analysis, found, made, made.report


def _free_name(source: Source, found: FormulaComment) -> str:
    """The first output's name; one more behind it where the file has that."""
    name = function_name(found.formula.outputs[0].name)
    taken = set(re.findall(rb"[A-Za-z_]\w*", source.code))
    names = (name, *(f"{name}_{number}" for number in range(2, 100)))
    return next((each for each in names if encoded(each) not in taken), name)


def _inserted(source: Source, at: int, made: Written) -> str:
    """The text as whole lines, without the includes that the file has."""
    end = "\r\n" if b"\r\n" in source.data else "\n"
    text = _INCLUDE.sub(lambda line: "" if line[0].strip() in source.text() else line[0], made.text).lstrip("\n")
    before = "" if at == 0 or source.data[at - 1 : at] == b"\n" else "\n"
    return (before + text).replace("\n", end)
