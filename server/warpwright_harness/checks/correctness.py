"""Does the candidate compute what the original computes?

For each shape and distribution of values: the candidate runs first, in memory of its own, poisoned with NaN, then with
another poison; then the original does. Both must write the same elements with the same values, up to a tolerance
that is measured: how far the original's own result moves when its inputs move by one unit in the last place. Where the
next lower precision of the inputs would pass that tolerance too, a stricter one is taken. On small whole numbers, where
the original rounds nothing, the results must be equal bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch

from warpwright_harness.buffers import ArraySpec, Inputs, bits, coarser, perturbed, scaled
from warpwright_harness.checks.compare import (
    NOISE_FACTOR,
    Difference,
    compare,
    degree_of,
    is_exact,
    largest_gap,
    largest_ulp,
    relative_l2,
    strict_tolerance,
    tolerance_of_scaled,
)
from warpwright_harness.checks.impostors import LEAST_ELEMENTS, impostor_that_passes
from warpwright_harness.drawn import bounded, make_values, sacred
from warpwright_harness.prints import are_prints_lost, other_prints
from warpwright_harness.session import DEVICE, Case, MisbehaviourError, Outputs, Session, Values, call_reference

PERTURBATIONS = 3
PERTURBATIONS_OF_FEW = 12
"""Where an output has few elements: one of them may move little by chance."""
REPETITIONS = 3
"""More runs on the same inputs, where two differ."""

SCALES = (0.8306, 1.2274, 1.6541)
"""Factors of no round number, below a power of two and above."""
SCALES_OF_FEW = tuple(0.5113 + 0.1237 * step for step in range(12))
"""Where an output has few elements, of which one may differ little by chance."""

MOST_STRICT = 64
"""Of the strict tolerance: a thousand units in the last place."""

MARGIN = 16.0
"""By how much huge inputs may still grow where what is made of them is judged."""

Reference = Callable[..., Mapping[str, torch.Tensor]]


@dataclass(frozen=True)
class Checked:
    """One comparison: what the event "case" says of it, what was expected, and what the candidate left."""

    result: Mapping[str, Any]
    expected: Outputs
    candidate: Outputs
    due: Mapping[str, torch.Tensor]


class UnsupportedError(Exception):
    """A shape or values at which the original cannot serve as the reference; the message says why. `fault` is what it
    did wrong there, where it did."""

    def __init__(self, text: str, fault: Mapping[str, Any] | None = None) -> None:
        super().__init__(text)
        self.fault = fault


def seed_of(session: Session, case: Case, salt: int) -> int:
    return (session.seed * 1_000_003 + case.index * 10_007 + salt * 101) % (1 << 62)


def input_values(session: Session, case: Case, distribution: str, salt: int) -> Inputs:
    """The values of all inputs; the same salt gives the same."""
    seed = seed_of(session, case, salt)
    return Inputs({s.name: make_values(s, distribution, seed + i, DEVICE) for i, s in enumerate(case.inputs)})


def check_case(session: Session, case: Case, reference: Reference | None, judge: str) -> str:
    """Compare at one shape with every distribution, one event each: "right", "wrong" or "unsupported".

    `judge` is "baseline", or "reference" to compare with the reference alone (the original is then not run).
    A misbehaving original ends the case with an event "unsupported", which is no fault of the candidate.
    """
    for salt, distribution in enumerate(case.distributions):
        values = input_values(session, case, distribution, salt)
        try:
            result = checked(session, case, values, distribution, reference, judge).result
        except UnsupportedError as error:
            session.emit({
                "event": "unsupported", "case": case.index, "shape": dict(case.shape), "distribution": distribution,
                "reason": str(error), "fault": error.fault,
            })  # fmt: skip
            return "unsupported"
        except MisbehaviourError as error:
            result = unsafe(error)
        emit_case(session, case, distribution, result)
        if not result["ok"]:
            return "wrong"
    return "right"


def emit_case(session: Session, case: Case, distribution: str, result: Mapping[str, Any]) -> None:
    session.emit(
        {"event": "case", "case": case.index, "shape": dict(case.shape), "distribution": distribution, **result}
    )


def unsafe(error: MisbehaviourError) -> dict[str, Any]:
    return {"ok": False, "unsafe": True, "reason": str(error), "fault": error.fault, "max_abs": None, "max_rel": None}


def checked(
    session: Session, case: Case, values: Values, distribution: str, reference: Reference | None, judge: str
) -> Checked:
    """Run both sides on these values and compare. Raises UnsupportedError, and MisbehaviourError of the candidate."""
    candidate = session.run_twice("candidate", case, values)
    truth = _truth(session, case, values, reference)
    if judge == "reference":
        if truth is None:
            raise UnsupportedError("the reference does not give every output")
        own, expected = candidate, _as_outputs(case, truth, candidate[0])
    else:
        own = _original_twice(session, case, values)
        expected = own[0]
    differences: list[Difference] = []
    spread, restless = False, False
    loose: dict[str, str] = {}
    masks: dict[str, torch.Tensor] = {}
    results = {spec.name for spec in case.results}
    other_variables: list[str] = []
    restless_variables: list[str] = []  # such as a list in the order in which blocks come
    for spec in case.outputs if judge == "reference" else case.compared:
        name = spec.name
        if name in results and not spec.is_float and _differs(own, name):
            restless_variables.append(name)
            continue
        wrote, due = _written(candidate, name), _written(own, name)
        if judge == "reference" and truth is not None:
            due[: truth[name].numel()] = True
        masks[name] = due
        theirs = [run.values[name] for run in candidate]
        is_same = judge == "baseline" and _are_same(theirs, expected.values[name], wrote, due)
        tolerance = 0.0 if is_same else _tolerance(session, case, values, distribution, judge, own, name)
        if not is_same and judge == "baseline":
            theirs = open_results(session, case, values, spec, expected.values[name], theirs, distribution)
        difference = compare(spec, theirs[0], expected.values[name], (wrote, due), tolerance)
        if difference.why and distribution != "zeros" and spec.is_float and tolerance >= 0 and judge == "baseline":
            tolerance = wider_tolerance(session, case, values, spec, due, tolerance)
            difference = compare(spec, theirs[0], expected.values[name], (wrote, due), tolerance)
        if name in session.request.get("unread", ()):
            other_variables += [name] if difference.why else []
            continue
        differences.append(difference)
        again = compare(spec, theirs[1], theirs[0], (wrote, wrote), tolerance)
        if not differences[-1].why and again.why:
            reason = f"it gives another result when the memory around its arrays holds other values: {again.why}"
            differences.append(Difference(name, again.max_abs, again.max_rel, tolerance, reason))
        shown = expected.values[name][due]
        spread = spread or (shown.numel() > 1 and bool((shown != shown[0]).any()))
        restless = restless or (_differs(candidate, name) and judge != "reference" and not _differs(own, name))
        if spec.is_float and tolerance >= 0.0 and distribution != "zeros":
            given = values.get(name) if spec.is_input else None
            if found := impostor_that_passes(spec, expected.values[name], due, tolerance, given, case.shape):
                loose[name] = found
    prints = [run.printed for run in own], [run.printed for run in candidate]
    if judge == "baseline" and (why := other_prints(*prints)):
        differences.append(Difference("what it prints", 0.0, 0.0, 0.0, why))
    wrong = next((d for d in differences if d.why), None)
    result: dict[str, Any] = {
        "ok": wrong is None,
        "max_abs": max((d.max_abs for d in differences), default=0.0),
        "max_rel": max((d.max_rel for d in differences), default=0.0),
        "max_ulp": max((d.max_ulp for d in differences), default=0.0),
        "rel_l2": max((d.rel_l2 for d in differences), default=0.0),
        "tolerance": max((d.tolerance for d in differences), default=0.0),
        "reason": wrong.why if wrong else "",
        "spread": spread,
        "restless": restless,
        "loose": loose,
        "restless_variables": restless_variables,
        "other_variables": other_variables,
        "prints_lost": judge == "baseline" and are_prints_lost(*prints),
        "weighed": max((int(mask.sum()) for mask in masks.values()), default=0),
        "sample": {name: repr(expected.values[name][:1].tolist()) for name in masks},
    }
    if truth is not None:
        result["reference"] = {
            **_errors("candidate", candidate[0], truth),
            **(_errors("baseline", expected, truth) if judge == "baseline" else {"baseline_max_abs": None}),
        }
    return Checked(result, expected, candidate[0], masks)


def _are_same(theirs: list[torch.Tensor], own: torch.Tensor, wrote: torch.Tensor, due: torch.Tensor) -> bool:
    """Whether both runs of the candidate wrote the original's bits, and nothing else."""
    same = (wrote == due).all() & ((bits(theirs[0]) == bits(own)) & (bits(theirs[1]) == bits(own)) | ~due).all()
    return bool(same)


