"""All that can be done for a kernel: a repair where nvcc rejects it, the search, and a larger model where both fail."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import reduce

from warpwright.assist.engine import Engine
from warpwright.assist.repair_task import compiler_said
from warpwright.facts.model import Kernel, Program
from warpwright.optimize.free_form import rewritten
from warpwright.optimize.mending import Building, mended, rejection
from warpwright.optimize.outcome import Outcome
from warpwright.optimize.wish import Wish, WishError, parse_wish
from warpwright.progress import IsCancelled, Progress
from warpwright.rules.base import Finding


class RejectedError(Exception):
    """nvcc rejects the text, and no repair was asked for; the message is a sentence, and `advice` another one."""

    def __init__(self, message: str, advice: str) -> None:
        super().__init__(message)
        self.advice = advice


def improve(
    program: Program,
    kernel: Kernel,
    goal: str,
    wishes: Sequence[str],
    search: Callable[[Wish], Outcome],
    *,
    findings: Sequence[Finding],
    building: Building,
    writer: Engine | None,
    seconds: float,
    progress: Progress,
    is_cancelled: IsCancelled,
) -> Outcome:
    """The outcome of `search`, or of repairing what nvcc rejects where `goal` is "fix"; where neither has anything to
    offer, of what the model `writer` writes, in `seconds` all together.

    `wishes` are the user's words, one text for each time that some were added. Such as no search knows are for the
    model. `findings` are those of the kernel. Raises RejectedError for another goal, WishError without a model, and
    CancelledError where it was stopped before the search.
    """
    started = time.monotonic()
    rejected = rejection(program, building, progress, is_cancelled)
    if rejected is not None:
        if goal != "fix":
            until = f"until its file compiles: {rejected.reason}"
            raise RejectedError(f"{kernel.name} cannot be compared with anything {until}", advice(rejected.reason))
        known = compiler_said(rejected.messages)
        outcome = mended(program, kernel.name, building, progress, is_cancelled)
    else:
        known = tuple(
            f"{each.rule} at `{each.span.one_line}`: {' '.join(each.message.splitlines())}" for each in findings
        )
        try:
            wish = reduce(lambda so_far, words: parse_wish(words, so_far), wishes, Wish())
        except WishError:
            if writer is None:
                raise
            outcome = Outcome(kernel.name, goal, None, "The search was not asked.", (), None)
        else:
            outcome = search(wish)
    if outcome.best is not None or writer is None:
        return outcome
    return rewritten(
        outcome,
        kernel,
        " ".join(wishes),
        known,
        writer,
        building=building,
        seconds=seconds - (time.monotonic() - started),
        progress=progress,
        is_cancelled=is_cancelled,
    )


def advice(reason: str) -> str:
    """What a user can do about a text that nvcc rejects."""
    if "No such file" in reason:
        return "Name the header's folder with `-I`, or in the setting `includeFolders`."
    return "`--goal fix` applies the compile fixes that are unambiguous."
