"""The upper rungs: both are run, on a GPU or on the CPU, and compared; on a GPU they are timed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from importlib.metadata import version
from importlib.util import find_spec

from warpwright.facts.model import Program
from warpwright.files import read_file
from warpwright.missing import Missing
from warpwright.progress import Progress, silent
from warpwright.syntax.encoding import encoded
from warpwright.syntax.source import MOST_BYTES
from warpwright.toolchain.compilation import Compiled, TorchBuild
from warpwright.verify.claim import Claim, Climb
from warpwright.verify.emulation import UnableError, asked_of, compiled_sides, run_emulated
from warpwright.verify.extension import observe_extension
from warpwright.verify.further import Launches, brief, launches_beside, with_further
from warpwright.verify.harness import Gpu
from warpwright.verify.host_change import host_change, launches_new_graph
from warpwright.verify.host_code import HostDifference, host_differences
from warpwright.verify.lower_rungs import Lower
from warpwright.verify.plan import (
    CandidateLaunchError,
    PlanError,
    Trial,
    empty_shape,
    hidden_shape,
    more_cases,
    paired_cases,
)
from warpwright.verify.planned import Plan, planned
from warpwright.verify.predict import predicted
from warpwright.verify.rates import keep_rates, known_rates, rates_of
from warpwright.verify.recorded.run import observe_recorded
from warpwright.verify.recorded.timed import with_times
from warpwright.verify.report import EMULATOR, PASSED, RECORDER, SAME_CODE, Level, Report, Status, Uncovered, What
from warpwright.verify.run import Observed, observe
from warpwright.verify.same_code import same_device_code
from warpwright.verify.sanitizer import look_for_hidden_faults
from warpwright.verify.sequence import lines_of, replaced_launches
from warpwright.verify.thresholds import threshold_shapes
from warpwright.verify.tried import EDGE_DISTRIBUTIONS
from warpwright.verify.undefined import look_for_undefined, may_hide
from warpwright.verify.unfilled import unfilled_arrays
from warpwright.verify.variables import other_beginnings

_SIDES = ("original", "candidate")


def upper_rungs(climb: Climb, lower: Report | Lower, gpu: Gpu | Missing | None) -> Report:
    """The upper rungs, on the GPU or in the emulator; `gpu` is None where none was looked for."""
    claim = climb.claim
    if isinstance(lower, Report):
        return lower
    base, name, units, (_, after) = lower.base, lower.name, lower.units, lower.compiled
    if climb.torch is not None and isinstance(gpu, Gpu):
        own, others = (frozenset(k.name for k in unit.defined_kernels) for unit in units)
        return _call(climb, base, climb.torch, gpu, (own, others | {lower.beside} - {""}), after.arch)
    if launches_new_graph(claim.original, claim.candidate):
        return _record(climb, base, units[0], after.arch, gpu)
    if claim.goal == "fix" and climb.torch is None and same_device_code(climb, lower):
        return _observed(replace(base, backend=SAME_CODE), Observed(status=Status.CORRECT))
    replaced = lines_of(replaced_launches(*units), units[0].source, units[1].source)
    differences = host_differences(*units, *replaced)
    base = replace(base, uncovered=(*base.uncovered, *_unread(units, name, differences)))
    plan = planned(lower, claim.goal)
    if isinstance(plan, CandidateLaunchError):
        return replace(base, status=Status.WRONG, reason=f"{str(plan)[:1].upper()}{str(plan)[1:]}.")
    if isinstance(gpu, Missing) and claim.backend == "cuda":
        return replace(base, reason=base.reason or str(gpu), not_run_because="no GPU here")
    if isinstance(plan, PlanError):
        reason = base.reason or f"{str(plan)[:1].upper()}{str(plan)[1:]}"
        return replace(base, reason=reason, not_run_because="how to run it is not known")
    plan = replace(plan, unfilled=unfilled_arrays(*units, name, differences))
    launches = launches_beside(lower, plan, claim.goal)
    base = replace(base, uncovered=(*base.uncovered, *launches.uncovered))
    asked = (*_asked(climb, plan, name, after), launches.asked)
    if isinstance(gpu, Gpu):
        return _launch(climb, base, plan, launches, units, gpu, asked)
    return _emulate(climb, base, plan, launches, units, gpu, asked)


def _unread(units: tuple[Program, Program], kernel: str, differences: Sequence[HostDifference]) -> Iterator[Uncovered]:
    """What the candidate's text does otherwise and no run of the kernel shows."""
    for each in differences:
        yield Uncovered(What.HOST_CODE, f"{each.text}, which was not run", each.file, each.line)
    for path, line, text in other_beginnings(units, kernel):
        yield Uncovered(What.OUTPUT, text, path, line)


