"""A profile for people: the source with each line's counts and a bar, then the totals and the faults."""

from __future__ import annotations

import io
from collections.abc import Sequence

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from warpwright.cli.findings_text import printable
from warpwright.editor.profile.view import (
    Counts,
    Row,
    View,
    counts_words,
    excess,
    fault_words,
    faults_words,
    made_by,
    run_of,
)
from warpwright.facts.profile import Fault

BAR = 8
WASTEFUL = 2.0
NOTABLE = 1.05
"""Times the fewest from which it is said: less would read as 1.0."""
WIDTH = 160
_EIGHTHS = " ▏▎▍▌▋▊▉█"
ORDERS = {
    "line": None,
    "instructions": lambda counts: counts.instructions,
    "sectors": lambda counts: (counts.global_sectors or (0,))[0],
    "wavefronts": lambda counts: (counts.shared_wavefronts or (0,))[0],
    "divergence": lambda counts: counts.divergent_branches,
}


def profile_text(view: View, order: str, width: int | None) -> str:
    """The view as a table of `width` columns; `order` is a key of ORDERS."""
    width = width or WIDTH
    profile = view.profile
    head = [
        click.style(profile.function or profile.kernel, bold=True),
        f"  {made_by(profile)}; {printable(run_of(profile))}",
        "",
    ]
    tables = [
        ("" if len(view.files) == 1 else f"{click.style(path, bold=True)}\n") + rendered(_table(view, rows), width)
        for path, rows in _chosen(view, order)
    ]
    tail = [_total(view)]
    tail += [f"{_mark(fault)}: {_fault(fault)}" for fault in profile.faults]
    tail += [f"note: {printable(note)}" for note in profile.notes]
    return "\n".join([*head, "\n".join(tables), *tail])


def _chosen(view: View, order: str) -> list[tuple[str, list[Row]]]:
    """The rows to show of each file: all between the first and the last that count, or those executed, worst first."""
    key = ORDERS[order]
    if key is None:
        return [(f.path, [row for row in f.rows if f.first <= row.number <= f.last]) for f in view.files]
    chosen = []
    for file in view.files:
        rows = [(row, row.counts) for row in file.rows if row.counts is not None]
        rows.sort(key=lambda each: key(each[1]), reverse=True)
        if rows:
            chosen.append((file.path, [row for row, _ in rows]))
    return chosen


def _table(view: View, rows: Sequence[Row]) -> Table:
    """Columns of a memory that the kernel does not use are left out."""
    total = view.total
    table = Table(box=None, pad_edge=False, padding=(0, 1), header_style="bold", expand=True)
    table.add_column("", justify="right", style="blue", no_wrap=True)
    table.add_column(f"{view.instruction_set.value.upper()} instructions", justify="right", no_wrap=True)
    table.add_column("", no_wrap=True, style="cyan", min_width=BAR)
    table.add_column("threads", justify="right", no_wrap=True)
    memories = [
        name
        for name, pair in (
            ("global sectors", total.global_sectors),
            ("shared wavefronts", total.shared_wavefronts),
            ("local sectors", total.local_sectors),
        )
        if pair is not None
    ]
    for name in memories:
        table.add_column(name, justify="right", no_wrap=True)
        table.add_column("", justify="right", no_wrap=True)
    table.add_column("divergent", justify="right", no_wrap=True)
    table.add_column("source", ratio=1, no_wrap=True, overflow="ellipsis")
    for row in rows:
        if not row.text.strip() and row.counts is None and not row.faults:
            continue
        table.add_row(str(row.number), *_cells(view, row.counts, memories), Text(printable(row.text)))
        for fault in row.faults:
            table.add_row("", *[""] * (4 + 2 * len(memories)), Text(f"^ {fault.kind.value}", style="bold red"))
    return table


def _cells(view: View, counts: Counts | None, memories: Sequence[str]) -> list[Text | str]:
    if counts is None:
        return [""] * (4 + 2 * len(memories))
    cells: list[Text | str] = [
        f"{counts.instructions:,}",
        bar(counts.instructions, view.largest.instructions),
        f"{counts.threads_per_instruction:.1f}",
    ]
    pairs = {
        "global sectors": counts.global_sectors,
        "shared wavefronts": counts.shared_wavefronts,
        "local sectors": counts.local_sectors,
    }
    for name in memories:
        pair = pairs[name]
        cells.append("" if pair is None else f"{pair[0]:,}")
        cells.append(_times(pair))
    share = f" of {counts.branches:,}" if counts.branches else ""
    cells.append(
        "" if not counts.branches else Text(f"{counts.divergent_branches:,}{share}", style=_branch_style(counts))
    )
    return cells


def _branch_style(counts: Counts) -> str:
    return "yellow" if counts.divergent_branches else "bright_black"


def _times(pair: tuple[int, int | None] | None) -> Text | str:
    """How many times the fewest: red from twice on, nothing where it is the fewest."""
    ratio = excess(pair)
    if ratio is None or ratio < NOTABLE:
        return ""
    return Text(f"{ratio:.1f}x", style="bold red" if ratio >= WASTEFUL else "yellow")


def bar(value: int, largest: int, width: int = BAR) -> str:
    """A bar of `width` cells at most, in eighths of one; what is not 0 shows.

    >>> bar(8, 8), bar(1, 8, 4), bar(0, 8), bar(1, 10_000)
    ('████████', '▌', '', '▏')
    """
    if value <= 0 or largest <= 0:
        return ""
    eighths = max(1, round(8 * width * value / largest))
    return "█" * (eighths // 8) + _EIGHTHS[eighths % 8].strip()


def _total(view: View) -> str:
    faults = faults_words(view.profile)
    found = click.style(f"; {faults}", fg="red" if view.profile.own_faults else "yellow", bold=True) if faults else ""
    return click.style("Total: ", bold=True) + counts_words(view.total, view.instruction_set) + found


def _mark(fault: Fault) -> str:
    return click.style("note", bold=True) if fault.guessed else click.style("fault", fg="red", bold=True)


def _fault(fault: Fault) -> str:
    return f"{fault.file}:{fault.line}: {printable(fault_words(fault))}"


def rendered(table: Table, width: int) -> str:
    console = Console(file=io.StringIO(), width=width, force_terminal=True, color_system="standard", highlight=False)
    console.print(table)
    text = console.file.getvalue()  # type: ignore[attr-defined]
    return "\n".join(line.rstrip() for line in str(text).splitlines())
