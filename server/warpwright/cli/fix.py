"""`warpwright fix`: the findings' fixes, each verified before it is shown."""

from __future__ import annotations

import json
import sys
from functools import partial
from pathlib import Path

import click

from warpwright.cli.check import rule_completions, rule_names
from warpwright.cli.diff import coloured, source_diff
from warpwright.cli.files import write_atomically
from warpwright.cli.findings_text import count
from warpwright.cli.inputs import Compiled, compile_options, find_inputs, nvcc_flags
from warpwright.cli.terminal import (
    COULD_NOT_RUN,
    CannotRun,
    progress_line,
    say_error,
    say_note,
    say_warning,
    stop_on_ctrl_c,
)
from warpwright.editor.fixing import Attempt, Fixed, Reading, fix_source
from warpwright.facts.model import Program
from warpwright.missing import Missing
from warpwright.rules.base import Finding
from warpwright.rules.registry import run_rules
from warpwright.syntax.encoding import shown_in
from warpwright.syntax.source import SourceError, read_source
from warpwright.toolchain.find import find_toolchain
from warpwright.verify.report import Level, Status


@click.command("fix")
@click.argument("paths", nargs=-1, required=True, type=click.Path(), metavar="PATH...")
@click.option(
    "--rule",
    "rules",
    multiple=True,
    callback=rule_names,
    shell_complete=rule_completions,
    metavar="RULES",
    help="Only these rules' fixes.",
)
@click.option(
    "--diff/--write", "diff", default=True, help="Show the fixes as a diff (the default), or write the files."
)
@click.option("--unsafe", is_flag=True, help="Also fixes that may change results, such as the order of a sum.")
@compile_options
@click.option("--format", "output", type=click.Choice(["text", "json"]), default="text", show_default=True)
def command(
    *, paths: tuple[str, ...], rules: tuple[str, ...], diff: bool, unsafe: bool, compiled: Compiled, output: str
) -> int:
    """Fix what has a fix. Each is compiled, analysed again, run on a GPU or the CPU and compared before it is offered.

    Exit status: 0 every fix there is was made, 1 one was refused, 2 an input could not be read or nothing verified.
    """
    toolchain = find_toolchain()
    if isinstance(toolchain, Missing):
        raise CannotRun(f"fixes cannot be verified. {toolchain}")
    inputs = find_inputs(paths)
    failures = list(inputs.failures)
    fixed: list[Fixed] = []
    said: set[str] = set()

    def findings(path: str, program: Program) -> list[Finding]:
        settings = compiled.settings(program.source)
        found = run_rules(program, rules or settings.select, settings.ignore, settings.severities)
        return [each for each in found if path in (each.span.path, program.source.path)]

    with stop_on_ctrl_c() as is_cancelled:
        for path in (*inputs.named, *inputs.walked):
            if is_cancelled():
                break
            try:
                source = read_source(path)
            except SourceError as error:
                failures.append(str(error))
                continue
            for warning in set(compiled.warnings(source)) - said:
                say_warning(warning)
                said.add(warning)
            whole = compiled.unit(source).source
            reading = Reading(compiled.unit, partial(findings, source.path), nvcc_flags(compiled, whole), compiled.arch)
            with progress_line() as progress:
                tried, told = (silent, silent) if output == "json" else (say_tried, say_made)
                one = fix_source(
                    source,
                    reading,
                    unsafe=unsafe,
                    progress=progress,
                    is_cancelled=is_cancelled,
                    trying=tried,
                    made_one=told,
                )
            fixed.append(one)
            if not diff and (failure := _write(one)):
                failures.append(failure)
            if output == "text":
                _print(one, show_diff=diff)
        stopped = is_cancelled()

    if output == "json":
        click.echo(json.dumps(shown_in([_to_json(one) for one in fixed]), indent=2, default=str))
    elif not stopped or any(one.attempts for one in fixed):
        _print_summary(fixed, diff=diff)
    for failure in failures:
        say_error(failure)
    if stopped:
        raise KeyboardInterrupt
    if failures:
        return 2
    refused = [attempt for one in fixed for attempt in one.attempts if _is_refused(attempt)]
    if refused and all(_unverified(attempt) for attempt in refused):
        return COULD_NOT_RUN
    return int(bool(refused))


