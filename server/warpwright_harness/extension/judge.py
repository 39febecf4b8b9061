"""Is one torch extension the same as another, and faster? The judge's part; the answer is a harness's events.

Both extensions are called on the same inputs, each in a process of its own. The candidate is called first. A call that
hangs, fails or dies costs the candidate its verdict, and the original that size.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, TypeVar

import torch

from warpwright_harness.buffers import coarser, make_values, perturbed
from warpwright_harness.checks.impostors import impostor_that_passes
from warpwright_harness.events import Emit
from warpwright_harness.extension.arena import ArenaError
from warpwright_harness.extension.batch import Batch, Parameters, Values, changed_since, run_batch
from warpwright_harness.extension.outputs import (
    Compared,
    differences,
    flat,
    misbehaviour,
    restless,
    spec_of,
    tolerances,
    unlike,
    widened,
    worst,
)
from warpwright_harness.extension.reference import Reference, call_reference, error_of
from warpwright_harness.extension.side import STEP_SECONDS, RaisedError, Side, SideError

PERTURBATIONS = 3
MOST_ALONE = 4
"""Inputs of which each is changed alone."""
HEARTBEAT_SECONDS = 5.0
LEAST_WAIT, MOST_WAIT = 0.002, 0.02
"""Seconds after which the outputs are looked at once more."""


_Result = TypeVar("_Result")


class CandidateError(Exception):
    """The candidate is not what it should be; the message is one sentence's tail."""

    def __init__(self, message: str, *, unsafe: bool = True, timed_out: bool = False) -> None:
        super().__init__(message)
        self.unsafe = unsafe
        self.timed_out = timed_out


class OriginalError(Exception):
    """The original cannot be compared with at this size; the message is one sentence's tail."""


@dataclass(frozen=True)
class Case:
    """One size: its symbols, the arguments there, and what is to be done."""

    index: int
    shape: Mapping[str, int]
    parameters: Parameters
    distributions: tuple[str, ...]
    check: bool
    time: bool


@dataclass
class Judge:
    """What one verification needs: the sides, the secret order, and what was learned of each size."""

    request: Mapping[str, Any]
    emit: Emit
    device: str
    sides: dict[str, Side] = field(default_factory=lambda: {})
    order: random.Random = field(default_factory=random.SystemRandom)
    allowed: dict[int, dict[str, float]] = field(default_factory=lambda: {})
    """By size, the tolerance of each output on normal values."""
    written: frozenset[str] = frozenset()
    """The inputs that the original was seen to write to: outputs, even where a call leaves them as they were."""
    phase: str = "check"
    patience: float = STEP_SECONDS
    """Seconds in which a side has to answer."""

    def __enter__(self) -> Judge:
        return self

    def __exit__(self, *_: object) -> None:
        for side in self.sides.values():
            side.end()
        self.sides.clear()

    def begin(self, case: Case, side: str) -> None:
        """Tell the parent what runs next, so that a hang has a culprit."""
        self.emit({"event": "begin", "phase": self.phase, "case": case.index, "side": side})

    def side(self, name: str) -> Side:
        """The side's process, started anew where the last one was given up. Raises SideError."""
        if name not in self.sides:
            self.start(name)
        side = self.sides[name]
        try:
            side.load()
        except SideError:
            self.drop(name)
            raise
        return side

    def start(self, name: str) -> None:
        """Start a side's process, which loads its extension when it is first asked."""
        self.sides[name] = Side(self.loaded(name), patience=self.patience)

    def loaded(self, name: str) -> dict[str, Any]:
        """What a side's process is told to load."""
        asked = {key: self.request["extension"][key] for key in ("module", "namespace", "name")}
        asked |= {"library": self.request[name]["library"], "device": self.device}
        return {**asked, "flush_bytes": flush_bytes(self.device)}

    def meanwhile(self, case: Case, side: str, *work: Callable[[], _Result]) -> list[_Result]:
        """What all of `work` gives, done at once, while the parent hears every few seconds that it goes on."""
        with ThreadPoolExecutor(len(work)) as pool:
            futures = [pool.submit(each) for each in work]
            self.begin(case, side)
            while wait(futures, HEARTBEAT_SECONDS).not_done:
                self.begin(case, side)
            return [future.result() for future in futures]

    def candidate(self, case: Case, values: Sequence[Values], *, flush: bool = False) -> Batch:
        """Raises CandidateError, and RaisedError where the extension raises an error of its own."""
        try:
            return self._run("candidate", case, values, flush)
        except RaisedError:
            raise
        except SideError as error:
            raise CandidateError(str(error), timed_out=error.timed_out) from None

    def original(self, case: Case, values: Sequence[Values], *, flush: bool = False) -> Batch:
        """Raises OriginalError."""
        try:
            return self._run("baseline", case, values, flush)
        except SideError as error:
            raise OriginalError(f"the original itself fails there: {error}") from None

    def _run(self, name: str, case: Case, values: Sequence[Values], flush: bool) -> Batch:
        self.begin(case, name)
        try:
            return run_batch(self.side(name), case.parameters, values, self.order, flush=flush, device=self.device)
        except RaisedError:
            raise
        except SideError:
            self.drop(name)
            raise
        except ArenaError as error:
            raise OriginalError(str(error)) from None

    def drop(self, name: str) -> None:
        with suppress(KeyError):
            self.sides.pop(name).end()

    def draw(self, case: Case, distribution: str) -> dict[str, torch.Tensor]:
        """Values that no one else can know: the seed is drawn here and kept nowhere."""
        seed = self.order.randrange(1 << 62)
        return {
            spec.name: make_values(spec, distribution, seed + place, self.device)
            for place, spec in enumerate(case.parameters.tensors)
        }

    def learn(self, original: Batch) -> None:
        """Keep in mind which inputs the original writes to."""
        self.written = self.written.union(*(call.changed for call in original.calls))

    def threads_more(self) -> int:
        """How many threads more the candidate's process has than the original's."""
        if "candidate" not in self.sides or "baseline" not in self.sides:
            return 0
        return self.sides["candidate"].threads() - self.sides["baseline"].threads()

    def later(self, batch: Batch) -> bool:
        """Whether the candidate's results change after its calls. Raises CandidateError."""
        time.sleep(self.order.uniform(LEAST_WAIT, MOST_WAIT))
        try:
            return changed_since(self.side("candidate"), batch)
        except SideError as error:
            raise CandidateError(str(error), timed_out=error.timed_out) from None


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


