"""`warpwright optimize`: search for a better kernel; the model plans, verification decides."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import nullcontext, suppress
from functools import partial

import click

from warpwright.cli.inputs import (
    Compiled,
    choose_kernel,
    compile_options,
    model_option,
    nvcc_flags,
    program_option,
    read_program,
)
from warpwright.cli.terminal import CannotRun, NumberRange, progress_line, say_note, say_warning, stop_on_ctrl_c
from warpwright.progress import CancelledError
from warpwright.rules.base import Finding
from warpwright.rules.registry import run_rules
from warpwright.syntax.encoding import shown_in
from warpwright.verify import harness


@click.command("optimize")
@click.argument("file", type=click.Path(), metavar="FILE")
@click.option("--kernel", metavar="NAME", help="The kernel to work on; else the one with the largest estimated gain.")
@click.option(
    "--goal",
    type=click.Choice(["speed", "memory", "fix"]),
    default="speed",
    show_default=True,
    help="Faster, with less memory, or rid of its defects.",
)
@click.option(
    "--wish",
    metavar="TEXT",
    default="",
    help="How to search, in words: more aggressive, exact, readable, less memory.",
)
@click.option(
    "--plan",
    type=click.Choice(["fixed", "model"]),
    help="What is tried first: what gained most on other kernels, or what the model would try. [default: the project's "
    "setting, else fixed]",
)
@model_option
@click.option(
    "--seconds",
    type=NumberRange(min=1),
    help="How long the search may take. [default: the project's setting, else 300]",
)
@program_option
@compile_options
@click.option("--verbose", "-v", is_flag=True, help="Show the plan, every candidate and how it was verified, too.")
@click.option("--format", "output", type=click.Choice(["text", "json"]), default="text", show_default=True)
def command(
    *,
    file: str,
    kernel: str | None,
    goal: str,
    wish: str,
    plan: str | None,
    spec: str | None,
    seconds: float | None,
    with_program: bool,
    compiled: Compiled,
    verbose: bool,
    output: str,
) -> int:
    """Search for a better version of a kernel and show the best one as a diff, with how it was verified.

    The file is not changed. What was verified before is not verified again, so that a search which goes on with
    another --wish is short. What --plan says first is tried first: it matters where the search is cut short. With
    --goal fix a kernel that nvcc rejects is repaired as far as that is certain. Where no rewrite helps, or the --wish
    is for more than a search knows, the model rewrites the kernel in its own words, and what it writes is verified.
    Where the project's file has [program], its program is tested with the version that is chosen.

    Exit status: 0 a version that was verified is shown, 1 there is none, 2 could not run.
    """
    harness.prepare()  # before all else, as all else takes less time
    program = read_program(file, compiled)
    chosen = choose_kernel(program, kernel)
    findings = [finding for finding in run_rules(program) if finding.kernel == chosen.name]
    if output == "text":
        say_note(first_line(chosen.name, findings))
    from warpwright.assist.engine import Engine
    from warpwright.assist.opening import open_engine
    from warpwright.assist.weights import is_model_named
    from warpwright.cli.findings_text import count
    from warpwright.cli.outcome_text import outcome_text
    from warpwright.cli.program import outcome_with_program
    from warpwright.missing import Missing
    from warpwright.toolchain.find import find_toolchain

    settings = compiled.settings(program.source)
    plan, spec, seconds = plan or settings.plan, spec or settings.model or None, seconds or settings.optimize_seconds
    toolchain = find_toolchain()
    if isinstance(toolchain, Missing):
        raise CannotRun(f"nothing can be verified. {toolchain}")
    from warpwright.assist.free_form import writes_kernels
    from warpwright.optimize.improve import RejectedError, improve
    from warpwright.optimize.mending import Building
    from warpwright.optimize.optimize import optimize
    from warpwright.optimize.wish import WishError

    building = Building(compiled.arch, nvcc_flags(compiled, program.source), compiled.include_folders(program.source))
    with stop_on_ctrl_c() as is_cancelled, progress_line() as progress:
        engine = open_engine(spec, progress) if plan == "model" or is_model_named(spec or "") else None
        if isinstance(engine, Missing) and spec:
            raise CannotRun(str(engine))
        search = partial(
            optimize,
            program,
            chosen,
            goal,
            engine=engine if plan == "model" else None,
            progress=progress,
            is_cancelled=is_cancelled,
            budget_seconds=seconds,
            arch=building.arch,
            flags=building.flags,
        )
        with engine if isinstance(engine, Engine) else nullcontext():
            try:
                outcome = improve(
                    program,
                    chosen,
                    goal,
                    [wish] if wish else [],
                    lambda wished: search(wish=wished),
                    findings=findings,
                    building=building,
                    writer=engine if isinstance(engine, Engine) and writes_kernels(engine, goal) else None,
                    seconds=seconds,
                    progress=progress,
                    is_cancelled=is_cancelled,
                )
            except RejectedError as error:
                raise CannotRun(f"{error} {error.advice}") from None
            except WishError as error:
                raise CannotRun(f"{error} A larger model, named with --model, may be asked for more.") from None
            if with_program and not is_cancelled():
                with suppress(CancelledError):  # what was found until then is shown
                    outcome = outcome_with_program(outcome, progress, is_cancelled)
        stopped = is_cancelled()
    if output == "json":
        click.echo(json.dumps(shown_in(outcome.to_json()), indent=2))
    else:
        if plan == "model" and not outcome.plan and not verbose:
            say_warning(outcome.plan_missing)
        click.echo(outcome_text(outcome, details=verbose))
        if outcome.best is not None and not verbose:
            tried = count(len(outcome.candidates), "candidate")
            say_note(f"{tried} tried; --verbose shows the plan, each of them and how it was verified")
    if stopped:
        raise KeyboardInterrupt
    return 0 if outcome.best is not None else 1


def first_line(kernel: str, findings: Sequence[Finding]) -> str:
    """What is known of a kernel before anything is tried: what would gain most, by the text alone.

    >>> first_line("scale", [])
    'scale: no finding; trying what gains without one'
    """
    if not findings:
        return f"{kernel}: no finding; trying what gains without one"
    worst = max(findings, key=lambda each: (each.gain or 0.0, -each.span.start))
    gain = f", estimated gain {worst.gain:.0%}" if worst.gain else ""
    return f"{kernel}, line {worst.span.line}: {worst.headline}{gain}"
