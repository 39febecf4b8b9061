"""Findings as the command line shows them: plain, picklable, in the terms of the output formats."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from warpwright.cli.inputs import Compiled, Resources
from warpwright.cuda.extension.near import unit_near
from warpwright.editor.promised import promised
from warpwright.facts.compiled import with_compiled
from warpwright.facts.model import Kernel, Space
from warpwright.rules.base import Finding, Severity
from warpwright.rules.folding import gathered
from warpwright.rules.registry import run_rules
from warpwright.syntax.encoding import encoded, units
from warpwright.syntax.source import SourceError, Span, read_source


@dataclass(frozen=True, slots=True)
class Place:
    """1-based, the end exclusive; columns count characters, `utf16_columns` (start, end) UTF-16 code units. `text` is
    the first line's."""

    file: str
    line: int
    column: int
    end_line: int
    end_column: int
    text: str
    utf16_columns: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Row:
    place: Place
    rule: str
    severity: Severity
    message: str
    kernel: str
    evidence: dict[str, object]
    fixes: tuple[tuple[str, str, bool], ...]  # rewrite, title, safe
    related: tuple[tuple[Place, str], ...]
    gain: float | None = None  # the estimated share of the kernel's time
    launched: bool = False  # whether a launch was read that it holds for

    def to_json(self) -> dict[str, object]:
        """The contract of `warpwright check --format json`."""
        place = self.place
        return {
            "file": place.file,
            "line": place.line,
            "column": place.column,
            "end_line": place.end_line,
            "end_column": place.end_column,
            "rule": self.rule,
            "severity": self.severity.value,
            "message": self.message,
            "kernel": self.kernel,
            "estimated_gain": self.gain,
            "evidence": self.evidence,
            "fixes": [{"rewrite": rewrite, "title": title, "safe": safe} for rewrite, title, safe in self.fixes],
            "related": [
                {"file": other.file, "line": other.line, "column": other.column, "message": message}
                for other, message in self.related
            ],
        }


@dataclass(frozen=True, slots=True)
class Checked:
    """What came of one file. `sources` are the files that its analysis covered, itself included."""

    path: str
    rows: tuple[Row, ...] = ()
    kernels: int = 0
    sources: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    failure: str | None = None
    accesses: int = 0
    uncounted: Mapping[str, int] = field(default_factory=dict[str, int])
    """How many accesses to global and shared memory there are, and how many could not be counted, by the reason."""


def check_file(
    path: str,
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    compiled: Compiled,
    profiled: bool = False,
    resources: Resources | None = None,
) -> Checked:
    """Analyse one file; where `profiled`, with the numbers of the kept profiles of its text, and with the `resources`
    that its compiled kernels take.

    Never raises: what cannot be read is a Checked with its failure.
    """
    try:
        source = read_source(path)
    except SourceError as error:
        return Checked(path, failure=str(error))
    try:
        program = compiled.unit(source)
        if profiled:
            from warpwright.editor.profile.store import load_profiles
            from warpwright.facts.profiled import with_profiles

            assume = compiled.assumptions(source)
            program = with_profiles(program, load_profiles(program, assume.defines, assume.arch))
        if resources:
            program = with_compiled(program, resources.get(path, ()))
        settings = compiled.settings(source)
        chosen = (select or settings.select, ignore or settings.ignore, settings.severities)
        found = run_rules(program, *chosen, unit_near(source))
        is_whole = program.source is source
        own = [each for each in found if is_whole or each.span.path == source.path]
        rows = tuple(_row(finding) for finding in gathered(promised(program, own, source)))
    except Exception as error:
        return Checked(path, failure=f"{path}: internal error: {type(error).__name__}: {error}; please report it")
    covered = tuple(program.sources) if is_whole else (source.path,)
    kernels = [kernel for kernel in program.defined_kernels if is_whole or kernel.span.path == source.path]
    accesses, uncounted = _evaluated(kernels)
    said = compiled.warnings(source)
    return Checked(path, rows, len(kernels), covered, said, accesses=accesses, uncounted=uncounted)


