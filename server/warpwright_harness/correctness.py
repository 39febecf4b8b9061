"""Does the candidate compute what the original computes?

For each shape and distribution of values: the candidate runs first, in memory of its own, poisoned with NaN, twice with
different poisons; then the original does. Both must write the same elements with the same values, up to a tolerance
that is measured: how far the original's own result moves when its inputs move by one unit in the last place. Where the
next lower precision of the inputs would pass that tolerance too, a stricter one is taken. On small whole numbers, where
the original rounds nothing, the results must be equal bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch

from warpwright_harness.buffers import POISONS, bits, coarser, make_values, perturbed
from warpwright_harness.compare import (
    NOISE_FACTOR,
    Difference,
    compare,
    is_exact,
    largest_gap,
    strict_tolerance,
)
from warpwright_harness.session import DEVICE, Case, MisbehaviourError, Outputs, Session, Values, call_reference

PERTURBATIONS = 3
Reference = Callable[..., Mapping[str, torch.Tensor]]


def seed_of(session: Session, case: Case, salt: int) -> int:
    return (session.seed * 1_000_003 + case.index * 10_007 + salt * 101) % (1 << 62)


def input_values(session: Session, case: Case, distribution: str, salt: int) -> dict[str, torch.Tensor]:
    seed = seed_of(session, case, salt)
    return {s.name: make_values(s, distribution, seed + i, DEVICE) for i, s in enumerate(case.inputs)}


def check_case(session: Session, case: Case, reference: Reference | None, judge: str) -> str:
    """Compare at one shape with every distribution, one event each: "right", "wrong" or "unsupported".

    `judge` is "baseline", or "reference" to compare with the reference alone (the original is then not run).
    A misbehaving original ends the case with an event "unsupported", which is no fault of the candidate.
    """
    for salt, distribution in enumerate(case.distributions):
        values = input_values(session, case, distribution, salt)
        try:
            result = _check(session, case, values, distribution, reference, judge)
        except MisbehaviourError as error:
            if error.side == "baseline":
                return _unsupported(session, case, f"the original is not sound here: {error}")
            result = {"ok": False, "unsafe": True, "reason": str(error), "max_abs": None, "max_rel": None}
        if "unsupported" in result:
            return _unsupported(session, case, result["unsupported"])
        session.emit(
            {"event": "case", "case": case.index, "shape": dict(case.shape), "distribution": distribution, **result}
        )
        if not result["ok"]:
            return "wrong"
    return "right"


def _unsupported(session: Session, case: Case, reason: str) -> str:
    session.emit({"event": "unsupported", "case": case.index, "shape": dict(case.shape), "reason": reason})
    return "unsupported"


def _check(
    session: Session,
    case: Case,
    values: Values,
    distribution: str,
    reference: Reference | None,
    judge: str,
) -> dict[str, Any]:
    candidate = session.run_twice("candidate", case, values)
    truth = _truth(session, case, values, reference)
    if judge == "reference":
        if truth is None:
            return {"unsupported": "the reference does not give every output"}
        own, expected = candidate, _as_outputs(case, truth, candidate[0])
    else:
        own = session.run_twice("baseline", case, values)
        expected = own[0]
        if restless := next((s.name for s in case.outputs if not s.is_float and _differs(own, s.name)), None):
            return {"unsupported": f"the original's own {restless} differs from run to run"}
    differences: list[Difference] = []
    spread = False
    for spec in case.outputs:
        name = spec.name
        tolerance = _tolerance(session, case, values, distribution, judge, own, name)
        wrote, due = _written(candidate, name), _written(own, name)
        if judge == "reference" and truth is not None:
            due[: truth[name].numel()] = True
        differences.append(compare(spec, candidate[0].values[name], expected.values[name], (wrote, due), tolerance))
        again = compare(spec, candidate[1].values[name], candidate[0].values[name], (wrote, wrote), tolerance)
        if not differences[-1].why and again.why:
            reason = f"it gives another result when the memory around its arrays holds other values: {again.why}"
            differences.append(Difference(name, again.max_abs, again.max_rel, tolerance, reason))
        shown = expected.values[name][due]
        spread = spread or (shown.numel() > 1 and bool((shown != shown[0]).any()))
    wrong = next((d for d in differences if d.why), None)
    sample = {s.name: repr(expected.values[s.name][:1].tolist()) for s in case.outputs}
    result = {
        "ok": wrong is None,
        "max_abs": max((d.max_abs for d in differences), default=0.0),
        "max_rel": max((d.max_rel for d in differences), default=0.0),
        "tolerance": max((d.tolerance for d in differences), default=0.0),
        "reason": wrong.why if wrong else "",
        "spread": spread,
        "sample": sample,
    }
    if truth is not None:
        result["reference"] = {
            "candidate_max_abs": _error(candidate[0], truth),
            "baseline_max_abs": _error(expected, truth) if judge == "baseline" else None,
        }
    return result


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
    spec = next(s for s in case.outputs if s.name == name)
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
    for step in range(PERTURBATIONS):
        seed = seed_of(session, case, 1000 + step)
        moved = {s.name: perturbed(s, values[s.name], seed + i) for i, s in enumerate(case.inputs)}
        outputs = session.run(side, case, buffers, moved, POISONS[0])
        noise = max(noise, largest_gap(outputs.values[name][written], base))
    tolerance = NOISE_FACTOR * noise
    rough = {s.name: coarser(s, values[s.name]) for s in case.inputs}
    control = session.run(side, case, buffers, rough, POISONS[0])
    if tolerance > 0 and largest_gap(control.values[name][written], base) <= tolerance:
        return min(tolerance, strict_tolerance(spec, base))
    return tolerance


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


def _error(outputs: Outputs, truth: Mapping[str, torch.Tensor]) -> float:
    return max(
        (largest_gap(outputs.values[n][: t.numel()], t) for n, t in truth.items() if n in outputs.values), default=0.0
    )
