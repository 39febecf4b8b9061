"""The editor's plain data in the protocol's types. Positions are in the units agreed with the client."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from lsprotocol import types

from warpwright.editor.diagnostics import SOURCE, Diagnostic
from warpwright.editor.text import Encoding, Position, Text
from warpwright.rules.base import Severity
from warpwright.syntax.edits import TextEdit
from warpwright.syntax.source import Source, Span
from warpwright.toolchain.remarks import Aside, Remark

if TYPE_CHECKING:
    from warpwright.lsp.documents import Document

SEVERITIES = {
    Severity.ERROR: types.DiagnosticSeverity.Error,
    Severity.WARNING: types.DiagnosticSeverity.Warning,
    Severity.INFORMATION: types.DiagnosticSeverity.Information,
    Severity.HINT: types.DiagnosticSeverity.Hint,
}

COMPILER = "nvcc"
_REMARK_SEVERITIES = {
    "error": types.DiagnosticSeverity.Error,
    "warning": types.DiagnosticSeverity.Warning,
    "information": types.DiagnosticSeverity.Information,
}

UriOf = Callable[[str], str]
"""The address of a path: an open document's own, or one made from the path."""


def position(value: types.Position) -> Position:
    return Position(value.line, value.character)


def range_of(text: Text, start: int, end: int, encoding: Encoding) -> types.Range:
    """Byte offsets of a text as a range of it."""
    first, last = text.position(start, encoding), text.position(end, encoding)
    return types.Range(types.Position(first.line, first.character), types.Position(last.line, last.character))


class Ranges:
    """Ranges of spans that may lie in several files; each file's lines are found once."""

    def __init__(self, encoding: Encoding) -> None:
        self._encoding = encoding
        self._texts: dict[int, tuple[Source, Text]] = {}

    def of(self, span: Span) -> types.Range:
        source = span.source
        if id(source) not in self._texts:
            self._texts[id(source)] = (source, Text.of_bytes(source.data))
        return range_of(self._texts[id(source)][1], span.start, span.end, self._encoding)


def to_diagnostic(diagnostic: Diagnostic, ranges: Ranges, uri_of: UriOf) -> types.Diagnostic:
    return types.Diagnostic(
        range=ranges.of(diagnostic.span),
        severity=SEVERITIES[diagnostic.severity],
        code=diagnostic.rule,
        code_description=types.CodeDescription(href=diagnostic.page),
        source=SOURCE,
        message=diagnostic.message,
        related_information=[
            types.DiagnosticRelatedInformation(
                location=types.Location(uri=uri_of(related.span.path), range=ranges.of(related.span)),
                message=related.message,
            )
            for related in diagnostic.related
        ]
        or None,
        data=diagnostic.data,
    )


def remark_diagnostic(remark: Remark, document: Document, encoding: Encoding, uri_of: UriOf) -> types.Diagnostic:
    """What the compiler said. A place in another file is its line: its text is not at hand."""

    def location(aside: Aside) -> types.Location:
        if aside.start is not None and aside.end is not None:
            return types.Location(document.uri, range_of(document.text, aside.start, aside.end, encoding))
        start = types.Position(max(0, aside.line - 1), 0)
        return types.Location(uri_of(aside.path), types.Range(start, start))

    return types.Diagnostic(
        range=range_of(document.text, remark.start, remark.end, encoding),
        severity=_REMARK_SEVERITIES[remark.severity],
        code=remark.code or None,
        source=COMPILER,
        message=remark.message,
        related_information=[types.DiagnosticRelatedInformation(location(a), a.text) for a in remark.asides] or None,
    )


def to_edits(text: Text, edits: Iterable[TextEdit], encoding: Encoding) -> list[types.TextEdit]:
    return [types.TextEdit(range_of(text, edit.start, edit.end, encoding), edit.new_text) for edit in edits]
