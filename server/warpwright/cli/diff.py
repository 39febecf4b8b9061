"""Diffs on a terminal."""

from __future__ import annotations

from pathlib import Path

import click

from warpwright.cli.findings import relative
from warpwright.syntax.edits import unified_diff
from warpwright.syntax.source import Source


def source_diff(before: Source, after: Source) -> str:
    """Paths are relative to the working directory, so that `patch -p1` finds the file."""
    return unified_diff(before.text(), after.text(), relative(before.path, Path.cwd()).lstrip("/"))


def coloured(diff: str) -> str:
    """
    >>> coloured("+x\\n y\\n") == click.style("+x", fg="green") + "\\n y\\n"
    True
    """
    return "".join(_line(line) for line in diff.splitlines(keepends=True))


def _line(line: str) -> str:
    text = line.rstrip("\r\n")
    end = line[len(text) :]
    if text.startswith(("+++", "---")):
        return click.style(text, bold=True) + end
    colour = {"+": "green", "-": "red", "@": "cyan"}.get(text[:1])
    return (click.style(text, fg=colour) if colour else text) + end
