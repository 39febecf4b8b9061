"""The work behind ghost text: kernels for the comment above a cursor, each compiled and compared with its formula."""

from __future__ import annotations

import time
from contextlib import suppress

from warpwright.assist.child_engine import ChildEngine
from warpwright.assist.engine import CompletionRequest, Engine, EngineError
from warpwright.assist.formula_task import FormulaRequest, formula_prompt
from warpwright.assist.free_form import writes_kernels
from warpwright.assist.opening import open_engine
from warpwright.assist.readings import by_model
from warpwright.assist.signature import parameters
from warpwright.assist.worded_formula import Reading
from warpwright.editor.analysis import Analysis, compiled_as
from warpwright.editor.file_style import as_lines, in_style
from warpwright.editor.formula_job import checked_kernel, inserted
from warpwright.editor.ghost_check import unfit
from warpwright.editor.ghost_request import GhostRequest, ghost_request, next_asked
from warpwright.editor.job_request import JobError, Json, analysed
from warpwright.editor.open_kernel import INDEX_TYPES, sizes_in
from warpwright.editor.read_as import read_as
from warpwright.formulas.resolve import formula_of
from warpwright.missing import Missing
from warpwright.optimize.drafting import drafted
from warpwright.progress import CancelledError, IsCancelled, Progress
from warpwright.syntax.encoding import encoded
from warpwright.syntax.source import Source
from warpwright.verify.formulas import Asked, checked, written_and_checked
from warpwright.verify.report import PASSED, Status
from warpwright.writer.body import NoBodyError, body
from warpwright.writer.decision import host
from warpwright.writer.write import file_text

MODEL_SHARE = 0.6
"""Of the time limit, for the model; what it reads is written and compared in the rest."""
READ_SHARE = 0.95
"""Of the time limit, for a draft that it writes where nothing can be read, and its runs."""
DRAFTED = "// draft: compiled and run without a fault; nothing says what it should compute, so read it."

_engines: dict[str, Engine] = {}
"""The model that was asked last, by what names it: loading takes long, and this process does one job at a time."""


def ghost(request: Json, progress: Progress, is_cancelled: IsCancelled) -> Json:
    """The "texts" for the cursor at the byte "at", the likeliest reading first, "most" at most; with "is_meant" the
    comment need not ask for a kernel. "left" is what `ghost_rest` is to check of them, "others" whether rules know
    further readings. Where a model would be needed that is not there, "missing" says so. Raises JobError."""
    deadline = time.monotonic() + READ_SHARE * request["seconds"]
    analysis, settings = analysed(request)
    source = analysis.source
    arch = compiled_as(source.path, settings)[0].arch
    wanted = ghost_request(source, request["at"], request["is_meant"])
    if wanted is None:
        raise JobError("Nothing is asked for any more.")
    readings = wanted.readings
    given = wanted.kernel.given if wanted.kernel is not None else ""
    if not readings:
        engine = _engine(settings.model)
        if isinstance(engine, Missing):
            return {"texts": [], "missing": str(engine), "left": [], "others": False}
        progress(f"{engine.model.name} is reading", None)
        try:
            readings = tuple(by_model(engine, wanted.words, given, is_cancelled, MODEL_SHARE * request["seconds"]))
            if not readings and wanted.kernel is None and writes_kernels(engine, "generate"):
                draft = _draft(analysis, request["at"], engine, wanted.words, arch, deadline, progress, is_cancelled)
                return {"texts": [draft], "missing": "", "left": [], "others": False}
        except EngineError as error:
            raise JobError(str(error)) from None
        if not readings:
            raise JobError(f"{engine.model.name} reads these words in several ways, or in none that may be meant.")
    texts: list[str] = []
    left: list[Json] = []
    for reading in readings[: request["most"]]:
        try:
            if wanted.kernel is not None:
                text = _body(source, request["at"], wanted, reading, arch, progress, is_cancelled)
                texts.append(_fit(source, request["at"], text, 0 if wanted.kernel.is_closed else 1))
                continue
            made = checked_kernel(source, reading, arch, progress, is_cancelled)
            head = f"{read_as(reading)}\n" if wanted.words else ""
            texts.append(_fit(source, request["at"], inserted(source, request["at"], made, head)))
        except JobError:
            if not texts:  # the next one would be shown for the likeliest
                raise
            continue
        left.append({"formula": reading.formula.text, "name": made.code.name, "arch": arch})
    others = not readings[0].votes and len(readings) > request["most"]
    return {"texts": texts, "missing": "", "left": left, "others": others}


