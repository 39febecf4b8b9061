"""Is the candidate faster? Interleaved rounds on one GPU that nobody else uses meanwhile.

A round takes one of several sets of buffers and runs both sides there, in random order: each once with cold caches and
once with warm ones, on fresh values. Whatever was timed is compared with what the original made of the same values, so
that nothing behaves only while it is checked, nothing is remembered from an earlier launch, and an address that suits
a kernel suits both.

Rounds go on until the interval of the ratio settles the verdict or is narrow (`intervals`), or time is up.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

import torch

from warpwright_harness.buffers import ArraySpec, Buffer, bits, guards_broken, perturbed
from warpwright_harness.checks.compare import NOISE_FACTOR, agree_quickly, compare
from warpwright_harness.checks.correctness import PERTURBATIONS, input_values, seed_of, wider_tolerance
from warpwright_harness.device import Launch, Launches
from warpwright_harness.session import DEVICE, Case, Outputs, Session, Values
from warpwright_harness.timing.bounds import Bound, bound_of
from warpwright_harness.timing.intervals import Ratio, is_enough, median_interval, ratio_of
from warpwright_harness.timing.stopwatch import Stopwatch, l2_bytes

SIDES = ("baseline", "candidate")
SETS = 4
COPIES = 4
"""Of a case's arrays, beside the sets: the values, the fresh ones, and the outputs that are compared."""

TIMED_TOLERANCE = 2.0
"""Of the tolerance as it is measured: the values of a round are others than those that it was measured on."""

UNCOUNTED_ROUNDS = 2
"""At the start, while clocks and pages warm up."""

LEAST_ROUNDS = 8
"""Of a kernel so slow that time is up before the first look."""

LAUNCH_BOUND_FACTOR = 20
CROSS_CHECKS = 7
HOST_SLACK_US = 60.0
HOST_SLACK = 0.25
"""The host's clock may show this much more for a launch than for an empty one: microseconds, a share of its time."""


class TimedWrongError(Exception):
    """A timed launch of the candidate did what it must not. The message says what."""


@dataclass
class Samples:
    """Microseconds of one side, by round."""

    cold: list[float] = field(default_factory=lambda: [])
    warm: list[float] = field(default_factory=lambda: [])


def time_case(
    sessions: Sequence[Session],
    case: Case,
    stopwatch: Stopwatch,
    rates: Mapping[str, float],
    operations: float,
    seconds: float,
) -> bool:
    """Time both sides at one shape and emit a "speed" event; False where the candidate was caught at something.

    `sessions` are of one request: the same kernels, loaded at other places. Each round takes one of them.
    `rates` are the machine's (`rates.measure_rates`), `operations` those of the reference, 0 where they are not known.
    """
    session = sessions[0]
    try:
        samples = _rounds(sessions, case, stopwatch, seconds)
        _cross_check(session, case, stopwatch, samples)
        bound = bound_of(case.arrays, operations, rates, l2_bytes())
        reject_impossible(samples, bound)
    except TimedWrongError as error:
        session.emit(_wrong_event(case, str(error)))
        return False
    session.emit(_speed_event(case, stopwatch, samples, bound))
    return True


def _rounds(sessions: Sequence[Session], case: Case, stopwatch: Stopwatch, seconds: float) -> dict[str, Samples]:
    """Raises TimedWrongError."""
    ring = _Ring(sessions[0], case)
    order = random.Random(sessions[0].seed + case.index)
    samples = {side: Samples() for side in SIDES}
    started = time.monotonic()
    for number, sides in enumerate(_orders(order)):
        taken = _round(order.choice(sessions), ring, stopwatch, order, sides)
        if number < UNCOUNTED_ROUNDS:
            continue
        for side, (cold, warm) in taken.items():
            samples[side].cold.append(cold)
            samples[side].warm.append(warm)
        rounds = number + 1 - UNCOUNTED_ROUNDS
        if rounds >= LEAST_ROUNDS and time.monotonic() - started > seconds:
            break
        if is_enough(samples["baseline"].cold, samples["candidate"].cold):
            break
    return samples


