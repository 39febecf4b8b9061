"""Findings for people: where, what, the source with carets, why, and how to get rid of it."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence

import click

from warpwright.cli.findings import Checked, Place, Row
from warpwright.rules.base import Severity

COLOURS = {
    Severity.ERROR: "red",
    Severity.WARNING: "yellow",
    Severity.INFORMATION: "blue",
    Severity.HINT: "cyan",
}
NOUNS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFORMATION: "note", Severity.HINT: "hint"}
TAB = 4


def findings_text(rows: Sequence[Row], checked: Sequence[Checked], recorded: int) -> str:
    blocks = ["\n".join(_block(row)) for row in rows]
    return "\n\n".join([*blocks, "\n".join(filter(None, (summary(rows, checked, recorded), not_evaluated(checked))))])


def not_evaluated(checked: Sequence[Checked]) -> str:
    """How many accesses nothing is said of, and why; "" for none.

    >>> one = Checked("a.cu", accesses=5, uncounted={"the address is read from memory": 2})
    >>> not_evaluated([one, one])
    '4 of 10 memory accesses not evaluated: the address is read from memory (4).'
    """
    reasons = sum((Counter(one.uncounted) for one in checked), Counter[str]())
    if not reasons:
        return ""
    why = ", ".join(f"{reason} ({number})" for reason, number in reasons.most_common())
    return f"{reasons.total()} of {sum(one.accesses for one in checked)} memory accesses not evaluated: {why}."


def statistics_text(rows: Sequence[Row]) -> str:
    """A line for each rule: how many findings, how many of them have a fix, and the largest estimated gain."""
    if not rows:
        return click.style("No findings", fg="green", bold=True) + "."
    lines = [("findings", "fixable", "gain", "rule")]
    for rule, number in Counter(row.rule for row in rows).most_common():
        own = [row for row in rows if row.rule == rule]
        gains = [row.gain for row in own if row.gain is not None]
        most = gain_text(max(gains)) if gains else "-"
        lines.append((str(number), str(sum(bool(row.fixes) for row in own)), most, rule))
    return "\n".join(f"{found:>8}  {fixable:>7}  {gain:>5}  {rule}" for found, fixable, gain, rule in lines)


def summary(rows: Sequence[Row], checked: Sequence[Checked], recorded: int) -> str:
    """One line: how many of what, in how much, and what can be fixed."""
    files = len([one for one in checked if one.failure is None])
    kernels = sum(one.kernels for one in checked)
    scope = f"{count(files, 'file')}, {count(kernels, 'kernel')}"
    known = f"; {count(recorded, 'known finding')} left out by the baseline" if recorded else ""
    if not rows:
        return click.style("No findings", fg="green", bold=True) + f" in {scope}{known}."
    tally = Counter(row.severity for row in rows)
    kinds = ", ".join(_severities(tally))
    fixable = [any(safe for *_, safe in row.fixes) for row in rows if row.fixes]
    safe, unsafe = fixable.count(True), fixable.count(False)
    fix = f"; `warpwright fix` has a fix for {safe or unsafe}" if fixable else ""
    fix += "" if not unsafe else f", `--unsafe` for {unsafe} more" if safe else " with `--unsafe`"
    return click.style(count(len(rows), "finding"), bold=True) + f" ({kinds}) in {scope}{known}{fix}."


def count(number: int, noun: str, plural: str = "") -> str:
    """
    >>> count(1, "file"), count(0, "file"), count(2, "fix", "fixes")
    ('1 file', '0 files', '2 fixes')
    """
    return f"{number} {noun if number == 1 else plural or noun + 's'}"


def _severities(tally: Counter[Severity]) -> Iterator[str]:
    for severity in Severity:
        if tally[severity]:
            yield click.style(count(tally[severity], NOUNS[severity]), fg=COLOURS[severity])


def gain_text(gain: float) -> str:
    """
    >>> gain_text(0.686), gain_text(0.0), gain_text(1.0)
    ('69%', '<1%', '100%')
    """
    return f"{gain:.0%}" if gain >= 0.01 else "<1%"


def _block(row: Row) -> Iterator[str]:
    place, colour = row.place, COLOURS[row.severity]
    head = click.style(f"{NOUNS[row.severity]}[{row.rule}]", fg=colour, bold=True)
    headline, *advice = row.message.split("\n")
    yield f"{head}: {click.style(headline, bold=True)}"
    width = len(str(max([place.line, *(related.line for related, _ in row.related)])))
    gutter = " " * width
    bar = click.style("|", fg="blue")
    where = f"{place.file}:{place.line}:{place.column}"
    gain = f", estimated gain {gain_text(row.gain)}" if row.gain is not None else ""
    yield f"{gutter}{click.style('-->', fg='blue')} {where}" + (f" in {row.kernel}" if row.kernel else "") + gain
    yield f"{gutter} {bar}"
    yield from _quoted(place, width, "^", colour)
    for other, message in row.related:
        if other.file != place.file:
            yield f"{gutter}{click.style('-->', fg='blue')} {other.file}:{other.line}:{other.column}"
        yield from _quoted(other, width, "-", "blue", message)
    for line in advice:
        yield f"{gutter} {click.style('= help', fg='cyan', bold=True)}: {line}"
    for _, title, safe in row.fixes:
        yield f"{gutter} {click.style('= fix', fg='green', bold=True)}: {title}" + (
            "" if safe else " (may change results)"
        )


def _quoted(place: Place, width: int, mark: str, colour: str, label: str = "") -> Iterator[str]:
    """The place's first line and marks under the part that is meant."""
    bar = click.style("|", fg="blue")
    number = click.style(f"{place.line:>{width}}", fg="blue")
    text = place.text.rstrip()
    start = min(place.column - 1, len(text))
    end = place.end_column - 1 if place.end_line == place.line else len(text)
    before = columns(text[:start])
    marked = max(1, columns(text[:end]) - before)
    yield f"{number} {bar} {printable(text)}"
    note = f" {label}" if label else ""
    yield f"{' ' * width} {bar} {' ' * before}{click.style(mark * marked + note, fg=colour)}"


def printable(text: str) -> str:
    """Tabs as spaces, and no character that a terminal would obey.

    >>> printable("\\tx\\x1b[2J")
    '    x\ufffd[2J'
    """
    expanded = text.expandtabs(TAB)
    return "".join(c if unicodedata.category(c) not in ("Cc", "Cf", "Cs") else "\ufffd" for c in expanded)


def columns(text: str) -> int:
    """How many terminal columns `text` takes; East Asian wide characters take two."""
    at = 0
    for char in text.expandtabs(TAB):
        wide = unicodedata.east_asian_width(char) in ("W", "F")
        at += 0 if unicodedata.combining(char) else 2 if wide else 1
    return at