def failure(error: CandidateError) -> dict[str, Any]:
    """An event's part for a candidate that is not compared any further."""
    return {
        "ok": False,
        "unsafe": error.unsafe,
        "timed_out": error.timed_out,
        "reason": str(error),
        "max_abs": None,
        "max_rel": None,
    }


def _check(judge: Judge, case: Case, distribution: str, reference: Reference | None) -> dict[str, Any]:
    values = judge.draw(case, distribution)
    plan = [values, values, *_changed_alone(judge, case, values, distribution)]
    places = list(range(len(plan)))
    judge.order.shuffle(places)
    given = [plan[place] for place in places]
    try:
        mine = judge.candidate(case, given)
    except RaisedError as error:
        judge.original(case, given)  # raises where the original does, too
        raise CandidateError(str(error), unsafe=False) from None
    later = judge.later(mine)
    theirs = judge.original(case, given)
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
    own, expected_all = _flat(mine, written), _flat(theirs, written)
    first, second = places.index(0), places.index(1)
    if name := restless([expected_all[first], expected_all[second]]):
        raise OriginalError(f"the original's own {name.removeprefix('its ')} differs from run to run")
    truth = call_reference(judge.emit, reference, case.parameters, values, expected_all[first]) if reference else None
    by_reference = judge.request["judge"] == "reference" and truth is not None
    measured = (own if by_reference else expected_all)[first], (own if by_reference else expected_all)[second]
    allowed = _tolerances(judge, case, values, distribution, measured, written, by_reference=by_reference)
    if truth is not None and not by_reference:
        allowed = widened(allowed, expected_all[first], truth)
    if distribution == "normal":
        judge.allowed[case.index] = allowed
    compared = _compared(own, expected_all, allowed, places, truth if by_reference else None)
    if not compared.why and later:
        raise CandidateError("a result changes after the call that returned it")
    if judge.threads_more() > 0:
        raise CandidateError(f"it leaves {judge.threads_more()} threads running that the original does not")
    shown = expected_all[first]
    result: dict[str, Any] = {
        "ok": not compared.why,
        **compared.figures(),
        "reason": compared.why,
        "spread": any(bool((t != t.reshape(-1)[0]).any()) for t in shown.values() if t.numel() > 1),
        "loose": _loose(case, shown, allowed) if distribution != "zeros" else {},
        "sample": {name: repr(t[:1].tolist()) for name, t in shown.items()},
    }
    if truth is not None:
        result["reference"] = {
            "candidate_max_abs": error_of(own[first], truth),
            "baseline_max_abs": error_of(expected_all[first], truth),
        }
    return result


def _flat(batch: Batch, written: frozenset[str]) -> list[dict[str, torch.Tensor]]:
    """Copies, because a side's next batch lies where this one does."""
    return [{name: tensor.clone() for name, tensor in flat(call, written).items()} for call in batch.calls]


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


def _compared(
    own: Sequence[Mapping[str, torch.Tensor]],
    expected: Sequence[Mapping[str, torch.Tensor]],
    allowed: Mapping[str, float],
    places: Sequence[int],
    truth: Mapping[str, torch.Tensor] | None,
) -> Compared:
    """Every call with the original's, or only those of the first values with the reference's."""
    found = []
    for place, mine, theirs in zip(places, own, expected, strict=True):
        if truth is None:
            found.append(differences(mine, theirs, allowed))
        elif place < 2:
            found.append(differences(mine, {n: truth[n].to(theirs[n].dtype) for n in theirs}, allowed))
    return worst(found)


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


def _tolerances(
    judge: Judge,
    case: Case,
    values: Values,
    distribution: str,
    measured: tuple[Mapping[str, torch.Tensor], Mapping[str, torch.Tensor]],
    written: frozenset[str],
    *,
    by_reference: bool,
) -> dict[str, float]:
    """How far rounding may move each output, measured on the original, or on the candidate against a reference."""
    runs = list(measured)
    if distribution == "zeros" or not any(t.is_floating_point() for t in runs[0].values()):
        return tolerances(runs, [], None, exact=distribution == "integers")
    run = judge.candidate if by_reference else judge.original
    specs = case.parameters.tensors
    seeds = [judge.order.randrange(1 << 60) for _ in range(PERTURBATIONS)]
    moved = [{s.name: perturbed(s, values[s.name], seed + i) for i, s in enumerate(specs)} for seed in seeds]
    if distribution == "integers":  # small whole numbers are the same in every precision: a control would say nothing
        return tolerances(runs, _flat(run(case, moved), written), None, exact=True)
    rough = {s.name: coarser(s, values[s.name]) for s in specs}
    outputs = _flat(run(case, [*moved, rough]), written)
    return tolerances(runs, outputs[:-1], outputs[-1], exact=False)


def flush_bytes(device: str) -> int:
    """Twice the second-level cache; four bytes without a GPU."""
    return 2 * int(torch.cuda.get_device_properties(0).L2_cache_size) if device == "cuda" else 4
