"""`warpwright facts`: everything that analysis knows about the kernels of a file."""

from __future__ import annotations

import json
import os
import shutil
import sys
from dataclasses import replace

import click

from warpwright.cli.facts_text import facts_listing
from warpwright.cli.inputs import Compiled, Resources, compile_option, compile_options
from warpwright.cli.terminal import progress_line, say_error, say_note, say_warning, stop_on_ctrl_c
from warpwright.facts.compiled import with_compiled
from warpwright.facts.document import facts_document, facts_text
from warpwright.facts.model import Program
from warpwright.syntax.encoding import shown_in
from warpwright.syntax.source import SourceError, read_source


@click.command("facts")
@click.argument("files", nargs=-1, required=True, type=click.Path(), metavar="FILE...")
@click.option(
    "--format",
    "output",
    type=click.Choice(["text", "source", "json"]),
    default="text",
    show_default=True,
    help="text for people, source for the text with the facts as comments.",
)
@click.option("--kernel", metavar="NAME", help="Only this kernel.")
@compile_options
@compile_option
def command(files: tuple[str, ...], output: str, kernel: str | None, compiled: Compiled, build: bool) -> int:
    """Show what is known of each kernel: launches, memory accesses with their transactions, branches, barriers.

    Exit status: 0, or 2 if a file could not be read (the others are shown).
    """
    programs: list[Program] = []
    failures: list[str] = []
    said: set[str] = set()
    resources: Resources = {}
    if build:
        from warpwright.cli.compiling import compile_files

        with stop_on_ctrl_c() as is_cancelled, progress_line() as progress:
            resources = compile_files(files, compiled, progress, is_cancelled)
    for file in files:
        try:
            source = read_source(file)
        except SourceError as error:
            failures.append(str(error))
            continue
        for warning in set(compiled.warnings(source)) - said:
            say_warning(warning)
            said.add(warning)
        program = with_compiled(compiled.program(source), resources.get(file, ()))
        if kernel is not None:
            program = replace(program, kernels=tuple(k for k in program.kernels if k.name == kernel))
        if not program.defined_kernels and kernel is not None:
            failures.append(f"{file}: no kernel '{kernel}' in this file")
        elif not program.defined_kernels:
            say_note(f"{file}: no kernel (__global__ function) in this file")
        programs.append(program)
    if output == "json":
        click.echo(json.dumps(shown_in(facts_document(programs)), indent=1))
    elif output == "source":
        for program in programs:
            click.echo(facts_text(program), nl=False)
    else:
        width = shutil.get_terminal_size().columns if sys.stdout.isatty() or "COLUMNS" in os.environ else None
        for program in programs:
            if len(programs) > 1:
                click.echo(click.style(program.source.path, bold=True))
            whole = kernel is None
            if whole or program.defined_kernels:
                click.echo(facts_listing(program, program.defined_kernels, whole, width), nl=False)
    for failure in failures:
        say_error(failure)
    return 2 if failures else 0
