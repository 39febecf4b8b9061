"""`warpwright verify`: is one version of a file as good as another, or a kernel what its reference says?"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import click

from warpwright.cli.inputs import Compiled, choose_kernel, compile_options, nvcc_flags, program_option, read_program
from warpwright.cli.program import reports_with_program
from warpwright.cli.report_text import overview_text, report_text
from warpwright.cli.terminal import COULD_NOT_RUN, CannotRun, progress_line, stop_on_ctrl_c
from warpwright.cuda.extension.entries import is_extension
from warpwright.editor.report import overview_page, report_page
from warpwright.facts.model import Program
from warpwright.problems.infer import find_problem
from warpwright.problems.model import Problem
from warpwright.progress import Progress
from warpwright.syntax.encoding import decoded, shown_in
from warpwright.syntax.source import Source
from warpwright.verify.acceptable import acceptable
from warpwright.verify.claim import Choice
from warpwright.verify.report import Level, Report, Status
from warpwright.verify.verify import verify


@click.command("verify")
@click.argument("original", type=click.Path(), metavar="ORIGINAL")
@click.argument("candidate", type=click.Path(), metavar="[CANDIDATE]", required=False)
@click.option("--kernel", metavar="NAME", help="Only this kernel; else each that the candidate may have changed.")
@click.option(
    "--goal",
    type=click.Choice(["speed", "memory", "fix"]),
    default="speed",
    show_default=True,
    help="What the candidate is for; where a GPU is, speed asks that it be timed as faster.",
)
@click.option(
    "--backend",
    type=click.Choice(["auto", "cuda", "emulator"]),
    default="auto",
    show_default=True,
    help="Where both are run: auto is a GPU where there is one, else the CPU, which compares and times nothing.",
)
@click.option("--again", is_flag=True, help="Run both again, even where the answer is cached.")
@program_option
@compile_options
@click.option("--format", "output", type=click.Choice(["text", "markdown", "json"]), default="text", show_default=True)
def command(
    *,
    original: str,
    candidate: str | None,
    kernel: str | None,
    goal: str,
    backend: Choice,
    again: bool,
    with_program: bool,
    compiled: Compiled,
    output: str,
) -> int:
    """Compile CANDIDATE, analyse it again and run it against ORIGINAL: same results, and on a GPU how fast.

    A file that another includes is compiled as a part of that. Without a CANDIDATE the kernels of ORIGINAL are run
    against their references in torch. Several kernels make several reports, in JSON a list of them. Where the project's
    file has [program], its program is then tested with both.

    Exit status: 0 it may replace ORIGINAL (or is what its reference says), 1 it may not, 2 that could not be found out.
    """
    before = read_program(original, compiled)
    after = read_program(candidate, compiled) if candidate is not None else before
    if candidate is None:
        goal, names = "reference", _with_reference(before, kernel)
    else:
        names = [choose_kernel(before, kernel).name] if kernel else _changed(before, after)
    whole = compiled.unit(before.source).source
    unit = whole if whole.path != before.source.path else None
    text = after.source if unit is None else Source(before.source.path, after.source.data)
    reports: list[Report] = []
    with stop_on_ctrl_c() as is_cancelled, progress_line() as progress:
        for done, name in enumerate(names):
            report = verify(
                before.source,
                text,
                kernel=name,
                goal=goal,
                progress=partial(_shared, progress, name if len(names) > 1 else None, done, len(names)),
                is_cancelled=is_cancelled,
                arch=compiled.arch,
                flags=nvcc_flags(compiled, whole),
                flags_from=compiled.found(whole).words,
                backend=backend,
                again=again,
                unit=unit,
            )
            reports.append(report)
            if not report.reached(Level.COMPILED):
                break  # the others are of the same files
        if candidate is not None and with_program:
            reports = reports_with_program(reports, before.source, after.source, progress, is_cancelled)
    files = f"{original} against its reference" if candidate is None else f"{candidate} in the place of {original}"
    _show([report.to_json() for report in reports], files, output)
    return max(_exit_status(report, goal) for report in reports)


def _with_reference(program: Program, kernel: str | None) -> list[str]:
    """The kernels that there is a reference for; of a torch extension, which is run whole, one. Raises CannotRun."""
    if is_extension(program.source):
        return [choose_kernel(program, kernel).name]
    asked = [choose_kernel(program, kernel)] if kernel or not program.defined_kernels else program.defined_kernels
    found = {each.name: find_problem(program, each) for each in asked}
    names = [name for name, problem in found.items() if isinstance(problem, Problem) and problem.reference is not None]
    if not names:
        raise CannotRun(
            f"there is nothing to verify {program.source.path} against: name a second version of it, or give "
            f"{' or '.join(found)} a reference in torch (`reference` in sample.toml)"
        )
    return names


def _changed(before: Program, after: Program) -> list[str]:
    """The kernels whose text differs, or all where what lies around them does; one at least, and of a torch extension,
    which is run whole, just one. Raises CannotRun."""
    if not before.defined_kernels or is_extension(before.source):
        return [choose_kernel(before, None).name]
    both = [(kernel, other) for kernel in before.defined_kernels if (other := after.kernel(kernel.name)) is not None]
    different = [kernel.name for kernel, other in both if kernel.span.text != other.span.text]
    if _around(before) != _around(after) or not different:
        different = [kernel.name for kernel, _ in both]
    return different or [before.defined_kernels[0].name]


def _around(program: Program) -> str:
    """The file's own text without that of its kernels."""
    text = decoded(program.source.data)
    for kernel in program.defined_kernels:
        text = text.replace(kernel.span.text, "")
    return " ".join(text.split())


def _shared(progress: Progress, name: str | None, done: int, of: int, message: str, share: float | None) -> None:
    said = f"{name}: {message}" if name else message
    progress(said, None if share is None else (done + share) / of)


def _show(reports: Sequence[Mapping[str, Any]], files: str, output: str) -> None:
    named = [(report["kernel"], report) for report in reports]
    if output == "json":
        click.echo(json.dumps(shown_in(reports[0] if len(reports) == 1 else reports), indent=2))
    elif output == "markdown":
        click.echo("\n".join(report_page(report, files) for report in reports), nl=False)
        if len(reports) > 1:
            click.echo("\n" + overview_page("kernel", named), nl=False)
    else:
        click.echo("\n\n".join(report_text(report) for report in reports))
        if len(reports) > 1:
            click.echo(overview_text("kernel", named))


def _exit_status(report: Report, goal: str) -> int:
    if report.status is Status.NOT_RUN and not report.new_findings:
        return COULD_NOT_RUN
    return 0 if acceptable(report, goal) else 1
