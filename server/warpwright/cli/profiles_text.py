"""Two profiles beside each other for people: each line's counts before and now, and the totals."""

from __future__ import annotations

import click
from rich.table import Table
from rich.text import Text

from warpwright.cli.findings_text import printable
from warpwright.cli.profile_text import WIDTH, rendered
from warpwright.editor.profile.beside import Lines, Measure, beside, measures, totals
from warpwright.editor.profile.view import View, made_by, run_of

_STYLES = {"-": "red", "+": "green", " ": ""}


def profiles_text(before: View, now: View, width: int | None) -> str:
    """A table of `width` columns: the number of each line in both texts, and what it did before and now."""
    columns = measures(before, now)
    runs = dict.fromkeys(printable(run_of(each.profile)) for each in (before, now))
    head = [
        click.style(now.profile.function or now.profile.kernel, bold=True),
        f"  {made_by(now.profile)}; {' -> '.join(runs)}",
        f"  {printable(before.files[0].path)} -> {printable(now.files[0].path)}",
        "",
    ]
    table = Table(box=None, pad_edge=False, padding=(0, 1), header_style="bold", expand=True)
    for name in ("before", "now", *(each.name for each in columns)):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("source", ratio=1, no_wrap=True, overflow="ellipsis")
    for lines in beside(before, now):
        if lines.row.text.strip() or lines.row.counts is not None:
            table.add_row(*_row(lines, columns))
    total = click.style("Total: ", bold=True) + "; ".join(totals(before, now))
    return "\n".join([*head, rendered(table, width or WIDTH), total])


def _row(lines: Lines, columns: list[Measure]) -> list[Text]:
    style = _STYLES[lines.sign]
    cells = [str(row.number) if row is not None else "" for row in (lines.before, lines.now)]
    cells += [each.words(lines) for each in columns]
    return [
        *(Text(cell, style=style) for cell in cells),
        Text(f"{lines.sign} {printable(lines.row.text)}", style=style),
    ]
