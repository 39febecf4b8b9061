"""A verification report in a terminal."""

from __future__ import annotations

import io
import os
import re
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from warpwright.cli.findings_text import printable
from warpwright.verify.presentation import blocks
from warpwright.verify.presentation.sections import coverage, headline, sections, summary
from warpwright.verify.presentation.several import overview

_STYLES = {"": "", "good": "green", "bad": "red", "warn": "yellow", "dim": "dim", "strong": "bold"}
WIDTH = 110
"""Where the output is no terminal."""
INDENT = 2
GAP = 2
LEAST_WORDS = 24

Json = Mapping[str, Any]


def report_text(report: Json, *, whole: bool = True) -> str:
    """The report's JSON as text; where it is not to be `whole`, the verdict, the reason and the ladder."""
    said = headline(report)
    head = Text(printable(said.text), style=f"bold {_STYLES[said.tone]}".strip())
    head.append(f"  {report['kernel']}" if report["kernel"] else "", style="not bold default")
    covered = coverage(report)
    lines = [head, *([Text(printable(covered.text), style=_STYLES[covered.tone])] if covered else [])]
    lines += [Text(printable(report["reason"]))] if report["reason"] else []
    return _rendered(lines, sections(report) if whole else summary(report))


def overview_text(what: str, reports: Sequence[tuple[str, Json]]) -> str:
    """Several reports at a glance; see `overview`."""
    return _rendered([], [overview(what, reports)])


def _rendered(lines: Sequence[Text], drawn: Sequence[blocks.Section]) -> str:
    """As ANSI text of the terminal's width; click takes the colours away where they are not wanted."""
    asked = sys.stdout.isatty() or "COLUMNS" in os.environ
    width = shutil.get_terminal_size().columns if asked else WIDTH
    parts: list[Text | Padding] = list(lines)
    for section in drawn:
        parts += _section(section, width)
    console = Console(file=io.StringIO(), width=width, color_system="standard", force_terminal=True, highlight=False)
    with console.capture() as captured:
        for part in parts:
            console.print(part)
    printed = captured.get().rstrip("\n")
    return re.sub(r"(?:\x1b\[[0-9;]*m| )+$", lambda end: end[0].replace(" ", ""), printed, flags=re.MULTILINE)


def _section(section: blocks.Section, width: int) -> Iterator[Text | Padding]:
    yield Text("")
    if section.title:
        yield Text(section.title, style="bold")
    for block in section.blocks:
        drawn = map(_table, _split(block, width - INDENT)) if isinstance(block, blocks.Table) else [_text(block)]
        yield from (Padding(each, (0, 0, 0, INDENT)) for each in drawn)


def _split(table: blocks.Table, width: int) -> list[blocks.Table]:
    """The table, or several with the first column in each where it is too wide: a number that is cut is a wrong one.
    A last column of words is wrapped and needs no room."""
    columns = range(len(table.head))
    widths = [max(len(table.head[at]), *(len(row[at].text) for row in table.rows), 0) + GAP for at in columns]
    if _is_wrapped(table):
        widths[-1] = LEAST_WORDS
    parts: list[list[int]] = [[0]]
    for at in columns[1:]:
        if sum(widths[each] for each in parts[-1]) + widths[at] - GAP > width and len(parts[-1]) > 1:
            parts.append([0])
        parts[-1].append(at)
    return [
        blocks.Table(
            tuple(table.head[at] for at in part),
            tuple(tuple(row[at] for at in part) for row in table.rows),
            frozenset(place for place, at in enumerate(part) if at in table.left),
        )
        for part in parts
    ]


def _is_wrapped(table: blocks.Table) -> bool:
    last = len(table.head) - 1
    return last in table.left and not any(row[last].drawn for row in table.rows)


def _table(block: blocks.Table) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim", show_header=any(block.head))
    last = len(block.head) - 1
    for number, name in enumerate(block.head):
        wrapped = number == last and _is_wrapped(block)
        justify: Literal["left", "right"] = "left" if number in block.left else "right"
        table.add_column(Text(name), justify=justify, no_wrap=not wrapped, overflow="fold")
    for row in block.rows:
        table.add_row(*(_text(cell) for cell in row))
    return table


def _text(cell: blocks.Cell) -> Text:
    text = cell.text if cell.drawn else printable(cell.text)
    return Text(text, style=_STYLES[cell.tone])
