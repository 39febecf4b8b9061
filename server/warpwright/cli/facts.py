"""`warpwright facts`: everything that analysis knows about the kernels of a file."""

from __future__ import annotations

import json

import click

from warpwright.cli.inputs import Compiled, compile_options, encoding_warning
from warpwright.cli.terminal import say_error, say_note, say_warning
from warpwright.facts.document import facts_document, facts_text
from warpwright.facts.model import Program
from warpwright.syntax.source import SourceError, read_source


@click.command("facts")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("--format", "output", type=click.Choice(["text", "json"]), default="text", show_default=True)
@compile_options
def command(files: tuple[str, ...], output: str, compiled: Compiled) -> int:
    """Show what is known of each kernel: launches, memory accesses with their transactions, branches, barriers.

    Exit status: 0, or 2 if a file could not be read (the others are shown).
    """
    programs: list[Program] = []
    failures: list[str] = []
    for file in files:
        try:
            source = read_source(file)
        except SourceError as error:
            failures.append(str(error))
            continue
        if warning := encoding_warning(source):
            say_warning(warning)
        program = compiled.program(source)
        if not program.defined_kernels:
            say_note(f"{file}: no kernel (__global__ function) in this file")
        programs.append(program)
    if output == "json":
        click.echo(json.dumps(facts_document(programs), indent=1))
    else:
        for program in programs:
            click.echo(facts_text(program), nl=False)
    for failure in failures:
        say_error(failure)
    return 2 if failures else 0