def _evaluated(kernels: Iterable[Kernel]) -> tuple[int, Counter[str]]:
    """How many places access global or shared memory, and of how many no launch says what they cost, by the reason."""
    places: dict[object, str] = {}
    for access in (a for kernel in kernels for a in kernel.accesses if a.space in (Space.GLOBAL, Space.SHARED)):
        key = access.span.key, access.kind
        reason = access.why if access.transactions is None and not access.joined else ""
        places[key] = min(places.get(key, reason), reason)
    return len(places), Counter(reason for reason in places.values() if reason)


def unique(rows: Iterable[Row]) -> list[Row]:
    """Sorted by place; what several files say about one header stands once, with the fix that one of them has, and what
    the file that launches its kernels says about it stands instead of what an assumed launch gave."""
    rows = sorted(rows, key=lambda row: not row.fixes)
    launched = {(row.place, row.rule) for row in rows if row.launched}
    found: dict[tuple[object, ...], Row] = {}
    for row in rows:
        if row.launched or (row.place, row.rule) not in launched:
            found.setdefault((row.place, row.rule, row.message), row)
    return sorted(found.values(), key=lambda r: (r.place.file, r.place.line, r.place.column, r.rule, r.message))


def ranked(rows: Iterable[Row]) -> list[Row]:
    """Errors first, then what gains most; what no gain is estimated of comes last, in the order of the text."""
    return sorted(rows, key=lambda row: (row.severity is not Severity.ERROR, row.gain is None, -(row.gain or 0.0)))


def fingerprints(rows: Sequence[Row], root: Path | None) -> list[str]:
    """One for each row, which stays when lines move: file (relative to root), rule, kernel and the line's words.

    Equal ones are numbered in the order of the text, so a second copy of a known defect is a new one. Without a root
    the file is left out, and nothing is numbered: what a finding is wherever it stands.
    """
    seen: Counter[str] = Counter()
    result = []
    for row in rows:
        words = " ".join(row.place.text.split())
        key = "\0".join((relative(row.place.file, root) if root is not None else "", row.rule, row.kernel, words))
        seen[key] += root is not None
        marked = encoded(f"{key}\0{seen[key]}")  # a file's name need not be UTF-8
        result.append(hashlib.sha256(marked).hexdigest()[:32])
    return result


def relative(file: str, root: Path) -> str:
    """`file` as seen from `root`, with forward slashes; absolute where it lies elsewhere."""
    absolute = Path(file).resolve()
    root = root.resolve()
    return absolute.relative_to(root).as_posix() if absolute.is_relative_to(root) else absolute.as_posix()


def checkout(folder: Path) -> Path:
    """The root of the checkout that holds `folder`, relative to which code scanning names files; `folder` where there
    is none."""
    folder = folder.resolve()
    return next((root for root in (folder, *folder.parents) if (root / ".git").exists()), folder)


def _row(finding: Finding) -> Row:
    return Row(
        place=_place(finding.span),
        rule=finding.rule,
        severity=finding.severity or Severity.WARNING,
        message=finding.message,
        kernel=finding.kernel,
        evidence=dict(finding.evidence),
        fixes=tuple((fix.rewrite, fix.title, fix.safe) for fix in finding.fixes),
        related=tuple((_place(related.span), related.message) for related in finding.related),
        gain=round(finding.gain, 4) if finding.gain is not None else None,
        launched=any(not related.alike for related in finding.related),
    )


def _place(span: Span) -> Place:
    text, last = (span.source.line_text(line) for line in (span.line, span.end_line))
    units = _utf16_column(text, span.column), _utf16_column(last, span.end_column)
    return Place(span.path, span.line, span.column, span.end_line, span.end_column, text, units)


def _utf16_column(line: str, column: int) -> int:
    """
    >>> _utf16_column("é😀x", 3)
    4
    """
    return units(line[: column - 1]) + 1