def _launch(
    climb: Climb,
    base: Report,
    plan: Plan,
    launches: Launches,
    units: tuple[Program, Program],
    gpu: Gpu,
    asked: tuple[object, ...],
) -> Report:
    """Launch both kernels on the GPU."""
    claim = climb.claim

    def run() -> Observed:
        if not known_rates(gpu):
            claim.progress("Measuring what this GPU can do (once on this machine)", None)
        request = {**plan.request, "rates": rates_of(gpu, claim.is_cancelled)}
        seen = observe(request, progress=claim.progress, is_cancelled=claim.is_cancelled, original=plan.problems[0])
        if seen.rates:
            keep_rates(gpu, seen.rates)
        claim.progress("Looking for hidden faults", 0.98)
        look_for_hidden_faults(seen, plan.request, claim.is_cancelled)
        is_hidden = bool(plan.unfilled) or may_hide(claim.original, claim.candidate)
        if is_hidden and find_spec("numpy") is not None:
            look_for_undefined(seen, at_a_few_sizes)
        return with_further(seen, launches, run_further, _told(claim))

    def at_a_few_sizes() -> Observed | Missing:
        small = replace(plan, problems=(brief(plan.problems[0]), brief(plan.problems[1])), sizes="few")
        ready = _emulated(climb, small, units)
        return ready if isinstance(ready, Missing) else ready.run(silent)

    def run_further(further: Plan) -> Observed:
        original, _ = further.problems
        return observe(further.request, progress=silent, is_cancelled=claim.is_cancelled, original=original)

    ran_on = {**gpu.details, "seed": plan.request["seed"], "judge": plan.request["judge"], **plan.hashes}
    observed, ran_on = climb.memory.answer(("cuda", sorted(gpu.details.items()), *asked), ran_on, run)
    notes = (*base.notes, *plan.request["notes"])
    return _observed(replace(base, backend=f"cuda:{gpu.name}", environment=ran_on, notes=notes), observed)


def _emulate(
    climb: Climb,
    base: Report,
    plan: Plan,
    launches: Launches,
    units: tuple[Program, Program],
    gpu: Missing | None,
    asked: tuple[object, ...],
) -> Report:
    """Compare both in the emulator; `gpu` is what there is to say of a GPU that was looked for."""
    claim = climb.claim
    lacking = f"{gpu.reason} " if gpu is not None else ""
    if find_spec("numpy") is None:
        reason = base.reason or f"{lacking}The emulator needs NumPy: `pip install 'warpwright[emulator]'`."
        return replace(base, reason=reason, not_run_because="no GPU and no NumPy here" if gpu else "no NumPy here")
    because = "no GPU here, and it cannot be emulated" if gpu else "it cannot be emulated"
    prepared = _emulated(climb, plan, units)
    if isinstance(prepared, Missing):
        return replace(base, reason=base.reason or f"{lacking}{prepared.reason}", not_run_because=because)

    def run() -> Observed:
        return with_further(prepared.run(claim.progress), launches, run_further, _told(claim))

    def run_further(further: Plan) -> Observed:
        ready = _emulated(climb, further, units)
        try:
            return Observed(reason=ready.reason) if isinstance(ready, Missing) else ready.run(silent)
        except UnableError as error:
            return Observed(reason=str(error))

    seed, judge = plan.request["seed"], "reference" if claim.goal == "reference" else "baseline"
    hashes = prepared.hashes
    ran_on = {"name": EMULATOR, "numpy": version("numpy"), "seed": seed, "judge": judge, "sha256": hashes}
    try:
        observed, ran_on = climb.memory.answer((EMULATOR, version("numpy"), hashes, *asked), ran_on, run)
    except UnableError as error:
        return replace(base, reason=base.reason or f"{lacking}{error}", not_run_because=because)
    notes = (*base.notes, *plan.request["notes"])
    report = _observed(replace(base, backend=EMULATOR, environment=ran_on, notes=notes), observed)
    if claim.goal == "fix" and report.status is Status.NOT_RUN and observed.cured and all(observed.cured):
        reason = "The original does wrong in every run, so that its results say nothing, and the candidate in none."
        return replace(report, status=Status.CURED, reason=reason, not_run_because="")
    if report.status is not Status.CORRECT or claim.goal == "reference":
        return report
    return replace(report, predicted=predicted(observed.work, plan.problems, report.compilation))


@dataclass(frozen=True, slots=True)
class _Emulated:
    """Both sides ready to be emulated: what runs them, and the hashes of their PTX."""

    run: Callable[[Progress], Observed]
    hashes: Mapping[str, str]


