"""What a compiler said of a document, at its place in the text, which it keeps while the text around it is edited."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path, PurePath
from typing import Any

from warpwright.syntax.edits import TextEdit
from warpwright.syntax.encoding import encoded, shown_bytes
from warpwright.syntax.names import unqualified
from warpwright.syntax.source import Source
from warpwright.toolchain.messages import CompilerMessage, Note
from warpwright.toolchain.quoted import columns_of, unescaped

MOST_REMARKS = 200
"""Of one document: a missing brace can make thousands."""
_MOST_NESTED = 64
_END_OF_ERRORS = "ptxas: Ptx assembly aborted due to errors"
_INCLUDE = re.compile(rb'^[ \t]*#[ \t]*include[ \t]*(?P<name>"[^"\n]+"|<[^>\n]+>)', re.MULTILINE)
_ENTRY = re.compile(r"Entry function '([^']+)'")

Include = tuple[int, int, str]
"""Where the name in an `#include` stands, and the name, with its angle brackets where it has them."""


@dataclass(frozen=True, slots=True)
class Aside:
    """What explains a remark. `line` is 1-based; `start` and `end` are bytes of the document, None in another file."""

    path: str
    line: int
    text: str
    start: int | None = None
    end: int | None = None


@dataclass(frozen=True, slots=True)
class Remark:
    """One message at bytes [start, end) of the document. `severity` is "error", "warning" or "information"."""

    start: int
    end: int
    severity: str
    message: str
    code: str = ""
    asides: tuple[Aside, ...] = ()

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @staticmethod
    def from_json(value: Mapping[str, Any]) -> Remark:
        return Remark(**{**value, "asides": tuple(Aside(**aside) for aside in value["asides"])})


Includer = Callable[[str, str], Source | None]
"""(path of the including file, name as written, a quoted one without its quotes) -> the included file."""


def remarks_of(
    messages: Iterable[CompilerMessage], source: Source, ways: Mapping[str, tuple[int, int]]
) -> tuple[Remark, ...]:
    """The compiler's messages at their places in `source`, each once. `ways` are those of `ways_to_includes`.

    A message of an included file stands where the document instantiates what it is about, else at the include.
    """
    placed = (_remark(message, source, ways) for message in messages if message.text != _END_OF_ERRORS)
    unique = {(remark.start, remark.end, remark.severity, remark.message): remark for remark in placed}
    return tuple(unique.values())[:MOST_REMARKS]


def carried(remarks: Sequence[Remark], edit: TextEdit | None) -> tuple[Remark, ...]:
    """The remarks after an edit; without those whose text it changed.

    >>> remarks = [Remark(2, 3, "error", "a"), Remark(6, 7, "error", "b"), Remark(9, 9, "error", "c")]
    >>> [(r.start, r.message) for r in carried(remarks, TextEdit(5, 7, "four"))]
    [(2, 'a'), (11, 'c')]
    """
    if edit is None:
        return tuple(remarks)
    moved = (_moved(remark.start, remark.end, edit) for remark in remarks)
    return tuple(
        replace(remark, start=place[0], end=place[1], asides=tuple(_asides(remark.asides, edit)))
        for remark, place in zip(remarks, moved, strict=True)
        if place is not None
    )


def ways_to_includes(source: Source, include: Includer) -> dict[str, tuple[int, int]]:
    """The absolute paths of the files that a document includes, and through which `#include` of the document each
    comes: where the name in it stands. Read without regard to `#if`; a cycle is followed once."""
    own = str(Path(source.path).absolute())
    ways: dict[str, tuple[int, int]] = {own: (0, 0)}
    for start, end, name in _includes_of(source):
        left = [(source.path, name, 0)]
        while left:
            from_path, wanted, depth = left.pop()
            found = include(from_path, wanted)
            path = str(Path(found.path).absolute()) if found is not None else own
            if found is not None and path not in ways and depth < _MOST_NESTED:
                ways[path] = (start, end)
                left += [(found.path, further, depth + 1) for _, _, further in _includes_of(found)]
    del ways[own]
    return ways


def line_span(source: Source, line: int) -> tuple[int, int]:
    """The bytes of a 1-based line without the blanks around it; of a line past the end those of the last."""
    return _span(source, line, "", -1)


def _moved(start: int, end: int, edit: TextEdit) -> tuple[int, int] | None:
    if end <= edit.start:
        return start, end
    if start >= edit.end:
        shift = len(encoded(edit.new_text)) - (edit.end - edit.start)
        return start + shift, end + shift
    return None


def _asides(asides: Iterable[Aside], edit: TextEdit) -> Iterator[Aside]:
    for aside in asides:
        if aside.start is None or aside.end is None:
            yield aside
        elif place := _moved(aside.start, aside.end, edit):
            yield replace(aside, start=place[0], end=place[1])


def _remark(message: CompilerMessage, source: Source, ways: Mapping[str, tuple[int, int]]) -> Remark:
    text = unescaped(message.text)
    notes = [replace(note, path=note.path or message.path) for note in message.notes]
    if not message.line:
        start, end = _unplaced(message, source)
    elif message.path == source.path:
        start, end = _span(source, message.line, message.quoted, message.caret)
    else:
        start, end = _way_to(message.path, notes, source, ways)
        text = f"in {PurePath(message.path).name}, line {message.line}: {text}"
        notes.insert(0, Note(message.path, message.line, unescaped(message.text)))
    asides = tuple(_aside(note, source) for note in notes)
    return Remark(start, end, message.severity, text, message.code, asides)


def _aside(note: Note, source: Source) -> Aside:
    text = unescaped(note.text)
    if note.path != source.path:
        return Aside(note.path, note.line, text)
    return Aside(note.path, note.line, text, *line_span(source, note.line))


def _span(source: Source, line: int, quoted: str, caret: int) -> tuple[int, int]:
    line = min(max(line, 1), len(source.line_starts))
    text = source.line_text(line)
    first, last = columns_of(text, quoted, caret)
    start = source.line_starts[line - 1]
    return start + _bytes(source, start, text, first), start + _bytes(source, start, text, last)


def _bytes(source: Source, start: int, text: str, column: int) -> int:
    """Bytes before a column of a line, of which some may not be UTF-8 and show as one character each."""
    size = len(encoded(text[:column]))
    if "\N{REPLACEMENT CHARACTER}" not in text[:column]:
        return size
    return next((n for n in range(column, size + 1) if len(source.text(start, start + n)) >= column), size)


def _unplaced(message: CompilerMessage, source: Source) -> tuple[int, int]:
    """Of what ptxas says of a kernel, its name; of what comes at the end of the source, the last line with text."""
    if entry := _ENTRY.search(message.text):
        name = encoded(re.escape(unqualified(entry[1])))
        defined = re.search(rb"\b__global__\b[^;{}]*?\b(?P<name>%s)[ \t\n]*\(" % name, source.data)
        if defined is not None:
            return defined.span("name")
    if message.text.startswith("at the end of the source"):
        return line_span(source, source.position(len(source.data.rstrip()))[0])
    return line_span(source, 1)


def _way_to(path: str, notes: Iterable[Note], source: Source, ways: Mapping[str, tuple[int, int]]) -> tuple[int, int]:
    """Where the document leads to a place in another file: what it instantiates, or what it includes."""
    here = next((note for note in notes if note.path == source.path), None)
    if here is not None:
        return line_span(source, here.line)
    way = ways.get(str(Path(path).absolute()))
    if way is not None:
        return way
    ending = PurePath(path).as_posix()
    named = ((start, end) for start, end, name in _includes_of(source) if ending.endswith(f"/{name.strip('<>')}"))
    return next(named, line_span(source, 1))


def _includes_of(source: Source) -> Iterator[Include]:
    for match in _INCLUDE.finditer(source.data):
        name = shown_bytes(match["name"])
        yield match.start("name"), match.end("name"), name.strip('"')
