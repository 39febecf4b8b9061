"""Findings as a report of GitLab's code quality, which shows them in a merge request."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from warpwright.cli.findings import Row, fingerprints, relative
from warpwright.rules.base import Severity

LEVELS = {Severity.ERROR: "critical", Severity.WARNING: "major", Severity.INFORMATION: "minor", Severity.HINT: "info"}


def gitlab_report(rows: Sequence[Row], root: Path) -> list[dict[str, object]]:
    """Files below `root`, the checkout, are named relative to it."""
    return [
        {
            "check_name": row.rule,
            "description": " ".join(row.message.splitlines()),
            "fingerprint": mark,
            "severity": LEVELS[row.severity],
            "location": {
                "path": relative(row.place.file, root),
                "lines": {"begin": row.place.line, "end": row.place.end_line},
            },
        }
        for row, mark in zip(rows, fingerprints(rows, root), strict=True)
    ]
