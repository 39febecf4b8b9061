"""`warpwright generate`: a kernel from words, checked; or a draft, compiled and run for faults."""

from __future__ import annotations

import json
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
from warpwright.cli.terminal import CannotRun, progress_line, say_error, say_note, stop_on_ctrl_c
from warpwright.editor.formula_comment import said_in
from warpwright.editor.read_as import assumed, read_as
from warpwright.missing import Missing
from warpwright.optimize.drafting import FILE_NAME, Drafted, drafted
from warpwright.progress import IsCancelled, Progress
from warpwright.syntax.edits import unified_diff
from warpwright.syntax.encoding import shown_in
from warpwright.verify.formulas import Asked, FormulaNotWrittenError, Written, said_of_search, written_best
from warpwright.verify.limits import Limit, held_by
from warpwright.verify.report import PASSED, Report
from warpwright.writer.names import function_name


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
@click.option("--seconds", type=click.FloatRange(min=1), default=BUDGET_SECONDS, show_default=True)
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
    seconds: float,
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
    with stop_on_ctrl_c() as is_cancelled, progress_line() as progress:
        if reference is not None:
            return _referred(of_reference(reference, inputs, asked, progress, is_cancelled), output)
        readings = _readings(description)
        if readings:
            made = _checked(readings, asked, progress, is_cancelled)
        else:
            made, written = _by_model(description, spec, seconds, asked, progress, is_cancelled)
        if is_cancelled():
            raise KeyboardInterrupt
    if made:
        if output == "json":
            click.echo(json.dumps(shown_in(_readings_json(made)), indent=2))
        else:
            _print_reading(made[0])
        return 0 if made[0].is_right else 1
    assert written is not None
    draft, report = written.draft, written.report
    said = (*draft.assumptions, *(["Whether it keeps to its limits is not known."] if asked.has_limits else []))
    if output == "json":
        click.echo(json.dumps(shown_in(_to_json(written, said)), indent=2))
    else:
        _print(draft, report, (*said, *written.verdicts))
    return 0 if written.runs else 1


def _referred(found: Referred, output: str) -> int:
    if output == "json":
        click.echo(json.dumps(shown_in(found.to_json()), indent=2))
    else:
        found.say()
    return 1 if found.broken else 0


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


def _readings(description: str) -> list[Reading]:
    formula = said_in(description.splitlines())
    return (
        [Reading(formula)]
        if formula is not None
        else by_wordings(meant_words(" ".join(description.split()), FILE_NAME))
    )


def _checked(readings: Sequence[Reading], asked: Beside, progress: Progress, is_cancelled: IsCancelled) -> list[_Made]:
    """The kernels of the readings that have the sizes that are named, those that are right first."""
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
        made.append(_Made(reading, written, limits))
    return sorted(made, key=lambda each: not each.is_right)


def _by_model(
    description: str,
    spec: str | None,
    seconds: float,
    asked: Beside,
    progress: Progress,
    is_cancelled: IsCancelled,
) -> tuple[list[_Made], Drafted | None]:
    """The kernels of what the model reads, or where it reads nothing its draft."""
    engine = open_engine(spec, progress)
    if isinstance(engine, Missing):
        raise CannotRun(str(engine))
    progress(f"{engine.model.name} is reading", None)
    try:
        with engine:
            readings = by_model(engine, " ".join(description.split()), "", is_cancelled, seconds / 2, REPAIR_ROUNDS)
            if readings and (made := _checked(readings, asked, progress, is_cancelled)):
                return made, None
            progress(f"{engine.model.name} is writing", None)
            return [], drafted(engine, description, asked.arch, seconds / 2, progress, is_cancelled)
    except EngineError as error:
        raise CannotRun(str(error)) from None


def _print_reading(found: _Made) -> None:
    """The kernel alone on stdout, below what was meant."""
    reading, made = found.reading, found.written
    click.echo(f"{read_as(reading)}\n{made.text}", nl=False)
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


def _print(draft: Draft, report: Report | None, said: Sequence[str]) -> None:
    """The draft alone on stdout, so that it can be redirected to a file; what is to be said of it on stderr."""
    if report is None:
        say_error(f"{draft.reason} Say it in other words, or as a formula such as y[i] = 2 * x[i].")
        say_note("the model's own words:")
        for line in draft.raw.splitlines():
            click.echo(f"  {printable(line)}", err=True)
        return
    click.echo(draft.code)
    click.echo(report_text(report.to_json()), err=True)
    for each in said:
        say_note(each)


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
