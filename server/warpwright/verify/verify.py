"""The ladder that a candidate climbs: parsed, compiled, re-analysed, correct, faster.

Without a GPU both kernels' PTX is run by the emulator: the candidate may be correct, and is not timed. Where that is
impossible too, the report's status is not-run, with the reason, and its levels say how far the candidate came: it is
told, and not offered.
"""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

from warpwright.cuda.extension.entries import is_extension
from warpwright.facts.model import Assumptions
from warpwright.missing import Missing
from warpwright.problems.infer import find_problem
from warpwright.progress import CancelledError, IsCancelled, Progress, never_cancelled, silent
from warpwright.rules.base import Finding
from warpwright.syntax.flags import parse_flags
from warpwright.syntax.source import Source
from warpwright.toolchain.compile import compile_cubin
from warpwright.toolchain.driver import has_driver
from warpwright.toolchain.rights import candidate_reads
from warpwright.verify.changes import new_syntax_error
from warpwright.verify.claim import Choice, Claim, Climb
from warpwright.verify.compiling import allowed_folders
from warpwright.verify.harness import Gpu, find_gpu, is_gpu_known, likely_arch
from warpwright.verify.lower_rungs import analysed, lower_rungs
from warpwright.verify.memory import Memory
from warpwright.verify.peers import beside_torch
from warpwright.verify.rates import rates_of
from warpwright.verify.report import Level, Report, Status
from warpwright.verify.sanitizer import hidden_faults_expected
from warpwright.verify.torch_build import find_torch
from warpwright.verify.upper_rungs import upper_rungs

DEFAULT_ARCH = "sm_90"
ASKED_FOR = ("--expt-relaxed-constexpr", "--extended-lambda")
"""The options that nvcc names where device code calls a constexpr function of the host, or is a lambda."""
_TIMED = (Status.FASTER, Status.SLOWER, Status.INCONCLUSIVE)


def verify(
    original: Source,
    candidate: Source,
    *,
    kernel: str | None = None,
    goal: str = "speed",
    expect_gone: Finding | None = None,
    progress: Progress = silent,
    is_cancelled: IsCancelled = never_cancelled,
    arch: str | None = None,
    flags: tuple[str, ...] = (),
    flags_from: str = "",
    backend: Choice = "auto",
    again: bool = False,
    unit: Source | None = None,
) -> Report:
    """May `candidate` replace `original`? The parameters are those of a `Claim`. What `climb` finds, and beside the
    times of both what the kernel's reference takes in torch. Blocks for seconds: never call it in a server's process.
    Raises CancelledError."""
    claim = Claim(
        original, candidate, kernel, goal, expect_gone, progress, is_cancelled, arch, flags, flags_from, backend, again,
        unit,
    )  # fmt: skip
    report = climb(claim)
    if not report.speed or report.compilation is None or is_extension(original):
        return report
    given = parse_flags(flags, Path())
    program = analysed(claim.of_unit().original, given, Assumptions(arch=report.compilation.arch))
    found = program.kernel(report.kernel)
    problem = find_problem(program, found) if found is not None else None
    if problem is None:
        return report
    (beside,) = beside_torch([report], problem, progress=progress, is_cancelled=is_cancelled)
    return beside


def climb(claim: Claim) -> Report:
    """How far the candidate climbs. Blocks for seconds: never call it in a server's process. Raises CancelledError."""
    if claim.is_cancelled():
        raise CancelledError
    if broken := new_syntax_error(claim.original, claim.candidate):
        return Report(Status.DOES_NOT_COMPILE, reason=broken, goal=claim.goal)
    memory = Memory(claim.again)
    report = _climbed(claim.of_unit(), memory)
    for option in ASKED_FOR:
        if option in report.reason and option not in claim.flags and _needs(claim.of_unit(), option):
            return climb(replace(claim, flags=(*claim.flags, option)))
    if claim.goal == "reference":
        report = replace(report, reason=report.reason.replace("The candidate", "The kernel"))
        if report.speed and report.status in _TIMED:
            levels = tuple(level for level in report.levels if level is not Level.FASTER)
            report = replace(report, status=Status.CORRECT, levels=levels, reason="")
    compilation = report.compilation and replace(report.compilation, flags_from=claim.flags_from)
    report = replace(report, goal=claim.goal, compilation=compilation).as_covered()
    memory.keep(report, claim.original, claim.candidate)
    return report


def _needs(claim: Claim, option: str) -> bool:
    """Whether nvcc asks for the option to compile the original, so that whoever builds it gives it."""
    arch = claim.arch or DEFAULT_ARCH
    built = compile_cubin(claim.original, arch=arch, flags=claim.flags, is_cancelled=claim.is_cancelled)
    return option in built.reason


def _climbed(claim: Claim, memory: Memory) -> Report:
    torch = find_torch() if is_extension(claim.original) else None
    if isinstance(torch, Missing):
        reason = f"The file is a torch extension, and {torch}"
        return Report(Status.NOT_RUN, (Level.PARSED,), reason, not_run_because="no torch here")
    climb = Climb(claim, memory, torch)
    both = claim.original, claim.candidate
    allowed = allowed_folders(*both, climb.compiled_with, claim.flags)
    reads = candidate_reads(*both, climb.compiled_with, claim.flags)
    return _climbed_here(replace(climb, allowed=allowed, reads=reads))


def _climbed_here(climb: Climb) -> Report:
    """With the GPU of this machine, which is looked for while what it probably is is compiled for."""
    claim = climb.claim
    built_for = claim.arch or DEFAULT_ARCH
    if claim.backend == "emulator":
        return upper_rungs(climb, lower_rungs(climb, built_for), None)
    claim.progress("Looking for a GPU", 0.05)
    if not has_driver():
        gpu = find_gpu(claim.is_cancelled)
        return upper_rungs(climb, lower_rungs(climb, built_for), gpu)
    launched = climb.torch is None
    with hidden_faults_expected() if launched else nullcontext(), ThreadPoolExecutor(1) as beside:
        looked_for = beside.submit(find_gpu, claim.is_cancelled)
        if launched:
            beside.submit(_ask_rates, looked_for, claim.is_cancelled)  # ready, or nearly so, once both are compiled
        likely = likely_arch() if launched and not is_gpu_known() else ""
        lower = lower_rungs(climb, likely) if likely else None
        if not looked_for.done():
            claim.progress("Looking for a GPU", 0.36)
        gpu = looked_for.result()
        built_for = gpu.arch if isinstance(gpu, Gpu) else built_for
        return upper_rungs(climb, lower if lower and built_for == likely else lower_rungs(climb, built_for), gpu)


def _ask_rates(looked_for: Future[Gpu | Missing], is_cancelled: IsCancelled) -> None:
    if isinstance(gpu := looked_for.result(), Gpu):
        rates_of(gpu, is_cancelled)
