"""A trace's report for a terminal."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator

from rich.console import Console, RenderableType
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from warpwright.timeline.host import Cause
from warpwright.timeline.kernels import base_name
from warpwright.timeline.places import text_at
from warpwright.timeline.report import Report
from warpwright.timeline.words import does, milliseconds, shown

_MOST_LINES = 8
_MOST_KERNELS = 8
_MOST_PROPOSALS = 6
COLOURS = {
    Cause.GPU: "green",
    Cause.LAUNCHES: "red",
    Cause.SYNCHRONISATION: "magenta",
    Cause.COPIES: "yellow",
    Cause.LOADING: "blue",
    Cause.OPERATORS: "cyan",
    Cause.PYTHON: "bright_black",
    Cause.HOST: "bright_black",
    Cause.SETUP: "white",
}


def trace_text(report: Report, width: int) -> str:
    """All of it, with colours."""
    out = io.StringIO()
    console = Console(file=out, width=width, force_terminal=True, highlight=False, color_system="standard")
    for part in _parts(report, width):
        console.print(part)
    return out.getvalue().rstrip("\n")


def _parts(report: Report, width: int) -> Iterator[RenderableType]:
    whole = report.shared
    devices = f" on {', '.join(dict.fromkeys(report.trace.devices))}" if report.trace.devices else ""
    recording = f", recording {milliseconds(whole.wall - whole.own)} not counted" if whole.own < whole.wall else ""
    yield Text.from_markup(
        f"[bold]{escape(report.trace.made_by)}[/]{escape(devices)}: {milliseconds(whole.own)}{recording}, "
        f"bound by [bold]{whole.bound}[/]"
    )
    for note in report.trace.notes:
        yield Text.from_markup(f"[cyan]note[/]: {escape(note)}")
    yield ""
    for cause, share in whole.shares().items():
        bar = "█" * max(1, round(share * (width - 36))) if share >= 0.002 else ""
        yield Text.from_markup(f"  {cause:<16}{share:>6.1%}  [{COLOURS[cause]}]{bar}[/]")
    yield ""
    yield from _lines(report)
    yield from _kernels(report)
    yield from _proposals(report)


def _lines(report: Report) -> Iterator[RenderableType]:
    if not report.lines:
        yield "No line is known: the trace has no Python stacks. Record it with_stack=True, or by `warpwright trace`."
        return
    table = Table(box=None, pad_edge=False, header_style="bold", title="Lines", title_justify="left")
    table.add_column("line", overflow="fold")
    table.add_column("GPU idle" if report.has_gpu else "time", justify="right")
    table.add_column("for")
    table.add_column("GPU" if report.has_gpu else "", justify="right")
    table.add_column("does", overflow="fold")
    for cost in report.lines[:_MOST_LINES]:
        cause = max(cost.idle, key=lambda each: cost.idle[each], default=None)
        text = text_at(cost.place)
        what = "; ".join(each for each in (does(cost), text) if each)
        gpu = milliseconds(cost.gpu) if cost.gpu else ""
        table.add_row(escape(shown(cost.place)), milliseconds(cost.wall), cause or "", gpu, escape(what))
    yield table
    yield ""


def _kernels(report: Report) -> Iterator[RenderableType]:
    if not report.kernels:
        return
    table = Table(box=None, pad_edge=False, header_style="bold", title="Kernels", title_justify="left")
    table.add_column("kernel")
    for name in ("launches", "time", "each"):
        table.add_column(name, justify="right")
    table.add_column("source")
    for each in report.kernels[:_MOST_KERNELS]:
        source = f"{os.path.relpath(each.file)}:{each.line}" if each.file else ""
        row = (
            escape(base_name(each.name)),
            f"{each.count}",
            milliseconds(each.time),
            milliseconds(each.time / each.count),
        )
        table.add_row(*row, escape(source))
    yield table
    yield ""


def _proposals(report: Report) -> Iterator[RenderableType]:
    if not report.proposals:
        yield "Nothing to propose that would gain 3% or more."
    for each in report.proposals[:_MOST_PROPOSALS]:
        places = ", ".join(shown(place) for place in each.places)
        yield Text.from_markup(f"[bold green]up to {each.gain:.2f}x[/] [bold]{each.kind}[/]: {escape(each.text)}")
        yield Text.from_markup(f"    {escape(places)}{': ' if places else ''}[bright_black]{escape(each.basis)}[/]")
