"""The lower rungs: what is compiled, analysed again, and compared before anything runs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from warpwright.facts.analyze import analyze
from warpwright.facts.cache import PROCESS_CACHE
from warpwright.facts.model import Assumptions, Program
from warpwright.rules.registry import run_rules
from warpwright.syntax.flags import Flags, parse_flags
from warpwright.syntax.source import Source, include_reader
from warpwright.toolchain.compilation import Compiled, Ending
from warpwright.toolchain.compile import COMPILE_SECONDS, EXTENSION_SECONDS, compile_ptx
from warpwright.verify.beside import beside
from warpwright.verify.changes import changed_findings, changed_kernel
from warpwright.verify.claim import Climb
from warpwright.verify.compiling import STATUS_OF, compiled_both, compiled_kernel, foreign_file, foreign_include
from warpwright.verify.report import ORIGINAL_REJECTED, Compilation, Level, Report, Status, Uncovered, What
from warpwright.verify.sequence import replaced_launches, unplaced_kernel
from warpwright.verify.surroundings import (
    asked_at_run_time,
    asked_of_the_compiler,
    asked_of_the_target,
    host_assembly,
)


@dataclass(frozen=True, slots=True)
class Lower:
    """What is known before anything runs, of both sides where there are two."""

    base: Report
    name: str
    units: tuple[Program, Program]
    compiled: tuple[Compiled, Compiled]
    beside: str = ""
    """The name that the candidate's kernel has there, where it is one beside the original's."""


def lower_rungs(climb: Climb, built_for: str) -> Report | Lower:
    """The lower rungs: compiled, analysed again. A report where it ends there."""
    claim = climb.claim
    levels = [Level.PARSED]
    if foreign := foreign_include(claim.original, claim.candidate, climb.allowed):
        return Report(Status.UNSAFE, (Level.PARSED,), foreign)
    if assembly := host_assembly(claim.original, claim.candidate):
        reason = f"The candidate has assembly for the host that the original has not: {assembly[:80]}"
        return Report(Status.UNSAFE, (Level.PARSED,), reason)
    before, after = _compiled(climb, built_for)
    if after.ok and before.ok and (foreign := foreign_file(before, after, climb.allowed)):
        return Report(Status.UNSAFE, (Level.PARSED,), foreign)
    if not after.ok:
        status = STATUS_OF[after.ending]
        because = "no nvcc here" if after.ending is Ending.MISSING else "nvcc failed"
        return Report(status, (Level.PARSED,), after.reason, not_run_because=because)
    if not before.ok and not (claim.goal == "fix" and before.ending is Ending.ERRORS):
        reason = f"The original cannot be compiled here, so there is nothing to compare with: {before.reason}"
        return Report(Status.NOT_RUN, (Level.PARSED,), reason, not_run_because=ORIGINAL_REJECTED)
    levels.append(Level.COMPILED)

    claim.progress("Analysing the candidate again", 0.35)
    given = parse_flags(claim.flags, Path())
    assume = Assumptions(arch=claim.arch or built_for)
    old, new = (analysed(side, given, assume) for side in (claim.original, claim.candidate))
    written = beside(old, new, lambda source: analysed(source, given, assume))
    if written is not None:
        new, after = written.program, written.compiled(after)
    gone, brought = changed_findings(run_rules(old), run_rules(new), claim.expect_gone)
    if gone is not False and not brought:
        levels.append(Level.ANALYSED)
    fused = replaced_launches(old, new)
    name = fused.kernel if fused is not None else claim.kernel or changed_kernel(old, new)
    name = name or next((k.name for k in old.defined_kernels), None)
    base = Report(Status.NOT_RUN, tuple(levels), kernel=name or "", finding_gone=gone, new_findings=brought)
    if name is None:
        return replace(base, reason="No kernel is defined in the file.", not_run_because="no kernel is defined")
    kept = {kernel.name for kernel in new.defined_kernels}
    if lost := [kernel.name for kernel in old.defined_kernels if kernel.name not in kept]:
        reason = f"The candidate does not define {' and '.join(lost)}."
        return replace(base, status=Status.WRONG, kernel=lost[0], reason=reason)
    base = _with_kernel(base, name, old, new, before, after)
    if gone is False and claim.goal == "fix":
        return replace(base, reason="The finding is still there.", not_run_because="the finding is still there")
    if not before.ok:
        reason = base.reason or "The original does not compile, so there is nothing to compare with."
        return replace(base, reason=reason, not_run_because=ORIGINAL_REJECTED)
    if unplaced := unplaced_kernel(old, new):
        reason = f"Which launches of the original the new kernel {unplaced} stands for is not known."
        return replace(base, reason=base.reason or reason, not_run_because="what the new kernel replaces is not known")
    if asked := _asked_of_where(climb, before, after):
        reason = (
            f"The candidate asks {asked}, which the original does not: what it gives may depend on that, and no number "
            "of runs would show it."
        )
        return replace(base, status=Status.UNSAFE, reason=reason)
    if target := asked_of_the_target(claim.original, claim.candidate):
        text = f"other lines of the candidate may be compiled for other targets than {after.arch} ({target})"
        base = replace(base, uncovered=(*base.uncovered, Uncovered(What.LAUNCH, text)))
    return Lower(base, name, (old, new), (before, after), written.name if written is not None else "")


def _asked_of_where(climb: Climb, before: Compiled, after: Compiled) -> str:
    """What the candidate asks of where it runs or is compiled, and the original does not; "" for nothing."""
    claim = climb.claim
    if asked := asked_of_the_compiler(claim.original, claim.candidate):
        return f"for {asked}"
    given, stop = climb.compiled_with, claim.is_cancelled
    own = compile_ptx(claim.original, arch=before.arch, flags=given, is_cancelled=stop)
    other = compile_ptx(claim.candidate, arch=after.arch, flags=given, is_cancelled=stop, reads=climb.reads)
    return asked_at_run_time(own.text, other.text) if own.ok and other.ok else ""


def _compiled(climb: Climb, arch: str) -> tuple[Compiled, Compiled]:
    """Both; a file outside the project that only the candidate includes is refused by `lower_rungs`."""
    claim = climb.claim
    claim.progress("Compiling both", 0.1)
    return compiled_both(
        claim.original,
        claim.candidate,
        arch=arch,
        flags=climb.compiled_with,
        timeout=EXTENSION_SECONDS if climb.torch is not None else COMPILE_SECONDS,
        reads=climb.reads,
        is_cancelled=claim.is_cancelled,
    )


def _with_kernel(report: Report, name: str, old: Program, new: Program, before: Compiled, after: Compiled) -> Report:
    """Add what the kernel takes on both sides, and say where the candidate spills and the original did not."""
    first, second = compiled_kernel(before, old, name), compiled_kernel(after, new, name)
    notes = list(report.notes)
    if first is not None and second is not None and second.resources.spill_bytes > first.resources.spill_bytes:
        notes.append(
            f"the candidate spills {second.resources.spill_store_bytes} bytes of stores and "
            f"{second.resources.spill_load_bytes} of loads per thread; the original "
            f"{first.resources.spill_store_bytes} and {first.resources.spill_load_bytes}"
        )
    reason = report.reason
    if report.new_findings:
        found = report.new_findings[0]
        reason = f"It brings a new finding: {found.rule} at line {found.span.line}: {found.headline.rstrip('.')}."
    elif report.finding_gone is False:
        reason = "The finding is still there."
    compilation = Compilation(after.compiler, after.arch, after.flags, first, second)
    return replace(report, compilation=compilation, notes=tuple(notes), reason=reason)


def analysed(side: Source, given: Flags, assume: Assumptions) -> Program:
    """The facts of a text and of the files that it includes, some of them changed."""
    read = include_reader({each.path: each for each in side.changed}, given.folders)
    return analyze(side, read, assume.compiled_with(given), PROCESS_CACHE)
