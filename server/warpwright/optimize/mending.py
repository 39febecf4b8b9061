"""A fix of a kernel that nvcc rejects: certain repairs, one after the other, and what can be verified of them."""

from __future__ import annotations

from dataclasses import dataclass

from warpwright.cuda.extension.entries import is_extension
from warpwright.facts.analyze import analyze
from warpwright.facts.model import Program
from warpwright.optimize.compile_errors import Repair, certain_repair
from warpwright.optimize.outcome import Candidate, Outcome
from warpwright.progress import IsCancelled, Progress
from warpwright.syntax.source import Source, include_reader
from warpwright.toolchain.compilation import Compiled, Ending
from warpwright.toolchain.compile import COMPILE_SECONDS, compile_cubin
from warpwright.toolchain.remarks import remarks_of
from warpwright.verify.acceptable import acceptable
from warpwright.verify.checks import checks_of
from warpwright.verify.report import Report, Status
from warpwright.verify.verify import verify

MOST_REPAIRS = 6
_NO_PLAN = "There was nothing to ask the model about."
_DISPROVED = (Status.WRONG, Status.UNSAFE, Status.TIMEOUT)


@dataclass(frozen=True, slots=True)
class Building:
    """How a file is compiled: for which architecture (None: the GPU's, or the one that it is analysed for), with which
    of nvcc's options, the folders in which includes are looked for, and how long it may take."""

    arch: str | None = None
    flags: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    seconds: float = COMPILE_SECONDS


def rejection(program: Program, building: Building, progress: Progress, is_cancelled: IsCancelled) -> Compiled | None:
    """The compilation of a text that nvcc rejects; None where it compiles or nobody can tell. Raises CancelledError."""
    if is_extension(program.source):
        return None
    progress("Compiling your own text", 0.02)
    compiled = _compiled(program.source, program, building, is_cancelled)
    return compiled if compiled.ending is Ending.ERRORS else None


def mended(program: Program, name: str, building: Building, progress: Progress, is_cancelled: IsCancelled) -> Outcome:
    """The outcome of repairing what nvcc rejects of a kernel, as far as that is certain. Raises CancelledError."""
    own = source = program.source
    repairs: list[Repair] = []
    while not (compiled := _compiled(source, program, building, is_cancelled)).ok:
        progress(f"Repairing {name}", 0.1 + 0.4 * len(repairs) / MOST_REPAIRS)
        repair = None
        if compiled.ending is Ending.ERRORS and len(repairs) < MOST_REPAIRS:
            kernel = _again(source, program, building).kernel(name)
            if kernel is not None and kernel.span.path == source.path:
                repair = certain_repair(kernel, remarks_of(compiled.messages, source, {}))
        if repair is None:
            return _outcome(name, (), None, f"There is no certain repair. {compiled.reason}")
        repairs.append(repair)
        source = source.edited(list(repair.edits))
    report = _verified(own, source, name, _again(source, program, building), building, progress, is_cancelled)
    candidate = Candidate(
        tuple(repair.name for repair in repairs),
        tuple(repair.explanation for repair in repairs),
        own,
        source,
        report,
    )
    if acceptable(report, "fix"):
        return _outcome(name, (candidate,), 0, "")
    return _outcome(name, (candidate,), None, f"The repaired text compiles and is not offered: {report.reason}")


def _verified(
    own: Source,
    source: Source,
    name: str,
    program: Program,
    building: Building,
    progress: Progress,
    is_cancelled: IsCancelled,
) -> Report:
    """The report of the repaired text beside the user's own, which does not run; where there is something else that it
    can be compared with, of that. What disproves it counts before what speaks for it."""

    def verified(original: Source, goal: str) -> Report:
        return verify(
            original,
            source,
            kernel=name,
            goal=goal,
            progress=progress,
            is_cancelled=is_cancelled,
            arch=building.arch,
            flags=building.flags,
        )

    first = verified(own, "fix")
    if not acceptable(first, "fix"):
        return first
    reports = [verified(c.original, "fix" if c.goal == "speed" else c.goal) for c in checks_of(program, name, [])]
    disproved = next((report for report in reports if report.status in _DISPROVED), None)
    correct = next((report for report in reports if report.status is Status.CORRECT), None)
    return disproved or correct or first


def _compiled(source: Source, program: Program, building: Building, is_cancelled: IsCancelled) -> Compiled:
    return compile_cubin(
        source,
        arch=building.arch or program.assume.arch,
        flags=building.flags,
        timeout=building.seconds,
        is_cancelled=is_cancelled,
    )


def _again(source: Source, program: Program, building: Building) -> Program:
    """The facts of a repaired text."""
    reader = include_reader({**program.sources, source.path: source}, building.folders)
    return analyze(source, reader, program.assume)


def _outcome(name: str, candidates: tuple[Candidate, ...], best: int | None, reason: str) -> Outcome:
    return Outcome(name, "fix", None, _NO_PLAN, candidates, best, reason)
