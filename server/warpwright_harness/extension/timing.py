"""Is the candidate's extension faster? Rounds in which both sides make the same calls, one after the other.

Each round draws new values, which lie at new addresses, and asks both sides in random order, with an emptied and with a
filled second-level cache. Every result of every round is compared. The times are those of the sides' own clocks, which
a side could forge; what a side claims to save must also be saved by the judge's clock, which ticks in another process.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

import torch

from warpwright_harness.buffers import ArraySpec
from warpwright_harness.extension.batch import Batch, Values
from warpwright_harness.extension.check import twin
from warpwright_harness.extension.judge import CandidateError, Case, Judge, OriginalError, failure
from warpwright_harness.extension.outputs import differences, flat, misbehaviour, quick_differences, spec_of, unlike
from warpwright_harness.extension.reference import Reference
from warpwright_harness.extension.rounding import Rounding, either, kept, tolerances
from warpwright_harness.extension.side import RaisedError
from warpwright_harness.timing.bounds import Bound, bound_of
from warpwright_harness.timing.intervals import is_enough, median_interval, ratio_of

SIDES = ("baseline", "candidate")
LEAST_ROUNDS = 8
"""Of calls so slow that time is up before the first look."""
UNCOUNTED_ROUNDS = 2
"""At the start, while clocks and pages warm up."""
MOST_CALLS = 8
SHARE_OF_MEMORY = 0.5
"""Of the GPU's free memory, for the inputs and outputs of both sides' batches and of the judge's own."""
COPIES = 16
"""Of a call's inputs that live at once: drawn, laid out, private, returned and copied, on both sides."""
TIMED_TOLERANCE = 2.0
"""Of the checked tolerance: the values of a round are others than those that it was measured on."""
CONFIRMED = 0.5
"""Of what a side claims to save, at least so much must be saved by the judge's clock too."""
LEAST_CLOCK = 0.95
"""Of what a spinning kernel takes by the original's clock, what it must take by the candidate's."""
LAUNCH_BOUND_FACTOR = 20


@dataclass(frozen=True)
class Machine:
    """What the clock and the hardware do: the cost of two events, an empty kernel, rates (`rates.RATES`), the cache."""

    overhead_us: float = 0.0
    floor_us: float = 0.0
    rates: Mapping[str, float] = field(default_factory=lambda: {})
    l2_bytes: int = 0
    memory_bytes: int = 1 << 30
    """That is free."""


@dataclass
class _Times:
    """By side and round: microseconds of a call and of a spinning kernel's cycle by the side's clock, and of the whole
    batch by the judge's."""

    calls: dict[str, list[float]] = field(default_factory=lambda: {side: [] for side in SIDES})
    walls: dict[str, list[float]] = field(default_factory=lambda: {side: [] for side in SIDES})
    cycles: dict[str, list[float]] = field(default_factory=lambda: {side: [] for side in SIDES})

    def add(self, side: str, batch: Batch, overhead_us: float) -> None:
        took = median(call.microseconds for call in batch.calls) - overhead_us
        self.calls[side].append(max(took, 0.001))
        self.walls[side].append(batch.wall_us)
        self.cycles[side].append(batch.cycle_us)


@dataclass
class _Seen:
    """What the rounds gave: times with cold and with warm caches, and the outputs of a call."""

    cold: _Times = field(default_factory=_Times)
    warm: _Times = field(default_factory=_Times)
    outputs: tuple[ArraySpec, ...] = ()


def time_case(
    judge: Judge, case: Case, machine: Machine, reference: Reference | None, operations: float, seconds: float
) -> bool:
    """Time both at one size and emit a "speed" event; False, after an event, where the candidate is at fault.

    `operations` are those of the reference at this size, 0 where they are not known.
    """
    try:
        seen = _measured(Rounding(judge, case, "normal", reference), machine, seconds)
        if judge.device == "cuda":
            require_same_clock(seen.cold.cycles["baseline"], seen.cold.cycles["candidate"])
        _confirm(seen.cold, calls_of(case, machine))
        bound = bound_of(_arrays(case, seen), operations, machine.rates, machine.l2_bytes)
        _possible(seen, bound)
    except OriginalError as error:
        judge.emit({"event": "note", "text": f"not timed at {dict(case.shape)}: {error}"})
        return True
    except CandidateError as error:
        shape = dict(case.shape)
        result = failure(error)
        judge.emit({"event": "case", "case": case.index, "shape": shape, "distribution": "while timed", **result})
        return False
    judge.emit(_speed(case, seen, machine, bound))
    return True