def open_results(
    session: Session,
    case: Case,
    values: Values,
    spec: ArraySpec,
    own: torch.Tensor,
    theirs: list[torch.Tensor],
    distribution: str,
) -> list[torch.Tensor]:
    """What a candidate gave, with the original's result where the original itself leaves open what is right.

    Where it gives NaN because of an infinity among its inputs (`inf - inf`), and a number for a large one in its place,
    the order of its operations decides between NaN and an infinity. Where it overflows on huge inputs, or would if they
    were larger by MARGIN, so it does between a number and an infinity.
    """
    if not spec.is_float or distribution not in ("special", "huge"):
        return theirs

    def finite_on(change: Callable[[ArraySpec, torch.Tensor], torch.Tensor]) -> torch.Tensor:
        made = {s.name: change(s, values[s.name]) for s in case.inputs}
        outputs = session.run("baseline", case, session.buffers(case), made, session.poisons[0])
        return torch.isfinite(outputs.values[spec.name])

    if distribution == "huge":
        is_open = ~torch.isfinite(own) | ~finite_on(lambda s, given: scaled(s, given, MARGIN))
        return [torch.where(is_open, own, each) for each in theirs]
    is_open = torch.isnan(own) & (torch.isinf(theirs[0]) | torch.isinf(theirs[1]))
    if bool(is_open.any()):
        is_open &= finite_on(bounded)
    return [torch.where(is_open & torch.isinf(each), own, each) for each in theirs]