def _orders(order: random.Random) -> Iterator[tuple[str, ...]]:
    """Which side goes first in each round: at random, and equally often after every second round."""
    while True:
        yield from order.sample((SIDES, SIDES[::-1]), 2)


def _cold_ratio(samples: Mapping[str, Samples]) -> Ratio:
    return ratio_of(samples["baseline"].cold, samples["candidate"].cold)


def _round(
    session: Session, ring: _Ring, stopwatch: Stopwatch, order: random.Random, sides: tuple[str, ...]
) -> dict[str, tuple[float, float]]:
    """Both sides once with cold and once with warm caches, on fresh values each time: the times by side.

    Warm is what a kernel finds whose arrays were written just before. Raises TimedWrongError.
    """
    place = order.choice(ring.places)
    taken: dict[str, list[float]] = {side: [] for side in SIDES}
    for start_timing in (stopwatch.start_cold, stopwatch.start_warm):
        ring.draw(order)
        left: dict[str, dict[str, torch.Tensor]] = {}
        for side in sides:
            session.begin("time", ring.case, side)
            start = place.starter(session, side, ring.fresh)
            ring.fill(place)
            read = start_timing(start)
            left[side] = ring.taken(place)
            harm = ring.harm(place) if side == "candidate" else None  # enqueued before anything is waited for
            taken[side].append(read())
            if harm is not None and (why := ring.damage(harm)):
                raise TimedWrongError(why)
        if why := ring.difference(left["candidate"], left["baseline"]):
            raise TimedWrongError(why)
    return {side: (cold, warm) for side, (cold, warm) in taken.items()}


@dataclass(frozen=True)
class _Place:
    """One set of buffers, in which either side may be started again and again; `launches` are those made ready."""

    case: Case
    buffers: Mapping[str, Buffer]
    launches: dict[tuple[int, str], Launch | Launches] = field(default_factory=lambda: {})

    def starter(self, session: Session, side: str, values: Values) -> Callable[[], None]:
        """What launches one side here, whose file's variables are set to theirs among `values`."""
        session.set_variables(side, self.case, values)
        launch = self.launches.get((id(session), side))
        if launch is None:
            launch = self.launches[id(session), side] = session.prepared(side, self.case, self.buffers)
        stream = torch.cuda.current_stream().cuda_stream
        return lambda: launch.start(stream)


