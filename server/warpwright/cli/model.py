"""`warpwright model`: list, pull or select a local model."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec

import click

from warpwright.cli.inputs import model_option
from warpwright.cli.terminal import CannotRun, progress_line, say_note
from warpwright.missing import Missing
from warpwright.syntax.encoding import shown_in


@click.group("model")
def command() -> None:
    """List, pull or select the local model."""


@command.command("info")
@model_option
@click.option("--format", "output", type=click.Choice(["text", "json"]), default="text", show_default=True)
def info(spec: str | None, output: str) -> int:
    """Which model would be used now, and where its file is. WARPWRIGHT_MODEL names another.

    Exit status: 0 it is there, 2 it is not.
    """
    from importlib.metadata import PackageNotFoundError, version

    from warpwright.assist.endpoint import named_endpoint
    from warpwright.assist.weights import find_adapter, find_model

    if (endpoint := named_endpoint(spec)) is not None:
        if output == "json":
            click.echo(json.dumps(shown_in({"name": endpoint.name, "url": endpoint.url}), indent=2))
        else:
            click.echo(f"model    {click.style(endpoint.name, bold=True)}\nserver   {endpoint.url}")
        return 0
    with progress_line() as progress:
        model = find_model(spec, progress)
    if isinstance(model, Missing):
        raise CannotRun(str(model))
    try:
        runtime = f"llama-cpp-python {version('llama-cpp-python')}"
    except PackageNotFoundError:
        runtime = ""
    adapter = find_adapter(model)
    facts = {
        "name": model.name,
        "path": str(model.path),
        "bytes": model.path.stat().st_size,
        "adapter": str(adapter) if adapter else None,
        "runtime": runtime or None,
    }
    if output == "json":
        click.echo(json.dumps(shown_in(facts), indent=2))
        return 0
    click.echo(f"model    {click.style(model.name, bold=True)}, {facts['bytes']:,} bytes")
    click.echo(f"file     {model.path}")
    click.echo(f"adapter  {adapter or 'none'}")
    click.echo(f"runtime  {runtime or 'none: install it with `pip install warpwright[model]`'}")
    return 0


@command.command("pull")
@click.argument("name", metavar="ORG/REPO[:FILE.gguf]")
def pull(name: str) -> int:
    """Download a GGUF model from the Hugging Face hub into the cache."""
    from warpwright.assist import weights

    with progress_line() as progress:
        model = weights.pull(name, progress)
    if isinstance(model, Missing):
        raise CannotRun(str(model))
    click.echo(model.path)
    say_note(f"use it with --model {name} or WARPWRIGHT_MODEL={name}")
    return 0


@command.command("eval", context_settings={"ignore_unknown_options": True, "help_option_names": []})
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="[OPTIONS]")
def evaluate(arguments: tuple[str, ...]) -> int:
    """Ask models for what they were not trained on, judge every answer, and print a table.

    Asked are the base with an adapter, the untuned base, the nearest wording of a corpus without a model, and a larger
    model behind an OpenAI-compatible endpoint, whichever are there: comments to formulas at the first try and within
    --tries, plans, first token, tokens per second, memory. --out writes all of it with every answer, --format json
    prints it, --limit asks about fewer. --help shows all options. Needs `pip install 'warpwright[upskill]'`.

    Exit status: 0 it was measured, 2 it could not be.
    """
    if find_spec("warpwright_upskill") is None:
        raise CannotRun("the stages of the model are not installed here; install warpwright with its upskill extra")
    return subprocess.run([sys.executable, "-m", "warpwright_upskill.evaluate", *arguments], check=False).returncode
