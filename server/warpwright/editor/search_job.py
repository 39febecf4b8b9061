"""The work behind Optimize, Reduce memory and Fix: a search, and every candidate of it that may be offered."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from warpwright.editor.analysis import Analysis, compiled_as, compiler_options
from warpwright.editor.job_request import JobError, Json, analysed, edits_answer
from warpwright.editor.rebase import line_edits
from warpwright.editor.selection import is_about
from warpwright.editor.settings import Settings
from warpwright.facts.model import Kernel, Program
from warpwright.missing import Missing
from warpwright.progress import IsCancelled, Progress
from warpwright.rewrites.base import Rewrite
from warpwright.rewrites.registry import applicable
from warpwright.syntax.source import Span
from warpwright.verify.verify import verify

if TYPE_CHECKING:
    from warpwright.assist.engine import Engine
    from warpwright.optimize.outcome import Outcome
    from warpwright.optimize.wish import Wish

_SEARCHED_SHARE = 0.8
"""Of the time, where a last verification follows the search."""


def search(request: Json, progress: Progress, is_cancelled: IsCancelled) -> Json:
    """Search for a better version of the request's `kernel`, for its `goal`.

    With `selection`, bytes [start, end) of the document, only what is about them is tried. `wish` are words, one text
    for each time that the user added some. Where they ask for another goal the search goes on from `start`, a choice of
    an earlier answer with its "outcome"; else it is made anew, and what was verified before is not verified again.

    The answer is {"outcome": as Outcome, "choices": the candidates that may be offered, the best first}; a choice is
    {"candidate": its index, "title", "badge", "explanation", "kernels", "read", "edits"}, the last three as
    `edits_answer` has them. Raises JobError.
    """
    # A quick fix needs none of these, and waits for its process to start.
    from warpwright.assist.engine import Engine
    from warpwright.assist.free_form import writes_kernels
    from warpwright.assist.opening import open_engine
    from warpwright.assist.weights import is_model_named
    from warpwright.optimize.improve import RejectedError, improve
    from warpwright.optimize.mending import Building
    from warpwright.optimize.wish import WishError

    progress("Reading the kernel", 0.0)
    analysis, settings = analysed(request)
    kernel = analysis.program.kernel(request["kernel"])
    if kernel is None or kernel.node is None:
        raise JobError(f"The kernel {request['kernel']} is not defined here.")
    plans = settings.plan == "model"
    opened = open_engine(settings.model or None, progress) if plans or is_model_named(settings.model) else None
    job = _Job(request, analysis, settings, kernel, progress, is_cancelled)
    with opened if isinstance(opened, Engine) else nullcontext(opened) as engine:
        writer = engine if isinstance(engine, Engine) and writes_kernels(engine, request["goal"]) else None
        path = analysis.source.path
        try:
            outcome = improve(
                analysis.program,
                kernel,
                request["goal"],
                request.get("wish", ()),
                partial(_searched, job, engine if plans else None),
                findings=[finding for finding in analysis.findings if finding.kernel == kernel.name],
                building=Building(
                    analysis.program.assume.arch, job.flags, compiled_as(path, settings)[1], settings.compile_seconds
                ),
                writer=writer,
                seconds=settings.optimize_seconds,
                progress=progress,
                is_cancelled=is_cancelled,
            )
        except RejectedError as error:
            raise JobError(f"{error} Run Fix.") from None
        except WishError as error:
            raise JobError(f"{error} A larger model, named in the setting `model`, may be asked for more.") from None
    return {"outcome": outcome.to_json(), "choices": list(_choices(analysis.program, outcome))}


@dataclass(frozen=True, slots=True)
class _Job:
    """A request as it was read, and whom to tell about it."""

    request: Json
    analysis: Analysis
    settings: Settings
    kernel: Kernel
    progress: Progress
    is_cancelled: IsCancelled

    @property
    def flags(self) -> tuple[str, ...]:
        return compiler_options(self.analysis.source.path, self.settings)


def _searched(job: _Job, engine: Engine | Missing | None, wish: Wish) -> Outcome:
    from warpwright.editor.continuing import continued, start_of
    from warpwright.optimize.optimize import optimize

    program, kernel, goal = job.analysis.program, job.kernel, job.request["goal"]
    goes_on = "start" in job.request and wish.goal not in (None, goal)
    search = partial(
        optimize,
        engine=engine,
        progress=job.progress,
        is_cancelled=job.is_cancelled,
        budget_seconds=job.settings.optimize_seconds * (_SEARCHED_SHARE if goes_on else 1.0),
        arch=program.assume.arch,
        flags=job.flags,
        is_wanted=_wanted(job.analysis, job.request),
    )
    if not goes_on:
        outcome = search(program, kernel, goal, wish=wish)
        if "selection" not in job.request or outcome.candidates or not applicable(kernel, goal):
            return outcome
        reason = f"Nothing that applies to {kernel.name} is about the selected lines: select nothing to have all tried."
        return replace(outcome, reason=reason)
    verified = partial(
        verify,
        kernel=kernel.name,
        goal=goal,
        progress=job.progress,
        is_cancelled=job.is_cancelled,
        arch=program.assume.arch,
        flags=job.flags,
    )
    folders = compiled_as(job.analysis.source.path, job.settings)[1]
    start = start_of(program, job.request["start"])
    further = partial(search, wish=replace(wish, goal=None))
    return continued(program, kernel, goal, wish.goal or goal, start, folders, further, verified)


def _wanted(analysis: Analysis, request: Json) -> Callable[[Rewrite], bool]:
    if "selection" not in request:
        return bool
    selection = Span(analysis.source, *request["selection"])
    findings = [finding for finding in analysis.findings_here() if finding.kernel == request["kernel"]]
    return lambda step: is_about(step, selection, findings)


def _choices(program: Program, outcome: Outcome) -> Iterator[Json]:
    """Where nothing is a gain nothing is offered, though it may have passed."""
    from warpwright.optimize.rank import may_be_offered

    if outcome.best is None:
        return
    best = outcome.candidates[outcome.best]
    # Those of a search that went on from an offer are of the offer's text, not of the user's.
    others = [
        index
        for index, each in enumerate(outcome.candidates)
        if each is not best
        and each.source_before.data == best.source_before.data
        and may_be_offered(each.report, outcome.goal, each.rewrites)
    ]
    for index in (outcome.best, *others):
        candidate = outcome.candidates[index]
        edits = line_edits(candidate.source_before.data, candidate.source_after.data)
        yield {
            "candidate": index,
            "title": f"{outcome.kernel}: {', '.join(candidate.rewrites)}",
            "badge": candidate.report.badge(),
            "explanation": "\n".join(candidate.explanations),
            **edits_answer(program, (outcome.kernel,), candidate.source_before, edits),
        }
