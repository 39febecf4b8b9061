"""`warpwright doctor`: what was found on this machine, and what to do about what was not."""

from __future__ import annotations

import json
from dataclasses import asdict

import click

from warpwright.cli.terminal import progress_line
from warpwright.editor.parts import parts
from warpwright.editor.parts_page import parts_page
from warpwright.syntax.encoding import shown_in


@click.command("doctor")
@click.option("--format", "output", type=click.Choice(["text", "json", "markdown"]), default="text", show_default=True)
def command(output: str) -> int:
    """Say what was found: Python, NVIDIA's compiler, emulator, GPU, model, editors; and what to do where one is not.

    Findings need none of the optional parts. Exit status 0, whatever is missing.
    """
    with progress_line() as progress:
        found = list(parts(progress))
    if output == "json":
        click.echo(json.dumps(shown_in([asdict(part) for part in found]), indent=2))
        return 0
    if output == "markdown":
        click.echo(parts_page(found), nl=False)
        return 0
    width = max(len(part.name) for part in found)
    for part in found:
        mark = click.style("found  ", fg="green") if part.found else click.style("missing", fg="yellow")
        click.echo(f"{mark}  {click.style(f'{part.name:<{width}}', bold=True)}  {part.what}")
        if not part.found:
            indent = " " * (width + 11)
            click.echo(f"{indent}without it: no {part.gives}")
            click.echo(f"{indent}{click.style(part.advice, fg='cyan')}")
    return 0
