"""A kernel rewritten in the model's own words, with what its judge said given back to it.

The model's text is read by `blocks`; what comes of it is a candidate like any other, which a judge verifies. Where it
is refused, does not compile or is wrong, the reason goes back to the model, a few times. The embedded model is asked
for repairs alone, by an adapter that was taught them: a base model of its size writes no CUDA.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from warpwright.assist.blocks import GRAMMAR, read_blocks
from warpwright.assist.engine import CompletionRequest, Engine
from warpwright.assist.prompts import KERNEL_CHARACTERS, one_line
from warpwright.assist.repair_task import LONGEST_SENTENCE, REPAIR_SHOT, RepairRequest, repair_prompt
from warpwright.facts.model import Kernel
from warpwright.progress import CancelledError, IsCancelled
from warpwright.syntax.source import Source
from warpwright.verify.report import Report

ROUNDS = 4
MAX_TOKENS = 1024
_TEMPERATURES = (0.0, 0.2, 0.4, 0.6)  # the same question again shall have another answer

Ask = Callable[[str, int], str]
"""A model's answer to a prompt, in a round from 0 on."""

Judge = Callable[[Source], Report]


@dataclass(frozen=True, slots=True)
class Task:
    """What the model is asked for: `goal` is one of "speed", "memory", "fix"; `wish` is the user's, "" for none;
    `known` are sentences about the kernel, of findings or from a compiler. A model that `is_taught` has learned the
    form: it gets no worked example, and was never asked the same once more."""

    kernel: Kernel
    goal: str
    wish: str = ""
    known: tuple[str, ...] = ()
    is_taught: bool = False


@dataclass(frozen=True, slots=True)
class Attempt:
    """One answer. `refused` says in a clause why nothing was made of it; else there are a text and its report."""

    answer: str
    why: str = ""
    refused: str = ""
    text: Source | None = None
    report: Report | None = None


def writes_kernels(engine: Engine, goal: str) -> bool:
    """Whether a model may be asked: the embedded one for repairs alone, where it was taught them."""
    return not engine.model.is_default or (goal == "fix" and engine.is_taught)


def unfit(kernel: Kernel) -> str:
    """Why a kernel is not given to a model, as a sentence; "" if it is."""
    if kernel.node is None:
        return f"{kernel.name} is not defined here."
    if len(kernel.span.text) > KERNEL_CHARACTERS:
        return f"{kernel.name} is longer than the {KERNEL_CHARACTERS} characters that a model is given."
    return ""


def attempts(
    task: Task, ask: Ask, judge: Judge, is_enough: Callable[[Report], bool], rounds: int = ROUNDS
) -> Iterator[Attempt]:
    """Ask, read, judge and ask again with the reason, until a report `is_enough` or the rounds are used up. Each answer
    is about the user's own text. Whatever `ask` and `judge` raise is raised."""
    last: Attempt | None = None
    for number in range(rounds):
        answer = ask(prompt(task, last), number)
        proposal = read_blocks(answer, task.kernel)
        if isinstance(proposal, str):
            last = Attempt(answer, refused=proposal)
            yield last
            continue
        text = task.kernel.source.edited(list(proposal.edits))
        report = judge(text)
        last = Attempt(answer, proposal.why, text=text, report=report)
        yield last
        if is_enough(report):
            return


def asking(engine: Engine, deadline: float, is_cancelled: IsCancelled) -> Ask:
    """Asks an engine, at most until `deadline` (of time.monotonic). What it raises beside EngineError: CancelledError,
    where it was stopped or the time is up."""

    def ask(text: str, number: int) -> str:
        seconds = deadline - time.monotonic()
        if seconds <= 0 or is_cancelled():
            raise CancelledError
        temperature = _TEMPERATURES[min(number, len(_TEMPERATURES) - 1)]
        request = CompletionRequest(text, MAX_TOKENS, temperature, number, grammar=GRAMMAR, seconds=seconds)
        completion = engine.complete(request, is_cancelled, is_enough=lambda so_far: "\n// Task" in so_far)
        if completion.stop in ("cancelled", "time"):
            raise CancelledError
        return completion.text

    return ask


def prompt(task: Task, last: Attempt | None = None) -> str:
    """The text after which the model writes its changes; after a first attempt with what was said of the last one."""
    span = task.kernel.span
    asked = repair_prompt(RepairRequest(span.text, task.known, task.goal, task.wish, span.line))
    return asked if task.is_taught else REPAIR_SHOT + asked + _said(last)


def _said(last: Attempt | None) -> str:
    if last is None:
        return ""
    judged = (last.report.reason or last.report.badge()) if last.report is not None else ""
    reason = last.refused or judged
    words = f"// That was not taken: {one_line(reason)[:LONGEST_SENTENCE]}"
    return f"{last.answer.strip()[:MAX_TOKENS]}\n{words}\n// Changes to the same kernel, once more\n"
