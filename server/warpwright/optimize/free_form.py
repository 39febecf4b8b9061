"""A larger model's own rewriting of a kernel, where the search found nothing or does not know what is asked for.

What the model writes is a candidate like those of the search: verified against the user's own text, listed in the
report, offered where it may be. For speed it must be faster, or without a GPU predicted to be: it is no known rewrite.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from warpwright.assist.engine import Engine, EngineError
from warpwright.assist.free_form import Attempt, Task, asking, attempts, unfit
from warpwright.facts.model import Kernel
from warpwright.optimize.mending import Building
from warpwright.optimize.outcome import Candidate, Outcome
from warpwright.optimize.rank import PREDICTED_NOISE, gain_of, may_be_offered
from warpwright.progress import CancelledError, IsCancelled, Progress
from warpwright.syntax.source import Source
from warpwright.verify.report import Report
from warpwright.verify.verify import verify

NAME = "free-form"


def rewritten(
    outcome: Outcome,
    kernel: Kernel,
    wish: str,
    known: Sequence[str],
    engine: Engine,
    *,
    building: Building,
    seconds: float,
    progress: Progress,
    is_cancelled: IsCancelled,
) -> Outcome:
    """An outcome without a best candidate, with what the model wrote beside. `known` are sentences about the kernel."""
    if reason := unfit(kernel):
        return replace(outcome, reason=f"{outcome.reason} {reason}".strip())
    deadline = time.monotonic() + seconds
    said = f"{engine.model.name} rewrites {kernel.name}"
    progress(said, 0.5)

    def judge(text: Source) -> Report:
        return verify(
            kernel.source,
            text,
            kernel=kernel.name,
            goal=outcome.goal,
            progress=lambda message, share: progress(f"{said}: {message}", None),
            is_cancelled=lambda: is_cancelled() or time.monotonic() > deadline,
            arch=building.arch,
            flags=building.flags,
        )

    seen: list[Attempt] = []
    ended = ""
    task = Task(kernel, outcome.goal, wish, tuple(known), is_taught=engine.is_taught)
    try:
        for attempt in attempts(task, asking(engine, deadline, is_cancelled), judge, partial(_is_gain, outcome.goal)):
            seen.append(attempt)
    except EngineError as error:
        ended = f" {error}"
    except CancelledError:
        ended = " It was stopped before it had ended."
    written = [(each, each.text, each.report) for each in seen if each.text is not None and each.report is not None]
    candidates = tuple(_candidate(kernel, each, text, report) for each, text, report in written)
    best = next((i for i, each in enumerate(candidates) if _is_gain(outcome.goal, each.report)), None)
    reason = "" if best is not None else f"{outcome.reason} {_why_none(seen, engine.model.name)}{ended}".strip()
    place = len(outcome.candidates) + best if best is not None else None
    return replace(outcome, candidates=(*outcome.candidates, *candidates), best=place, reason=reason)


def _is_gain(goal: str, report: Report) -> bool:
    if not may_be_offered(report, goal, (NAME,)):
        return False
    gain = gain_of(report)
    return goal != "speed" or bool(report.speed) or (gain is not None and gain > PREDICTED_NOISE)


def _candidate(kernel: Kernel, attempt: Attempt, text: Source, report: Report) -> Candidate:
    return Candidate((NAME,), (f"In the model's own words: {attempt.why}",), kernel.source, text, report)


def _why_none(seen: Sequence[Attempt], model: str) -> str:
    """
    >>> _why_none([Attempt("", refused="it changes nothing")], "Small")
    'Of 1 answer of Small none is offered; of the last: it changes nothing.'
    """
    if not seen:
        return f"{model} was asked and gave no answer."
    last = seen[-1]
    reason = last.refused or (last.report.reason or last.report.badge() if last.report is not None else "")
    answers = "1 answer" if len(seen) == 1 else f"{len(seen)} answers"
    return f"Of {answers} of {model} none is offered; of the last: {reason.rstrip('.')}."
