"""Facts for people: the source with its line numbers, and under each line what is known of what stands there."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import click

from warpwright.cli.findings_text import columns, printable
from warpwright.facts.document import access_text, branch_text, compiled_texts, launch_text
from warpwright.facts.model import Access, Basis, Branch, Divergence, Kernel, Program, Space
from warpwright.syntax.source import Source, Span

NARROWEST = 40
"""Columns that a note has at least; where its carets leave less, it starts on a line of its own."""
LONGEST = 400
"""Characters of a source line up to which marks stand under it; those of a longer one name their column."""
_WASTEFUL = 2.0
_DIVERGES = (Divergence.PARTIAL, Divergence.EVERY_WARP)


@dataclass(frozen=True, slots=True)
class _Note:
    """`start` and `end` are 1-based columns in characters."""

    line: int
    start: int
    end: int
    text: str
    colour: str


def facts_listing(program: Program, kernels: Sequence[Kernel], whole: bool, width: int | None) -> str:
    """The file's text with what is known of `kernels`, wrapped to `width` columns; None does not wrap.

    All lines of the file where `whole`; else those of the kernels, and others with a note.
    """
    source = program.source
    notes: dict[int, dict[_Note, None]] = {}
    shown: set[int] = set()
    for kernel in kernels:
        for note in _notes(kernel, source):
            notes.setdefault(note.line, {})[note] = None
        if kernel.source is source:
            shown |= set(range(kernel.span.line, kernel.span.end_line + 1))
    count = len(source.line_starts) - (not source.data or source.data.endswith(b"\n"))
    if whole:
        shown = set(range(1, count + 1))
    gutter = len(str(count))
    lines: list[str] = []
    before = 0
    for number in sorted(shown | set(notes)):
        if before and number > before + 1:
            lines.append(click.style(f"{'...':>{gutter + 2}}", fg="blue"))
        text = source.line_text(number)
        lines.append(f"{click.style(f'{number:>{gutter}} |', fg='blue')} {printable(text)}".rstrip())
        lines += _under(text, sorted(notes.get(number, {}), key=lambda n: (n.start, n.end)), gutter, width)
        before = number
    return "\n".join(lines) + "\n"


def _notes(kernel: Kernel, source: Source) -> Iterator[_Note]:
    def note(span: Span, text: str, colour: str) -> _Note:
        end = span.end_column if span.end_line == span.line else len(source.line_text(span.line)) + 1
        return _Note(span.line, span.column, max(end, span.column + 1), " ".join(text.split()), colour)

    if kernel.name_span.source is source:
        for launch in kernel.launches:
            exact = launch.basis is Basis.EXACT
            yield note(kernel.name_span, launch_text(launch), "blue" if exact else "magenta")
        for text in compiled_texts(kernel):
            yield note(kernel.name_span, text, "cyan")
        if kernel.incomplete:
            yield note(kernel.name_span, f"not followed whole: {kernel.incomplete}", "magenta")
    for span, text, colour in _accesses(kernel):
        if span.source is source:
            yield note(span, text, colour)
    for branch in kernel.branches:
        if branch.span.source is source:
            yield note(branch.span, branch_text(branch), _branch_colour(branch))
    for barrier in kernel.barriers:
        if barrier.span.source is source:
            text = f"barrier: {'divergent' if barrier.divergent else 'uniform'}: {barrier.reason}"
            yield note(barrier.span, text, "red" if barrier.divergent else "bright_black")


def _accesses(kernel: Kernel) -> Iterator[tuple[Span, str, str]]:
    """(place, words, colour): a load and a store that cost the same are one, and launches that cost the same."""
    looked_at = {access.launch for access in kernel.accesses}
    places: dict[tuple[int, int, str], dict[tuple[str, str], list[Access]]] = {}
    for access in kernel.accesses:
        place = (access.span.start, access.span.end, access.span.path)
        kind = f"{access.space.value} {access.kind.value} of"
        text = access_text(access)
        rest = text[len(kind) :] if text.startswith(kind) else text
        places.setdefault(place, {}).setdefault((access.space.value, rest), []).append(access)
    for said in places.values():
        for (space, rest), accesses in said.items():
            kinds = " and ".join(dict.fromkeys(access.kind.value for access in accesses))
            launches = sorted({access.launch for access in accesses})
            which = ""
            if len(said) > 1 and len(launches) < len(looked_at):
                which = " [" + "; ".join(launch_text(kernel.launches[i]) for i in launches) + "]"
            yield accesses[0].span, f"{space} {kinds} of{rest}{which}", _access_colour(accesses[0])


def _access_colour(access: Access) -> str:
    if access.excess is None:
        return "magenta" if access.space in (Space.GLOBAL, Space.SHARED) else "cyan"
    return "red" if access.excess >= _WASTEFUL else "yellow" if access.excess > 1 else "green"


def _branch_colour(branch: Branch) -> str:
    if branch.divergence in (Divergence.DATA_DEPENDENT, Divergence.UNKNOWN):
        return "magenta"
    return "yellow" if branch.divergence in _DIVERGES else "bright_black"


def _under(text: str, notes: Sequence[_Note], gutter: int, width: int | None) -> Iterator[str]:
    """The lines below one of the source: carets once for each place, then what is known of it."""
    bar = click.style(f"{' ' * gutter} |", fg="blue")
    room = None if width is None else max(NARROWEST, width - gutter - 3)
    marked: tuple[int, int] | None = None
    for note in notes:
        place = (note.start, note.end)
        if len(text) > LONGEST:
            yield from (
                f"{bar} {click.style(line, fg=note.colour)}"
                for line in _wrapped(f"column {note.start}: {note.text}", 0, room)
            )
            continue
        indent = columns(text[: note.start - 1])
        carets = "^" * max(1, columns(text[: note.end - 1]) - indent)
        at = indent + len(carets) + 1
        first, *others = _wrapped(note.text, at, room)
        if room is not None and room - at < NARROWEST and len(note.text) > room - at:
            at = min(indent, max(0, room - NARROWEST))
            others = [f"{' ' * at}{line.strip()}" for line in _wrapped(note.text, at, room)]
            first = ""
        lead = carets if place != marked else " " * len(carets)
        head = f"{' ' * indent}{lead} {first.strip()}".rstrip()
        for line in [head, *others] if head else others:
            yield f"{bar} {click.style(line, fg=note.colour)}"
        marked = place


def _wrapped(text: str, indent: int, room: int | None) -> list[str]:
    """Lines of `text` behind an indent, none longer than `room` columns where that leaves enough."""
    if room is None or room - indent < NARROWEST or not text:
        return [" " * indent + text]
    return [" " * indent + line for line in textwrap.wrap(text, room - indent, break_long_words=False)]
