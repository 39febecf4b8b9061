"""`warpwright history`: what was verified before."""

from __future__ import annotations

import json
from dataclasses import asdict
from datetime import datetime
from pathlib import Path

import click

from warpwright.cli.terminal import CannotRun
from warpwright.syntax.encoding import shown_in
from warpwright.verify.history import HistoryError, Run, past_runs


@click.command("history")
@click.argument("file", type=click.Path(), metavar="[FILE]", required=False)
@click.option("--kernel", metavar="NAME", help="Only verifications of this kernel.")
@click.option("--most", type=click.IntRange(1), default=20, show_default=True, metavar="N", help="How many are shown.")
@click.option("--format", "output", type=click.Choice(["text", "json"]), default="text", show_default=True)
def command(*, file: str | None, kernel: str | None, most: int, output: str) -> int:
    """The verifications of the past, newest first: of FILE, or of all files.

    They are kept in WARPWRIGHT_DATA_DIR. JSON has each one's whole report.

    Exit status: 0 they were read, 2 they cannot be.
    """
    try:
        runs = past_runs(file, kernel, most)
    except HistoryError as error:
        raise CannotRun(f"{error}.") from None
    if output == "json":
        click.echo(json.dumps(shown_in([{**asdict(run), "at": _when(run, "seconds")} for run in runs]), indent=2))
    elif runs:
        click.echo("\n".join(_table(runs)))
    else:
        click.echo("Nothing was verified yet." if file is None and kernel is None else "Nothing of that was verified.")
    return 0


def _when(run: Run, precision: str) -> str:
    return datetime.fromtimestamp(run.at).astimezone().isoformat(sep=" ", timespec=precision)


def _table(runs: list[Run]) -> list[str]:
    head = ("when", "file", "kernel", "what", "verdict", "speed-up")
    rows = [head]
    for run in runs:
        speedup = f"{run.speedup:.2f}x" if run.speedup is not None else ""
        what = f"{run.goal}: {run.what}"
        rows.append((_when(run, "minutes")[:16], Path(run.file).name, run.kernel, what, run.badge, speedup))
    widths = [max(len(row[column]) for row in rows) for column in range(len(head))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
