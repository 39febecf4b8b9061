"""`warpwright generate`: a draft of a kernel from a description, and whether the compiler takes it."""

from __future__ import annotations

import json

import click

from warpwright.assist.engine import EngineError
from warpwright.assist.generate import BUDGET_SECONDS, Draft, generate
from warpwright.assist.opening import open_engine
from warpwright.cli.findings_text import printable
from warpwright.cli.inputs import arch_option
from warpwright.cli.report_text import report_text
from warpwright.cli.terminal import CannotRun, progress_line, say_error, say_note, stop_on_ctrl_c
from warpwright.editor.generate_job import FILE_NAME, compiled_draft
from warpwright.facts.analyze import analyze
from warpwright.missing import Missing
from warpwright.syntax.edits import unified_diff
from warpwright.syntax.encoding import encoded, shown_in
from warpwright.syntax.source import Source
from warpwright.verify.report import Level, Report


@click.command("generate")
@click.argument("description")
@click.option("--model", "spec", metavar="MODEL", help="A GGUF file, or a Hugging Face name that was pulled.")
@click.option("--seconds", type=click.FloatRange(min=1), default=BUDGET_SECONDS, show_default=True)
@click.option("--format", "output", type=click.Choice(["text", "json"]), default="text", show_default=True)
@arch_option
def command(*, description: str, spec: str | None, seconds: float, output: str, arch: str) -> int:
    """Draft a kernel from DESCRIPTION with the local model. A draft is not verified: read it before you use it.

    Exit status: 0 a draft that compiles, 1 there is none, 2 could not run.
    """
    if not description.strip():
        raise CannotRun('say in words what the kernel shall do, such as "add two vectors"')
    with stop_on_ctrl_c() as is_cancelled, progress_line() as progress:
        engine = open_engine(spec, progress)
        if isinstance(engine, Missing):
            raise CannotRun(str(engine))
        progress(f"{engine.model.name} is writing", None)
        try:
            with engine:
                draft = generate(engine, description, is_cancelled, budget_seconds=seconds)
        except EngineError as error:
            raise CannotRun(str(error)) from None
        source = Source(FILE_NAME, encoded(draft.code) + b"\n")
        kernels = analyze(source).defined_kernels
        name = kernels[0].name if draft.shown and kernels else ""
        report = None
        if draft.shown:
            progress("Compiling the draft", None)
            report = compiled_draft(source, name, arch, is_cancelled)
        if is_cancelled():
            raise KeyboardInterrupt
    if output == "json":
        click.echo(json.dumps(shown_in(_to_json(draft, report, name)), indent=2))
    else:
        _print(draft, report)
    return 0 if report is not None and report.reached(Level.COMPILED) else 1


def _print(draft: Draft, report: Report | None) -> None:
    """The draft alone on stdout, so that it can be redirected to a file; what is to be said of it on stderr."""
    if report is None:
        say_error(draft.reason)
        say_note("the model's own words:")
        for line in draft.raw.splitlines():
            click.echo(f"  {printable(line)}", err=True)
        return
    click.echo(draft.code)
    click.echo(report_text(report.to_json()), err=True)
    for assumption in draft.assumptions:
        say_note(assumption)


def _to_json(draft: Draft, report: Report | None, name: str) -> dict[str, object]:
    candidates = []
    if report is not None:
        diff = unified_diff("", draft.code + "\n", FILE_NAME)
        candidates = [{"rewrites": [], "code": draft.code, "diff": diff, "report": report.to_json()}]
    return {
        "kernel": name,
        "goal": "generate",
        "plan": None,
        "candidates": candidates,
        "best": 0 if report is not None and report.reached(Level.COMPILED) else None,
        "assumptions": list(draft.assumptions),
        "reference": None,
        "reason": draft.reason,
        "raw": draft.raw,
    }
