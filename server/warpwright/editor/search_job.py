"""The work behind Optimize, Reduce memory and Fix: a search, and every candidate of it that may be offered."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import replace
from functools import partial, reduce
from typing import TYPE_CHECKING

from warpwright.editor.analysis import Analysis, compiled_as, compiler_options
from warpwright.editor.job_request import JobError, Json, analysed, edits_answer
from warpwright.editor.rebase import line_edits
from warpwright.editor.selection import is_about
from warpwright.facts.model import Program
from warpwright.progress import IsCancelled, Progress
from warpwright.rewrites.base import Rewrite
from warpwright.rewrites.registry import applicable
from warpwright.syntax.source import Span
from warpwright.verify.verify import verify

if TYPE_CHECKING:
    from warpwright.optimize.outcome import Outcome

_SEARCHED_SHARE = 0.8
"""Of the time, where a last verification follows the search."""


def search(request: Json, progress: Progress, is_cancelled: IsCancelled) -> Json:
    """Search for a better version of the request's `kernel`, for its `goal`.

    With `selection`, bytes [start, end) of the document, only what is about them is tried. `wish` are words, one text
    for each time that the user added some. Where they ask for another goal the search goes on from `start`, a choice of
    an earlier answer with its "outcome"; else it is made anew, and what was verified before is not verified again.

    The answer is {"outcome": as Outcome, "choices": the candidates that may be offered, the best first}; a choice is
    {"candidate": its index, "title", "badge", "explanation", "kernel", "read", "edits"}, the last three as
    `edits_answer` has them. Raises JobError.
    """
    # A quick fix needs none of these, and waits for its process to start.
    from warpwright.assist.engine import Engine
    from warpwright.assist.weights import ModelFile, find_adapter, find_model
    from warpwright.editor.continuing import continued, start_of
    from warpwright.editor.mending import mended, not_compiled
    from warpwright.optimize.optimize import optimize
    from warpwright.optimize.wish import Wish, WishError, parse_wish

    progress("Reading the kernel", 0.0)
    analysis, settings = analysed(request)
    program, goal = analysis.program, request["goal"]
    kernel = program.kernel(request["kernel"])
    if kernel is None or kernel.node is None:
        raise JobError(f"The kernel {request['kernel']} is not defined here.")
    try:
        wish = reduce(lambda so_far, words: parse_wish(words, so_far), request.get("wish", ()), Wish())
    except WishError as error:
        raise JobError(str(error)) from None
    if reason := not_compiled(analysis, settings, progress, is_cancelled):
        if goal != "fix" or "start" in request:
            raise JobError(f"{kernel.name} cannot be compared with anything until its file compiles: {reason} Run Fix.")
        outcome = mended(analysis, kernel.name, settings, progress, is_cancelled)
        return {"outcome": outcome.to_json(), "choices": list(_choices(program, outcome))}
    goes_on = "start" in request and wish.goal not in (None, goal)
    flags = compiler_options(analysis.source.path, settings)
    model = find_model(settings.model or None, progress) if settings.plan == "model" else None
    with Engine(model, find_adapter(model)) if isinstance(model, ModelFile) else nullcontext(model) as engine:
        searched = partial(
            optimize,
            engine=engine,
            progress=progress,
            is_cancelled=is_cancelled,
            budget_seconds=settings.optimize_seconds * (_SEARCHED_SHARE if goes_on else 1.0),
            flags=flags,
            is_wanted=_wanted(analysis, request),
        )
        if goes_on:
            verified = partial(
                verify, kernel=kernel.name, goal=goal, progress=progress, is_cancelled=is_cancelled, flags=flags
            )
            folders = compiled_as(analysis.source.path, settings)[1]
            start = start_of(program, request["start"])
            further = partial(searched, wish=replace(wish, goal=None))
            outcome = continued(program, kernel, goal, wish.goal or goal, start, folders, further, verified)
        else:
            outcome = searched(program, kernel, goal, wish=wish)
    if "selection" in request and not outcome.candidates and applicable(kernel, goal):
        reason = f"Nothing that applies to {kernel.name} is about the selected lines: select nothing to have all tried."
        outcome = replace(outcome, reason=reason)
    return {"outcome": outcome.to_json(), "choices": list(_choices(program, outcome))}


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
            **edits_answer(program, outcome.kernel, candidate.source_before, edits),
        }
