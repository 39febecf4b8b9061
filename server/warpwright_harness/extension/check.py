"""Is one torch extension the same as another at one size? The answer is a harness's events.

Both extensions are called on the same inputs, the candidate first.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from warpwright_harness.checks.impostors import impostor_that_passes
from warpwright_harness.extension.batch import Batch, Values
from warpwright_harness.extension.judge import CandidateError, Case, Judge, OriginalError, failure
from warpwright_harness.extension.outputs import (
    Compared,
    differences,
    is_few,
    misbehaviour,
    restless,
    spec_of,
    unlike,
    worst,
)
from warpwright_harness.extension.reference import Reference, call_reference, error_of
from warpwright_harness.extension.rounding import Rounding, copied, either, tolerances
from warpwright_harness.extension.side import RaisedError

MOST_ALONE = 4
"""Inputs of which each is changed alone."""

_Outputs = Mapping[str, torch.Tensor]


def check_case(judge: Judge, case: Case, reference: Reference | None) -> str:
    """Compare at one size with every distribution, an event each: "right", "wrong" or "unsupported"."""
    for distribution in case.distributions:
        try:
            result = _check(judge, case, distribution, reference)
        except OriginalError as error:
            judge.emit({"event": "unsupported", "case": case.index, "shape": dict(case.shape), "reason": str(error)})
            return "unsupported"
        except CandidateError as error:
            result = failure(error)
        judge.emit({
            "event": "case", "case": case.index, "shape": dict(case.shape), "distribution": distribution, **result,
        })  # fmt: skip
        if not result["ok"]:
            return "wrong"
    return "right"


def _check(judge: Judge, case: Case, distribution: str, reference: Reference | None) -> dict[str, Any]:
    values = judge.draw(case, distribution)
    plan = [values, values, *_changed_alone(judge, case, values, distribution)]
    places = list(range(len(plan)))
    judge.order.shuffle(places)
    given = [plan[place] for place in places]
    mine, later, theirs = _both(judge, case, given)
    judge.learn(theirs)
    written = judge.written
    _require_sound(theirs, written)
    for call, expected in zip(mine.calls, theirs.calls, strict=True):
        if why := misbehaviour(call, expected, written):
            raise CandidateError(why)
        if why := unlike(call, expected):
            raise CandidateError(why, unsafe=False)
    if replaced := sorted(mine.replaced - theirs.replaced):
        raise CandidateError(f"it replaces {replaced[0]}")
    own, expected_all = _in_order(copied(mine, written), places), _in_order(copied(theirs, written), places)
    if name := restless(expected_all[:2]):
        raise OriginalError(f"the original's own {name.removeprefix('its ')} differs from run to run")
    truth = call_reference(judge.emit, reference, case.parameters, values, expected_all[0]) if reference else None
    by_reference = judge.request["judge"] == "reference" and truth is not None
    rounding = Rounding(judge, case, distribution, reference if truth is not None else None, by_reference)
    if by_reference:
        assert truth is not None
        first = rounding.sample(values, own[:2])
        allowed = tolerances([first])
        as_truth = {name: truth[name].to(tensor.dtype) for name, tensor in expected_all[0].items()}
        found = worst(differences(mine, as_truth, allowed) for mine in own[:2])
    else:
        allowed, found = compared(rounding, plan, own, expected_all)
    if distribution == "normal":
        judge.allowed[case.index] = allowed
    if not found.why and later:
        raise CandidateError("a result changes after the call that returned it")
    judge.require_no_threads()
    shown = expected_all[0]
    result: dict[str, Any] = {
        "ok": not found.why,
        **found.figures(),
        "reason": found.why,
        "spread": any(bool((t != t.reshape(-1)[0]).any()) for t in shown.values() if t.numel() > 1),
        "loose": _loose(case, shown, allowed) if distribution != "zeros" else {},
        "sample": {name: repr(t[:1].tolist()) for name, t in shown.items()},
    }
    if truth is not None:
        result["reference"] = {
            "candidate_max_abs": error_of(own[0], truth),
            "baseline_max_abs": error_of(expected_all[0], truth),
        }
    return result


def _both(judge: Judge, case: Case, given: Sequence[Values]) -> tuple[Batch, bool, Batch]:
    """The candidate's calls, whether their results change later, and the original's. Raises CandidateError, and
    OriginalError where the original fails as the candidate does."""
    try:
        mine = judge.candidate(case, given)
    except RaisedError as error:
        judge.original(case, given)
        raise CandidateError(str(error), unsafe=False) from None
    except CandidateError:
        judge.original(case, given)
        raise
    later = judge.later(mine)
    return mine, later, judge.original(case, given)


def _in_order(outputs: Sequence[_Outputs], places: Sequence[int]) -> list[_Outputs]:
    """The outputs of a batch in the order of its plan; `places` are where in the plan its calls stand."""
    return [outputs[places.index(place)] for place in range(len(places))]


def compared(
    rounding: Rounding, plan: Sequence[Values], own: Sequence[_Outputs], expected: Sequence[_Outputs]
) -> tuple[dict[str, float], Compared]:
    """The tolerances of the first values, which the first two calls have, and what the comparison of all calls found.

    They are measured on all values where the outputs have few finite elements. A call on other values that differs by
    more is judged by what its own values allow.
    """
    first = rounding.sample(plan[0], expected[:2])
    samples = [first]
    few = is_few(first) and rounding.distribution != "zeros"
    if few:
        samples += [rounding.sample(plan[place], [expected[place]]) for place in range(2, len(plan))]
    allowed = tolerances(samples)
    found = []
    for place, (mine, theirs) in enumerate(zip(own, expected, strict=True)):
        one = differences(mine, theirs, allowed)
        if one.why and place >= 2 and not few:
            its_own = tolerances([rounding.sample(plan[place], [theirs])])
            one = differences(mine, theirs, either(allowed, its_own))
        found.append(one)
    return allowed, worst(found)


def _require_sound(batch: Batch, written: frozenset[str]) -> None:
    """Raises OriginalError where the original itself does what nobody can be compared with."""
    for call in batch.calls:
        if call.outside:
            raise OriginalError(f"the original is not sound here: it writes outside {min(call.outside)}")
        if not call.outputs and not written:
            raise OriginalError("the original returns nothing here and changes none of its inputs")


def _loose(case: Case, outputs: Mapping[str, torch.Tensor], allowed: Mapping[str, float]) -> dict[str, str]:
    """The outputs for which something that computes nothing would pass, and what."""
    found = {}
    for name, tensor in outputs.items():
        if not tensor.is_floating_point() or allowed[name] < 0 or not tensor.numel():
            continue
        everywhere = torch.ones(tensor.numel(), dtype=torch.bool, device=tensor.device)
        passes = impostor_that_passes(spec_of(name, tensor), tensor, everywhere, allowed[name], None, case.shape)
        if passes:
            found[name] = passes
    return found


def _changed_alone(judge: Judge, case: Case, values: Values, distribution: str) -> list[Values]:
    """Inputs of which one is new, each in turn; and inputs that differ in one stretch of one tensor."""
    other = judge.draw(case, distribution)
    plans: list[Values] = [{**values, name: other[name]} for name in list(other)[:MOST_ALONE]]
    names = [spec.name for spec in case.parameters.tensors if spec.scalars]
    if names:
        plans.append({**values, **(twin(judge.order, values, other, names))})
    return plans


def twin(order: random.Random, values: Values, other: Values, names: Sequence[str]) -> dict[str, torch.Tensor]:
    """One tensor with another stretch somewhere, and its beginning and end as they were where it has a middle."""
    name = order.choice(names)
    count = values[name].numel()
    start = order.randrange(count // 4, max(count // 4 + 1, count // 2))
    end = min(count, start + max(1, count // 8))
    changed = values[name].clone()
    changed[start:end] = other[name][start:end]
    return {name: changed}