def _is_refused(attempt: Attempt) -> bool:
    """Whether verification refused it; what does not apply was no fix of the finding at all."""
    return not attempt.applied and attempt.report is not None


def _unverified(attempt: Attempt) -> bool:
    """Refused because nothing could be found out about it, for want of a compiler that works."""
    report = attempt.report
    return report is not None and report.status is Status.NOT_RUN and not report.reached(Level.COMPILED)


def _write(one: Fixed) -> str | None:
    """The sentence that says why nothing was written, or None. A file that changed meanwhile is left as it is."""
    if one.after.data == one.before.data:
        return None
    path = Path(one.before.path)
    try:
        if path.read_bytes() != one.before.data:
            return f"{path}: changed on disk while it was being fixed; nothing was written to it, run again"
        write_atomically(path, one.after.data)
    except OSError as error:
        return f"{path}: cannot be written ({error.strerror}); it is as it was"
    return None


def say_tried(attempt: Attempt) -> None:
    """One fix, before it is verified: the first of them is the command's first line."""
    if not sys.stderr.isatty():  # a terminal has the line that moves
        click.echo(f"trying   {attempt.file}:{attempt.line}: {attempt.rule}: {attempt.title}", err=True)


def say_made(attempt: Attempt) -> None:
    """One fix, as soon as it is verified."""
    clear = "\r\033[K" if sys.stderr.isatty() else ""
    click.echo(f"{clear}{_line(attempt)}", err=True)


def silent(_attempt: Attempt) -> None:
    return


def _print(one: Fixed, *, show_diff: bool) -> None:
    """What was refused, and the diff; what was made has been told."""
    for attempt in one.attempts:
        if _is_refused(attempt):
            click.echo(_line(attempt), err=True)
    if show_diff and one.after.data != one.before.data:
        click.echo(coloured(source_diff(one.before, one.after)), nl=False)


def _line(attempt: Attempt) -> str:
    where = f"{attempt.file}:{attempt.line}: {attempt.rule}"
    if attempt.applied and attempt.report is not None:
        return f"{click.style('fixed', fg='green', bold=True)}    {where}: {attempt.title} [{attempt.report.badge()}]"
    return f"{click.style('refused', fg='yellow', bold=True)}  {where}: {attempt.title}: {attempt.reason}"


def _print_summary(fixed: list[Fixed], *, diff: bool) -> None:
    made = sum(attempt.applied for one in fixed for attempt in one.attempts)
    refused = sum(_is_refused(attempt) for one in fixed for attempt in one.attempts)
    inapplicable = sum(not attempt.applied and attempt.report is None for one in fixed for attempt in one.attempts)
    unsafe = sum(one.unsafe_left for one in fixed)
    if made or refused:
        say_note(f"{made} fixed, {refused} refused" + ("; --write writes what is fixed" if diff and made else ""))
    elif fixed and not unsafe:
        say_note("no finding here has a fix")
    if inapplicable:
        say_note(f"{count(inapplicable, 'fix does', 'fixes do')} not apply; `--format json` says why")
    if unsafe:
        say_note(f"{count(unsafe, 'fix', 'fixes')} that may change results left out; --unsafe tries them")


def _to_json(one: Fixed) -> dict[str, object]:
    return {
        "file": one.before.path,
        "diff": source_diff(one.before, one.after),
        "fixes": [
            {
                "line": attempt.line,
                "rule": attempt.rule,
                "kernel": attempt.kernel,
                "rewrite": attempt.rewrite,
                "title": attempt.title,
                "applied": attempt.applied,
                "reason": attempt.reason,
                "report": attempt.report.to_json() if attempt.report is not None else None,
            }
            for attempt in one.attempts
        ],
    }
