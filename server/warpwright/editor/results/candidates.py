"""The verified candidates of a kernel, from the history, as a plot and a table show them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from warpwright.verify.history import Run
from warpwright.verify.report import Status

MOST_CANDIDATES = 60
GOOD = frozenset({Status.FASTER, Status.CORRECT})
BAD = frozenset({Status.WRONG, Status.UNSAFE, Status.DOES_NOT_COMPILE})


@dataclass(frozen=True, slots=True)
class Candidate:
    """One verification of the past. `at` is in seconds since 1970.

    `speedup` is measured on a GPU, with its 95 % interval `ci95`; `predicted` is the cost model's.
    Each is None where there is none, and never stands for the other.
    """

    number: int
    at: float
    what: str
    goal: str
    status: str
    badge: str
    speedup: float | None
    ci95: tuple[float, float] | None
    predicted: float | None

    @property
    def tone(self) -> str:
        """good, bad, or neither: plain."""
        return "good" if self.status in GOOD else "bad" if self.status in BAD else "plain"


def candidates_of(runs: Iterable[Run]) -> tuple[Candidate, ...]:
    """The newest of some runs of one kernel, oldest first and numbered from 1."""
    newest = sorted(runs, key=lambda run: run.at)[-MOST_CANDIDATES:]
    return tuple(_candidate(number, run) for number, run in enumerate(newest, 1))


def _candidate(number: int, run: Run) -> Candidate:
    predicted = run.report.get("predicted_speedup")
    return Candidate(
        number,
        run.at,
        run.what,
        run.goal,
        run.status,
        run.badge,
        run.speedup,
        _interval(run.report),
        predicted if isinstance(predicted, int | float) and predicted > 0 else None,
    )


def _interval(report: Mapping[str, Any]) -> tuple[float, float] | None:
    """The 95 % interval of the first shape's speedup, which is the one that the history keeps."""
    speed = report.get("speed") or []
    low, high = speed[0]["ci95"] if speed else (None, None)
    return (float(low), float(high)) if low is not None and high is not None else None
