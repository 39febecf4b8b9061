"""Baselines: the findings that a legacy tree already has, so that only new ones fail."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from warpwright.cli.files import write_atomically
from warpwright.cli.findings import Row, fingerprints, relative
from warpwright.cli.terminal import CannotRun
from warpwright.syntax.encoding import encoded

VERSION = 1


@dataclass(frozen=True, slots=True)
class Entry:
    """One recorded finding: its fingerprint, `text` what it is apart from its file, and words that name it."""

    mark: str
    text: str
    rule: str
    file: str
    kernel: str

    def __str__(self) -> str:
        return f"{self.rule} in {self.file}" + (f" ({self.kernel})" if self.kernel else "")


@dataclass(frozen=True, slots=True)
class Compared:
    """`fresh` are the findings that are not recorded, `recorded` how many are, `stale` what is recorded and gone."""

    fresh: list[Row]
    recorded: int
    stale: list[Entry]


@dataclass(frozen=True, slots=True)
class Baseline:
    """Known findings; files are named relative to the folder that holds the baseline."""

    root: Path
    entries: tuple[Entry, ...]

    def compared(self, rows: Sequence[Row], checked: Iterable[str]) -> Compared:
        """The findings of the files `checked` against those recorded. What was recorded in a file that is gone is taken
        for the same in the file that has it now: that file was renamed. Recorded findings of files that were not
        looked at are not stale."""
        known = {entry.mark for entry in self.entries}
        gone = [entry for entry in self.entries if entry.file and not (self.root / entry.file).exists()]
        moved = Counter(entry.text for entry in gone)
        fresh: list[Row] = []
        marks = fingerprints(rows, self.root)
        for row, mark, apart in zip(rows, marks, fingerprints(rows, None), strict=True):
            if mark in known:
                continue
            if moved[apart] > 0:
                moved[apart] -= 1
            else:
                fresh.append(row)
        looked_at = {relative(file, self.root) for file in checked}
        stale = [entry for entry in self.entries if entry.file in looked_at and entry.mark not in set(marks)]
        for entry in gone:
            if moved[entry.text] > 0 and entry not in stale:
                moved[entry.text] -= 1
                stale.append(entry)
        return Compared(fresh, len(rows) - len(fresh), stale)


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
    names = ("id", "text", "rule", "file", "kernel")
    return Baseline(
        path.parent, tuple(Entry(*(str(finding.get(name) or "") for name in names)) for finding in findings)
    )


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
        write_atomically(path, encoded(text))
    except OSError as error:
        raise CannotRun(f"{path}: the baseline cannot be written ({error.strerror})") from None
