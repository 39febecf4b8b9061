"""`warpwright verify`: is one version of a file as good as another?"""

from __future__ import annotations

import json

import click

from warpwright.cli.inputs import Compiled, choose_kernel, compile_options, read_program
from warpwright.cli.report_text import report_text
from warpwright.cli.terminal import COULD_NOT_RUN, progress_line, stop_on_ctrl_c
from warpwright.editor.report import report_page
from warpwright.verify.report import Level, Status
from warpwright.verify.verify import Choice, acceptable, verify


@click.command("verify")
@click.argument("original", metavar="ORIGINAL")
@click.argument("candidate", metavar="CANDIDATE")
@click.option("--kernel", metavar="NAME", help="The kernel that was changed.")
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
@compile_options
@click.option("--format", "output", type=click.Choice(["text", "markdown", "json"]), default="text", show_default=True)
def command(
    *,
    original: str,
    candidate: str,
    kernel: str | None,
    goal: str,
    backend: Choice,
    compiled: Compiled,
    output: str,
) -> int:
    """Compile CANDIDATE, analyse it again and run it against ORIGINAL: same results, and on a GPU how fast.

    Exit status: 0 it may replace ORIGINAL, 1 it may not, 2 that could not be found out.
    """
    before = read_program(original, compiled)
    after = read_program(candidate, compiled)
    name = choose_kernel(before, kernel).name if kernel or len(before.defined_kernels) < 2 else None
    with stop_on_ctrl_c() as is_cancelled, progress_line() as progress:
        report = verify(
            before.source,
            after.source,
            kernel=name,
            goal=goal,
            progress=progress,
            is_cancelled=is_cancelled,
            arch=compiled.arch,
            flags=compiled.flags(before.source),
            flags_from=compiled.found(before.source).origin,
            backend=backend,
        )
    accepted = acceptable(report, goal)
    if output == "json":
        click.echo(json.dumps(report.to_json(), indent=2))
    elif output == "markdown":
        click.echo(report_page(report.to_json(), f"{candidate} in the place of {original}"), nl=False)
    else:
        click.echo(report_text(report.to_json()))
    if accepted:
        return 0
    unknown = report.status is Status.NOT_RUN and not report.reached(Level.COMPILED)
    return COULD_NOT_RUN if unknown else 1