def _draft(
    analysis: Analysis,
    at: int,
    engine: Engine,
    words: str,
    arch: str,
    deadline: float,
    progress: Progress,
    is_cancelled: IsCancelled,
) -> str:
    """CUDA text of a larger model's, where no formula is agreed on: compiled and run for faults. Raises JobError and
    EngineError."""
    taken = frozenset(kernel.name for kernel in analysis.program.kernels)
    seconds = deadline - time.monotonic()
    progress(f"{engine.model.name} is writing", None)
    found = drafted(engine, words, arch, seconds, progress, is_cancelled, taken)
    if not found.runs:
        raise JobError(found.draft.reason)
    said = " ".join(found.draft.assumptions)
    text = as_lines(analysis.source, at, f"{DRAFTED} {said}\n{found.draft.code}")
    return _fit(analysis.source, at, text)


def _fit(source: Source, at: int, text: str, opened: int = 0) -> str:
    """The text, if it may be shown there. Raises JobError.

    On an empty line the end of that line ends it, too: VS Code takes a text with an end of its own for one that is
    inserted on the line before, and shows nothing.
    """
    if reason := unfit(source, at, text, opened):
        raise JobError(f"The kernel is not shown: {reason}.")
    return text.rstrip("\r\n") if source.data[at : at + 1] in (b"", b"\r", b"\n") else text


def ghost_ready(request: Json, progress: Progress, is_cancelled: IsCancelled) -> Json:
    """Load the "model", where there is one, and read what all prompts begin with."""
    engine = _engine(request["model"])
    if isinstance(engine, ChildEngine):
        with suppress(EngineError):  # whoever asks is told
            engine.complete(CompletionRequest(formula_prompt(FormulaRequest("")), 1), is_cancelled)
    return {}


def ghost_next(request: Json, progress: Progress, is_cancelled: IsCancelled) -> Json:
    """As `ghost`, for the comment that follows once the text "shown" is accepted at "at", with the "key" of that
    request; no "texts" where none follows. Raises JobError."""
    source = Source(request["path"], encoded(request["text"]))
    found = next_asked(source, request["at"], request["shown"])
    if found is None:
        return {"texts": [], "key": ""}
    accepted, at = found
    text = accepted.text()
    opened = {**request["open"], source.path: text}
    asked = {**request, "text": text, "open": opened, "at": at, "most": 1, "is_meant": False}
    wanted = ghost_request(accepted, at)
    assert wanted is not None
    return {**ghost(asked, progress, is_cancelled), "key": wanted.key(accepted, at)}


def ghost_rest(request: Json, progress: Progress, is_cancelled: IsCancelled) -> Json:
    """What is "wrong" with kernels that were shown, "" where nothing is: "left" of an answer of `ghost`, at all sizes
    and with all optimisations."""
    for each in request["left"]:
        asked = Asked(each["name"], each["arch"])
        made = written_and_checked(formula_of(each["formula"]), asked, progress, is_cancelled)
        if is_cancelled():
            raise CancelledError
        report = made.report
        if report is not None and report.status not in (*PASSED, Status.NOT_RUN):
            return {"wrong": f"{each['formula']}: {report.reason}"}
    return {"wrong": ""}


def _body(
    source: Source,
    at: int,
    wanted: GhostRequest,
    reading: Reading,
    arch: str,
    progress: Progress,
    is_cancelled: IsCancelled,
) -> str:
    """The body of the kernel whose signature stands there. Raises JobError."""
    kernel, formula = wanted.kernel, reading.formula
    assert kernel is not None
    sizes = sizes_in(formula, kernel.given)
    if sizes is None:
        raise JobError("It is not certain which parameter holds which size.")
    names = [each.name for each in parameters(kernel.given)]
    index = next(each.type for each in parameters(kernel.given) if each.name in sizes.values())
    try:
        code, lines = body(formula, kernel.head, kernel.name, names, sizes, INDEX_TYPES[index])
    except NoBodyError as error:
        raise JobError(str(error)) from None
    report = checked(formula, code, file_text(code), Asked(code.name, arch), progress, is_cancelled)
    if report.status not in PASSED:
        raise JobError(report.reason or report.badge())
    threads = host(code.steps[0].count)
    said = [f"    {read_as(reading, with_sizes=False)}"] if wanted.words else []
    reach = "; arrays have fewer than 2^31 elements" if index == "i32" else ""
    if kernel.template:
        said.append(f"    // Compared with its formula for {kernel.template} = float.")
    said.append(f"    // Launch {threads} threads or more, in one dimension{reach}.")
    after = source.text(at)
    return in_style(source, kernel.body_text([*said, *lines], after, "\n"))


def _engine(model: str) -> Engine | Missing:
    if model not in _engines:
        for each in _engines.values():
            each.close()
        _engines.clear()
        found = open_engine(model or None)
        if isinstance(found, Missing):
            return found
        _engines[model] = found
    return _engines[model]
