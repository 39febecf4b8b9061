"""Findings as workflow commands of GitHub Actions, which show them as annotations of a pull request."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from warpwright.cli.findings import Row, relative
from warpwright.rules.base import Severity

LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFORMATION: "notice", Severity.HINT: "notice"}


def github_lines(rows: Sequence[Row], failures: Sequence[str], root: Path) -> Iterator[str]:
    """Files below `root`, the checkout, are named relative to it. What could not be read has no place in a file."""
    for row in rows:
        place = row.place
        properties = {
            "file": relative(place.file, root),
            "line": place.line,
            "endLine": place.end_line,
            "title": f"warpwright: {row.rule}",
        }
        if place.line == place.end_line:  # columns of an annotation that spans lines are refused
            properties |= {"col": place.column, "endColumn": max(place.column, place.end_column - 1)}
        listed = ",".join(f"{name}={_property(str(value))}" for name, value in properties.items())
        yield f"::{LEVELS[row.severity]} {listed}::{_data(row.message)}"
    for failure in failures:
        yield f"::error title=warpwright::{_data(failure)}"


def _data(text: str) -> str:
    """
    >>> _data("100% of\\nit")
    '100%25 of%0Ait'
    """
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
