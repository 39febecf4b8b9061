"""`warpwright check`: findings, with their numbers, in files and directories."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path

import click

from warpwright.cli import baseline as baselines
from warpwright.cli.findings import Checked, Row, check_file, checkout, ranked, unique
from warpwright.cli.findings_text import count, findings_text, statistics_text
from warpwright.cli.github import github_lines
from warpwright.cli.gitlab import gitlab_report
from warpwright.cli.inputs import Compiled, Inputs, Resources, compile_option, compile_options, find_inputs
from warpwright.cli.sarif import sarif_log
from warpwright.cli.terminal import (
    CannotRun,
    NumberRange,
    progress_line,
    say_error,
    say_note,
    say_warning,
    stop_on_ctrl_c,
)
from warpwright.cli.watching import watch
from warpwright.rules.base import Severity
from warpwright.rules.registry import rule_and_group_names
from warpwright.syntax.encoding import shown_in

NEVER = "never"
MOST_NAMED = 5  # findings of a baseline that are gone
PARALLEL_FROM = 24  # files; below, starting processes costs more than it saves


def rule_names(_ctx: click.Context, _param: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...]:
    """Names of rules or groups, given one by one or with commas. An unknown one ends the command."""
    names = tuple(name.strip() for value in values for name in value.split(",") if name.strip())
    known = sorted(rule_and_group_names())
    for name in names:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"Did you mean '{near[0]}'?" if near else "`warpwright explain` lists them."
            raise CannotRun(f"there is no rule or group '{name}'. {hint}")
    return names


def rule_completions(_ctx: click.Context, _param: click.Parameter, begun: str) -> list[str]:
    """For a shell: the rules and groups that go on from the last of a list with commas."""
    before, comma, last = begun.rpartition(",")
    return [f"{before}{comma}{name}" for name in sorted(rule_and_group_names()) if name.startswith(last)]


@click.command("check")
@click.argument("paths", nargs=-1, required=True, type=click.Path(), metavar="PATH...")
@click.option(
    "--format",
    "output",
    type=click.Choice(["text", "json", "sarif", "github", "gitlab"]),
    default="text",
    show_default=True,
    help="text for people, sarif for code scanning, github for annotations of a pull request, gitlab for its code "
    "quality.",
)
@click.option(
    "--fail-on",
    type=click.Choice([*(severity.value for severity in Severity), NEVER]),
    default=Severity.WARNING.value,
    show_default=True,
    help="Lowest severity of findings for which the exit status is 1.",
)
@click.option(
    "--select",
    multiple=True,
    callback=rule_names,
    shell_complete=rule_completions,
    metavar="RULES",
    help="Only these rules or groups.",
)
@click.option(
    "--ignore",
    multiple=True,
    callback=rule_names,
    shell_complete=rule_completions,
    metavar="RULES",
    help="Rules or groups to leave out.",
)
@compile_options
@click.option(
    "--profile",
    "profiled",
    is_flag=True,
    help="Use the counts and the faults of a run: kept profiles of this text, else runs of the emulator.",
)
@compile_option
@click.option(
    "--baseline",
    type=click.Path(),
    metavar="FILE",
    help="Leave out the findings that this file records: only new ones fail.",
)
@click.option("--write-baseline", type=click.Path(), metavar="FILE", help="Record the current findings in FILE.")
@click.option(
    "--min-gain",
    type=NumberRange(0, 100),
    default=0,
    metavar="PERCENT",
    help="Leave out findings whose estimated gain is less. Those without an estimate stay.",
)
@click.option(
    "--sort",
    type=click.Choice(["place", "gain"]),
    default="place",
    show_default=True,
    help="By their place in the text, or errors first and then by estimated gain.",
)
@click.option("--statistics", is_flag=True, help="How many findings of each rule, in place of the findings.")
@click.option("--watch", "watched", is_flag=True, help="Check again whenever a file changes, until Ctrl-C.")
def command(
    *,
    paths: tuple[str, ...],
    output: str,
    fail_on: str,
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    compiled: Compiled,
    profiled: bool,
    build: bool,
    baseline: str | None,
    write_baseline: str | None,
    min_gain: float,
    sort: str,
    statistics: bool,
    watched: bool,
) -> int:
    """Report what is wrong with CUDA kernels and torch extensions. Directories are walked for .cu and .cuh files,
    and for the C++ and Python of extensions.

    Exit status: 0 nothing at warning or above (--fail-on sets another limit), 1 findings, 2 an input could not be read
    (the others are reported).
    """
    if statistics and output != "text":
        raise CannotRun("--statistics is a text; take it without --format")

    def once() -> tuple[int, set[str]]:
        return _once(
            paths, output, fail_on, (select, ignore), compiled, (profiled, build), (baseline, write_baseline),
            (min_gain / 100, sort, statistics),
        )  # fmt: skip

    return watch(once, paths) if watched else once()[0]


def _once(
    paths: tuple[str, ...],
    output: str,
    fail_on: str,
    rules: tuple[tuple[str, ...], tuple[str, ...]],
    compiled: Compiled,
    basis: tuple[bool, bool],
    recording: tuple[str | None, str | None],
    shown: tuple[float, str, bool],
) -> tuple[int, set[str]]:
    """The exit status, and the files that were read."""
    (select, ignore), (profiled, build), (baseline, write_baseline) = rules, basis, recording
    min_gain, sort, statistics = shown
    known = baselines.read(Path(baseline)) if baseline else None
    inputs = find_inputs(paths)
    if profiled:
        from warpwright.cli.profile_making import make_profiles

        with stop_on_ctrl_c() as is_cancelled, progress_line() as progress:
            make_profiles((*inputs.named, *inputs.walked), compiled, progress, is_cancelled)
    resources: Resources = {}
    if build:
        from warpwright.cli.compiling import compile_files

        units = (*inputs.named, *(path for path in inputs.walked if path.suffix == ".cu"))
        with stop_on_ctrl_c() as is_cancelled, progress_line() as progress:
            resources = compile_files(units, compiled, progress, is_cancelled)
    check = partial(check_file, select=select, ignore=ignore, compiled=compiled, profiled=profiled, resources=resources)
    checked = _check_all(inputs, check)
    failures = [*inputs.failures, *(one.failure for one in checked if one.failure)]
    for warning in dict.fromkeys(warning for one in checked for warning in one.warnings):
        say_warning(warning)
    for one in checked:
        if one.kernels == 0 and one.failure is None and Path(one.path) in inputs.named and not one.rows:
            say_note(f"{one.path}: no kernel (__global__ function) in this file")

    every = unique(row for one in checked for row in one.rows)
    rows = [row for row in every if row.gain is None or row.gain >= min_gain]
    if write_baseline:
        baselines.write(Path(write_baseline), rows)
        say_note(f"{len(rows)} findings recorded in {write_baseline}")
    recorded = 0
    if known is not None:
        looked_at = {file for one in checked if one.failure is None for file in (one.path, *one.sources)}
        compared = known.compared(rows, looked_at)
        rows, recorded = compared.fresh, compared.recorded
        if compared.stale and not (select or ignore):
            say_note(_stale_note(compared.stale, str(baseline)))
    rows = ranked(rows) if sort == "gain" else rows
    if statistics:
        click.echo(statistics_text(rows))
    else:
        _print(output, rows, checked, failures, recorded)
    for failure in failures:
        say_error(failure)
    read = {file for one in checked for file in (one.path, *one.sources)}
    if failures:
        return 2, read
    return (0 if write_baseline else int(any(row.severity in _failing(fail_on) for row in rows))), read


def _failing(least: str) -> tuple[Severity, ...]:
    severities = tuple(Severity)  # the gravest first
    return () if least == NEVER else severities[: severities.index(Severity(least)) + 1]


def _stale_note(stale: list[baselines.Entry], baseline: str) -> str:
    named = ", ".join(dict.fromkeys(map(str, stale[:MOST_NAMED])))
    others = f" and {len(stale) - MOST_NAMED} more" if len(stale) > MOST_NAMED else ""
    said = f"{count(len(stale), 'finding', 'findings')} of {baseline} no longer found: {named}{others}"
    return f"{said}; --write-baseline {baseline} records the current findings"


def _check_all(inputs: Inputs, check: partial[Checked]) -> list[Checked]:
    """Every input once. A header of a walked directory that a file there includes is covered by that file's analysis,
    which knows how the header's kernels are launched; on its own it would be judged by an assumed launch."""
    headers = [path for path in inputs.walked if path.suffix == ".cuh"]
    first = [str(path) for path in (*inputs.named, *inputs.walked) if path not in headers]
    checked = list(_run(check, dict.fromkeys(first), len(first) + len(headers)))
    covered = {Path(source).resolve() for one in checked for source in one.sources}
    rest = [str(path) for path in headers if path.resolve() not in covered]
    return checked + list(_run(check, rest, len(rest)))


def _run(check: partial[Checked], paths: Iterable[str], total: int) -> Iterator[Checked]:
    paths = list(paths)
    if len(paths) < PARALLEL_FROM:
        return map(check, paths)
    from warpwright.cli.check_many import check_many

    return check_many(check, paths, total)


def _print(output: str, rows: list[Row], checked: list[Checked], failures: list[str], recorded: int) -> None:
    if output == "json":
        click.echo(json.dumps(shown_in([row.to_json() for row in rows]), indent=2, default=str))
    elif output == "sarif":
        click.echo(json.dumps(shown_in(sarif_log(rows, failures, checkout(Path.cwd()))), indent=2, default=str))
    elif output == "gitlab":
        click.echo(json.dumps(shown_in(gitlab_report(rows, checkout(Path.cwd()))), indent=2))
    elif output == "github":
        for line in github_lines(rows, failures, checkout(Path.cwd())):
            click.echo(line)
    elif any(one.failure is None for one in checked):
        click.echo(findings_text(rows, checked, recorded))
