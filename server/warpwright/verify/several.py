"""Several candidates verified at once: while one is timed on the GPU, others are compiled and analysed."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from warpwright.progress import CancelledError, IsCancelled, Progress
from warpwright.rules.base import Finding
from warpwright.syntax.source import Source
from warpwright.verify.claim import Claim
from warpwright.verify.report import Report
from warpwright.verify.verify import climb

MOST_AT_ONCE = 16
"""Those that are run at once are fewer (`pool`); the others are compiled, analysed or watched by compute-sanitizer."""


@dataclass(frozen=True, slots=True)
class Trial:
    """One candidate: what people are told of it, its original, its text, the finding that it is to cure, and the file
    to compile where the two are of one that it includes."""

    name: str
    original: Source
    candidate: Source
    expect_gone: Finding | None = None
    unit: Source | None = None


def at_once() -> int:
    """How many are verified at once here: as many as can be compiled."""
    return max(1, min(MOST_AT_ONCE, os.cpu_count() or 1))


def verify_several(
    trials: Sequence[Trial],
    *,
    kernel: str | None,
    goal: str,
    progress: Progress,
    is_cancelled: IsCancelled,
    arch: str | None,
    flags: tuple[str, ...],
    again: bool = False,
) -> list[Report | None]:
    """`climb` of each, `at_once` of them at a time: the reports in the order of `trials`, None for those that
    `is_cancelled` stopped.

    The share of `progress` is that of all trials; one call of it ends before the next begins. What one raises is raised
    when all others were stopped.
    """
    shares = [0.0] * len(trials)
    telling = threading.Lock()
    failed = threading.Event()

    def tell(place: int, message: str, share: float | None) -> None:
        with telling:
            shares[place] = max(shares[place], share or 0.0)
            progress(f"{trials[place].name}: {message}", sum(shares) / len(trials))

    def verified(place: int) -> Report | None:
        trial = trials[place]
        try:
            claim = Claim(
                trial.original,
                trial.candidate,
                kernel=kernel,
                goal=goal,
                expect_gone=trial.expect_gone,
                progress=lambda message, share: tell(place, message, share),
                is_cancelled=lambda: failed.is_set() or is_cancelled(),
                arch=arch,
                flags=flags,
                again=again,
                unit=trial.unit,
            )
            report = climb(claim)
            tell(place, report.badge(), 1.0)
            return report
        except CancelledError:
            return None
        except BaseException:
            failed.set()
            raise
        finally:
            shares[place] = 1.0

    with ThreadPoolExecutor(at_once()) as threads:
        return list(threads.map(verified, range(len(trials))))