def calls_of(case: Case, machine: Machine) -> int:
    """So many in a batch that the judge's clock sees them, and that they fit."""
    room = int(SHARE_OF_MEMORY * machine.memory_bytes)
    return max(2, min(MOST_CALLS, room // max(1, COPIES * case.parameters.bytes)))


def _measured(rounding: Rounding, machine: Machine, seconds: float) -> _Seen:
    """Raises CandidateError and OriginalError."""
    judge, case = rounding.judge, rounding.case
    judge.phase = "time"
    seen = _Seen()
    started = time.monotonic()
    number = 0
    while True:
        values = _new_values(judge, case, calls_of(case, machine))
        for flush in judge.order.sample((True, False), 2):
            batches = _both(rounding, values, flush=flush)
            outputs = flat(batches["baseline"].calls[0], judge.written)
            seen.outputs = tuple(spec_of(name, tensor) for name, tensor in outputs.items())
            if number >= UNCOUNTED_ROUNDS:
                for side, batch in batches.items():
                    (seen.cold if flush else seen.warm).add(side, batch, machine.overhead_us)
        number += 1
        rounds = number - UNCOUNTED_ROUNDS
        if rounds >= LEAST_ROUNDS and time.monotonic() - started > seconds:
            return seen
        if rounds > 0 and is_enough(seen.cold.calls["baseline"], seen.cold.calls["candidate"]):
            return seen


def _both(rounding: Rounding, values: Sequence[Values], *, flush: bool) -> dict[str, Batch]:
    """Both sides' calls of one round, in random order and found alike. Raises CandidateError and OriginalError."""
    judge, case = rounding.judge, rounding.case
    batches: dict[str, Batch] = {}
    later = False
    for side in judge.order.sample(SIDES, 2):
        if side == "baseline":
            batches[side] = judge.original(case, values, flush=flush)
            continue
        try:
            batches[side] = judge.candidate(case, values, flush=flush)
        except RaisedError as error:
            raise CandidateError(str(error), unsafe=False) from None
        later = judge.later(batches[side])
    _require_alike(rounding, values, batches["candidate"], batches["baseline"])
    if later:
        raise CandidateError("a result changes after the call that returned it")
    judge.require_no_threads()
    return batches


def _new_values(judge: Judge, case: Case, calls: int) -> list[Values]:
    """Half of the calls have values of their own, the others differ from the one before in a stretch of one tensor."""
    names = [spec.name for spec in case.parameters.tensors if spec.scalars]
    values: list[Values] = []
    for number in range(calls):
        drawn = judge.draw(case, "normal")
        values.append({**values[-1], **twin(judge.order, values[-1], drawn, names)} if number % 2 and names else drawn)
    return values


def _require_alike(rounding: Rounding, values: Sequence[Values], mine: Batch, theirs: Batch) -> None:
    """Raises CandidateError where a timed call gave or did something else than the original's.

    One that differs by more than the values of the check allow is judged by what its own values allow.
    """
    judge = rounding.judge
    written = judge.written
    allowed = {n: t if t < 0 else TIMED_TOLERANCE * t for n, t in judge.allowed[rounding.case.index].items()}
    beyond = []
    for given, call, expected in zip(values, mine.calls, theirs.calls, strict=True):
        if why := misbehaviour(call, expected, written):
            raise CandidateError(why)
        if why := unlike(call, expected):
            raise CandidateError(why, unsafe=False)
        if quick_differences(flat(call, written), flat(expected, written), allowed):
            beyond.append((given, kept(call, written), kept(expected, written)))
    if replaced := sorted(mine.replaced - theirs.replaced):
        raise CandidateError(f"it replaces {replaced[0]}")
    for given, own, due in beyond:
        if why := differences(own, due, either(allowed, _own_tolerances(rounding, given, due))).why:
            raise CandidateError(why, unsafe=False)


def _own_tolerances(rounding: Rounding, values: Values, outputs: Mapping[str, torch.Tensor]) -> dict[str, float]:
    """Those of the values of one call; equality where the original does not run on them."""
    try:
        return tolerances([rounding.sample(values, [outputs])])
    except OriginalError:
        return dict.fromkeys(outputs, -1.0)


def require_same_clock(baseline: Sequence[float], candidate: Sequence[float]) -> None:
    """Raises CandidateError where a spinning kernel, whose cycles the judge draws, takes less time by the candidate's
    clock than by the original's. Both have microseconds of a cycle, by round."""
    ratio = median(one / other for one, other in zip(candidate, baseline, strict=True))
    if not ratio >= LEAST_CLOCK:  # nor is it, where a time is no number
        raise CandidateError(
            f"its clock is not the judge's clock: a spinning kernel takes {ratio:.0%} of the time by it that it takes "
            "by the original's"
        )


def _confirm(times: _Times, calls: int) -> None:
    """Raises CandidateError where the candidate's clock claims a saving that the judge's clock does not see.

    Whatever disturbs the judge's clock makes a batch longer, never shorter: of each side the shortest batches count.
    Of a saving that is less than their noise it sees nothing; a clock that is wrong by a factor does not pass
    `require_same_clock`.
    """
    claimed = calls * (median(times.calls["baseline"]) - median(times.calls["candidate"]))
    seen = _shortest(times.walls["baseline"]) - _shortest(times.walls["candidate"])
    noise = max(map(_noise, times.walls.values()))
    if claimed > noise and seen < CONFIRMED * claimed - noise:
        raise CandidateError(
            f"its own clock says that {calls} calls take {claimed:.0f} us less than the original's, and the judge's "
            f"clock says {seen:.0f} us (within {noise:.0f} us)"
        )


def _shortest(walls: Sequence[float]) -> float:
    """The second of the shortest: one alone may be luck."""
    return sorted(walls)[1]


def _noise(walls: Sequence[float]) -> float:
    """How far apart the shortest few lie."""
    few = sorted(walls)[:4]
    return few[-1] - few[0]


def _arrays(case: Case, seen: _Seen) -> list[ArraySpec]:
    """What is read and written once: the inputs, and the outputs; an input that is written is both."""
    read = [ArraySpec(s.name, s.scalar, 1, "in", s.count, s.limit) for s in case.parameters.tensors]
    return [*read, *seen.outputs]


def _possible(seen: _Seen, bound: Bound | None) -> None:
    """Raises CandidateError where the candidate, and not the original too, is faster than the hardware can be."""
    if bound is None:
        return
    for times, least, caches in ((seen.cold, bound.least_cold_us, "cold"), (seen.warm, bound.least_warm_us, "warm")):
        took = times.calls["candidate"]
        if median_interval(took)[1] < least <= median_interval(times.calls["baseline"])[0]:
            raise CandidateError(
                f"it is faster than this GPU can be: {median(took):.2f} us with {caches} caches, where {bound.what} "
                f"leaves no less than {least:.2f} us"
            )


def _speed(case: Case, seen: _Seen, machine: Machine, bound: Bound | None) -> dict[str, Any]:
    baseline, candidate = (seen.cold.calls[side] for side in SIDES)
    cold, warm = ratio_of(baseline, candidate), ratio_of(seen.warm.calls["baseline"], seen.warm.calls["candidate"])
    took = median(candidate)
    touches_all = bound is not None and median(baseline) >= bound.us
    return {
        "event": "speed",
        "case": case.index,
        "shape": dict(case.shape),
        "baseline_us": median(baseline),
        "candidate_us": took,
        "baseline_ci95_us": median_interval(baseline),
        "candidate_ci95_us": median_interval(candidate),
        "speedup": cold.value,
        "ci95": (cold.low, cold.high),
        "least_effect": cold.least,
        "warm": {
            "baseline_us": median(seen.warm.calls["baseline"]),
            "candidate_us": median(seen.warm.calls["candidate"]),
            "speedup": warm.value,
            "ci95": (warm.low, warm.high),
        },
        "rounds": len(baseline),
        "calls_per_round": calls_of(case, machine),
        "judge_clock": {
            "noise_us": max(map(_noise, seen.cold.walls.values())) / calls_of(case, machine),
            **{f"{side}_us": _shortest(seen.cold.walls[side]) / calls_of(case, machine) for side in SIDES},
        },
        "floor_us": machine.floor_us,
        "overhead_us": machine.overhead_us,
        "launch_bound": median(baseline) < LAUNCH_BOUND_FACTOR * machine.floor_us,
        "bound": bound.to_json() if bound is not None and touches_all else None,
        "fraction_of_bound": bound.us / took if bound is not None and touches_all else None,
    }
