"""What the reference takes in torch beside what was timed: eager, and through torch.compile.

They are the reference's, whatever candidate they are set beside: measured once for all candidates of a kernel, after
the verdicts, since torch.compile takes many seconds. What was measured is kept per GPU, torch and text of the
reference.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from warpwright.directories import cache_dir, read_kept, write_kept
from warpwright.files import read_file
from warpwright.missing import Missing
from warpwright.problems.expressions import ExpressionError
from warpwright.problems.model import Problem
from warpwright.progress import IsCancelled, Progress
from warpwright.syntax.encoding import encoded
from warpwright.syntax.source import MOST_BYTES
from warpwright.verify.child import ChildEndedError, Event
from warpwright.verify.harness import Gpu, find_gpu, run_request
from warpwright.verify.plan import PlanError, make_timing
from warpwright.verify.report import Report
from warpwright.verify.results import with_peers
from warpwright.verify.run import at

VERSION = 1
"""Of how peers are measured; others are measured again."""


def beside_torch(
    reports: Sequence[Report], problem: Problem | Missing, *, progress: Progress, is_cancelled: IsCancelled
) -> list[Report]:
    """The reports of candidates for the kernel of `problem`, with what its reference in torch takes at each shape that
    was timed; the same where it has none, or nothing was timed. A torch that fails or does not end is a note.

    Raises CancelledError.
    """
    if isinstance(problem, Missing) or problem.reference is None or not problem.reference.is_file():
        return list(reports)
    gpu = find_gpu(is_cancelled) if any(report.speed for report in reports) else None
    if not isinstance(gpu, Gpu):
        return list(reports)
    shapes = {at(speed.shape): speed.shape for report in reports for speed in report.speed if _lacks(speed.details)}
    known = [_known(gpu, problem, shape) for shape in shapes.values()]
    events = [event for event in known if event is not None]
    wanted = [shape for shape, event in zip(shapes.values(), known, strict=True) if event is None]
    notes: tuple[str, ...] = ()
    if wanted:
        try:
            for event in _measured(problem, wanted, progress, is_cancelled):
                events.append(event)
                write_kept(_file(gpu, problem, event["shape"]), event)
        except (ChildEndedError, PlanError, ExpressionError, OSError) as error:
            notes = (f"what the reference takes in torch was not measured: {error}",)
    return [_beside(report, events, notes) for report in reports]


def _lacks(details: Mapping[str, Any]) -> bool:
    return "peers" not in details


def _beside(report: Report, events: Sequence[Event], notes: tuple[str, ...]) -> Report:
    if not report.speed:
        return report
    speed = report.speed
    for event in events:
        speed = tuple(with_peers(each, event) if _lacks(each.details) else each for each in speed)
    return replace(report, speed=speed, notes=(*report.notes, *notes))


def _measured(
    problem: Problem, shapes: Sequence[Mapping[str, int]], progress: Progress, is_cancelled: IsCancelled
) -> Iterator[Event]:
    """An event "peers" for each shape. Raises ChildEndedError, PlanError, ExpressionError, OSError, CancelledError."""
    progress("Timing the reference in torch", None)
    request = make_timing(problem, shapes)
    for event in run_request(request, is_cancelled):
        if event["event"] == "peers":
            yield event
        elif event["event"] == "begin" and event["phase"] == "peers":
            shape = request["cases"][event["case"]]["shape"]
            progress(f"Compiling the reference with torch.compile at {at(shape)}", None)
        elif event["event"] in ("fault", "error"):
            raise ChildEndedError(str(event.get("text", "")))


def _known(gpu: Gpu, problem: Problem, shape: Mapping[str, int]) -> Event | None:
    kept = read_kept(_file(gpu, problem, shape))
    fits = isinstance(kept, dict) and kept.get("shape") == shape and isinstance(kept.get("peers"), dict)
    return kept if fits else None


def _file(gpu: Gpu, problem: Problem, shape: Mapping[str, int]) -> Path:
    assert problem.reference is not None
    case = problem.case(shape)
    which = (VERSION, sorted(gpu.details.items()), read_file(problem.reference, MOST_BYTES), sorted(shape.items()))
    asked = (*which, sorted(case.scalars.items()), sorted(case.counts.items()))
    return cache_dir() / "peers" / f"{sha256(encoded(repr(asked))).hexdigest()}.json"
