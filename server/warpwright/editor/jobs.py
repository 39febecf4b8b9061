"""The work behind a quick fix and a kernel command, as functions from JSON to JSON; run by `worker`.

For a request's form, and the edits of an answer, see `job_request`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict

from warpwright.editor.actions import FixTarget, find_target, propose_fix
from warpwright.editor.analysis import compiled_as, compiler_options
from warpwright.editor.check_job import check_files
from warpwright.editor.compile_job import compile_document
from warpwright.editor.fix_all_job import fix_all
from warpwright.editor.job_request import JobError, Json, analysed, edits_answer
from warpwright.editor.machine.job import machine_code_lines, machine_code_pages
from warpwright.editor.parts import glance, parts
from warpwright.editor.parts_page import parts_page
from warpwright.editor.search_job import search
from warpwright.editor.verify_job import verify_kernel
from warpwright.missing import Missing
from warpwright.progress import IsCancelled, Progress
from warpwright.rewrites.base import Declined
from warpwright.rewrites.registry import goal_of
from warpwright.verify.acceptable import acceptable
from warpwright.verify.verify import verify


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
        arch=analysis.program.assume.arch,
        flags=compiler_options(analysis.source.path, settings),
        unit=analysis.program.source if analysis.program.source.path != rewrite.source.path else None,
    )
    accepted = acceptable(report, goal)
    return {
        "title": rewrite.title,
        "explanation": rewrite.explanation,
        "badge": report.badge(),
        "reason": "" if accepted else report.reason or report.badge(),
        **edits_answer(analysis.program, (target.kernel,), rewrite.source, rewrite.edits if accepted else ()),
        "report": report.to_json(),
    }


def profile(request: Json, progress: Progress, is_cancelled: IsCancelled) -> Json:
    """Run one kernel in the emulator and keep what it counted; `page` is its annotated source, None if not written."""
    from warpwright.editor.lens import profile_words
    from warpwright.editor.profile.store import placed, store_profile
    from warpwright.editor.results.page_file import written_page
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
    kernel = analysis.program.kernel(made.kernel)
    file = kernel.source.path if kernel is not None else analysis.source.path
    page = written_page(made.kernel, file, made, analysis.program)
    return {
        "summary": profile_words(made),
        "faults": len(made.own_faults),
        "page": str(page) if page is not None else None,
    }


def generate(request: Json, progress: Progress, is_cancelled: IsCancelled) -> Json:
    """A kernel from a comment, by its formula or by the model, see `formula_job` and `generate_job`, which nothing else
    here needs."""
    if "formula_at" in request:
        from warpwright.editor.formula_job import write_formula

        return write_formula(request, progress, is_cancelled)
    from warpwright.editor.generate_job import generate_kernel

    return generate_kernel(request, progress, is_cancelled)


def ghost(request: Json, progress: Progress, is_cancelled: IsCancelled) -> Json:
    """Kernels to be shown behind the cursor, see `ghost_job`."""
    from warpwright.editor.ghost_job import ghost

    return ghost(request, progress, is_cancelled)


def ghost_ready(request: Json, progress: Progress, is_cancelled: IsCancelled) -> Json:
    """Load the model before anybody asks for ghost text, see `ghost_job`."""
    from warpwright.editor.ghost_job import ghost_ready

    return ghost_ready(request, progress, is_cancelled)


def ghost_next(request: Json, progress: Progress, is_cancelled: IsCancelled) -> Json:
    """The kernel that is asked for below one that was shown, see `ghost_job`."""
    from warpwright.editor.ghost_job import ghost_next

    return ghost_next(request, progress, is_cancelled)


def ghost_rest(request: Json, progress: Progress, is_cancelled: IsCancelled) -> Json:
    """What is left to be checked of kernels that were shown, see `ghost_job`."""
    from warpwright.editor.ghost_job import ghost_rest

    return ghost_rest(request, progress, is_cancelled)


def wire(request: Json, progress: Progress, is_cancelled: IsCancelled) -> Json:
    """A kernel as a package of PyTorch, see `wire_job`, which nothing else here needs."""
    from warpwright.editor.wire_job import wire

    return wire(request, progress, is_cancelled)


def doctor(_request: Json, progress: Progress, _is_cancelled: IsCancelled) -> Json:
    """What was found on this machine, part by part, and as a page."""
    found = list(parts(progress))
    return {"parts": [asdict(part) for part in found], "page": parts_page(found)}


def prepare(_request: Json, _progress: Progress, _is_cancelled: IsCancelled) -> Json:
    """Begin what a search would wait for: its modules, and the process that runs kernels."""
    from warpwright.optimize import improve, optimize
    from warpwright.verify import ready

    del improve, optimize
    ready.prepare()
    return {}


def surroundings(request: Json, _progress: Progress, _is_cancelled: IsCancelled) -> Json:
    """The parts that a status shows."""
    return {"parts": [asdict(part) for part in glance(request["model"])]}


JOBS: Mapping[str, Callable[[Json, Progress, IsCancelled], Json]] = {
    "check": check_files,
    "fix": fix,
    "fixAll": fix_all,
    "optimize": search,
    "prepare": prepare,
    "generate": generate,
    "ghost": ghost,
    "ghostNext": ghost_next,
    "ghostReady": ghost_ready,
    "ghostRest": ghost_rest,
    "profile": profile,
    "compile": compile_document,
    "verify": verify_kernel,
    "doctor": doctor,
    "surroundings": surroundings,
    "lines": machine_code_lines,
    "sass": machine_code_pages,
    "wire": wire,
}
