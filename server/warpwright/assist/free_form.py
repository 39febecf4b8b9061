"""A kernel rewritten in the model's own words, with what its judge said given back to it.

The model's text is read by `blocks`; what comes of it is a candidate like any other, which a judge verifies. Where it
is refused, does not compile or is wrong, the reason goes back to the model, a few times. The embedded model is not
asked: a base model of its size writes no CUDA.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from warpwright.assist.blocks import GRAMMAR, read_blocks
from warpwright.assist.engine import CompletionRequest, Engine
from warpwright.assist.prompts import GOALS, KERNEL_CHARACTERS, one_line
from warpwright.facts.model import Kernel
from warpwright.progress import CancelledError, IsCancelled
from warpwright.syntax.source import Source
from warpwright.verify.report import Report

ROUNDS = 4
MAX_TOKENS = 1024
LONGEST_REASON = 600  # characters of what a judge said
MOST_FINDINGS = 4
_TEMPERATURES = (0.0, 0.2, 0.4, 0.6)  # the same question again shall have another answer

Ask = Callable[[str, int], str]
"""A model's answer to a prompt, in a round from 0 on."""

Judge = Callable[[Source], Report]


@dataclass(frozen=True, slots=True)
class Task:
    """What the model is asked for: `goal` is one of "speed", "memory", "fix"; `wish` is the user's, "" for none;
    `known` are sentences about the kernel, of findings or from a compiler."""

    kernel: Kernel
    goal: str
    wish: str = ""
    known: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Attempt:
    """One answer. `refused` says in a clause why nothing was made of it; else there are a text and its report."""

    answer: str
    why: str = ""
    refused: str = ""
    text: Source | None = None
    report: Report | None = None


def writes_kernels(engine: Engine) -> bool:
    """Whether a model may be asked: not the embedded one."""
    return not engine.model.is_default


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
    return _SHOT + _question(task.kernel.span.text, task.goal, task.wish, task.known) + _said(last)


def _question(kernel: str, goal: str, wish: str, known: Sequence[str]) -> str:
    wished = f" ({one_line(wish)})" if wish else ""
    shown = kernel.strip().replace("\r\n", "\n")
    lines = [f"// Task: make the kernel {GOALS[goal]}{wished}", "// Kernel", shown, "// Known"]
    lines += [f"// - {one_line(each)[:LONGEST_REASON]}" for each in known[:MOST_FINDINGS] or ("nothing",)]
    return "\n".join([*lines, "// Changes: whole lines of the kernel, copied, and what they become", ""])


def _said(last: Attempt | None) -> str:
    if last is None:
        return ""
    judged = (last.report.reason or last.report.badge()) if last.report is not None else ""
    reason = last.refused or judged
    words = f"// That was not taken: {one_line(reason)[:LONGEST_REASON]}"
    return f"{last.answer.strip()[:MAX_TOKENS]}\n{words}\n// Changes to the same kernel, once more\n"


_SHOT = (
    _question(
        "__global__ void scale(float *a, const float *s, int n) {\n"
        "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
        "  for (int k = 0; k < 8; ++k) {\n"
        "    if (i < n) a[k * n + i] *= s[0];\n"
        "  }\n"
        "}",
        "speed",
        "",
        ("loop-invariant-load at `s[0]`: The address stays the same over the loop.",),
    )
    + "@why The factor does not change in the loop: it is loaded once.\n"
    "@original\n"
    "  for (int k = 0; k < 8; ++k) {\n"
    "    if (i < n) a[k * n + i] *= s[0];\n"
    "@updated\n"
    "  const float factor = s[0];\n"
    "  for (int k = 0; k < 8; ++k) {\n"
    "    if (i < n) a[k * n + i] *= factor;\n"
    "@end\n\n"
)
