"""The work behind *Generate kernel*: the kernels of what a comment's words mean, by rules or as a model reads them,
checked; else a model's draft, compiled and run for faults, with what its reader has to know."""

from __future__ import annotations

from collections.abc import Sequence

from warpwright.assist.asked_limits import AskedLimits, asked_limits
from warpwright.assist.comment_request import Asked
from warpwright.assist.engine import EngineError
from warpwright.assist.opening import open_engine
from warpwright.assist.readings import REPAIR_ROUNDS, by_model
from warpwright.assist.worded_formula import Reading
from warpwright.editor.analysis import Analysis, compiled_as
from warpwright.editor.comment_readings import readings_at
from warpwright.editor.file_style import as_lines
from warpwright.editor.formula_job import written_readings
from warpwright.editor.job_request import JobError, Json, analysed, edits_answer
from warpwright.editor.limited import Limited
from warpwright.missing import Missing
from warpwright.optimize.drafting import drafted
from warpwright.progress import IsCancelled, Progress
from warpwright.syntax.edits import TextEdit

_CAUTION = "A draft: nothing says what it should compute, so nobody compared it. Read it before you use it."


def generate_kernel(request: Json, progress: Progress, is_cancelled: IsCancelled) -> Json:
    """Write a kernel for what a comment asks, "asked" with its "words" and the byte at which the kernel is "placed".

    The answer is that of `search_job.search`: a candidate and a choice for each meaning, or for a draft. Raises
    JobError.
    """
    from warpwright.optimize.outcome import Candidate, Outcome

    progress("Reading the document", 0.0)
    analysis, settings = analysed(request)
    asked, source = Asked(**request["asked"]), analysis.source
    words, limits = asked_limits(asked.words)
    arch = limits.arch or compiled_as(source.path, settings)[0].arch
    limited = Limited(words, limits, arch)
    if readings := readings_at(source, words, asked.placed):
        return written_readings(analysis, readings, asked.placed, arch, progress, is_cancelled, True, limited)
    engine = open_engine(settings.model or None, progress)
    if isinstance(engine, Missing):
        raise JobError(str(engine))
    progress(f"{engine.model.name} is writing", None)
    try:
        with engine:
            seconds = settings.optimize_seconds / 2
            readings = by_model(engine, words, "", is_cancelled, seconds, REPAIR_ROUNDS)
            made = _checked(analysis, readings, asked.placed, limited, progress, is_cancelled)
            if made is not None:
                return made
            taken = frozenset(kernel.name for kernel in analysis.program.kernels)
            found = drafted(engine, words, arch, seconds, progress, is_cancelled, taken)
    except EngineError as error:
        raise JobError(str(error)) from None
    draft, report = found.draft, found.report
    if report is None or draft.reason:
        raise JobError(draft.reason)
    edit = TextEdit(asked.placed, asked.placed, as_lines(source, asked.placed, draft.code))
    unjudged = () if limits == AskedLimits() else ("Whether it keeps to its limits is not known.",)
    candidate = Candidate(
        (), (*draft.assumptions, *found.verdicts, *unjudged, _CAUTION), source, source.edited([edit]), report
    )
    outcome = Outcome(report.kernel, "generate", None, "No plan is made for a draft.", (candidate,), 0)
    choice = {
        "candidate": 0,
        "title": f"{report.kernel}: drafted",
        "badge": report.badge(),
        "explanation": "\n".join(candidate.explanations),
        **edits_answer(analysis.program, (report.kernel,), source, [edit]),
    }
    return {"outcome": outcome.to_json(), "choices": [choice]}


def _checked(
    analysis: Analysis,
    readings: Sequence[Reading],
    placed: int,
    limited: Limited,
    progress: Progress,
    is_cancelled: IsCancelled,
) -> Json | None:
    """The answer for what a model read, None where no kernel of it may be shown."""
    try:
        return written_readings(analysis, readings, placed, limited.arch, progress, is_cancelled, True, limited)
    except JobError:
        return None