def _original_twice(session: Session, case: Case, values: Values) -> tuple[Outputs, Outputs]:
    """Both runs of the original. Raises UnsupportedError where it is not sound."""
    try:
        own = session.run_twice("baseline", case, values)
    except MisbehaviourError as error:
        raise UnsupportedError(f"the original is not sound here: {error}", error.fault) from None
    for spec in case.outputs:
        if not spec.is_float and _differs(own, spec.name):
            raise UnsupportedError(f"the original's own {spec.name} differs from run to run")
        if spec.is_float:
            wrote = _written(own, spec.name)
            first, second = (torch.isfinite(run.values[spec.name][wrote]) for run in own)
            if bool((first != second).any()):
                raise UnsupportedError(f"the original's own {spec.name} is finite in one run and not in another")
    return own


def _differs(runs: tuple[Outputs, Outputs], name: str) -> bool:
    return bool((bits(runs[0].values[name]) != bits(runs[1].values[name]))[_written(runs, name)].any())


def _written(runs: tuple[Outputs, Outputs], name: str) -> torch.Tensor:
    """What the kernel wrote: an element that held the poison after both runs was left alone."""
    return ~(runs[0].poisoned[name] & runs[1].poisoned[name])


def _tolerance(
    session: Session,
    case: Case,
    values: Values,
    distribution: str,
    judge: str,
    runs: tuple[Outputs, Outputs],
    name: str,
) -> float:
    """The allowed absolute difference of one output, measured on the side that `runs` are of; -1 asks for equality."""
    side = "baseline" if judge == "baseline" else "candidate"
    spec = next(s for s in case.compared if s.name == name)
    written = _written(runs, name)
    base = runs[0].values[name][written]
    if not spec.is_float or base.numel() == 0:
        return 0.0
    if distribution == "integers" and is_exact(spec, base):
        return -1.0
    noise = largest_gap(runs[1].values[name][written], base)
    if distribution == "zeros":
        return max(NOISE_FACTOR * noise, strict_tolerance(spec, base))
    buffers = session.buffers(case)
    for _ in range(REPETITIONS if noise else 0):  # one gap may be small by chance
        again = session.run(side, case, buffers, values, session.poisons[0])
        noise = max(noise, largest_gap(again.values[name][written], base))
    restless = NOISE_FACTOR * noise

    def kept(spec: ArraySpec, changed: torch.Tensor) -> torch.Tensor:
        """Numbers that are a threshold or a tie stay: a step beyond it another result is right."""
        own, fixed = values[spec.name], sacred(spec, distribution)
        if not len(fixed) or not spec.is_float:
            return changed
        return torch.where(torch.isin(own.double(), fixed.to(own.device).double()), own, changed)

    times = PERTURBATIONS if base.numel() >= LEAST_ELEMENTS else PERTURBATIONS_OF_FEW
    for step in range(times):
        seed = seed_of(session, case, 1000 + step)
        moved = {s.name: kept(s, perturbed(s, values[s.name], seed + i)) for i, s in enumerate(case.inputs)}
        outputs = session.run(side, case, buffers, moved, session.poisons[0])
        noise = max(noise, largest_gap(outputs.values[name][written], base))
    tolerance = NOISE_FACTOR * noise
    if distribution == "ties":  # few were moved
        return max(tolerance, strict_tolerance(spec, base))
    if distribution == "integers":  # small whole numbers are the same in every precision: a control would say nothing
        return tolerance
    rough = {s.name: kept(s, coarser(s, values[s.name])) for s in case.inputs}
    control = session.run(side, case, buffers, rough, session.poisons[0])
    if tolerance > 0 and largest_gap(control.values[name][written], base) <= tolerance:
        return max(restless, min(tolerance, strict_tolerance(spec, base)))
    return tolerance


