"""Is the candidate's extension faster? Rounds in which both sides make the same calls, one after the other.

Each round draws new values, which lie at new addresses, and asks both sides in random order, with an emptied and with a
filled second-level cache. Every result of every round is compared. The times are those of the sides' own clocks, which
a side could forge; what a side claims to save must also be saved by the judge's clock, which ticks in another process.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median, quantiles
from typing import Any

import torch

from warpwright_harness.extension.batch import Batch
from warpwright_harness.extension.judge import CandidateError, Case, Judge, OriginalError, failure, twin
from warpwright_harness.extension.outputs import differences, flat, misbehaviour, unlike
from warpwright_harness.extension.side import RaisedError
from warpwright_harness.intervals import LEAST_EFFECT, Ratio, ratio_of

SIDES = ("baseline", "candidate")
LEAST_ROUNDS = 12
MOST_ROUNDS = 60
WARM_UP_ROUNDS = 2
MOST_CALLS = 16
BATCH_BYTES = 1 << 30
TIMED_TOLERANCE = 2.0
"""Of the checked tolerance: the values of a round are others than those that it was measured on."""
CONFIRMED = 0.5
"""Of what a side claims to save, at least so much must be saved by the judge's clock too."""


@dataclass
class _Times:
    """Microseconds of single calls by the sides' clocks, and of whole batches by the judge's, by side."""

    calls: dict[str, list[float]] = field(default_factory=lambda: {side: [] for side in SIDES})
    walls: dict[str, list[float]] = field(default_factory=lambda: {side: [] for side in SIDES})

    def add(self, side: str, batch: Batch) -> None:
        self.calls[side] += [call.microseconds for call in batch.calls]
        self.walls[side].append(batch.wall_us)


def time_case(judge: Judge, case: Case, seconds: float) -> bool:
    """Time both at one size and emit a "speed" event; False, after an event, where the candidate is at fault."""
    try:
        cold, warm = _measured(judge, case, seconds)
        _confirm(cold, calls_of(case))
        event = _speed(case, cold, warm)
    except OriginalError as error:
        judge.emit({"event": "note", "text": f"not timed at {dict(case.shape)}: {error}"})
        return True
    except CandidateError as error:
        shape = dict(case.shape)
        result = failure(error)
        judge.emit({"event": "case", "case": case.index, "shape": shape, "distribution": "while timed", **result})
        return False
    judge.emit(event)
    return True


def calls_of(case: Case) -> int:
    """So many in a batch that the judge's clock sees them, and that they fit."""
    return max(2, min(MOST_CALLS, BATCH_BYTES // max(1, 4 * case.parameters.bytes)))


def _measured(judge: Judge, case: Case, seconds: float) -> tuple[_Times, _Times]:
    judge.phase = "time"
    cold, warm = _Times(), _Times()
    started = time.monotonic()
    rounds = 0
    while rounds < MOST_ROUNDS and (rounds < LEAST_ROUNDS or time.monotonic() - started < seconds):
        values = _new_values(judge, case)
        for flush in judge.order.sample((True, False), 2):
            if not flush and rounds % 2:
                continue
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
            _require_alike(judge, case, batches["candidate"], batches["baseline"])
            if later:
                raise CandidateError("a result changes after the call that returned it")
            if rounds >= WARM_UP_ROUNDS:
                for side, batch in batches.items():
                    (cold if flush else warm).add(side, batch)
        if judge.threads_more() > 0:
            raise CandidateError(f"it leaves {judge.threads_more()} threads running that the original does not")
        rounds += 1
    return cold, warm


def _new_values(judge: Judge, case: Case) -> list[Mapping[str, torch.Tensor]]:
    """Half of the calls have values of their own, the others differ from the one before in a stretch of one tensor."""
    names = [spec.name for spec in case.parameters.tensors if spec.scalars]
    values: list[Mapping[str, torch.Tensor]] = []
    for number in range(calls_of(case)):
        drawn = judge.draw(case, "normal")
        values.append({**values[-1], **twin(judge.order, values[-1], drawn, names)} if number % 2 and names else drawn)
    return values


def _require_alike(judge: Judge, case: Case, mine: Batch, theirs: Batch) -> None:
    """Raises CandidateError where a timed call gave or did something else than the original's."""
    written = frozenset().union(*(call.changed for call in theirs.calls))
    allowed = {n: t if t < 0 else TIMED_TOLERANCE * t for n, t in judge.allowed[case.index].items()}
    for call, expected in zip(mine.calls, theirs.calls, strict=True):
        if why := misbehaviour(call, expected):
            raise CandidateError(why)
        if why := unlike(call, expected) or differences(flat(call, written), flat(expected, written), allowed).why:
            raise CandidateError(why, unsafe=False)
    if replaced := sorted(mine.replaced - theirs.replaced):
        raise CandidateError(f"it replaces {replaced[0]}")


def _confirm(times: _Times, calls: int) -> None:
    """Raises CandidateError where the candidate's clock claims a saving that the judge's clock does not see."""
    claimed = calls * (median(times.calls["baseline"]) - median(times.calls["candidate"]))
    seen = median(times.walls["baseline"]) - median(times.walls["candidate"])
    noise = max(_spread(times.walls[side]) for side in SIDES)
    if claimed > 0 and seen < CONFIRMED * claimed - noise:
        raise CandidateError(
            f"its own clock says that {calls} calls take {claimed:.0f} us less than the original's, and the judge's "
            f"clock says {seen:.0f} us (within {noise:.0f} us)"
        )


def _spread(walls: Sequence[float]) -> float:
    """How far a median of these may be off: twice the interquartile range over the root of their number."""
    low, _, high = quantiles(walls, n=4)
    return float(2.0 * (high - low) / len(walls) ** 0.5)


def _ratio(times: _Times, calls: int) -> Ratio:
    """Over rounds, each of which counts with the median of its calls: what disturbs one of them disturbs its others."""
    baseline, candidate = (
        [median(taken[at : at + calls]) for at in range(0, len(taken), calls)]
        for taken in (times.calls["baseline"], times.calls["candidate"])
    )
    return ratio_of(baseline, candidate)


def _speed(case: Case, cold: _Times, warm: _Times) -> dict[str, Any]:
    ratio, warm_ratio = _ratio(cold, calls_of(case)), _ratio(warm, calls_of(case))
    return {
        "event": "speed",
        "case": case.index,
        "shape": dict(case.shape),
        "baseline_us": median(cold.calls["baseline"]),
        "candidate_us": median(cold.calls["candidate"]),
        "speedup": ratio.value,
        "ci95": (ratio.low, ratio.high),
        "least_effect": LEAST_EFFECT,
        "warm": {
            "baseline_us": median(warm.calls["baseline"]),
            "candidate_us": median(warm.calls["candidate"]),
            "speedup": warm_ratio.value,
            "ci95": (warm_ratio.low, warm_ratio.high),
        },
        "rounds": len(cold.walls["baseline"]),
        "calls_per_round": calls_of(case),
        "judge_clock": {
            "baseline_us": median(cold.walls["baseline"]) / calls_of(case),
            "candidate_us": median(cold.walls["candidate"]) / calls_of(case),
        },
        "peers": {},
    }
