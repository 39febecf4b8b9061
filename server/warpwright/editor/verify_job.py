"""The work behind Verify: a kernel as the buffer has it, against its torch reference and its committed version."""

from __future__ import annotations

from functools import partial

from warpwright.editor.analysis import compiler_options, options_origin
from warpwright.editor.job_request import JobError, Json, analysed
from warpwright.progress import IsCancelled, Progress
from warpwright.verify.checks import Check, checks_of
from warpwright.verify.report import Report
from warpwright.verify.verify import verify

_ADVICE = (
    "Give it a torch reference (`reference` in sample.toml, see docs/problems.md), or commit a version that works and "
    "verify what you change against it."
)


def verify_kernel(request: Json, progress: Progress, is_cancelled: IsCancelled) -> Json:
    """Verify one kernel: {"kernel", "checks": [{"against", "badge", "report": as of Report}], "left_out": sentences}.

    Raises JobError where there is nothing to verify it against.
    """
    progress("Reading the kernel", 0.0)
    analysis, settings = analysed(request)
    name = request["kernel"]
    left_out: list[str] = []
    checks = list(checks_of(analysis.program, name, left_out))
    if not checks:
        raise JobError(f"There is nothing to verify {name} against: {' '.join(left_out)} {_ADVICE}")
    done: list[tuple[Check, Report]] = []
    for index, check in enumerate(checks):
        report = verify(
            check.original,
            analysis.program.source,
            kernel=name,
            goal=check.goal,
            progress=partial(_shared, progress, check.against, index, len(checks)),
            is_cancelled=is_cancelled,
            arch=analysis.program.assume.arch,
            flags=compiler_options(analysis.source.path, settings),
            flags_from=options_origin(analysis.source.path, settings),
        )
        done.append((check, report))
    return {
        "kernel": name,
        "checks": [{"against": c.against, "badge": r.badge(), "report": r.to_json()} for c, r in done],
        "left_out": left_out,
    }


def _shared(progress: Progress, against: str, index: int, count: int, message: str, share: float | None) -> None:
    progress(f"Against {against}: {message}", None if share is None else (index + share) / count)