def _emulated(climb: Climb, plan: Plan, units: tuple[Program, Program]) -> _Emulated | Missing:
    """Both sides compiled to PTX for one plan, or why that is not possible. Raises CancelledError."""
    claim = climb.claim
    reads = (None, climb.reads)
    ptx = compiled_sides(units, plan.problems, plan.arch, climb.compiled_with, reads, claim.is_cancelled)
    if isinstance(ptx, Missing):
        return ptx
    original, candidate = plan.problems
    seed = plan.request["seed"]
    empty, _ = empty_shape(original)
    around = threshold_shapes(original)
    more = (original.own_shape, original.profile, hidden_shape(original, seed), empty, *around)
    shapes = list(original.check)
    shapes += [shape for shape in more if shape is not None and shape not in shapes]
    reference = original.reference if claim.goal == "reference" else None
    cases: list[Trial] = [(pair, EDGE_DISTRIBUTIONS) for pair in paired_cases(original, candidate, shapes)]
    if reference is None and plan.sizes == "all":
        cases += more_cases(original, candidate, seed, shapes)
    request = {**plan.request, "cases": [{"shape": dict(case.shape)} for (case, _), _ in cases]}
    request_of_child = asked_of(units, ptx, plan.problems, cases, seed, reference, plan.unfilled)

    def run(progress: Progress) -> Observed:
        return observe(
            request,
            progress=progress,
            is_cancelled=claim.is_cancelled,
            original=original,
            backend=lambda _, is_cancelled: run_emulated(request_of_child, is_cancelled),
        )

    return _Emulated(run, {side: sha256(encoded(e[0].text)).hexdigest() for side, e in zip(_SIDES, ptx, strict=True)})


def _told(claim: Claim) -> Callable[[str], None]:
    return lambda name: claim.progress(f"Comparing as it is launched at {name}", None)


def _record(climb: Climb, base: Report, old: Program, arch: str, gpu: Gpu | Missing | None) -> Report:
    """Run the host code in which the two differ, and compare what it launches; on a GPU time it too."""
    claim = climb.claim
    change = host_change(claim.original, claim.candidate)
    if isinstance(change, str):
        reason = f"What the host code launches cannot be compared: {change}."
        return replace(base, reason=base.reason or reason, not_run_because="its host code cannot be run by itself")
    claim.progress("Running the host code of both", 0.5)

    def run() -> Observed:
        seen, libraries = observe_recorded(
            (claim.original, claim.candidate), change, arch=arch, flags=climb.compiled_with, reads=climb.reads,
            is_cancelled=claim.is_cancelled,
        )  # fmt: skip
        if seen.status is not Status.CORRECT or libraries is None or not isinstance(gpu, Gpu) or claim.goal == "fix":
            return seen
        return with_times(seen, change, old, libraries, claim.progress, claim.is_cancelled)

    machine = gpu.details if isinstance(gpu, Gpu) else {"name": RECORDER}
    texts = (claim.original.data, claim.candidate.data, claim.changed)
    asked = (RECORDER, sorted(machine.items()), *texts, claim.goal, arch, climb.compiled_with)
    observed, ran_on = climb.memory.answer(asked, machine, run)
    if not observed.speed:
        ran_on = {"name": RECORDER, **{key: value for key, value in ran_on.items() if key not in machine}}
    backend = f"cuda:{ran_on['name']}" if observed.speed else RECORDER
    return _observed(replace(base, backend=backend, environment=ran_on), observed)


def _call(
    climb: Climb, base: Report, torch: TorchBuild, gpu: Gpu, kernels: tuple[frozenset[str], frozenset[str]], arch: str
) -> Report:
    """Call both extensions' functions on the GPU."""
    claim = climb.claim
    outcome = observe_extension(
        claim.original,
        claim.candidate,
        torch,
        arch=arch,
        flags=claim.flags,
        kernels=kernels,
        rates=known_rates(gpu),
        goal=claim.goal,
        progress=claim.progress,
        is_cancelled=claim.is_cancelled,
    )
    if outcome.observed.rates:
        keep_rates(gpu, outcome.observed.rates)
    sandbox = ", ".join(outcome.observed.sandbox) or "none"
    ran_on = {**gpu.details, **outcome.facts, "called": list(outcome.functions), "sandbox": sandbox}
    report = _observed(replace(base, backend=f"cuda:{gpu.name}", environment=ran_on), outcome.observed)
    return replace(report, not_run_because=outcome.not_run_because) if outcome.not_run_because else report


def _asked(climb: Climb, plan: Plan, name: str, after: Compiled) -> tuple[object, ...]:
    """All that decides what running both shows, other than what they are run on."""
    claim = climb.claim
    reference = plan.problems[0].reference
    text = read_file(reference, MOST_BYTES) if reference is not None and reference.is_file() else b""
    texts = (claim.original.data, claim.candidate.data, text, claim.changed)
    built = (after.compiler, plan.arch, climb.compiled_with, plan.hashes)
    return (*texts, name, claim.goal, plan.request["judge"], repr(plan.problems), *built)


def _observed(base: Report, observed: Observed) -> Report:
    """The report with what was seen when both were run."""
    levels = list(base.levels)
    if observed.status in PASSED:
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
        uncovered=(*base.uncovered, *observed.uncovered),
        launches=tuple(observed.launches),
        not_run_because="not verified" if observed.status is Status.NOT_RUN else "",
    )
