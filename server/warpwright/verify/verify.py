"""The ladder that a candidate climbs: parsed, compiled, re-analysed, correct, faster.

Without a GPU both kernels' PTX is run by the emulator: the candidate may be correct, and is not timed. Where that is
impossible too, the report's status is not-run, with the reason, and its levels say how far the candidate came: it is
told, and not offered.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, replace
from hashlib import sha256
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

from warpwright.facts.analyze import analyze
from warpwright.facts.model import Assumptions, Program
from warpwright.facts.resources import KernelResources
from warpwright.missing import Missing
from warpwright.problems.extension.entries import is_extension
from warpwright.problems.infer import find_problem
from warpwright.problems.model import Problem
from warpwright.problems.renaming import in_names_of, renamed_parameters
from warpwright.progress import CancelledError, IsCancelled, Progress, never_cancelled, silent
from warpwright.rules.base import Finding
from warpwright.rules.registry import run_rules
from warpwright.syntax.flags import Flags, parse_flags
from warpwright.syntax.source import Source, include_reader
from warpwright.toolchain.compile import (
    COMPILE_SECONDS,
    EXTENSION_SECONDS,
    Compiled,
    Ending,
    TorchBuild,
)
from warpwright.toolchain.names import instance_of
from warpwright.verify.added_sizes import with_added_sizes
from warpwright.verify.changes import changed_findings, changed_kernel, new_clocks, new_syntax_error
from warpwright.verify.compiling import (
    STATUS_OF,
    allowed_folders,
    compiled_both,
    compiled_kernel,
    foreign_file,
    foreign_include,
)
from warpwright.verify.emulation import UnableError, asked_of, compiled_sides, run_emulated
from warpwright.verify.extension import observe_extension
from warpwright.verify.harness import Gpu, find_gpu, has_driver, is_gpu_known, likely_arch
from warpwright.verify.host_change import host_change, launches_new_graph
from warpwright.verify.host_code import host_differences
from warpwright.verify.memory import Memory
from warpwright.verify.peers import beside_torch
from warpwright.verify.plan import (
    CandidateLaunchError,
    PlanError,
    Side,
    empty_shape,
    hidden_shape,
    make_request,
    paired_cases,
)
from warpwright.verify.predict import predicted
from warpwright.verify.rates import keep_rates, known_rates, rates_of
from warpwright.verify.recorded.run import observe_recorded
from warpwright.verify.recorded.timed import with_times
from warpwright.verify.report import (
    EMULATOR,
    ORIGINAL_REJECTED,
    RECORDER,
    UNTIMED,
    Compilation,
    Level,
    Report,
    Status,
)
from warpwright.verify.run import Observed, observe
from warpwright.verify.sanitizer import hidden_faults_expected, look_for_hidden_faults
from warpwright.verify.sequence import fused_sides, replaced_launches, unplaced_kernel
from warpwright.verify.thresholds import threshold_shapes, with_thresholds
from warpwright.verify.torch_build import find_torch

DEFAULT_ARCH = "sm_90"
Choice = Literal["auto", "cuda", "emulator"]
"""Where kernels are run: "auto" is a GPU where there is one, else the emulator."""

_SIDES = ("original", "candidate")
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
    """What `climb` finds, and beside the times of both what the kernel's reference takes in torch. Raises
    CancelledError."""
    report = climb(
        original, candidate, kernel=kernel, goal=goal, expect_gone=expect_gone, progress=progress,
        is_cancelled=is_cancelled, arch=arch, flags=flags, flags_from=flags_from, backend=backend, again=again,
        unit=unit,
    )  # fmt: skip
    if not report.speed or report.compilation is None or is_extension(original):
        return report
    given = parse_flags(flags, Path())
    side = unit.including(original) if unit is not None else original
    program = _analysed(side, given, Assumptions(arch=report.compilation.arch))
    found = program.kernel(report.kernel)
    problem = find_problem(program, found) if found is not None else None
    if problem is None:
        return report
    (beside,) = beside_torch([report], problem, progress=progress, is_cancelled=is_cancelled)
    return beside


def climb(
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
    """How far `candidate` climbs as a replacement of `original`, for one kernel (None: the one whose text changed).

    `goal` is "speed", "memory", "fix" or "reference"; a fix is not timed, and may be of an original that does not
    compile: then it is compiled and analysed. For "reference" both are one text, which is compared with its reference
    in torch, and on a GPU timed: it is correct or not, and no faster than itself. Both whole files are analysed for
    `arch` (None: the GPU's, or sm_90 without one) and compiled, with the same flags, for the GPU's, or without one for
    `arch`; `flags_from` says for the report where the flags were read. Blocks for seconds: never call it in a server's
    process. What was verified before and has a lasting verdict is not run again unless `again` is true (see
    `history`). `unit` is the file to compile where the two texts are of a file that it includes, such as a header with
    kernels. Raises CancelledError.
    """
    if is_cancelled():
        raise CancelledError
    if broken := new_syntax_error(original, candidate):
        return Report(Status.DOES_NOT_COMPILE, reason=broken, goal=goal)
    memory = Memory(again)
    sides = (unit.including(original), unit.including(candidate)) if unit is not None else (original, candidate)
    climb = _Climb(*sides, kernel, goal, expect_gone, progress, is_cancelled, flags, backend, memory)
    report = climb.report(arch)
    if goal == "reference":
        report = replace(report, reason=report.reason.replace("The candidate", "The kernel"))
        if report.speed and report.status in _TIMED:
            levels = tuple(level for level in report.levels if level is not Level.FASTER)
            report = replace(report, status=Status.CORRECT, levels=levels, reason="")
    compilation = report.compilation and replace(report.compilation, flags_from=flags_from)
    report = replace(report, goal=goal, compilation=compilation)
    memory.keep(report, original, candidate)
    return report


def acceptable(report: Report, goal: str) -> bool:
    """May this candidate be offered for `goal`?

    Never where it is wrong, unsafe, does not compile or end, was not run, or a GPU timed it as slower. Where speed was
    asked for and a GPU ran it, only where it is faster. Where nothing was timed (it was emulated or recorded) and found
    correct, where what it was to cure is gone and nothing new was found. Not run, and offered for what it is, may be
    one thing alone: a fix that compiles and is clean, of a text that nvcc rejects and that nothing can be compared
    with.
    """
    clean = report.reached(Level.ANALYSED) and not report.new_findings and report.finding_gone is not False
    saves = goal != "memory" or _saves_memory(report)
    if report.status is Status.NOT_RUN:
        return goal == "fix" and report.not_run_because == ORIGINAL_REJECTED and clean
    if report.status is Status.FASTER:
        return (goal == "speed" or clean) and saves
    if report.status in (Status.CORRECT, Status.INCONCLUSIVE):
        return (goal != "speed" or report.backend in UNTIMED) and clean and saves
    return False


def _saves_memory(report: Report) -> bool:
    """Fewer bytes of shared memory, stack or spills, or fewer registers, and none of them more."""
    compilation = report.compilation
    if compilation is None or compilation.original is None or compilation.candidate is None:
        return False
    before, after = (_footprint(c.resources) for c in (compilation.original, compilation.candidate))
    return after != before and all(a <= b for a, b in zip(after, before, strict=True))


def _footprint(resources: KernelResources) -> tuple[int, int, int, int]:
    return resources.shared_bytes, resources.stack_bytes, resources.spill_bytes, resources.registers


@dataclass(frozen=True, slots=True)
class _Climb:
    original: Source
    candidate: Source
    kernel: str | None
    goal: str
    expect_gone: Finding | None
    progress: Progress
    is_cancelled: IsCancelled
    flags: tuple[str, ...]
    backend: Choice
    memory: Memory
    torch: TorchBuild | None = None
    """Of a torch extension: what its host code is compiled with."""
    allowed: tuple[str, ...] = ()
    """The folders that the candidate may include from."""

    def report(self, arch: str | None) -> Report:
        if is_extension(self.original):
            torch = find_torch()
            if isinstance(torch, Missing):
                reason = f"The file is a torch extension, and {torch}"
                return Report(Status.NOT_RUN, (Level.PARSED,), reason, not_run_because="no torch here")
            return replace(self, torch=torch)._climbed(arch)
        return self._climbed(arch)

    @property
    def _compiled_with(self) -> tuple[str, ...]:
        return (*self.flags, *(self.torch.flags if self.torch is not None else ()))

    def _climbed(self, arch: str | None) -> Report:
        allowed = allowed_folders(self.original, self.candidate, self._compiled_with, self.flags)
        return replace(self, allowed=allowed)._climbed_on(arch)

    def _climbed_on(self, arch: str | None) -> Report:
        built_for = arch or DEFAULT_ARCH
        if self.backend == "emulator":
            return self._run_both(self._lower(arch, built_for), None)
        self.progress("Looking for a GPU", 0.05)
        if not has_driver():
            gpu = find_gpu(self.is_cancelled)
            return self._run_both(self._lower(arch, built_for), gpu)
        launched = self.torch is None
        with hidden_faults_expected() if launched else nullcontext(), ThreadPoolExecutor(1) as beside:
            looked_for = beside.submit(find_gpu, self.is_cancelled)
            if launched:
                beside.submit(self._ask_rates, looked_for)  # ready, or nearly so, once both are compiled
            likely = likely_arch() if launched and not is_gpu_known() else ""
            lower = self._lower(arch, likely) if likely else None
            if not looked_for.done():
                self.progress("Looking for a GPU", 0.36)
            gpu = looked_for.result()
            built_for = gpu.arch if isinstance(gpu, Gpu) else built_for
            return self._run_both(lower if lower and built_for == likely else self._lower(arch, built_for), gpu)

    def _ask_rates(self, looked_for: Future[Gpu | Missing]) -> None:
        if isinstance(gpu := looked_for.result(), Gpu):
            rates_of(gpu, self.is_cancelled)

    def _lower(self, arch: str | None, built_for: str) -> Report | _Lower:
        """The lower rungs: compiled, analysed again. A report where it ends there."""
        levels = [Level.PARSED]
        if foreign := foreign_include(self.original, self.candidate, self.allowed):
            return Report(Status.UNSAFE, (Level.PARSED,), foreign)
        before, after = self._compiled(built_for)
        if after.ok and before.ok and (foreign := foreign_file(before, after, self.allowed)):
            return Report(Status.UNSAFE, (Level.PARSED,), foreign)
        if not after.ok:
            status = STATUS_OF[after.ending]
            because = "no nvcc here" if after.ending is Ending.MISSING else "nvcc failed"
            return Report(status, (Level.PARSED,), after.reason, not_run_because=because)
        if not before.ok and not (self.goal == "fix" and before.ending is Ending.ERRORS):
            reason = f"The original cannot be compiled here, so there is nothing to compare with: {before.reason}"
            return Report(Status.NOT_RUN, (Level.PARSED,), reason, not_run_because=ORIGINAL_REJECTED)
        levels.append(Level.COMPILED)

        self.progress("Analysing the candidate again", 0.35)
        given = parse_flags(self.flags, Path())
        assume = Assumptions(arch=arch or built_for)
        old, new = (_analysed(side, given, assume) for side in (self.original, self.candidate))
        gone, brought = changed_findings(run_rules(old), run_rules(new), self.expect_gone)
        if gone is not False and not brought:
            levels.append(Level.ANALYSED)
        fused = replaced_launches(old, new)
        name = fused.kernel if fused is not None else self.kernel or changed_kernel(old, new)
        name = name or next((k.name for k in old.defined_kernels), None)
        base = Report(Status.NOT_RUN, tuple(levels), kernel=name or "", finding_gone=gone, new_findings=brought)
        if name is None:
            return replace(base, reason="No kernel is defined in the file.", not_run_because="no kernel is defined")
        kept = {kernel.name for kernel in new.defined_kernels}
        if lost := [kernel.name for kernel in old.defined_kernels if kernel.name not in kept]:
            reason = f"The candidate does not define {' and '.join(lost)}."
            return replace(base, status=Status.WRONG, kernel=lost[0], reason=reason)
        base = self._with_kernel(base, name, old, new, before, after)
        if gone is False and self.goal == "fix":
            return replace(base, reason="The finding is still there.", not_run_because="the finding is still there")
        if not before.ok:
            reason = base.reason or "The original does not compile, so there is nothing to compare with."
            return replace(base, reason=reason, not_run_because=ORIGINAL_REJECTED)
        if unplaced := unplaced_kernel(old, new):
            reason = f"Which launches of the original the new kernel {unplaced} stands for is not known."
            return replace(
                base, reason=base.reason or reason, not_run_because="what the new kernel replaces is not known"
            )
        if timed_by := new_clocks(before, after):
            reason = (
                f"The candidate reads {timed_by}, which the original does not: what it gives may depend on when it "
                "runs, and no number of runs would show it."
            )
            return replace(base, status=Status.UNSAFE, reason=reason)
        return _Lower(base, name, (old, new), (before, after))

    def _run_both(self, lower: Report | _Lower, gpu: Gpu | Missing | None) -> Report:
        """The upper rungs, on the GPU or in the emulator; `gpu` is None where none was looked for."""
        if isinstance(lower, Report):
            return lower
        base, name, units, (before, after) = lower.base, lower.name, lower.units, lower.compiled
        if self.torch is not None and isinstance(gpu, Gpu):
            return self._call(base, self.torch, gpu, units, after.arch)
        if launches_new_graph(self.original, self.candidate):
            return self._record(base, units[0], after.arch, gpu)
        if unread := host_differences(*units):
            base = replace(base, notes=(*base.notes, unread))
        plan = self._plan(name, *units, before, after)
        if isinstance(plan, CandidateLaunchError):
            return replace(base, status=Status.WRONG, reason=f"{str(plan)[:1].upper()}{str(plan)[1:]}.")
        if isinstance(gpu, Missing) and self.backend == "cuda":
            return replace(base, reason=base.reason or str(gpu), not_run_because="no GPU here")
        if isinstance(plan, PlanError):
            reason = base.reason or f"{str(plan)[:1].upper()}{str(plan)[1:]}"
            return replace(base, reason=reason, not_run_because="how to run it is not known")
        asked = self._asked(plan, name, after)
        if isinstance(gpu, Gpu):
            return self._launch(base, plan, gpu, asked)
        return self._emulate(base, plan, units, gpu, asked)

    def _record(self, base: Report, old: Program, arch: str, gpu: Gpu | Missing | None) -> Report:
        """Run the host code in which the two differ, and compare what it launches; on a GPU time it too."""
        change = host_change(self.original, self.candidate)
        if isinstance(change, str):
            reason = f"What the host code launches cannot be compared: {change}."
            return replace(base, reason=base.reason or reason, not_run_because="its host code cannot be run by itself")
        self.progress("Running the host code of both", 0.5)

        def run() -> Observed:
            seen, libraries = observe_recorded(
                (self.original, self.candidate), change, arch=arch, flags=self._compiled_with, reads=self.allowed,
                is_cancelled=self.is_cancelled,
            )  # fmt: skip
            if seen.status is not Status.CORRECT or libraries is None or not isinstance(gpu, Gpu) or self.goal == "fix":
                return seen
            return with_times(seen, change, old, libraries, self.progress, self.is_cancelled)

        changed = [(each.path, each.data) for side in (self.original, self.candidate) for each in side.changed]
        machine = gpu.details if isinstance(gpu, Gpu) else {"name": RECORDER}
        texts = (self.original.data, self.candidate.data, changed)
        asked = (RECORDER, sorted(machine.items()), *texts, self.goal, arch, self._compiled_with)
        observed, ran_on = self.memory.answer(asked, machine, run)
        if not observed.speed:
            ran_on = {"name": RECORDER, **{key: value for key, value in ran_on.items() if key not in machine}}
        backend = f"cuda:{ran_on['name']}" if observed.speed else RECORDER
        return _observed(replace(base, backend=backend, environment=ran_on), observed)

    def _launch(self, base: Report, plan: _Plan, gpu: Gpu, asked: tuple[object, ...]) -> Report:
        """Launch both kernels on the GPU."""

        def run() -> Observed:
            if not known_rates(gpu):
                self.progress("Measuring what this GPU can do (once on this machine)", None)
            request = {**plan.request, "rates": rates_of(gpu, self.is_cancelled)}
            seen = observe(request, progress=self.progress, is_cancelled=self.is_cancelled)
            if seen.rates:
                keep_rates(gpu, seen.rates)
            self.progress("Looking for hidden faults", 0.98)
            look_for_hidden_faults(seen, plan.request, self.is_cancelled)
            return seen

        ran_on = {**gpu.details, "seed": plan.request["seed"], "judge": plan.request["judge"], **_hashes(plan)}
        observed, ran_on = self.memory.answer(("cuda", sorted(gpu.details.items()), *asked), ran_on, run)
        notes = (*base.notes, *plan.request["notes"])
        return _observed(replace(base, backend=f"cuda:{gpu.name}", environment=ran_on, notes=notes), observed)

    def _asked(self, plan: _Plan, name: str, after: Compiled) -> tuple[object, ...]:
        """All that decides what running both shows, other than what they are run on."""
        reference = plan.problems[0].reference
        text = reference.read_bytes() if reference is not None and reference.is_file() else b""
        changed = [(each.path, each.data) for side in (self.original, self.candidate) for each in side.changed]
        texts = (self.original.data, self.candidate.data, text, changed)
        built = (after.compiler, plan.arch, self._compiled_with, _hashes(plan))
        return (*texts, name, self.goal, plan.request["judge"], repr(plan.problems), *built)

    def _compiled(self, arch: str) -> tuple[Compiled, Compiled]:
        """Both; a file outside the project that only the candidate includes is refused by `_climbed`."""
        self.progress("Compiling both", 0.1)
        return compiled_both(
            self.original,
            self.candidate,
            arch=arch,
            flags=self._compiled_with,
            timeout=EXTENSION_SECONDS if self.torch is not None else COMPILE_SECONDS,
            reads=None if self.torch is not None else self.allowed,
            is_cancelled=self.is_cancelled,
        )

    def _call(self, base: Report, torch: TorchBuild, gpu: Gpu, units: tuple[Program, Program], arch: str) -> Report:
        """Call both extensions' functions on the GPU."""
        old, new = (frozenset(k.name for k in unit.defined_kernels) for unit in units)
        outcome = observe_extension(
            self.original,
            self.candidate,
            torch,
            arch=arch,
            flags=self.flags,
            kernels=(old, new),
            rates=known_rates(gpu),
            goal=self.goal,
            progress=self.progress,
            is_cancelled=self.is_cancelled,
        )
        if outcome.observed.rates:
            keep_rates(gpu, outcome.observed.rates)
        sandbox = ", ".join(outcome.observed.sandbox) or "none"
        ran_on = {**gpu.details, **outcome.facts, "called": list(outcome.functions), "sandbox": sandbox}
        report = _observed(replace(base, backend=f"cuda:{gpu.name}", environment=ran_on), outcome.observed)
        return replace(report, not_run_because=outcome.not_run_because) if outcome.not_run_because else report

    def _with_kernel(
        self, report: Report, name: str, old: Program, new: Program, before: Compiled, after: Compiled
    ) -> Report:
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
            reason = f"It brings a new finding: {found.rule} at line {found.span.line}: {found.message}"
        elif report.finding_gone is False:
            reason = "The finding is still there."
        compilation = Compilation(after.compiler, after.arch, after.flags, first, second)
        return replace(report, compilation=compilation, notes=tuple(notes), reason=reason)

    def _plan(self, name: str, old: Program, new: Program, before: Compiled, after: Compiled) -> _Plan | PlanError:
        """How both are to be run, or why that is not known."""
        if (fused := replaced_launches(old, new)) is not None:
            both = fused_sides(fused, (old, new), (before, after))
            return both if isinstance(both, PlanError) else self._requested(*both, after.arch)
        sides: list[Side] = []
        for program, compiled in ((old, before), (new, after)):
            first, described = old.kernel(name), program.kernel(name)
            renamed = renamed_parameters(first, described) if first is not None and described is not None else {}
            problem = find_problem(program, described, renamed, first) if described is not None else None
            if not isinstance(problem, Problem):
                return PlanError(str(problem) if problem is not None else f"{name} is not defined on both sides.")
            resources = instance_of(compiled.kernels, name, problem.instance)
            if resources is None or compiled.cubin is None:
                return PlanError(f"which compiled instance of {name} is launched is not known.")
            if sides:
                problem = in_names_of(sides[0].problem, problem)
            sides.append(Side(compiled.cubin, resources, problem))
        own = with_added_sizes(sides[0].problem, sides[1].problem)
        steps = (sides[0].resources,) * len(own.steps)
        sides[0] = replace(sides[0], problem=with_thresholds(own, sides[1].problem), steps=steps)
        return self._requested(sides[0], sides[1], after.arch)

    def _requested(self, original: Side, candidate: Side, arch: str) -> _Plan | PlanError:
        has_reference = original.problem.reference is not None
        if self.goal == "reference" and not has_reference:
            return PlanError(f"{original.problem.kernel} has no reference in torch (`reference` in sample.toml)")
        judge = "reference" if self.goal in ("fix", "reference") and has_reference else "baseline"
        try:
            seed = secrets.randbits(31)
            request = make_request(original, candidate, seed=seed, judge=judge, timed=self.goal != "fix")
            return _Plan(request, (original.problem, candidate.problem), arch)
        except PlanError as error:
            return error

    def _emulate(
        self,
        base: Report,
        plan: _Plan,
        units: tuple[Program, Program],
        gpu: Missing | None,
        asked: tuple[object, ...],
    ) -> Report:
        """Compare both in the emulator; `gpu` is what there is to say of a GPU that was looked for."""
        lacking = f"{gpu.reason} " if gpu is not None else ""
        if find_spec("numpy") is None:
            reason = base.reason or f"{lacking}The emulator needs NumPy: `pip install 'warpwright[emulator]'`."
            return replace(base, reason=reason, not_run_because="no GPU and no NumPy here" if gpu else "no NumPy here")
        because = "no GPU here, and it cannot be emulated" if gpu else "it cannot be emulated"
        reads = (None, self.allowed)
        ptx = compiled_sides(units, plan.problems, plan.arch, self._compiled_with, reads, self.is_cancelled)
        if isinstance(ptx, Missing):
            return replace(base, reason=base.reason or f"{lacking}{ptx.reason}", not_run_because=because)
        original, candidate = plan.problems
        seed = plan.request["seed"]
        empty, _ = empty_shape(original)
        around = threshold_shapes(original)
        more = (original.own_shape, original.profile, hidden_shape(original, seed), empty, *around)
        shapes = list(original.check)
        shapes += [shape for shape in more if shape is not None and shape not in shapes]
        cases = list(paired_cases(original, candidate, shapes))
        request = {**plan.request, "cases": [{"shape": dict(case.shape)} for case, _ in cases]}
        reference, judge = (original.reference, "reference") if self.goal == "reference" else (None, "baseline")
        request_of_child = asked_of(units, ptx, plan.problems, tuple(cases), seed, reference)

        def run() -> Observed:
            return observe(
                request,
                progress=self.progress,
                is_cancelled=self.is_cancelled,
                backend=lambda _, is_cancelled: run_emulated(request_of_child, is_cancelled),
            )

        hashes = {side: sha256(each[0].text.encode()).hexdigest() for side, each in zip(_SIDES, ptx, strict=True)}
        ran_on = {"name": EMULATOR, "numpy": version("numpy"), "seed": seed, "judge": judge, "sha256": hashes}
        try:
            observed, ran_on = self.memory.answer((EMULATOR, version("numpy"), hashes, *asked), ran_on, run)
        except UnableError as error:
            return replace(base, reason=base.reason or f"{lacking}{error}", not_run_because=because)
        notes = (*base.notes, *plan.request["notes"])
        report = _observed(replace(base, backend=EMULATOR, environment=ran_on, notes=notes), observed)
        if report.status is not Status.CORRECT or self.goal == "reference":
            return report
        return replace(report, predicted=predicted(observed.work, plan.problems, report.compilation))


@dataclass(frozen=True, slots=True)
class _Lower:
    """What is known before anything runs, of both sides where there are two."""

    base: Report
    name: str
    units: tuple[Program, Program]
    compiled: tuple[Compiled, Compiled]


@dataclass(frozen=True, slots=True)
class _Plan:
    """How both kernels are run: the harness's request, and the problems of the original and the candidate."""

    request: Mapping[str, Any]
    problems: tuple[Problem, Problem]
    arch: str


def _analysed(side: Source, given: Flags, assume: Assumptions) -> Program:
    """The facts of a text and of the files that it includes, some of them changed."""
    read = include_reader({each.path: each for each in side.changed}, given.folders)
    return analyze(side, read, assume.compiled_with(given))


def _hashes(plan: _Plan) -> dict[str, Any]:
    """Of the two cubins: of what was compiled, compared and timed, which is refused where it is not one."""
    sides = {"original": "baseline", "candidate": "candidate"}
    return {"sha256": {name: plan.request[side]["sha256"] for name, side in sides.items()}}


def _observed(base: Report, observed: Observed) -> Report:
    """The report with what was seen when both were run."""
    levels = list(base.levels)
    if observed.status in (Status.CORRECT, Status.FASTER, Status.SLOWER, Status.INCONCLUSIVE):
        levels.append(Level.CORRECT)
    if observed.status is Status.FASTER:
        levels.append(Level.FASTER)
    return replace(
        base,
        status=observed.status,
        levels=tuple(levels),
        reason=observed.reason or base.reason,
        cases=tuple(observed.cases),
        speed=tuple(observed.speed),
        notes=(*base.notes, *observed.notes),
        not_run_because="it could not be run" if observed.status is Status.NOT_RUN else "",
    )