class _Ring:
    """The sets of buffers, the fresh values of this round, and what tells whether outputs are right."""

    def __init__(self, session: Session, case: Case) -> None:
        self.case = case
        free = torch.cuda.mem_get_info()[0] + torch.cuda.memory_reserved() - torch.cuda.memory_allocated()
        room = free // max(1, _bytes(case)) - COPIES
        self.places = [_Place(case, session.buffers(case)) for _ in range(max(1, min(SETS, room)))]
        self.values = input_values(session, case, "normal", 500)
        self.fresh = {name: values.clone() for name, values in self.values.items()}
        self.poison = session.poisons[0]
        self.tolerance = _tolerances(session, case, self.places[0].buffers, self.values)
        self._session = session
        self._widened: set[str] = set()

    def draw(self, order: random.Random) -> None:
        """Fresh values: those that there are rolled by a random number of elements, so that all differ from before."""
        for spec in self.case.arrays:
            if not spec.is_input:
                continue
            step = order.randrange(spec.count) * spec.components if spec.count else 0
            fresh, values = self.fresh[spec.name], self.values[spec.name]
            fresh[step:].copy_(values[: spec.scalars - step])
            fresh[:step].copy_(values[spec.scalars - step :])

    def fill(self, place: _Place) -> None:
        for spec in self.case.arrays:
            place.buffers[spec.name].fill(self.poison, self.fresh.get(spec.name))

    def taken(self, place: _Place) -> dict[str, torch.Tensor]:
        """A copy of the outputs as they are once the work enqueued so far is done."""
        return {s.name: place.buffers[s.name].data.clone() for s in self.case.outputs}

    def harm(self, place: _Place) -> torch.Tensor:
        """Of each array whether the memory around it is not what it was, then of each input that is no output whether
        its values are not: booleans on the device, which nobody waited for."""
        broken = guards_broken([place.buffers[spec.name] for spec in self.case.arrays], self.poison)
        changed = [
            (bits(place.buffers[spec.name].data) != bits(self.fresh[spec.name])).any().view(1)
            for spec in self._unchanged
        ]
        return torch.cat([broken, *changed])

    def damage(self, harm: torch.Tensor) -> str:
        """What was seen, in words; empty where there is no harm."""
        answers = iter(harm.tolist())
        outside = [spec for spec in self.case.arrays if next(answers)]
        changed = [spec for spec in self._unchanged if next(answers)]
        for spec in self.case.arrays:
            if spec in outside:
                return f"it writes outside {spec.name}, whose extent is {spec.count:,}"
            if spec in changed:
                return f"it changes its input {spec.name}"
        return ""

    @property
    def _unchanged(self) -> list[ArraySpec]:
        return [spec for spec in self.case.arrays if not spec.is_output]

    def difference(self, candidate: Mapping[str, torch.Tensor], baseline: Mapping[str, torch.Tensor]) -> str:
        """Why the candidate's outputs are not the original's; empty where they are."""
        for spec in self.case.outputs:
            ours, theirs = candidate[spec.name], baseline[spec.name]
            tolerance = self.tolerance[spec.name]
            if agree_quickly(ours, theirs, tolerance):
                continue
            written = (_is_written(spec, ours, self.poison), _is_written(spec, theirs, self.poison))
            found = compare(spec, ours, theirs, written, tolerance)
            if found.why and spec.is_float and spec.name not in self._widened:
                self._widened.add(spec.name)
                self.tolerance[spec.name] = wider_tolerance(
                    self._session, self.case, self.values, spec, written[1], tolerance
                )
                found = compare(spec, ours, theirs, written, self.tolerance[spec.name])
            if found.why:
                return found.why
        return ""


