"""Baselines: the findings that a legacy tree already has, so that only new ones fail."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from warpwright.cli.files import write_atomically
from warpwright.cli.findings import Row, fingerprints, relative
from warpwright.cli.terminal import CannotRun

VERSION = 1


@dataclass(frozen=True, slots=True)
class Baseline:
    """Fingerprints of known findings; files are named relative to the folder that holds the baseline."""

    root: Path
    known: frozenset[str]
    elsewhere: Mapping[str, Sequence[str]]  # by what a finding is apart from its file: the files where it was recorded

    def new(self, rows: Sequence[Row]) -> tuple[list[Row], int]:
        """The rows that are not recorded, and how many were. What was recorded in a file that is gone is taken for the
        same in the file that has it now: that file was renamed."""
        moved = Counter(
            {mark: sum(not (self.root / f).exists() for f in files) for mark, files in self.elsewhere.items()}
        )
        fresh: list[Row] = []
        for row, mark, apart in zip(rows, fingerprints(rows, self.root), fingerprints(rows, None), strict=True):
            if mark in self.known:
                continue
            if moved[apart] > 0:
                moved[apart] -= 1
            else:
                fresh.append(row)
        return fresh, len(rows) - len(fresh)


def read(path: Path) -> Baseline:
    """Raises CannotRun for a file that is missing or is not a baseline."""
    try:
        data = json.loads(path.read_bytes())
    except FileNotFoundError:
        raise CannotRun(f"{path}: no such baseline; --write-baseline {path} records one") from None
    except OSError as error:
        raise CannotRun(f"{path}: the baseline cannot be read ({error.strerror})") from None
    except ValueError as error:
        raise CannotRun(f"{path}: the baseline is not JSON ({error}); --write-baseline writes a new one") from None
    findings = data.get("findings") if isinstance(data, dict) and data.get("version") == VERSION else None
    if not isinstance(findings, list) or not all(
        isinstance(f, dict) and isinstance(f.get("id"), str) for f in findings
    ):
        raise CannotRun(f"{path}: not a baseline of version {VERSION}; --write-baseline writes a new one")
    elsewhere: dict[str, list[str]] = {}
    for finding in findings:
        if isinstance(finding.get("text"), str) and isinstance(finding.get("file"), str):
            elsewhere.setdefault(finding["text"], []).append(finding["file"])
    return Baseline(path.parent, frozenset(finding["id"] for finding in findings), elsewhere)


def write(path: Path, rows: Sequence[Row]) -> None:
    """One finding a line, in the order of the report, so that a review shows what came and went."""
    root = path.parent
    lines = [
        json.dumps(
            {"id": mark, "text": text, "rule": row.rule, "file": relative(row.place.file, root), "kernel": row.kernel}
        )
        for row, mark, text in zip(rows, fingerprints(rows, root), fingerprints(rows, None), strict=True)
    ]
    text = f'{{"version": {VERSION}, "findings": [\n' + ",\n".join(lines) + "\n]}\n"
    try:
        write_atomically(path, text.encode())
    except OSError as error:
        raise CannotRun(f"{path}: the baseline cannot be written ({error.strerror})") from None
