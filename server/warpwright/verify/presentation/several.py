"""Several reports at a glance: each verdict, and what the ratios come to. One large ratio lifts no mean of them all."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import geometric_mean, median

from warpwright.verify.presentation.blocks import Cell, Json, Section, Table, count
from warpwright.verify.presentation.sections import headline


def overview(what: str, reports: Sequence[tuple[str, Json]]) -> Section:
    """`reports` by name; `what` says what they are of, as "kernel"."""
    timed = any(report["speed"] for _, report in reports)
    head = (what, *(("median", "geometric mean", "shapes") if timed else ()), "verdict")
    rows = tuple(_row(name, report, timed=timed) for name, report in reports)
    blocks: list[Cell | Table] = [Table(head, rows, frozenset({0, len(head) - 1}))]
    own = [report["speed"][0]["speedup"] for _, report in reports if report["speed"]]
    if len(own) > 1:
        means = f"median {median(own):.2f}x, geometric mean {geometric_mean(own):.2f}x"
        blocks.append(Cell(f"Over {count(len(own), what)}, each at the user's own launch: {means}."))
    return Section(f"All {len(reports)}", tuple(blocks))


def _row(name: str, report: Json, *, timed: bool) -> tuple[Cell, ...]:
    ratios = [each["speedup"] for each in report["speed"]]
    figures = (f"{median(ratios):.2f}x", f"{geometric_mean(ratios):.2f}x", str(len(ratios))) if ratios else ("-",) * 3
    return Cell(name), *(Cell(text) for text in (figures if timed else ())), headline(report)