def _is_written(spec: ArraySpec, values: torch.Tensor, poison: int) -> torch.Tensor:
    pattern = torch.full((-(-values.numel() * values.element_size() // 4),), poison, dtype=torch.int32, device=DEVICE)
    expected = pattern.view(torch.uint8)[: values.numel() * values.element_size()].view(values.dtype)
    return bits(values) != bits(expected)


def _tolerances(session: Session, case: Case, buffers: Mapping[str, Buffer], values: Values) -> dict[str, float]:
    """Of each output: from how far the original's moves when inputs move by one unit in the last place."""
    runs = [session.run("baseline", case, buffers, values, poison) for poison in session.poisons]
    written = {s.name: ~(runs[0].poisoned[s.name] & runs[1].poisoned[s.name]) for s in case.outputs}
    measured = [s for s in case.outputs if s.scalars]

    def gaps(outputs: Outputs) -> torch.Tensor:
        pairs = [(outputs.values[s.name], runs[0].values[s.name], written[s.name]) for s in measured]
        return torch.stack([_gap(one, other, mask) for one, other, mask in pairs])

    if not measured:
        return {s.name: 0.0 for s in case.outputs}
    found = [gaps(runs[1])]
    for step in range(PERTURBATIONS if any(s.is_float for s in case.outputs) else 0):
        seed = seed_of(session, case, 2000 + step)
        moved = {s.name: perturbed(s, values[s.name], seed + i) for i, s in enumerate(case.inputs)}
        found.append(gaps(session.run("baseline", case, buffers, moved, session.poisons[0])))
    noise = dict(zip([s.name for s in measured], torch.stack(found).amax(dim=0).tolist(), strict=True))
    return {s.name: TIMED_TOLERANCE * NOISE_FACTOR * noise.get(s.name, 0.0) for s in case.outputs}


def _gap(one: torch.Tensor, other: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """The largest difference at elements of the mask that are finite in both, 0 where there are none; a number on the
    device, which nobody waited for."""
    gap = (one.double() - other.double()).abs()
    return torch.where(mask & torch.isfinite(gap), gap, 0.0).max()


def _cross_check(session: Session, case: Case, stopwatch: Stopwatch, samples: Mapping[str, Samples]) -> None:
    """Work that the events do not see (on another stream, or after the launch) shows on the host's clock, which runs
    until the whole device is idle. Raises TimedWrongError."""
    place = _Place(case, session.buffers(case))
    values = input_values(session, case, "normal", 501)
    for spec in case.arrays:
        place.buffers[spec.name].fill(session.poisons[0], values.get(spec.name))
    session.begin("time", case, "candidate")
    start = place.starter(session, "candidate", values)
    pairs = [stopwatch.on_host(start) for _ in range(CROSS_CHECKS)]
    hidden = min(on_host - by_events for on_host, by_events in pairs)  # a busy host delays some, hidden work all
    if hidden > stopwatch.host_floor_us + HOST_SLACK_US + HOST_SLACK * median(samples["candidate"].cold):
        raise TimedWrongError(
            f"it works where events do not see it: they show {median(by for _, by in pairs):.1f} us, and the device is "
            f"idle only {hidden:.1f} us after that"
        )


def reject_impossible(samples: Mapping[str, Samples], bound: Bound | None) -> None:
    """Raises TimedWrongError where the candidate, and not the original too, is faster than the hardware can be: an
    original that is does not touch all of its arrays."""
    if bound is None:
        return
    baseline, candidate = samples["baseline"], samples["candidate"]
    for took, own, least, caches in (
        (candidate.cold, baseline.cold, bound.least_cold_us, "cold"),
        (candidate.warm, baseline.warm, bound.least_warm_us, "warm"),
    ):
        if median_interval(took)[1] < least <= median_interval(own)[0]:
            raise TimedWrongError(
                f"it is faster than this GPU can be: {median(took):.2f} us with {caches} caches, where {bound.what} "
                f"leaves no less than {least:.2f} us"
            )


def _wrong_event(case: Case, why: str) -> dict[str, Any]:
    return {
        "event": "case",
        "case": case.index,
        "shape": dict(case.shape),
        "distribution": "while timed",
        "ok": False,
        "reason": why,
        "max_abs": None,
        "max_rel": None,
    }


def _speed_event(
    case: Case, stopwatch: Stopwatch, samples: Mapping[str, Samples], bound: Bound | None
) -> dict[str, Any]:
    baseline, candidate = samples["baseline"], samples["candidate"]
    cold, warm = _cold_ratio(samples), ratio_of(baseline.warm, candidate.warm)
    took = median(candidate.cold)
    touches_all = bound is not None and median(baseline.cold) >= bound.us
    return {
        "event": "speed",
        "case": case.index,
        "shape": dict(case.shape),
        "baseline_us": median(baseline.cold),
        "candidate_us": took,
        "baseline_ci95_us": median_interval(baseline.cold),
        "candidate_ci95_us": median_interval(candidate.cold),
        "speedup": cold.value,
        "ci95": (cold.low, cold.high),
        "least_effect": cold.least,
        "warm": {
            "baseline_us": median(baseline.warm),
            "candidate_us": median(candidate.warm),
            "speedup": warm.value,
            "ci95": (warm.low, warm.high),
        },
        "rounds": len(baseline.cold),
        "floor_us": stopwatch.floor_us,
        "overhead_us": stopwatch.overhead_us,
        "launch_bound": median(baseline.cold) < LAUNCH_BOUND_FACTOR * stopwatch.floor_us,
        "bound": bound.to_json() if bound is not None and touches_all else None,
        "fraction_of_bound": bound.us / took if bound is not None and touches_all else None,
    }


def _bytes(case: Case) -> int:
    return sum(s.scalars * int(s.dtype.itemsize) for s in case.arrays)