def wider_tolerance(
    session: Session, case: Case, values: Values, spec: ArraySpec, due: torch.Tensor, tolerance: float
) -> float:
    """The tolerance where one that was measured on moved inputs is too small: for results that follow their inputs'
    scale, as far as they differ at other scales. It is less than what the next lower precision of the inputs would
    need; what one of a few numbers needs may be little by chance, so that of few it is a number of roundings."""
    buffers = session.buffers(case)

    def original(made: Values) -> torch.Tensor:
        return session.run("baseline", case, buffers, made, session.poisons[0]).values[spec.name][due]

    def at_scale(factor: float) -> torch.Tensor:
        return original({s.name: scaled(s, values[s.name], factor) for s in case.inputs})

    expected = original(values)
    degree = degree_of(expected, at_scale(0.5))
    if degree is None:
        return tolerance
    factors = SCALES if expected.numel() >= LEAST_ELEMENTS else SCALES_OF_FEW
    wider = tolerance_of_scaled(expected, [(factor**degree, at_scale(factor)) for factor in factors])
    if expected.numel() < LEAST_ELEMENTS:
        return max(tolerance, min(wider, MOST_STRICT * strict_tolerance(spec, expected)))
    rough = original({s.name: coarser(s, values[s.name]) for s in case.inputs})
    return wider if tolerance < wider < largest_gap(rough, expected) else tolerance


def _truth(session: Session, case: Case, values: Values, reference: Reference | None) -> dict[str, torch.Tensor] | None:
    """The reference's float64 outputs, or None where it gives other outputs than the kernel has."""
    if reference is None:
        return None
    try:
        outputs = call_reference(reference, case, values, wide=True)
    except (RuntimeError, TypeError, ValueError, KeyError, AttributeError) as error:
        session.emit({"event": "note", "text": f"the reference failed: {type(error).__name__}: {error}"})
        return None
    for spec in case.outputs:
        if spec.name not in outputs or outputs[spec.name].numel() > spec.scalars:
            session.emit({"event": "note", "text": f"the reference's {spec.name} has not the kernel's size"})
            return None
    return outputs


def _as_outputs(case: Case, truth: Mapping[str, torch.Tensor], shape_of: Outputs) -> Outputs:
    """The reference's outputs in the kernel's types; what it does not reach keeps what the candidate left there."""
    values: dict[str, torch.Tensor] = {}
    for spec in case.outputs:
        whole = shape_of.values[spec.name].clone()
        whole[: truth[spec.name].numel()] = truth[spec.name].to(whole.dtype)
        values[spec.name] = whole
    return Outputs(values, shape_of.poisoned)


def _errors(side: str, outputs: Outputs, truth: Mapping[str, torch.Tensor]) -> dict[str, float]:
    """How far one side is from the reference in float64: the worst of its outputs. Units in the last place are those
    of the output's own type."""
    pairs = [(outputs.values[n][: t.numel()], t) for n, t in truth.items() if n in outputs.values]
    floats = [(own, t) for own, t in pairs if own.is_floating_point()]
    return {
        f"{side}_max_abs": max((largest_gap(own, t) for own, t in pairs), default=0.0),
        f"{side}_max_ulp": max((largest_ulp(own, t.to(own.dtype)) for own, t in floats), default=0.0),
        f"{side}_rel_l2": max((relative_l2(own, t) for own, t in floats), default=0.0),
    }
