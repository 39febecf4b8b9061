"""The work behind *Generate kernel*: the kernels of what a comment's words mean, by rules or as a model reads them,
checked; else a model's draft, compiled, with what its reader has to know."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from warpwright.assist.comment_request import Asked
from warpwright.assist.engine import EngineError
from warpwright.assist.generate import Draft, drafts
from warpwright.assist.opening import open_engine
from warpwright.assist.readings import by_model, by_wordings
from warpwright.assist.worded_formula import Reading
from warpwright.editor.analysis import Analysis, compiled_as
from warpwright.editor.formula_job import written_readings
from warpwright.editor.job_request import JobError, Json, analysed, edits_answer
from warpwright.facts.analyze import analyze
from warpwright.missing import Missing
from warpwright.progress import CancelledError, IsCancelled, Progress
from warpwright.syntax.edits import TextEdit
from warpwright.syntax.encoding import encoded
from warpwright.syntax.source import Source
from warpwright.toolchain.compile import compile_cubin
from warpwright.verify.compiling import STATUS_OF
from warpwright.verify.report import Compilation, CompiledKernel, Level, Report, Status

FILE_NAME = "generated.cu"
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
    arch = compiled_as(source.path, settings)[0].arch
    if readings := by_wordings(asked.words):
        return written_readings(analysis, readings, asked.placed, arch, progress, is_cancelled, are_of_words=True)
    engine = open_engine(settings.model or None, progress)
    if isinstance(engine, Missing):
        raise JobError(str(engine))
    progress(f"{engine.model.name} is writing", None)
    try:
        with engine:
            seconds = settings.optimize_seconds / 2
            readings = by_model(engine, asked.words, "", is_cancelled, seconds)
            made = _checked(analysis, readings, asked.placed, arch, progress, is_cancelled)
            if made is not None:
                return made
            taken = frozenset(kernel.name for kernel in analysis.program.kernels)
            tried = drafts(engine, asked.words, is_cancelled, budget_seconds=seconds)
            draft, report = _written(tried, taken, arch, progress, is_cancelled)
    except EngineError as error:
        raise JobError(str(error)) from None
    edit = TextEdit(asked.placed, asked.placed, _lines(source, asked.placed, draft.code))
    candidate = Candidate((), (*draft.assumptions, _CAUTION), source, source.edited([edit]), report)
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
    arch: str,
    progress: Progress,
    is_cancelled: IsCancelled,
) -> Json | None:
    """The answer for what a model read, None where no kernel of it may be shown."""
    try:
        return written_readings(analysis, readings, placed, arch, progress, is_cancelled, are_of_words=True)
    except JobError:
        return None


def _written(
    tried: Iterable[Draft], taken: frozenset[str], arch: str, progress: Progress, is_cancelled: IsCancelled
) -> tuple[Draft, Report]:
    """The first draft that the compiler does not reject. Raises JobError and EngineError."""
    reason = "The model wrote nothing in time."
    for draft in tried:
        if not draft.shown:
            reason = draft.reason
            continue
        source = Source(FILE_NAME, encoded(draft.code) + b"\n")
        names = [kernel.name for kernel in analyze(source).defined_kernels]
        if not names or names[0] in taken:
            reason = f"The model wrote {names[0]}, which is there already." if names else "The model wrote no kernel."
            continue
        progress("Compiling the draft", None)
        report = compiled_draft(source, names[0], arch, is_cancelled)
        if report.status not in (Status.DOES_NOT_COMPILE, Status.TIMEOUT):
            return draft, report
        reason = f"The model's kernel is not shown: it does not compile. {report.reason}"
    if is_cancelled():
        raise CancelledError
    raise JobError(reason)


def _lines(source: Source, at: int, code: str) -> str:
    """The code as whole lines at the start of a line, or behind the end of a text whose last line is not ended."""
    end = "\r\n" if b"\r\n" in source.data else "\n"
    whole = end.join([*code.splitlines(), ""])
    return whole if at == 0 or source.data[at - 1 : at] == b"\n" else end + whole


def compiled_draft(source: Source, kernel: str, arch: str, is_cancelled: IsCancelled) -> Report:
    """What the compiler says of a draft alone; that it is right nobody can tell, as nothing says what it computes."""
    compiled = compile_cubin(source, arch=arch, is_cancelled=is_cancelled, reads=())
    resources = compiled.instances(kernel)
    taken = CompiledKernel(resources[0], None) if resources else None
    return Report(
        STATUS_OF[compiled.ending],
        (Level.PARSED, Level.COMPILED) if compiled.ok else (Level.PARSED,),
        compiled.reason,
        kernel=kernel,
        compilation=Compilation(compiled.compiler, arch, compiled.flags, None, taken) if compiled.ok else None,
        not_run_because="nothing says what it should compute" if compiled.ok else compiled.ending.value,
        goal="generate",
    )
