"""The work behind Verify: a kernel as the buffer has it, against its torch reference and its committed version."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import PurePath

from warpwright.editor.analysis import compiler_options, options_origin
from warpwright.editor.job_request import JobError, Json, analysed
from warpwright.facts.analyze import analyze
from warpwright.facts.model import Program
from warpwright.missing import Missing
from warpwright.problems.infer import find_problem
from warpwright.problems.model import Problem
from warpwright.progress import IsCancelled, Progress
from warpwright.syntax.source import Source, read_include
from warpwright.toolchain.committed import committed_text
from warpwright.verify.report import Report
from warpwright.verify.verify import verify

_ADVICE = (
    "Give it a torch reference (`reference` in sample.toml, see docs/problems.md), or commit a version that works and "
    "verify what you change against it."
)


@dataclass(frozen=True, slots=True)
class Check:
    """One comparison: with what, for people, and the goal that `verify` is asked for."""

    against: str
    original: Source
    goal: str


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
            analysis.source,
            kernel=name,
            goal=check.goal,
            progress=partial(_shared, progress, check.against, index, len(checks)),
            is_cancelled=is_cancelled,
            flags=compiler_options(analysis.source.path, settings),
            flags_from=options_origin(analysis.source.path, settings),
        )
        done.append((check, report))
    return {
        "kernel": name,
        "checks": [{"against": c.against, "badge": r.badge(), "report": r.to_json()} for c, r in done],
        "left_out": left_out,
    }


def checks_of(program: Program, name: str, left_out: list[str]) -> Iterator[Check]:
    """What the kernel can be compared with; what it cannot be compared with goes to `left_out`, one sentence each."""
    kernel = program.kernel(name)
    problem = find_problem(program, kernel) if kernel is not None else None
    reference = problem.reference if isinstance(problem, Problem) else None
    if reference is None:
        left_out.append("It has no torch reference.")
    else:
        yield Check(f"its torch reference {reference.name}", program.source, "reference")
    path = program.source.path
    committed = committed_text(path)
    if isinstance(committed, Missing):
        left_out.append(committed.reason)
    elif _lines(committed) == _lines(program.source.data):
        left_out.append(f"{PurePath(path).name} is as it was committed.")
    elif analyze(Source(path, committed), read_include, program.assume).kernel(name) is None:
        left_out.append(f"The committed version of {PurePath(path).name} has no kernel {name}.")
    else:
        yield Check("its last committed version", Source(path, committed), "speed")


def _lines(data: bytes) -> list[bytes]:
    """A repository may keep other line ends than the folder that is worked in."""
    return data.splitlines()


def _shared(progress: Progress, against: str, index: int, count: int, message: str, share: float | None) -> None:
    progress(f"Against {against}: {message}", None if share is None else (index + share) / count)
