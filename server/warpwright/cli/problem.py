"""`warpwright problem`: how a kernel would be run, as a file to edit."""

from __future__ import annotations

import click

from warpwright.cli.inputs import choose_kernel, read_unit
from warpwright.cli.terminal import CannotRun
from warpwright.missing import Missing
from warpwright.problems.document import write_problem
from warpwright.problems.launches import project_problem


@click.command("problem")
@click.argument("file", type=click.Path(), metavar="FILE")
@click.option("--kernel", metavar="NAME", help="The kernel; needed where the file has several.")
def command(*, file: str, kernel: str | None) -> int:
    """Print how verification would run a kernel of FILE: arrays, scalars, launch, shapes, and where each comes from.

    What is wrong or missing can be edited: put the text into sample.toml beside FILE. Exit status: 0, or 2 where the
    file does not say enough; the message names what is missing.
    """
    program = read_unit(file)
    problem = project_problem(program, choose_kernel(program, kernel, file))
    if isinstance(problem, Missing):
        raise CannotRun(str(problem))
    click.echo(write_problem(problem), nl=False)
    return 0
