"""`warpwright generate`: a kernel from words, checked; or a draft, compiled and run for faults."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass

import click

from warpwright.assist.engine import EngineError
from warpwright.assist.generate import BUDGET_SECONDS, Draft
from warpwright.assist.opening import open_engine
from warpwright.assist.python_function import meant_words
from warpwright.assist.readings import REPAIR_ROUNDS, by_model, by_wordings
from warpwright.assist.worded_formula import Reading
from warpwright.cli.findings_text import printable
from warpwright.cli.generate_asked import Beside, beside
from warpwright.cli.generate_reference import Referred, of_reference
from warpwright.cli.inputs import arch_option, model_option
from warpwright.cli.report_text import report_text
from warpwright.cli.terminal import (
    COULD_NOT_RUN,
    CannotRun,
    NumberRange,
    progress_line,
    say_error,
    say_note,
    stop_on_ctrl_c,
)
from warpwright.editor.formula_comment import said_in
from warpwright.editor.read_as import assumed, read_as
from warpwright.missing import Missing
from warpwright.optimize.drafting import FILE_NAME, Drafted, drafted
from warpwright.progress import CancelledError, IsCancelled, Progress
from warpwright.syntax.edits import unified_diff
from warpwright.syntax.encoding import shown_in
from warpwright.verify.formulas import Asked, FormulaNotWrittenError, Written, said_of_search, written_best
from warpwright.verify.limits import Limit, held_by
from warpwright.verify.report import PASSED, Status
from warpwright.writer.names import function_name

REFERENCE_SECONDS = 300.0
MOST_SECONDS = 24 * 3600.0
DRAFTING_SHARE = 0.9
"""Of the time that is left when a model drafts: the rest is for what was drafted last."""


@click.command("generate")
@click.argument("description", required=False, default="")
@model_option
@click.option(
    "--reference",
    metavar="FILE.py:FUNCTION",
    help="What the kernels should compute, as a function of PyTorch, in place of DESCRIPTION; of several parts, in the "
    "order in which they are run. The file is run.",
)
@click.option("--input", "inputs", metavar="f32[64,128]", multiple=True, help="An example of an argument of it.")
@click.option("--shape", "shapes", metavar="R=8192", multiple=True, help="A size to check at, beside the usual ones.")
@click.option(
    "--max-memory",
    metavar="24GB",
    help="The device memory that arrays and workspace may take together, at sizes that are all named.",
)
@click.option(
    "--seconds",
    type=NumberRange(1, MOST_SECONDS),
    help="After which it stops, with the kernels that are right by then.",
    show_default=f"{BUDGET_SECONDS:g}, of a --reference {REFERENCE_SECONDS:g}",
)
@click.option("--format", "output", type=click.Choice(["text", "json"]), default="text", show_default=True)
@arch_option
def command(
    *,
    description: str,
    spec: str | None,
    reference: str | None,
    inputs: tuple[str, ...],
    shapes: tuple[str, ...],
    max_memory: str | None,
    seconds: float | None,
    output: str,
    arch: str,
) -> int:
    """Write a kernel for what DESCRIPTION says in words, as an expression of torch, or as a formula.

    Where every word is understood, or with --reference, it is written from the formula that is meant, compiled and
    compared with it in the emulator; the formula stands above it. Where words leave something open, the likeliest
    meaning is printed, and --format json has all. Else the local model says which formula is meant: its kernels are
    checked in the same way, and the line above them says "draft", since the model may have misread. Where its answers
    do not agree it drafts a kernel, of which only that it compiles and runs without a fault in the emulator is known:
    read it before you use it. What does not read, compile or run goes back to the model with what was said of it, at
    most twice, after rules have had a try; notes name the rounds.

    Limits are options or stand in the words, beside a --reference too: "..., R = 8192, in 2 GB, on an RTX 4090, with
    tensor cores". Whether the kernels keep to them at those sizes is said with the numbers; GB are 10^9 bytes. Where
    all sizes are named and a GPU is here, schedules are timed at them and the fastest is written.

    Exit status: 0 a kernel that is right and keeps to its limits or a draft that runs without a fault, 1 there is none,
    2 could not run.
    """
    if not description.strip() and reference is None:
        raise CannotRun('say in words what the kernel should do, such as "add two vectors"')
    description, asked = beside(description, arch, shapes, max_memory)
    if reference is not None and description:
        raise CannotRun(f"--reference says what is computed; beside it only limits are read, not {description!r}")
    given = seconds or (BUDGET_SECONDS if reference is None else REFERENCE_SECONDS)
    ends = time.monotonic() + given
    with stop_on_ctrl_c() as is_interrupted, progress_line() as progress:

        def is_cancelled() -> bool:
            return is_interrupted() or time.monotonic() >= ends

        found: Referred | list[_Made] | Drafted
        try:
            if reference is not None:
                found = of_reference(reference, inputs, asked, progress, is_cancelled, given)
            elif readings := _readings(description):
                found = _checked(readings, asked, progress, is_cancelled)
            else:
                found = _by_model(description, spec, given, asked, progress, is_cancelled)
        except CancelledError:
            found = Drafted(Draft("", "", False, f"There is no kernel after {given:g} seconds.", ()))
        if is_interrupted():
            raise KeyboardInterrupt
    if isinstance(found, Referred):
        return _referred(found, output)
    if not isinstance(found, Drafted):
        if output == "json":
            click.echo(json.dumps(shown_in(_readings_json(found)), indent=2))
        else:
            _print_reading(found[0])
        return found[0].exit_status
    assumptions = (
        *found.draft.assumptions,
        *(["Whether it keeps to its limits is not known."] if asked.has_limits else []),
    )
    if output == "json":
        click.echo(json.dumps(shown_in(_to_json(found, assumptions)), indent=2))
    else:
        _print(found, assumptions)
    return 0 if found.runs else 1


def _referred(found: Referred, output: str) -> int:
    if output == "json":
        click.echo(json.dumps(shown_in(found.to_json()), indent=2))
    else:
        found.say()
    return found.exit_status


@dataclass(frozen=True, slots=True)
class _Made:
    """The kernels of a reading, and the limits that were asked for."""

    reading: Reading
    written: Written
    limits: tuple[Limit, ...]

    @property
    def broken(self) -> str:
        """The limits that do not hold, "" where all do."""
        return "; ".join(each.text for each in self.limits if not each.holds)

    @property
    def is_right(self) -> bool:
        report = self.written.report
        return report is not None and report.status in PASSED and not self.broken

    @property
    def exit_status(self) -> int:
        report = self.written.report
        is_judged = report is not None and report.status is not Status.NOT_RUN
        return 0 if self.is_right else 1 if is_judged else COULD_NOT_RUN


def _readings(description: str) -> list[Reading]:
    formula = said_in(description.splitlines())
    return (
        [Reading(formula)]
        if formula is not None
        else by_wordings(meant_words(" ".join(description.split()), FILE_NAME))
    )


def _checked(readings: Sequence[Reading], asked: Beside, progress: Progress, is_cancelled: IsCancelled) -> list[_Made]:
    """The kernels of the readings that have the sizes that are named, those that are right first: as many as were
    checked whole before it was cancelled. Raises CancelledError where it was none."""
    made: list[_Made] = []
    named = {each.partition("=")[0] for each in asked.shapes}
    for reading in [each for each in readings if named <= {*each.formula.sizes}] or readings[:1]:
        sizes = asked.sizes(reading.formula)
        name = function_name(reading.name or reading.formula.outputs[0].name)
        try:
            written = written_best(reading.formula, Asked(name, asked.arch, sizes), progress, is_cancelled)
        except FormulaNotWrittenError as error:
            if not made:
                raise CannotRun(str(error)) from None
            continue
        limits: tuple[Limit, ...] = ()
        if asked.is_limited:
            limits = asked.judged([(written, sizes)], held_by(written, sizes), is_cancelled, sizes)
        if is_cancelled():
            break
        made.append(_Made(reading, written, limits))
    if not made and is_cancelled():
        raise CancelledError
    return sorted(made, key=lambda each: not each.is_right)


def _by_model(
    description: str,
    spec: str | None,
    seconds: float,
    asked: Beside,
    progress: Progress,
    is_cancelled: IsCancelled,
) -> list[_Made] | Drafted:
    """The kernels of what the model reads, or where it reads nothing its draft. Raises CancelledError."""
    start = time.monotonic()
    engine = open_engine(spec, progress)
    if isinstance(engine, Missing):
        raise CannotRun(str(engine))
    progress(f"{engine.model.name} is reading", None)
    try:
        with engine:
            readings = by_model(engine, " ".join(description.split()), "", is_cancelled, seconds / 2, REPAIR_ROUNDS)
            if readings and (made := _checked(readings, asked, progress, is_cancelled)):
                return made
            progress(f"{engine.model.name} is writing", None)
            left = DRAFTING_SHARE * (start + seconds - time.monotonic())
            return drafted(engine, description, asked.arch, left, progress, is_cancelled)
    except EngineError as error:
        raise CannotRun(str(error)) from None


def _print_reading(found: _Made) -> None:
    """The kernel alone on stdout, below what was meant, if it computes that."""
    reading, made = found.reading, found.written
    if made.report is not None and made.report.status in PASSED:
        click.echo(f"{read_as(reading)}\n{made.text}", nl=False)
    else:
        say_error(f"There is no kernel that may be shown. What was read is {reading.formula.text}")
    if reading.votes:
        say_note(f"The model read the words so in {reading.votes} answers: check the line above the kernel.")
    if made.report is not None:
        click.echo(report_text(made.report.to_json(), whole=False), err=True)
    if said := said_of_search(made.search):
        say_note(said)
    for limit in found.limits:
        (say_note if limit.holds else say_error)(limit.text)
    for each in made.formula.promises:
        say_note(f"The caller sees to it that {each}")


def _readings_json(made: Sequence[_Made]) -> dict[str, object]:
    candidates: list[dict[str, object]] = [
        {
            "rewrites": [],
            "code": each.written.text,
            "diff": unified_diff("", each.written.text, FILE_NAME),
            "report": None if each.written.report is None else each.written.report.to_json(),
            "formula": each.reading.formula.text,
            "votes": each.reading.votes,
            "limits": [limit.to_json() for limit in each.limits],
        }
        for each in made
    ]
    reading, first = made[0].reading, made[0].written
    return {
        "kernel": first.code.name,
        "goal": "generate",
        "plan": None,
        "candidates": candidates,
        "best": 0 if made[0].is_right else None,
        "assumptions": [assumed(reading.formula), *first.formula.promises],
        "reference": reading.formula.text,
        "reason": made[0].broken or ("" if first.report is None else first.report.reason),
        "raw": "",
    }


def _print(written: Drafted, assumptions: Sequence[str]) -> None:
    """The draft alone on stdout, so that it can be redirected to a file; what is to be said of it on stderr."""
    if written.runs:
        click.echo(written.draft.code)
    if written.report is not None:
        click.echo(report_text(written.report.to_json()), err=True)
    if not written.runs:
        say_error(f"{written.draft.reason} Say it in other words, or as a formula such as y[i] = 2 * x[i].")
    verdicts = [each for each in dict.fromkeys(written.verdicts) if each != written.draft.reason]
    for each in (*(assumptions if written.runs else ()), *verdicts):
        say_note(printable(each))


def _to_json(written: Drafted, said: Sequence[str]) -> dict[str, object]:
    candidates = []
    draft, report = written.draft, written.report
    if report is not None:
        diff = unified_diff("", draft.code + "\n", FILE_NAME)
        candidates = [{"rewrites": [], "code": draft.code, "diff": diff, "report": report.to_json()}]
    return {
        "kernel": written.name,
        "goal": "generate",
        "plan": None,
        "candidates": candidates,
        "best": 0 if written.runs else None,
        "assumptions": list(said),
        "reference": None,
        "reason": draft.reason,
        "raw": draft.raw,
        "rounds": list(written.verdicts),
    }
