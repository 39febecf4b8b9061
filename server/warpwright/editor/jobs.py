"""The work behind a quick fix and a kernel command, as functions from JSON to JSON; run by `worker`.

For a request's form see `job_request`. An answer's `edits` are by path: {path: {"crc32": of the text they are made for,
"edits": [[start, end, new text]]}}, in bytes; whoever applies them checks first that the text is still that one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import nullcontext
from dataclasses import asdict
from zlib import crc32

from warpwright.editor.actions import FixTarget, find_target, propose_fix
from warpwright.editor.analysis import compiled_as, compiler_options
from warpwright.editor.compile_job import compile_document
from warpwright.editor.job_request import JobError, Json, analysed
from warpwright.editor.machine.job import machine_code_lines, machine_code_pages
from warpwright.editor.parts import parts
from warpwright.editor.text import edit_between
from warpwright.editor.verify_job import verify_kernel
from warpwright.missing import Missing
from warpwright.progress import IsCancelled, Progress
from warpwright.rewrites.base import Declined
from warpwright.rewrites.registry import goal_of
from warpwright.syntax.edits import TextEdit
from warpwright.syntax.source import Source
from warpwright.verify.verify import acceptable, verify


def fix(request: Json, progress: Progress, is_cancelled: IsCancelled) -> Json:
    """Make the edit of one fix and verify it. Where it may not be offered `edits` are empty and `reason` says why."""
    progress("Reading the kernel", 0.0)
    analysis, settings = analysed(request)
    target = FixTarget(**request["target"])
    finding = find_target(analysis, target)
    if finding is None:
        raise JobError("The finding is no longer there.")
    rewrite = propose_fix(analysis, finding, target.rewrite)
    if isinstance(rewrite, Declined):
        raise JobError(rewrite.reason)
    goal = goal_of(target.rewrite)
    report = verify(
        rewrite.source,
        rewrite.apply(),
        kernel=target.kernel,
        goal=goal,
        expect_gone=finding,
        progress=progress,
        is_cancelled=is_cancelled,
        flags=compiler_options(rewrite.source.path, settings),
    )
    accepted = acceptable(report, goal)
    return {
        "title": rewrite.title,
        "explanation": rewrite.explanation,
        "badge": report.badge(),
        "reason": "" if accepted else report.reason or report.badge(),
        "edits": _edits(rewrite.source, rewrite.edits) if accepted else {},
        "report": report.to_json(),
    }


def optimise(request: Json, progress: Progress, is_cancelled: IsCancelled) -> Json:
    """Search for a better version of one kernel; `edits` are those of the best one that may be offered, if any."""
    # A quick fix needs none of these, and waits for its process to start.
    from warpwright.assist.engine import Engine
    from warpwright.assist.weights import find_adapter, find_model
    from warpwright.optimize.optimize import optimize

    progress("Reading the kernel", 0.0)
    analysis, settings = analysed(request)
    kernel = analysis.program.kernel(request["kernel"])
    if kernel is None or kernel.node is None:
        raise JobError(f"The kernel {request['kernel']} is not defined here.")
    model = find_model(settings.model or None, progress)
    with nullcontext(model) if isinstance(model, Missing) else Engine(model, find_adapter(model)) as engine:
        outcome = optimize(
            analysis.program,
            kernel,
            request["goal"],
            engine=engine,
            progress=progress,
            is_cancelled=is_cancelled,
            budget_seconds=settings.optimize_seconds,
            flags=compiler_options(analysis.source.path, settings),
        )
    if outcome.best is None:
        return {"outcome": outcome.to_json(), "badge": "", "edits": {}}
    best = outcome.candidates[outcome.best]
    edit = edit_between(best.source_before.data, best.source_after.data)
    return {
        "outcome": outcome.to_json(),
        "badge": best.report.badge(),
        "edits": _edits(best.source_before, [edit] if edit is not None else []),
    }


def profile(request: Json, progress: Progress, is_cancelled: IsCancelled) -> Json:
    """Run one kernel in the emulator and keep what it counted; `page` is its annotated source, None if not written."""
    from warpwright.editor.lens import profile_words
    from warpwright.editor.profile.page_file import written_page
    from warpwright.editor.profile.store import placed, store_profile
    from warpwright.emulator.profiling import Wanted, emulated_profile

    progress("Reading the kernel", 0.0)
    analysis, settings = analysed(request)
    assume, folders = compiled_as(analysis.source.path, settings)
    flags = compiler_options(analysis.source.path, settings)
    wanted = Wanted(request["kernel"], {}, assume, folders, settings.optimize_seconds, flags)
    made = emulated_profile(analysis.program, wanted, progress, is_cancelled)
    if isinstance(made, Missing):
        raise JobError(str(made).strip())
    made = placed(made, analysis.program) or made
    try:
        store_profile(made)
    except OSError as error:
        raise JobError(f"The profile cannot be kept ({error.strerror}); set WARPWRIGHT_CACHE_DIR.") from None
    page = written_page(made, analysis.program)
    return {
        "summary": profile_words(made),
        "faults": len(made.faults),
        "page": str(page) if page is not None else None,
    }


def doctor(_request: Json, progress: Progress, _is_cancelled: IsCancelled) -> Json:
    """What was found on this machine, part by part."""
    return {"parts": [asdict(part) for part in parts(progress)]}


JOBS: Mapping[str, Callable[[Json, Progress, IsCancelled], Json]] = {
    "fix": fix,
    "optimize": optimise,
    "profile": profile,
    "compile": compile_document,
    "verify": verify_kernel,
    "doctor": doctor,
    "lines": machine_code_lines,
    "sass": machine_code_pages,
}


def _edits(source: Source, edits: Iterable[TextEdit]) -> Json:
    listed = [[edit.start, edit.end, edit.new_text] for edit in edits]
    return {source.path: {"crc32": crc32(source.data), "edits": listed}} if listed else {}
